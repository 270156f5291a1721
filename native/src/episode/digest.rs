//! A digest of a session's memory, with which tests compare slots.

use super::Episodes;
use super::device;
use super::layout::{Cache, Layout, ParkedFrames, Write};
use super::rows::Rows;
use super::seats::Home;
use crate::core::memory::Block;
use crate::core::sync::lock;
use std::hash::{DefaultHasher, Hasher};

impl Episodes {
    /// Latent frames of a slot, and a digest of their values, which is the same in every place. None while an inference has the slot, while
    /// its rows move, or if the device does not give them. The replica waits meanwhile if it needs a slot.
    pub fn content(&self, slot: usize) -> Option<(usize, u64)> {
        let mut seats = lock(&self.seats);
        if seats.slots[slot].taken || seats.slots[slot].moving {
            return None;
        }
        let state = &mut seats.slots[slot];
        let frames = state.frames;
        let digest = match state.home {
            Home::Nowhere => DefaultHasher::new().finish(),
            Home::Place(place) => {
                if let Some(write) = state.pending {
                    self.append_block(place, write).ok()?;
                    state.pending = None;
                }
                let (kept, block) =
                    (ParkedFrames { committed: frames, staged: 0 }, Block::lazy(self.slot_bytes()).ok()?);
                self.rows.park(place, kept, &block).ok()?;
                self.rows.digest(kept, frames, None, &block)
            }
            Home::Parked { block, kept } => self.rows.digest(kept, frames, state.pending, self.block(block)),
        };
        Some((frames, digest))
    }
}

impl Rows {
    /// The digest of a parked block whose staged rows `pending` keeps.
    fn digest(&self, kept: ParkedFrames, frames: usize, pending: Option<Write>, block: &[u8]) -> u64 {
        let mut digest = DefaultHasher::new();
        let Write { from, frames: written } = pending.unwrap_or(Write { from: frames, frames: 0 });
        let each = |cache: &Cache, at: usize, staged_at: usize| {
            let len = |frames: usize| cache.lead_len(frames * self.layout.facts.tokens);
            digest.write(&block[at..at + len(from)]);
            digest.write(&block[staged_at..staged_at + len(written)]);
        };
        match self.device() {
            Some(_) => device::parked_leads(&self.layout, each),
            None => host_leads(&self.layout, kept, each),
        }
        digest.finish()
    }
}

/// The start of the committed and the staged rows of each lead in a block that `HostRows::park` has written.
fn host_leads(layout: &Layout, kept: ParkedFrames, mut each: impl FnMut(&Cache, usize, usize)) {
    let (mut at, mut staged_at) = (0, layout.bytes(kept.committed));
    for cache in &layout.caches {
        for _ in 0..cache.leads {
            each(cache, at, staged_at);
            at += cache.lead_len(kept.committed * layout.facts.tokens);
            staged_at += cache.lead_len(kept.staged * layout.facts.tokens);
        }
    }
}
