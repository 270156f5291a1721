//! The promised bytes that sessions have come to use. Used bytes are measured as no longer free, so only the rest is kept for them
//! (`room.rs`).
//!
//! Written bytes count, in whole rows and blocks: the system may have given more, never less. A place stays used when its session leaves;
//! the pages of a block go back.

use super::Episodes;
use super::layout::Write;
use crate::bundle::manifest::MemoryFacts;
use crate::core::room::Promises;
use crate::core::sync::lock;
use std::sync::Mutex;

pub(super) struct MemoryAccount {
    inner: Mutex<Inner>,
    promises: &'static Promises,
}

#[derive(Default)]
struct Inner {
    /// Bytes written in each place and each parked block, and their sum.
    places: Vec<usize>,
    blocks: Vec<usize>,
    written_bytes: usize,
    /// Bytes promised, and those of them that are kept.
    promised: usize,
    kept: usize,
}

impl MemoryAccount {
    pub(super) fn new(places: usize, promises: &'static Promises) -> MemoryAccount {
        MemoryAccount { inner: Mutex::new(Inner { places: vec![0; places], ..Inner::default() }), promises }
    }

    /// Promises bytes for the places and blocks, once. Bytes used before are part of them.
    pub(super) fn promise(&self, bytes: usize, blocks: usize) {
        let mut inner = lock(&self.inner);
        inner.promised = bytes;
        inner.blocks = vec![0; blocks];
        self.keep(&mut inner);
    }

    /// Counts the bytes written in a place. It stays at the most so far.
    pub(super) fn place(&self, place: usize, bytes: usize) {
        let mut inner = lock(&self.inner);
        let Inner { places, written_bytes, .. } = &mut *inner;
        raise(&mut places[place], written_bytes, bytes);
        self.keep(&mut inner);
    }

    pub(super) fn block(&self, block: usize, bytes: usize) {
        let mut inner = lock(&self.inner);
        let Inner { blocks, written_bytes, .. } = &mut *inner;
        raise(&mut blocks[block], written_bytes, bytes);
        self.keep(&mut inner);
    }

    /// The pages of a block went back to the system.
    pub(super) fn released(&self, block: usize) {
        let mut inner = lock(&self.inner);
        inner.written_bytes -= std::mem::take(&mut inner.blocks[block]);
        self.keep(&mut inner);
    }

    fn keep(&self, inner: &mut Inner) {
        let kept = inner.promised.saturating_sub(inner.written_bytes);
        self.promises.change(inner.kept, kept);
        inner.kept = kept;
    }
}

fn raise(written: &mut usize, written_bytes: &mut usize, bytes: usize) {
    *written_bytes += bytes.saturating_sub(*written);
    *written = bytes.max(*written);
}

impl Drop for MemoryAccount {
    fn drop(&mut self) {
        self.promises.change(lock(&self.inner).kept, 0);
    }
}

impl Episodes {
    /// Copies a kept block to the end of the committed rows. Only the user of the place calls it.
    pub(super) fn append_block(&self, place: usize, write: Write) -> Result<(), String> {
        self.rows.apply_write(place, write)?;
        self.count_written(place, write.from + write.frames);
        Ok(())
    }

    /// Counts the frames written in a place, and its staged rows. Rows on a device use no host memory.
    pub(super) fn count_written(&self, place: usize, frames: usize) {
        if self.is_on_device() {
            return;
        }
        let MemoryFacts { first, later, .. } = self.rows.layout.facts;
        self.account.place(place, self.rows.layout.bytes(frames + first.max(later)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::tests::{computed, run, with_capacity};

    /// A model that is loaded beside a busy one does not count the same bytes as used and as promised.
    #[test]
    fn what_a_session_has_come_to_use_is_not_kept_for_it_any_more() {
        static PROMISES: Promises = Promises::new();
        let promises = &PROMISES;
        // A frame takes 48 bytes, a place 5 of them and a block of 2, a parked session 7.
        let (frame, slot) = (48, 7 * 48);
        let mut episodes = with_capacity(2, 1);
        episodes.account = MemoryAccount::new(2, promises);
        assert_eq!(promises.bytes(), 0);
        run(&mut episodes, 0, 1.0, true);
        assert_eq!(promises.bytes(), 0, "nothing was promised yet, as while a model is proved");
        episodes.account.promise(3 * slot, 3);
        assert_eq!(promises.bytes(), 3 * slot - 2 * frame, "what an inference has staged");
        // The block of 1 frame is committed when the next run begins; then one of 2.
        run(&mut episodes, 0, 2.0, true);
        assert_eq!(promises.bytes(), 3 * slot - 3 * frame);
        run(&mut episodes, 0, 3.0, true);
        assert_eq!(promises.bytes(), 3 * slot - 5 * frame);
        run(&mut episodes, 1, 4.0, true);
        assert_eq!(promises.bytes(), 3 * slot - 7 * frame);
        // Session 0 was idle for the longest, with 5 frames. Its place is used already.
        run(&mut episodes, 2, 5.0, true);
        assert_eq!(promises.bytes(), 3 * slot - 14 * frame);
        drop(episodes);
        assert_eq!(promises.bytes(), 0);
    }

    #[test]
    fn a_place_that_was_left_stays_used_and_a_block_that_was_given_back_is_kept_again() {
        static PROMISES: Promises = Promises::new();
        let promises = &PROMISES;
        let slot = 7 * 48;
        let mut episodes = with_capacity(1, 1);
        episodes.account = MemoryAccount::new(1, promises);
        episodes.account.promise(2 * slot, 3);
        run(&mut episodes, 0, 1.0, true);
        computed(&mut episodes, 1, 2.0);
        episodes.settle(1, false);
        let written_bytes = promises.bytes();
        assert!(episodes.forget(0) && episodes.forget(1));
        assert_eq!(promises.bytes(), written_bytes);
        episodes.give_back();
        // The block had one frame. The place had it too, and the staged rows of two inferences.
        assert_eq!(promises.bytes(), 2 * slot - 3 * 48);
        assert_eq!(written_bytes, promises.bytes() - 48);
    }

    #[test]
    fn more_than_was_promised_is_not_taken_from_others() {
        static PROMISES: Promises = Promises::new();
        let promises = &PROMISES;
        promises.change(0, 100);
        let account = MemoryAccount::new(1, promises);
        account.promise(10, 1);
        account.place(0, 8);
        account.block(0, 8);
        assert_eq!(promises.bytes(), 100);
        account.released(0);
        assert_eq!(promises.bytes(), 102);
        drop(account);
        assert_eq!(promises.bytes(), 100);
    }
}
