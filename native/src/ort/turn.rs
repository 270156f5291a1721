//! What the threads of a provider may do side by side, and what they give back.
//!
//! All WebGPU sessions of a process record into one command encoder, which ONNX Runtime 1.30 does not guard. Two runs at once end the
//! process, or read each other's buffers (microsoft/onnxruntime issue 32561). So a session is opened, bound, run and closed in its turn. A
//! run that hangs keeps the turn, because the shared device hangs.
//!
//! On an NVIDIA GPU, ONNX Runtime waits for the whole device when a session is opened or closed. CUDA refuses such a wait while a stream of
//! the device is captured, and ends the capture. A graph's first run makes handles and memory in the same way. So a capture has the device
//! alone; runs that only replay wait for nobody.
//!
//! A session that TensorRT compiles for ever keeps its share of the GPU's lock. That costs captures on that GPU alone, whose loads are refused
//! in their time.

use crate::core::device::Device;
use crate::core::fault::is_device_failure;
use crate::core::lost;
use crate::core::sync::lock;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// A lock for each GPU, written by captures: a GPU that hangs does not stop the loads on others. GPUs far apart share one.
static CAPTURES: [RwLock<()>; 16] = [const { RwLock::new(()) }; 16];

/// How often a capture looks whether it has the device alone.
const LOOK: Duration = Duration::from_millis(1);

/// Whether the sessions of a provider may work side by side, and the device that they are lost with.
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
    _one: Option<One>,
    _shared: Option<RwLockReadGuard<'static, ()>>,
    _alone: Option<RwLockWriteGuard<'static, ()>>,
}

struct One {
    _guard: MutexGuard<'static, ()>,
}

impl One {
    /// None if this thread has the turn already. A session that is closed may be the last to read weights, which are then freed in its turn.
    fn wait() -> Option<One> {
        if HAS_TURN.get() {
            return None;
        }
        let _guard = lock(&TURN);
        HAS_TURN.set(true);
        Some(One { _guard })
    }
}

impl Drop for One {
    fn drop(&mut self) {
        HAS_TURN.set(false);
    }
}

impl Turns {
    /// Waits for the turn of a call that never waits for the whole device.
    pub fn wait(self) -> Turn {
        match self {
            Turns::Free | Turns::Gpu(_) => Turn::default(),
            Turns::One => Turn { _one: One::wait(), ..Turn::default() },
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

    /// Waits until a capture has the device alone. It does not queue for the lock, since all that came later would wait for it too.
    fn capture(self) -> Turn {
        let Some(captures) = self.captures() else { return self.wait() };
        loop {
            let alone = match captures.try_write() {
                Ok(alone) => alone,
                Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(LOOK);
                    continue;
                }
            };
            return Turn { _alone: Some(alone), ..Turn::default() };
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

    /// The device that is lost with its sessions; None: a processor.
    pub fn device(self) -> Option<Device> {
        match self {
            Turns::Free => None,
            Turns::Gpu(index) => Some(Device::Cuda(index)),
            Turns::One => Some(Device::WebGpu(0)),
        }
    }

    /// Notes a loss that the text of a failure says.
    pub fn note_loss(self, text: &str) {
        if let Some(device) = self.device().filter(|_| is_device_failure(text)) {
            lost::mark(device);
        }
    }

    /// Calls `release`, which gives an object back, in its turn. An object of a lost device is left as it is (`core/lost.rs`).
    pub fn release(self, release: impl FnOnce()) {
        if !self.is_lost() {
            let _turn = self.wait();
            release();
        }
    }

    /// The same where a session may be closed.
    pub fn close(self, close: impl FnOnce()) {
        if !self.is_lost() {
            let _turn = self.outside_captures();
            close();
        }
    }

    fn is_lost(self) -> bool {
        self.device().is_some_and(lost::is_lost)
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
    fn sessions_are_opened_and_closed_while_a_capture_waits_for_a_session_that_never_opens() {
        let gpu = Turns::Gpu(5);
        let compiles = gpu.outside_captures();
        std::thread::scope(|scope| {
            let capture = scope.spawn(|| drop(gpu.run(true, true)));
            // Time in which the other thread can begin to wait.
            std::thread::sleep(20 * LOOK);
            let is_closed = Cell::new(false);
            gpu.close(|| gpu.close(|| is_closed.set(true)));
            assert!(is_closed.get() && !capture.is_finished());
            drop(compiles);
        });
    }

    #[test]
    fn a_thread_that_closes_a_session_in_its_turn_closes_there_what_only_that_session_used() {
        let is_closed = Cell::new(false);
        Turns::One.close(|| {
            Turns::One.close(|| is_closed.set(true));
            assert!(TURN.try_lock().is_err(), "it has the turn still");
        });
        assert!(is_closed.get());
    }

    #[test]
    fn no_run_on_an_nvidia_gpu_waits_for_the_whole_device() {
        assert_eq!(Turns::Gpu(0).settle(|| Err("a wait for the work of all replicas".into())), Ok(()));
        for turns in [Turns::One, Turns::Free] {
            assert!(turns.settle(|| Err("it waits".into())).is_err(), "{turns:?}");
        }
    }
}
