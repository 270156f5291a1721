//! The graph that copies a session's staged rows to its committed ones, in the memory of a device that takes no addresses from the host.
//!
//! `ScatterND` writes rows of one tensor over rows of another one, named by their numbers. Its output is bound to the memory of its input,
//! so that the rows which stay are not touched. The values are moved as integers of 32 bits, whatever their type: to the bit.

use super::{I32, I64, node, typed};

/// Names of the values of a cache.
pub struct Names {
    /// Committed rows, i32 `[rows, words]`.
    pub committed: String,
    /// Staged rows, i32 `[staged, words]`.
    pub staged: String,
    /// The row that each staged one is written to, i64 `[staged, 1]`.
    pub to: String,
    /// The committed rows behind the copy, where they were.
    pub kept: String,
}

/// Of cache number `index`, whose rows are numbered as those of all caches with so many leads.
pub fn names(index: usize, leads: usize) -> Names {
    Names {
        committed: format!("committed{index}"),
        staged: format!("staged{index}"),
        to: to(leads),
        kept: format!("kept{index}"),
    }
}

/// The input that numbers the rows of caches with so many leads.
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
