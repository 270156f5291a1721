//! Launches the flow update (`native/cuda/flow.cu`).

use super::device::{Function, Module};
use super::{Address, CudaError, Number, Shape, blocks, params};
use std::sync::Arc;

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Version {
    /// A thread per value.
    V1,
    /// A thread per four values.
    V2,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 2] = [Version::V1, Version::V2];
}

/// Latent and velocity types that there are kernels for.
pub const PAIRS: [(Number, Number); 5] = [
    (Number::F32, Number::F32),
    (Number::F16, Number::F16),
    (Number::Bf16, Number::Bf16),
    (Number::F32, Number::F16),
    (Number::F32, Number::Bf16),
];

/// One step of one latent, on a device.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// `[count]`.
    pub latent: Address,
    /// `[branches, branch]`, the first with the instruction.
    pub velocity: Address,
    /// Values that are advanced.
    pub count: u64,
    /// Values from one branch to the next.
    pub branch: u64,
    /// Next time less this one.
    pub dt: f32,
    /// With guidance its scale.
    pub guide: Option<f32>,
    /// How many values each row of the batch holds as they are, from its first one on, `[rows]` u32; 0: nowhere, none does.
    pub prefix_values: Address,
    /// Values of one row of the batch, 1 at least.
    pub row: u64,
}

/// The kernel for a latent and a velocity of given types.
pub struct Kernel {
    function: Function,
    version: Version,
    number: (Number, Number),
}

impl Kernel {
    /// Finds it. `number` = types of latent and velocity, one of `PAIRS`.
    pub fn find(module: &Arc<Module>, version: Version, number: (Number, Number)) -> Result<Kernel, CudaError> {
        let letter = match version {
            Version::V1 => "v1",
            Version::V2 => "v2",
        };
        let function = module.function(&format!("flow_{letter}_{}_{}", number.0.name(), number.1.name()))?;
        Ok(Kernel { function, version, number })
    }

    /// Puts a step into the stream, in blocks of `threads`.
    ///
    /// # Safety
    /// The addresses are of this device, of tensors as large as `step` says, and live until the stream is through with them.
    pub unsafe fn launch(&self, step: &Step, threads: u32) -> Result<(), CudaError> {
        let Step { latent, velocity, count, branch, dt, guide, prefix_values, row } = *step;
        let (scale, guided) = (guide.unwrap_or(0.0), u32::from(guide.is_some()));
        let values = match self.version {
            Version::V1 => 1,
            Version::V2 => {
                let whole = |address: u64, number: Number| address.is_multiple_of(4 * number.bytes() as u64);
                let branch_whole = guide.is_none() || branch.is_multiple_of(4);
                if !(whole(latent, self.number.0) && whole(velocity, self.number.1) && branch_whole) {
                    return Err(CudaError::Call("version 2 of the flow update wants multiples of four values".into()));
                }
                4
            }
        };
        let shape = Shape { grid: [blocks(count as usize, threads as usize * values), 1, 1], block: [threads, 1, 1] };
        // SAFETY: the parameters of flow.cu, in its order; the caller vouches for the addresses.
        unsafe {
            let params = params![latent, velocity, count, branch, dt, scale, guided, prefix_values, row];
            self.function.launch(shape, params)
        }
    }
}

/// Bytes that a step moves at least: latent read and written, velocity read.
pub fn bytes(step: &Step, number: (Number, Number)) -> u64 {
    let branches = if step.guide.is_some() { 2 } else { 1 };
    step.count * (2 * number.0.bytes() as u64 + branches * number.1.bytes() as u64)
}
