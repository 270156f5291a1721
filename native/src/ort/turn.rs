//! What the threads of a provider may do side by side.
//!
//! All WebGPU sessions of a process record into one command encoder, which ONNX Runtime 1.30 does not guard. Two runs at once end the
//! process, or read each other's buffers (microsoft/onnxruntime issue 32561). So a session is opened, bound, run and closed in its turn. A
//! run that hangs keeps the turn, because the shared device hangs.
//!
//! On an NVIDIA GPU, ONNX Runtime waits for the whole device when a session is opened or closed. CUDA refuses such a wait while a stream of
//! the device is captured, and ends the capture. A graph's first run makes handles and memory in the same way. So a capture has the device
//! alone; runs that only replay wait for nobody.

use crate::core::sync::lock;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static TURN: Mutex<()> = Mutex::new(());

/// A lock for each GPU, written by captures: a GPU that hangs does not stop the loads on others. GPUs far apart share one.
static CAPTURES: [RwLock<()>; 16] = [const { RwLock::new(()) }; 16];

/// Whether the sessions of a provider may work side by side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Turns {
    Free,
    /// Side by side, on the NVIDIA GPU of this number.
    Gpu(i32),
    /// One at a time, over all of them: WebGPU.
    One,
}

/// A turn, which lasts until this is dropped.
#[must_use]
#[derive(Default)]
pub struct Turn {
    _one: Option<MutexGuard<'static, ()>>,
    _shared: Option<RwLockReadGuard<'static, ()>>,
    _alone: Option<RwLockWriteGuard<'static, ()>>,
}

impl Turns {
    /// Waits for the turn of a call that never waits for the whole device. A thread that has a turn must not wait again.
    pub fn wait(self) -> Turn {
        match self {
            Turns::Free | Turns::Gpu(_) => Turn::default(),
            Turns::One => Turn { _one: Some(lock(&TURN)), ..Turn::default() },
        }
    }

    /// Waits until no graph is captured, for a call that may wait for the whole device: to open or close a session, or a first run.
    pub fn outside_captures(self) -> Turn {
        match self.captures() {
            Some(captures) => {
                Turn { _shared: Some(captures.read().unwrap_or_else(PoisonError::into_inner)), ..Turn::default() }
            }
            None => self.wait(),
        }
    }

    /// Waits until a capture has the device alone.
    fn capture(self) -> Turn {
        match self.captures() {
            Some(captures) => {
                Turn { _alone: Some(captures.write().unwrap_or_else(PoisonError::into_inner)), ..Turn::default() }
            }
            None => self.wait(),
        }
    }

    /// Waits for the turn of a run. A `first` run of a captured graph makes its capture; a later one replays it.
    pub fn run(self, first: bool, is_captured: bool) -> Turn {
        match (first, is_captured) {
            (true, true) => self.capture(),
            (true, false) => self.outside_captures(),
            (false, _) => self.wait(),
        }
    }

    /// Waits by `wait`, ONNX Runtime's wait for a binding, where a run or a copy may end before its work. On an NVIDIA GPU `wait` would be
    /// for the work of all replicas, and a run has waited for its own stream.
    pub fn settle(self, wait: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        if matches!(self, Turns::Gpu(_)) { Ok(()) } else { wait() }
    }

    fn captures(self) -> Option<&'static RwLock<()>> {
        let Turns::Gpu(gpu) = self else { return None };
        Some(&CAPTURES[gpu.unsigned_abs() as usize % CAPTURES.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a capture could begin now, and whether a session could be opened.
    fn free(gpu: i32) -> (bool, bool) {
        let captures = Turns::Gpu(gpu).captures().expect("a GPU's");
        let for_capture = captures.try_write().is_ok();
        (for_capture, captures.try_read().is_ok())
    }

    #[test]
    fn a_capture_excludes_sessions_and_first_runs_of_its_gpu_and_a_replay_waits_for_nobody() {
        let gpu = Turns::Gpu(3);
        let capture = gpu.run(true, true);
        assert_eq!((free(3), free(4)), ((false, false), (true, true)));
        let replays = (gpu.run(false, true), gpu.run(false, false), gpu.wait());
        drop(capture);
        assert_eq!(free(3), (true, true), "a replay has no lock");
        let session = gpu.outside_captures();
        let first = gpu.run(true, false);
        assert_eq!(free(3), (false, true), "sessions and first runs go on side by side");
        drop(session);
        assert_eq!(free(3), (false, true));
        drop((first, replays));
        assert_eq!(free(3), (true, true));
    }

    #[test]
    fn no_run_on_an_nvidia_gpu_waits_for_the_whole_device() {
        assert_eq!(Turns::Gpu(0).settle(|| Err("a wait for the work of all replicas".into())), Ok(()));
        for turns in [Turns::One, Turns::Free] {
            assert!(turns.settle(|| Err("it waits".into())).is_err(), "{turns:?}");
        }
    }
}
