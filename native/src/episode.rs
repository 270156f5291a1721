//! Episode memory of one replica: one slot per session, addressed by index.
//!
//! Every cache of the graphs has one tensor `[slots, …]` of committed rows and one of staged rows, bound once. A run reads its
//! slot's committed rows and writes its new block to the slot's staged rows; `settle` keeps or discards the block. A kept block is
//! copied when the slot is used next, so that no caller waits for the copy. A run that fails, is cancelled or is discarded
//! changes nothing.

mod digest;
#[cfg(test)]
mod tests;

use self::digest::Fnv;
use crate::manifest::{Dim, Manifest, MemoryFacts, Port, Role};
use crate::memory::Block;
use crate::sync::lock;
use std::hash::Hasher;
use std::sync::Mutex;

/// Memory for the slots of one replica, and their number at most, if the configuration does not set the number.
const MEMORY_BYTES_MAX: usize = 1 << 30;
const SLOTS_MAX: usize = 64;
/// More than this is a mistake in the configuration.
const MEMORY_BYTES_MOST: usize = 1 << 40;

/// Committed and staged rows of one cache.
struct Cache {
    /// Name of the block in prefill and extend.
    name: String,
    /// The rows of one slot are `[leads, tokens, width]`.
    leads: usize,
    width: usize,
    committed: Block<f32>,
    staged: Block<f32>,
}

/// State of one slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Committed latent frames.
    frames: usize,
    /// A run has the slot, until it is settled.
    taken: bool,
    /// The block that this run has written, if it is kept.
    staged: Option<Write>,
    /// A kept block that is not copied yet.
    pending: Option<Write>,
}

/// Latent frames from `from` on.
#[derive(Clone, Copy)]
struct Write {
    from: usize,
    frames: usize,
}

/// How a run reads and writes its slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pass {
    /// The graph that reads the frames.
    pub entry: Entry,
    /// Latent frames that the run reads.
    pub kept: usize,
    /// Latent frames that it writes.
    pub written: usize,
}

/// How an observation is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Entry {
    /// Prefill, on an empty memory.
    First,
    /// Extend.
    Later,
    /// Prefill on the last of the frames; the block replaces the memory.
    Reset,
}

/// The slots of one replica.
pub struct Episodes {
    facts: MemoryFacts,
    caches: Vec<Cache>,
    slots: Vec<Mutex<Slot>>,
}

impl Episodes {
    /// Memory for `slots` sessions, all of it allocated now; the error is a sentence.
    pub fn new(manifest: &Manifest, facts: MemoryFacts, slots: Option<usize>) -> Result<Episodes, String> {
        let blocks: Vec<&Port> =
            manifest.graphs.prefill.outputs.iter().filter(|port| port.role == Role::Block).collect();
        if blocks.is_empty() {
            return Err("a model with memory has no block to keep".into());
        }
        let sizes = |port: &Port| -> Result<(usize, usize), String> {
            let fixed = |dim: &Dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None };
            let dims: Option<Vec<usize>> = port.shape.iter().map(fixed).collect();
            match dims.as_deref() {
                Some([leads @ .., tokens, width]) if *tokens == facts.block_tokens() => {
                    Ok((leads.iter().product(), *width))
                }
                _ => Err(format!("{} is not [..., {}, width] of fixed sizes", port.name, facts.block_tokens())),
            }
        };
        let rows: usize =
            blocks.iter().map(|port| sizes(port).map(|(leads, width)| leads * width)).sum::<Result<_, _>>()?;
        let slot_bytes = rows * size_of::<f32>() * (facts.window * facts.tokens + facts.block_tokens());
        let fit = (MEMORY_BYTES_MAX / slot_bytes.max(1)).clamp(1, SLOTS_MAX);
        let count = slots.unwrap_or(fit);
        if count == 0 || count.checked_mul(slot_bytes).is_none_or(|bytes| bytes > MEMORY_BYTES_MOST) {
            return Err(format!(
                "{count} slots of {slot_bytes} bytes each are asked for; name at least 1, in 1 TiB at most"
            ));
        }
        let caches = blocks
            .iter()
            .map(|port| {
                let (leads, width) = sizes(port)?;
                let committed = Block::locked(count * leads * facts.window * facts.tokens * width)?;
                let staged = Block::locked(count * leads * facts.block_tokens() * width)?;
                Ok(Cache { name: port.name.clone(), leads, width, committed, staged })
            })
            .collect::<Result<_, String>>()?;
        Ok(Episodes { facts, caches, slots: (0..count).map(|_| Mutex::default()).collect() })
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Address of slot 0 and values from one slot to the next, for the committed or the staged rows of a cache.
    pub fn address(&self, name: &str, role: Role) -> Option<(*mut f32, usize)> {
        let cache = self.caches.iter().find(|cache| cache.name == name)?;
        let block = if role == Role::Memory { &cache.committed } else { &cache.staged };
        Some((block.address(), block.len() / self.slots.len()))
    }

