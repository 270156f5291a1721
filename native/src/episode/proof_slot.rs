//! A session slot for the proof of a replica.

use super::Episodes;

/// Slot 0 of a replica's memory while it is proved. It stands for all: they differ in their addresses alone. No session has it
/// yet. However the proof ends, with a panic too, the next device that is tried finds the slot empty.
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
