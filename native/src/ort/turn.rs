//! One thread at a time on a provider that cannot have more.
//!
//! All WebGPU sessions of a process record into one command encoder, which ONNX Runtime 1.30 does not guard. Two runs at once end the
//! process, or read each other's buffers (microsoft/onnxruntime issue 32561). So a session is opened, bound, run and closed in its turn. A
//! run that hangs keeps the turn, because the shared device hangs.

use crate::core::sync::lock;
use std::sync::{Mutex, MutexGuard};

static TURN: Mutex<()> = Mutex::new(());

/// Whether the sessions of a provider may work side by side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Turns {
    Free,
    /// One at a time, over all of them.
    One,
}

impl Turns {
    /// Waits for the turn, which lasts until the guard is dropped. A thread that has the turn must not wait again.
    pub fn wait(self) -> Option<MutexGuard<'static, ()>> {
        match self {
            Turns::Free => None,
            Turns::One => Some(lock(&TURN)),
        }
    }
}
