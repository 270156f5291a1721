//! Launches the flow update (`native/cuda/flow.cu`).

use super::device::{Function, Module};
use super::{Address, CudaError, Shape, blocks, params};
use std::sync::Arc;

/// One step of one latent, on a device.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// `[count]`.
    pub latent: Address,
    /// `[branches, branch]`, the first with the instruction.
    pub velocity: Address,
    pub count: u64,
    /// Values from one branch to the next.
    pub branch: u64,
    pub dt: f32,
    pub guide: Option<f32>,
    /// How many values each row of the batch keeps in place, from its first one on, `[rows]` u32; address 0 if none does.
    pub prefix_values: Address,
    /// Values of one row of the batch, 1 at least.
    pub row: u64,
}

/// The kernel: a latent and its velocity, both f32.
pub struct Kernel(Function);

impl Kernel {
    pub fn find(module: &Arc<Module>) -> Result<Kernel, CudaError> {
        module.function("flow_update").map(Kernel)
    }

    /// Puts a step into the stream, in blocks of `threads`.
    ///
    /// # Safety
    /// The addresses are of this device, of tensors as large as `step` says, and live until the stream is through with them.
    pub unsafe fn launch(&self, step: &Step, threads: u32) -> Result<(), CudaError> {
        let Step { latent, velocity, count, branch, dt, guide, prefix_values, row } = *step;
        let (scale, guided) = (guide.unwrap_or(0.0), u32::from(guide.is_some()));
        let shape = Shape { grid: [blocks(count as usize, threads as usize), 1, 1], block: [threads, 1, 1] };
        // SAFETY: the parameters of flow.cu, in its order; the caller vouches for the addresses.
        unsafe { self.0.launch(shape, params![latent, velocity, count, branch, dt, scale, guided, prefix_values, row]) }
    }
}
