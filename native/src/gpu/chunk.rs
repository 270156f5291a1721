//! Launches chunk decode (`native/cuda/chunk.cu`) and reads its verdict.

use super::device::{Device, Function, Memory, Module};
use super::{Address, CudaError, Shape, params};
use crate::bundle::manifest;
use std::sync::Arc;

/// `Scale` of chunk.cu: robot = (model + shift) · factor + offset, with the model's value kept between `low` and `high`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub factor: f64,
    pub offset: f64,
    pub low: f64,
    pub high: f64,
    pub shift: f32,
    /// 1: each operation is rounded to f32.
    pub single: u32,
}

impl From<&manifest::Scale> for Scale {
    fn from(scale: &manifest::Scale) -> Scale {
        let (low, high) = scale.clip;
        let (shift, single) = (scale.shift as f32, u32::from(scale.single));
        Scale { factor: scale.factor, offset: scale.offset, low, high, shift, single }
    }
}

/// `Column` of chunk.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The largest difference of row 0 and the state; infinite without a limit.
    pub jump_max: f64,
    /// The largest difference of two rows; infinite without a limit.
    pub step_max: f64,
    pub min: f32,
    pub max: f32,
    /// State value that the column is relative to; -1: none.
    pub relative_to: i32,
    /// State value that row 0 is compared with; -1: none.
    pub jump_from: i32,
}

pub const NOWHERE: u32 = u32::MAX;

/// `Verdict` of chunk.cu: the first index, `row × columns + column`, of each kind; `NOWHERE` if there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub clamped: u32,
    /// A value that is no finite number.
    pub not_finite: u32,
    /// A rotation that spans no plane: `row × rotations + index of the rotation`.
    pub no_rotation: u32,
    /// A value out of its range, before it was clamped.
    pub outside: u32,
    /// A value of the first row that is too far from the state, or from the last continued row.
    pub jump: u32,
    /// A value that is too far from that of the row before.
    pub step: u32,
}

impl Verdict {
    pub fn of(mut words: impl Iterator<Item = u32>) -> Verdict {
        let mut next = || words.next().expect("a whole verdict");
        let [clamped, not_finite, no_rotation] = [next(), next(), next()];
        let [outside, jump, step] = [next(), next(), next()];
        Verdict { clamped, not_finite, no_rotation, outside, jump, step }
    }
}

impl Default for Verdict {
    fn default() -> Verdict {
        let [not_finite, no_rotation, outside, jump, step] = [NOWHERE; 5];
        Verdict { clamped: 0, not_finite, no_rotation, outside, jump, step }
    }
}

/// `Plan` of chunk.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Plan {
    scales: Address,
    columns: Address,
    rotations: Address,
    rows: u32,
    width: u32,
    count: u32,
    state_width: u32,
    scale_rows: u32,
    rotation_count: u32,
    prefix_rows: u32,
}

const _: () = assert!(size_of::<Scale>() == 40 && size_of::<Column>() == 32, "as chunk.cu");
const _: () = assert!(size_of::<Verdict>() == 24 && size_of::<Plan>() == 56, "as chunk.cu");

/// The facts of an encoder, as chunk.cu takes them.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The scales of one row if all rows are alike, else of each row, `[rows, columns]`.
    pub scales: Vec<Scale>,
    pub columns: Vec<Column>,
    /// First columns of the rotations of a row.
    pub rotations: Vec<u32>,
    pub rows: u32,
    pub width: u32,
    /// Rows that a chunk may continue.
    pub prefix_rows: u32,
    /// Values out of range are clamped (true) or refused.
    pub clamp: bool,
}

/// Why a chunk is refused, and where. `Encoder::encode` on the same latent gives the sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    NotFinite(u32, u32),
    NoRotation(u32, u32),
    Outside(u32, u32),
    /// The first row behind the continued ones, and the column.
    Jump(u32, u32),
    Step(u32, u32),
}

impl Refusal {
    /// Whether all values are finite.
    pub fn has_rows(&self) -> bool {
        matches!(self, Refusal::Outside(..) | Refusal::Jump(..) | Refusal::Step(..))
    }
}

