//! The session slot for the proof of a replica.

use super::Episodes;

/// Slot 0 of a replica's memory during its proof; no session has it yet. Slots differ in their addresses alone, so one is enough. It is
/// empty after the proof, also after a panic.
pub struct ProofSlot<'a>(&'a Episodes);

impl<'a> ProofSlot<'a> {
    /// None while an inference has it.
    pub fn of(episodes: &'a Episodes) -> Option<ProofSlot<'a>> {
        episodes.forget(0).then_some(ProofSlot(episodes))
    }
}

impl Drop for ProofSlot<'_> {
    fn drop(&mut self) {
        self.0.settle(0, false);
        self.0.forget(0);
    }
}
