//! A digest of memory, for tests that compare slots.

use super::Episodes;
use super::seats::Home;
use crate::core::sync::lock;
use std::hash::Hasher;

/// FNV-1a, 64 bits: for comparing, not for security.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Episodes {
    /// Latent frames of a slot, and a digest of their values that is the same wherever they lie; None while an inference has it, or they move, or where a
    /// device does not give them.
    /// The replica waits meanwhile if it needs a slot: for tests.
    pub fn content(&self, slot: usize) -> Option<(usize, u64)> {
        let mut seats = lock(&self.seats);
        if seats.slots[slot].taken || seats.is_moving(slot) {
            return None;
        }
        let state = &mut seats.slots[slot];
        let frames = state.frames;
        let digest = match state.home {
            Home::Nowhere => self.rows.digest(0, 0).ok()?,
            Home::Place(place) => {
                if let Some(write) = state.pending {
                    self.append_block(place, write).ok()?;
                    state.pending = None;
                }
                self.rows.digest(place, frames).ok()?
            }
            Home::Parked { block, kept } => self.rows.digest_parked(kept, frames, state.pending, self.block(block)),
        };
        Some((frames, digest))
    }
}
