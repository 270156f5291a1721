//! The rows of a replica's sessions in host memory: for a CPU, and for a device that cannot hold them. Every cache has one tensor `[places,
//! …]` of committed rows and one of staged rows.

use super::finite::is_finite;
use super::layout::{Layout, ParkedFrames, Write};
use crate::core::memory::Block;

/// Committed and staged rows of one cache, of all places.
pub(super) struct HostCache {
    pub(super) committed: Block,
    pub(super) staged: Block,
}

pub(super) struct HostRows(pub(super) Vec<HostCache>);

impl HostRows {
    /// Zeroes for the places, which use memory only where they were written.
    pub(super) fn new(layout: &Layout, places: usize) -> Result<HostRows, String> {
        let blocks = layout.caches.iter().map(|cache| {
            let (committed, staged) = layout.place_bytes(cache);
            Ok(HostCache { committed: Block::locked(places * committed)?, staged: Block::locked(places * staged)? })
        });
        Ok(HostRows(blocks.collect::<Result<_, String>>()?))
    }

    /// Committed and staged rows of one lead of a place.
    fn lead(&self, layout: &Layout, index: usize, place: usize, lead: usize) -> (*mut u8, *mut u8) {
        let (cache, HostCache { committed, staged }) = (&layout.caches[index], &self.0[index]);
        let at = place * cache.leads + lead;
        let row = cache.lead_len(layout.window_tokens());
        let block = cache.lead_len(layout.facts.block_tokens());
        debug_assert!((at + 1) * row <= committed.len() && (at + 1) * block <= staged.len());
        // SAFETY: inside the blocks, which have room for all leads of all places.
        unsafe { (committed.address().add(at * row), staged.address().add(at * block)) }
    }

    /// Whether the staged rows of the frames are finite; the error names the first cache whose rows are not. All committed rows have passed
    /// here. So a mask can hide what lies in a place behind the length of its session, also rows of another one. Only the user of the place
    /// calls it.
    pub(super) fn check_staged(&self, layout: &Layout, place: usize, frames: usize) -> Result<(), String> {
        for (index, cache) in layout.caches.iter().enumerate() {
            let len = cache.lead_len(frames * layout.facts.tokens);
            for lead in 0..cache.leads {
                let (_, staged) = self.lead(layout, index, place, lead);
                // SAFETY: inside the lead; the inference that wrote it has ended, and the caller has the place alone.
                let values = unsafe { std::slice::from_raw_parts(staged, len) };
                if !is_finite(values, cache.dtype) {
                    return Err(format!("the rows of {} for its memory are not finite", cache.name));
                }
            }
        }
        Ok(())
    }

    /// Copies a kept block to the end of the committed rows. Only the user of the place calls it.
    pub(super) fn apply_write(&self, layout: &Layout, place: usize, write: Write) -> Result<(), String> {
        let tokens = layout.facts.tokens;
        for (index, cache) in layout.caches.iter().enumerate() {
            for lead in 0..cache.leads {
                let (committed, staged) = self.lead(layout, index, place, lead);
                // SAFETY: both ranges lie inside their leads (`plan` keeps from + frames within the window), the blocks are two
                // mappings, and the caller is the only user of the place's rows.
                unsafe {
                    let to = committed.add(cache.lead_len(write.from * tokens));
                    std::ptr::copy_nonoverlapping(staged, to, cache.lead_len(write.frames * tokens));
                }
            }
        }
        Ok(())
    }

    /// Each piece of a place's rows, with its start in a parked block. Committed pieces come first; both parts are ordered by caches and
    /// leads.
    fn pieces(&self, layout: &Layout, place: usize, kept: ParkedFrames, mut each: impl FnMut(*mut u8, usize, usize)) {
        let mut at = 0;
        for (frames, is_staged) in [(kept.committed, false), (kept.staged, true)] {
            for (index, cache) in layout.caches.iter().enumerate() {
                for lead in 0..cache.leads {
                    let (committed, staged) = self.lead(layout, index, place, lead);
                    let len = cache.lead_len(frames * layout.facts.tokens);
                    each(if is_staged { staged } else { committed }, at, len);
                    at += len;
                }
            }
        }
    }

    /// Copies the rows of a place into a parked block. Only the user of both calls it.
    pub(super) fn park(&self, layout: &Layout, place: usize, kept: ParkedFrames, block: &Block) -> Result<(), String> {
        check(layout, kept, block);
        self.pieces(layout, place, kept, |from, at, len| {
            // SAFETY: inside the place and, by `check`, inside the block, which are different mappings; nobody else uses either.
            unsafe { std::ptr::copy_nonoverlapping(from, block.address().add(at), len) }
        });
        Ok(())
    }

    /// Copies a parked block into a place. Only the user of both calls it.
    pub(super) fn bring_back(
        &self,
        layout: &Layout,
        place: usize,
        kept: ParkedFrames,
        block: &Block,
    ) -> Result<(), String> {
        check(layout, kept, block);
        self.pieces(layout, place, kept, |to, at, len| {
            // SAFETY: as in `park`.
            unsafe { std::ptr::copy_nonoverlapping(block.address().add(at), to, len) }
        });
        Ok(())
    }
}

fn check(layout: &Layout, ParkedFrames { committed, staged }: ParkedFrames, block: &Block) {
    assert!(layout.bytes(committed + staged) <= block.len(), "a parked block has room for a whole memory");
}
