//! Episode memory of one replica: what its sessions have seen, in slots that are addressed by index.
//!
//! Every cache of the graphs has one tensor `[slots, …]` of committed rows and one of staged rows, bound once. A run reads its
//! slot's committed rows and writes its new block to the slot's staged rows; `settle` keeps or forgets the block. Keeping is
//! carried out when somebody looks at the slot next, so that no caller waits for memory to be moved. A run that fails, is
//! cancelled or is not kept leaves no trace.

use crate::manifest::{Dim, Manifest, MemoryFacts, Port, Role};
use crate::memory::Block;
use crate::sync::lock;
use std::hash::Hasher;
use std::sync::Mutex;

/// Memory for the slots of one replica where the configuration does not say how many: 1 GiB, and no more slots than these.
const MEMORY_BYTES_MAX: usize = 1 << 30;
const SLOTS_MAX: usize = 64;
/// More than this is a mistake in the configuration.
const MEMORY_BYTES_MOST: usize = 1 << 40;

/// Committed and staged rows of one cache.
struct Cache {
    /// Name of the block in prefill and extend.
    name: String,
    /// Rows of one slot stand as `[leads, tokens, width]`.
    leads: usize,
    width: usize,
    committed: Block<f32>,
    staged: Block<f32>,
}

/// What one slot holds.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Committed latent frames.
    frames: usize,
    /// A run has the slot, until it is settled.
    taken: bool,
    /// What that run would leave behind.
    staged: Option<Write>,
    /// A kept block that is not moved yet.
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
    /// A first observation, a later one, or one that starts the window anew.
    pub entry: Entry,
    /// Latent frames that the run reads.
    pub kept: usize,
    /// Latent frames that it writes.
    pub written: usize,
}

/// Which graph reads the frames.
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
    /// Memory for `slots` sessions, all of it taken now; the error is a sentence.
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

    /// How the next run on this slot would go; None for a slot that is not there.
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

    /// Gives the slot to a run. False while another one has it.
    pub fn take(&self, slot: usize) -> bool {
        !std::mem::replace(&mut lock(&self.slots[slot]).taken, true)
    }

    /// Makes the slot's committed rows whole, before a run reads them. Called by the slot's run alone.
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

    /// Ends the slot's run: what it staged is kept or forgotten.
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

    /// Forgets what the slot holds. False while a run has it.
    pub fn forget(&self, slot: usize) -> bool {
        let mut state = lock(&self.slots[slot]);
        if !state.taken {
            *state = Slot::default();
        }
        !state.taken
    }

    /// Slots that hold something, and the bytes that they hold.
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

    /// Moves a kept block behind the committed rows. Called by the slot's only user.
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

/// FNV-1a, 64 bits: for comparing, not for security.
struct Fnv(u64);

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of one cache `[2, tokens, 3]`, window 5 of 2 tokens, first 1, later 2.
    fn episodes(slots: usize) -> Episodes {
        let facts = MemoryFacts { window: 5, tokens: 2, first: 1, later: 2 };
        let cache = Cache {
            name: "k".into(),
            leads: 2,
            width: 3,
            committed: Block::locked(slots * 2 * 10 * 3).unwrap(),
            staged: Block::locked(slots * 2 * 4 * 3).unwrap(),
        };
        Episodes { facts, caches: vec![cache], slots: (0..slots).map(|_| Mutex::default()).collect() }
    }

    /// A run that writes `value` everywhere it may.
    fn run(episodes: &mut Episodes, slot: usize, value: f32, keep: bool) -> Pass {
        assert!(episodes.take(slot));
        episodes.begin(slot);
        let pass = episodes.plan(slot).unwrap();
        let len = 2 * 4 * 3;
        episodes.caches[0].staged[slot * len..(slot + 1) * len].fill(value);
        episodes.stage(slot, pass);
        episodes.settle(slot, keep);
        pass
    }

    #[test]
    fn a_window_fills_and_starts_anew() {
        let mut episodes = episodes(1);
        let passes: Vec<_> = (0..6).map(|step| run(&mut episodes, 0, step as f32, true)).collect();
        let pass = |entry, kept, written| Pass { entry, kept, written };
        assert_eq!(
            passes,
            [
                pass(Entry::First, 0, 1),
                pass(Entry::Later, 1, 2),
                pass(Entry::Later, 3, 2),
                pass(Entry::Reset, 0, 1),
                pass(Entry::Later, 1, 2),
                pass(Entry::Later, 3, 2),
            ]
        );
    }

    #[test]
    fn what_is_not_kept_leaves_no_trace() {
        let mut clean = episodes(2);
        let mut other = episodes(2);
        for (value, keep) in
            [(1.0, true), (7.0, false), (2.0, true), (8.0, false), (3.0, true), (9.0, false), (4.0, true)]
        {
            run(&mut other, 1, value, keep);
            if keep {
                run(&mut clean, 0, value, true);
            }
            assert_eq!(clean.look(0), other.look(1));
        }
        assert_eq!(other.look(1).unwrap().0, 1);
    }

    #[test]
    fn a_slot_has_one_user_and_is_forgotten_when_it_has_none() {
        let mut episodes = episodes(2);
        run(&mut episodes, 0, 1.0, true);
        assert_eq!(episodes.held(), (1, 2 * 3 * 2 * 4));
        assert!(episodes.take(0));
        assert!(!episodes.take(0) && !episodes.forget(0) && episodes.look(0).is_none());
        episodes.settle(0, true);
        assert!(episodes.forget(0));
        assert_eq!((episodes.held(), episodes.plan(0).unwrap().entry), ((0, 0), Entry::First));
        assert_eq!(episodes.plan(2), None);
    }

    #[test]
    fn slots_and_caches_do_not_overlap() {
        let mut episodes = episodes(3);
        for slot in 0..3 {
            run(&mut episodes, slot, slot as f32 + 1.0, true);
        }
        let digests: Vec<_> = (0..3).map(|slot| episodes.look(slot).unwrap().1).collect();
        assert!(digests[0] != digests[1] && digests[1] != digests[2]);
        let before = digests[2];
        run(&mut episodes, 1, 50.0, true);
        run(&mut episodes, 1, 60.0, true);
        assert_eq!(episodes.look(2).unwrap().1, before);
    }
}
