//! The graph that copies a session's staged rows to its committed ones, in the memory of a device whose addresses the host cannot use.
//!
//! `ScatterND` writes rows of one tensor over rows of another, by their indices. Its output is bound to the memory of its input, so that
//! other rows stay untouched. Rows are moved as integers of 32 bits, which keeps their bits.

use super::{I32, I64, node, typed};

/// Names of the values of a cache.
pub struct Names {
    /// Committed rows, i32 `[rows, words]`.
    pub committed: String,
    /// Staged rows, i32 `[staged, words]`.
    pub staged: String,
    /// The row that each staged one is written to, i64 `[staged, 1]`.
    pub to: String,
    /// The committed rows after the copy, in the same memory.
    pub kept: String,
}

/// The names for cache number `index`. Caches with the same number of leads share their row indices.
pub fn names(index: usize, leads: usize) -> Names {
    Names {
        committed: format!("committed{index}"),
        staged: format!("staged{index}"),
        to: to(leads),
        kept: format!("kept{index}"),
    }
}

/// The input with the row indices of caches with `leads` leads.
pub fn to(leads: usize) -> String {
    format!("to{leads}")
}

pub fn model(leads: &[usize]) -> Vec<u8> {
    let (mut inputs, mut outputs, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    for (index, &leads) in leads.iter().enumerate() {
        let Names { committed, staged, to, kept } = names(index, leads);
        nodes.push(node(&format!("copy{index}"), "ScatterND", &[&committed, &to, &staged], &[&kept]));
        let rows = (to, I64);
        if !inputs.contains(&rows) {
            inputs.push(rows);
        }
        inputs.extend([(committed, I32), (staged, I32)]);
        outputs.push((kept, I32));
    }
    typed(&inputs, &outputs, &nodes)
}