impl Facts {
    /// How many values were clamped; or the first refusal, in the order of `Encoder::encode`.
    pub fn judge(&self, verdict: &Verdict) -> Result<u32, Refusal> {
        let at = |place: u32, of: usize| (place / of as u32, place % of as u32);
        let columns = self.columns.len();
        let there = |place: u32, of: usize| (place != NOWHERE).then(|| at(place, of));
        // Rows come in order; numbers come before the rotations of the same row.
        let [numbers, rotations] = [
            there(verdict.not_finite, columns).map(|(row, column)| (row, Refusal::NotFinite(row, column))),
            there(verdict.no_rotation, self.rotations.len()).map(|(row, index)| (row, Refusal::NoRotation(row, index))),
        ];
        if let Some((_, refusal)) = [numbers, rotations].into_iter().flatten().min_by_key(|(row, _)| *row) {
            return Err(refusal);
        }
        let outside = there(verdict.outside, columns).filter(|_| !self.clamp);
        let refusal = (outside.map(|(row, column)| Refusal::Outside(row, column)))
            .or_else(|| there(verdict.jump, columns).map(|(row, column)| Refusal::Jump(row, column)))
            .or_else(|| there(verdict.step, columns).map(|(row, column)| Refusal::Step(row, column)));
        refusal.map_or(Ok(verdict.clamped), Err)
    }
}

/// A bundle's plan on the device.
pub struct Plans {
    plan: Memory,
    facts: Facts,
    parts: [Memory; 3],
}

impl Plans {
    pub fn memory_bytes(&self) -> usize {
        self.plan.bytes() + self.parts.iter().map(Memory::bytes).sum::<usize>()
    }

    /// Copies the plan of an encoder (`Encoder::facts`); `state_width` = values of a state vector.
    pub fn new(device: &Arc<Device>, facts: Facts, state_width: u32) -> Result<Plans, CudaError> {
        let Facts { scales, columns, rotations, .. } = &facts;
        let parts = [device.copy_of(scales)?, device.copy_of(columns)?, device.copy_of(rotations)?];
        let plan = Plan {
            scales: parts[0].address(),
            columns: parts[1].address(),
            rotations: parts[2].address(),
            rows: facts.rows,
            width: facts.width,
            count: columns.len() as u32,
            state_width,
            scale_rows: (scales.len() / columns.len()) as u32,
            rotation_count: rotations.len() as u32,
            prefix_rows: facts.prefix_rows,
        };
        Ok(Plans { plan: device.copy_of(&[plan])?, facts, parts })
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// The kernel: latents in f32, a block for each chunk.
pub struct Kernel(Function);

#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// `[chunks, rows, width]`.
    pub latents: Address,
    /// `[chunks, state values]`, f32.
    pub states: Address,
    /// The continued rows, `[chunks, rows of a prefix, columns]` f32; not read if `prefix_rows` is 0.
    pub prefixes: Address,
    /// How many rows each chunk continues, `[chunks]` u32; address 0 if chunks continue none.
    pub prefix_rows: Address,
    /// `[chunks, rows, columns]`, f32.
    pub values: Address,
    /// `[chunks]`.
    pub verdicts: Address,
    /// Chunks, at least 1.
    pub chunks: u32,
}

impl Kernel {
    pub fn find(module: &Arc<Module>) -> Result<Kernel, CudaError> {
        module.function("chunk_decode").map(Kernel)
    }

    /// Puts a batch into the stream, in blocks of `threads`.
    ///
    /// # Safety
    /// The addresses are of this device, of memory as large as plan and batch say, and live until the stream is through with them.
    pub unsafe fn launch(&self, plans: &Plans, batch: &Batch, threads: u32) -> Result<(), CudaError> {
        let Batch { latents, states, prefixes, prefix_rows, values, verdicts, chunks } = *batch;
        let plan = plans.plan.address();
        let shape = Shape { grid: [chunks, 1, 1], block: [threads, 1, 1] };
        // SAFETY: the parameters of chunk.cu, in its order; the caller vouches for the addresses.
        unsafe { self.0.launch(shape, params![plan, latents, states, prefixes, prefix_rows, values, verdicts, chunks]) }
    }
}