    /// How the next run on this slot will read and write; None for a slot that does not exist.
    pub fn plan(&self, slot: usize) -> Option<Pass> {
        let MemoryFacts { window, first, later, .. } = self.facts;
        let kept = lock(self.slots.get(slot)?).frames;
        Some(if kept == 0 {
            Pass { entry: Entry::First, kept, written: first }
        } else if kept + later <= window {
            Pass { entry: Entry::Later, kept, written: later }
        } else {
            Pass { entry: Entry::Reset, kept: 0, written: first }
        })
    }

    /// Reserves the slot for a run. False while another one has it.
    pub fn take(&self, slot: usize) -> bool {
        !std::mem::replace(&mut lock(&self.slots[slot]).taken, true)
    }

    /// Copies a kept block, before a run reads the committed rows. Called by the slot's run alone.
    pub fn begin(&self, slot: usize) {
        let pending = lock(&self.slots[slot]).pending.take();
        if let Some(write) = pending {
            self.carry_out(slot, write);
        }
    }

    /// Notes what the slot's run has written to its staged rows.
    pub fn stage(&self, slot: usize, pass: Pass) {
        lock(&self.slots[slot]).staged = Some(Write { from: pass.kept, frames: pass.written });
    }

    /// Ends the slot's run: its staged block is kept or discarded.
    pub fn settle(&self, slot: usize, keep: bool) {
        let mut state = lock(&self.slots[slot]);
        let staged = state.staged.take();
        if let (true, Some(write)) = (keep, staged) {
            // The run has begun, so nothing was pending.
            state.pending = Some(write);
            state.frames = write.from + write.frames;
        }
        state.taken = false;
    }

    /// Empties the slot. False while a run has it.
    pub fn forget(&self, slot: usize) -> bool {
        let mut state = lock(&self.slots[slot]);
        if !state.taken {
            *state = Slot::default();
        }
        !state.taken
    }

    /// Slots that are not empty, and their bytes.
    pub fn held(&self) -> (usize, usize) {
        let frame_bytes: usize =
            self.caches.iter().map(|cache| cache.leads * cache.width * self.facts.tokens * size_of::<f32>()).sum();
        let frames = self.slots.iter().map(|slot| lock(slot).frames);
        frames.fold((0, 0), |(slots, bytes), frames| (slots + usize::from(frames > 0), bytes + frames * frame_bytes))
    }

    /// Latent frames of a slot, and a digest of their values that is the same in every slot; None while a run has it.
    pub fn look(&self, slot: usize) -> Option<(usize, u64)> {
        if !self.take(slot) {
            return None;
        }
        self.begin(slot);
        let frames = lock(&self.slots[slot]).frames;
        let mut digest = Fnv::default();
        digest.write_usize(frames);
        for cache in &self.caches {
            for lead in 0..cache.leads {
                let row = cache.lead_len(self.facts.window * self.facts.tokens);
                let start = (slot * cache.leads + lead) * row;
                // SAFETY: inside the block; `take` has made this thread the slot's only user.
                let values = unsafe {
                    std::slice::from_raw_parts(
                        cache.committed.address().add(start),
                        cache.lead_len(frames * self.facts.tokens),
                    )
                };
                values.iter().for_each(|value| digest.write_u32(value.to_bits()));
            }
        }
        lock(&self.slots[slot]).taken = false;
        Some((frames, digest.finish()))
    }

    /// Copies a kept block to the end of the committed rows. Called by the slot's only user.
    fn carry_out(&self, slot: usize, write: Write) {
        let MemoryFacts { window, tokens, .. } = self.facts;
        for cache in &self.caches {
            let (row, block) = (cache.lead_len(window * tokens), cache.lead_len(self.facts.block_tokens()));
            for lead in 0..cache.leads {
                let index = slot * cache.leads + lead;
                // SAFETY: both ranges lie inside their blocks (`plan` keeps from + frames within the window), the blocks are
                // two mappings, and whoever has taken the slot is the only user of its rows.
                unsafe {
                    let from = cache.staged.address().add(index * block);
                    let to = cache.committed.address().add(index * row + cache.lead_len(write.from * tokens));
                    std::ptr::copy_nonoverlapping(from, to, cache.lead_len(write.frames * tokens));
                }
            }
        }
    }
}

impl Cache {
    /// Values of one lead with this many tokens.
    fn lead_len(&self, tokens: usize) -> usize {
        tokens * self.width
    }
}
