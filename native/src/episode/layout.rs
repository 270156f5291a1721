//! The parts of one session's memory: committed and staged rows of every cache.

use crate::bundle::manifest::{Dim, Manifest, MemoryFacts, Port, Role};
use crate::core::dtype::Dtype;

/// Values of one token in all leads of a block; more is a mistake in a manifest.
const ROW_VALUES_MAX: usize = 1 << 28;

/// One cache: committed rows `[leads, window tokens, width]` and staged ones `[leads, block tokens, width]` of each place.
pub(super) struct Cache {
    /// Name of the block in prefill and extend.
    pub(super) name: String,
    pub(super) leads: usize,
    pub(super) width: usize,
    pub(super) dtype: Dtype,
}

pub(super) struct Layout {
    pub(super) facts: MemoryFacts,
    pub(super) caches: Vec<Cache>,
}

/// Latent frames from `from` on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Write {
    pub(super) from: usize,
    pub(super) frames: usize,
}

/// Latent frames of a parked block: committed ones, then staged ones of an inference that is not settled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ParkedFrames {
    pub(super) committed: usize,
    pub(super) staged: usize,
}

impl Cache {
    /// Bytes of one lead with this many tokens.
    pub(super) fn lead_len(&self, tokens: usize) -> usize {
        tokens * self.width * self.dtype.bytes()
    }
}

impl Layout {
    /// The caches that prefill writes; the error is a sentence.
    pub(super) fn of(manifest: &Manifest, facts: MemoryFacts) -> Result<Layout, String> {
        let blocks = manifest.graphs.prefill.outputs.iter().filter(|port| port.role == Role::Block);
        let caches: Vec<Cache> = blocks.map(|port| cache(port, facts)).collect::<Result<_, _>>()?;
        if caches.is_empty() {
            return Err("a model with memory has no block to keep".into());
        }
        let layout = Layout { facts, caches };
        let rows = layout.caches.iter().map(|cache| cache.leads * cache.lead_len(1)).sum();
        let tokens = facts.window.checked_mul(facts.tokens).and_then(|all| all.checked_add(facts.block_tokens()));
        tokens.and_then(|all| all.checked_mul(rows)).ok_or("its memory is larger than any")?;
        Ok(layout)
    }

    /// Bytes of latent frames, over all caches.
    pub(super) fn bytes(&self, frames: usize) -> usize {
        self.caches.iter().map(|cache| cache.leads * cache.lead_len(frames * self.facts.tokens)).sum()
    }

    /// Bytes of one session at most: all its rows, and a block that is not settled.
    pub(super) fn slot_bytes(&self) -> usize {
        self.bytes(self.facts.window + self.facts.first.max(self.facts.later))
    }

    pub(super) fn window_tokens(&self) -> usize {
        self.facts.window * self.facts.tokens
    }

    /// Every block that an inference can write: the first one, and those behind it until the window is full.
    pub(super) fn writes(&self) -> Vec<Write> {
        let MemoryFacts { window, first, later, .. } = self.facts;
        let behind = (first..).step_by(later.max(1)).take_while(|from| from + later <= window);
        let behind = behind.map(|from| Write { from, frames: later });
        [Write { from: 0, frames: first }].into_iter().chain(behind).collect()
    }

    /// Bytes of the committed and of the staged rows of a cache in one place.
    pub(super) fn place_bytes(&self, cache: &Cache) -> (usize, usize) {
        let all = |tokens| cache.leads * cache.lead_len(tokens);
        (all(self.window_tokens()), all(self.facts.block_tokens()))
    }
}

fn cache(port: &Port, facts: MemoryFacts) -> Result<Cache, String> {
    let fixed = |dim: &Dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None };
    let dims: Option<Vec<usize>> = port.shape.iter().map(fixed).collect();
    match dims.as_deref() {
        Some([leads @ .., tokens, width]) if *tokens == facts.block_tokens() => {
            let all = leads.iter().chain([width]).try_fold(1, |all: usize, size| all.checked_mul(*size));
            match all {
                Some(1..=ROW_VALUES_MAX) => {
                    let leads = leads.iter().product();
                    Ok(Cache { name: port.name.clone(), leads, width: *width, dtype: port.dtype })
                }
                _ => Err(format!("{} has no rows, or larger ones than a memory", port.name)),
            }
        }
        _ => Err(format!("{} is not [..., {}, width] of fixed sizes", port.name, facts.block_tokens())),
    }
}
