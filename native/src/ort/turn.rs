//! One thread at a time on a provider that cannot have more.
//!
//! All WebGPU sessions of a process record into one command encoder, which ONNX Runtime 1.30 does not guard. Two runs at once end the
//! process, or read each other's buffers (microsoft/onnxruntime issue 32561). So a session is opened, bound, run and closed in its turn. A
//! run that hangs keeps the turn, because the shared device hangs.

use crate::core::device::Device;
use crate::core::lost;
use crate::core::sync::lock;
use std::sync::{Mutex, MutexGuard};

static TURN: Mutex<()> = Mutex::new(());

/// Whether the sessions of a provider may work side by side, and the device that they are lost with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Turns {
    Free,
    /// Side by side, on the NVIDIA GPU of this number.
    Gpu(i32),
    /// One at a time, over all of them: WebGPU.
    One,
}

impl Turns {
    /// Waits for the turn, which lasts until the guard is dropped. A thread that has the turn must not wait again.
    pub fn wait(self) -> Option<MutexGuard<'static, ()>> {
        match self {
            Turns::Free | Turns::Gpu(_) => None,
            Turns::One => Some(lock(&TURN)),
        }
    }

    /// The device that is lost with its sessions; None: a processor.
    pub fn device(self) -> Option<Device> {
        match self {
            Turns::Free => None,
            Turns::Gpu(index) => Some(Device::Cuda(index)),
            Turns::One => Some(Device::WebGpu(0)),
        }
    }

    /// Calls `release`, which gives an object back, in its turn. An object of a lost device is left as it is (`core/lost.rs`).
    pub fn release(self, release: impl FnOnce()) {
        if !self.device().is_some_and(lost::is_lost) {
            let _turn = self.wait();
            release();
        }
    }
}
