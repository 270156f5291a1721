//! The context of a device, which this process shares with ONNX Runtime, for any thread; and registered host memory.

use super::CudaError;
use super::calls::{Calls, Code, Handle};
use super::stream::Stream;
use crate::core::device::Device;
use crate::core::lost;
use crate::core::memory::{Block, Registration};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::num::NonZero;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

/// Registered memory is page-locked for every context.
const PORTABLE: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;
/// `CU_CTX_SCHED_BLOCKING_SYNC`: a thread that waits sleeps.
const BLOCKING_SYNC: u32 = 4;

/// Whether the threads of `replicas` sleep while they wait. By default such a thread spins, which answers some microseconds earlier and
/// keeps a core. It may, if the event loop and a decode have a core each beside all of them.
fn sleeps(cores: usize, replicas: usize) -> bool {
    cores < replicas + 2
}

/// Relaxes this thread: its calls are no longer refused while another thread captures a graph, and do not end that capture. ONNX Runtime's
/// captures affect all threads. No context is needed or made.
pub fn relax_thread(path: &Path) -> Result<(), CudaError> {
    let calls = Calls::open(path)?;
    let mut mode = RELAXED;
    // SAFETY: the order that the driver asks for; 0 is the only flag of cuInit, and the mode is exchanged with that of this thread.
    unsafe {
        calls.check("cuInit", (calls.init)(0))?;
        calls.check("cuThreadExchangeStreamCaptureMode", (calls.capture_mode)(&mut mode))
    }
}

/// The primary context of a device.
pub struct Context {
    calls: Calls,
    device: c_int,
    handle: Handle,
}

// SAFETY: the driver may be called from any thread, and what is here does not change.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of device `index` of the driver at `path` (`libcuda.so.1` is the system's). No thread has entered it yet.
    pub fn open(path: &Path, index: i32) -> Result<Arc<Context>, CudaError> {
        let calls = Calls::open(path)?;
        let absent = |code: Code| if Calls::is_no_device(code) { Err(CudaError::NoDevice(index)) } else { Ok(code) };
        // SAFETY: the order that the driver asks for, with out pointers for one value each. 0 is the only flag of cuInit.
        unsafe {
            calls.check("cuInit", absent((calls.init)(0))?)?;
            let (mut device, mut handle) = (0, null_mut());
            calls.check("cuDeviceGet", absent((calls.device_get)(&mut device, index))?)?;
            let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
            if sleeps(cores, Stream::count() + 1) {
                // A driver that refuses this spins.
                (calls.context_flags)(device, BLOCKING_SYNC);
            }
            calls.check("cuDevicePrimaryCtxRetain", (calls.context_retain)(&mut handle, device))?;
            Ok(Arc::new(Context { calls, device, handle }))
        }
    }

    /// Has this thread enter it, until the thread ends or enters another. It is done once for a thread.
    pub fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: a live context.
        self.calls.check("cuCtxSetCurrent", unsafe { (self.calls.context_set)(self.handle) })
    }

    /// Has this thread enter it until what is returned is dropped. The thread has its own context again then.
    pub fn entered(self: &Arc<Self>) -> Result<Entered, CudaError> {
        // SAFETY: a live context, which is popped before it is released.
        self.calls.check("cuCtxPushCurrent", unsafe { (self.calls.context_push)(self.handle) })?;
        Ok(Entered { context: self.clone(), _thread: PhantomData })
    }

    /// Calls `work` on a thread that may have any context, and leaves that as it was. It is for loading and closing.
    pub(crate) fn within<T>(
        self: &Arc<Self>,
        work: impl FnOnce(&Calls) -> Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        let _entered = self.entered()?;
        self.apart(work)
    }

    /// Calls `work` on a relaxed thread (`relax_thread`), and leaves the thread's mode as it was.
    pub(super) fn apart<T>(&self, work: impl FnOnce(&Calls) -> Result<T, CudaError>) -> Result<T, CudaError> {
        let mut mode = RELAXED;
        // SAFETY: a value that the call exchanges with that of this thread; put back below.
        self.calls.check("cuThreadExchangeStreamCaptureMode", unsafe { (self.calls.capture_mode)(&mut mode) })?;
        let done = work(&self.calls);
        if let Err(CudaError::DeviceLost(_)) = done {
            lost::mark(Device::Cuda(self.device));
        }
        // SAFETY: as above.
        let code = unsafe { (self.calls.capture_mode)(&mut mode) };
        done.and_then(|done| self.calls.check("cuThreadExchangeStreamCaptureMode", code).map(|()| done))
    }

    /// Calls `work`, which gives an object of the context back, on any thread. An object of a lost device is left as it is
    /// (`core/lost.rs`). A refusal leaves it too.
    pub(crate) fn release(self: &Arc<Self>, work: impl FnOnce(&Calls) -> Result<(), CudaError>) {
        if !self.is_lost() {
            let _ = self.within(work);
        }
    }

    fn is_lost(&self) -> bool {
        lost::is_lost(Device::Cuda(self.device))
    }

    /// Bytes of the device's memory: free, and in all.
    pub fn memory(self: &Arc<Self>) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0, 0);
        self.within(|calls| {
            // SAFETY: out pointers.
            calls.check("cuMemGetInfo", unsafe { (calls.memory_info)(&mut free, &mut total) })
        })?;
        Ok((free as u64, total as u64))
    }

    /// The driver's calls, for a thread that has entered.
    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Page-locks and registers host memory, so that the driver copies from and to it without its own buffer. All its pages are in memory
    /// from now on.
    ///
    /// # Safety
    /// `bytes` from `start` on are whole pages, none of them registered, and stay mapped to the same memory until what is returned is
    /// dropped.
    pub unsafe fn register(self: &Arc<Self>, start: *mut c_void, bytes: usize) -> Result<Registered, CudaError> {
        self.within(|calls| {
            // SAFETY: the caller's.
            calls.check("cuMemHostRegister", unsafe { (calls.host_register)(start, bytes, PORTABLE) })
        })
        .map_err(|error| if let CudaError::OutOfMemory(_) = error { CudaError::Unlockable(bytes) } else { error })?;
        Ok(Registered { context: self.clone(), start })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.is_lost() {
            // SAFETY: retained by `open`; what was made in it keeps it. A failure here has no one to tell.
            unsafe { (self.calls.context_release)(self.device) };
        }
    }
}

impl Context {
    /// Registers a block, so that the driver copies from and to it without its own buffer.
    pub fn register_block(self: &Arc<Self>, block: &mut Block) -> Result<(), CudaError> {
        block.register(|start, bytes| {
            // SAFETY: whole pages, which stay mapped until the block has dropped the registration.
            unsafe { self.register(start, bytes) }.map(|registered| Box::new(registered) as Box<dyn Registration>)
        })
    }
}

/// A thread in a context.
#[must_use]
pub struct Entered {
    context: Arc<Context>,
    /// It is dropped where it was made.
    _thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut popped = null_mut();
        // SAFETY: an out pointer; this thread has pushed the context.
        unsafe { (self.context.calls.context_pop)(&mut popped) };
    }
}

/// Registered host memory, until this is dropped.
pub struct Registered {
    context: Arc<Context>,
    start: *mut c_void,
}

// SAFETY: the address is given back to the driver and not followed.
unsafe impl Send for Registered {}
// SAFETY: as above.
unsafe impl Sync for Registered {}

impl Registration for Registered {
    fn is_left(&self) -> bool {
        self.context.is_lost()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.context.release(|calls| {
            // SAFETY: registered once, by `register`, and mapped still.
            calls.check("cuMemHostUnregister", unsafe { (calls.host_unregister)(self.start) })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_thread_sleeps_unless_event_loop_and_decode_have_a_core_beside_those_that_spin() {
        for (cores, replicas, expected) in
            [(1, 1, true), (2, 1, true), (3, 1, false), (3, 2, true), (16, 14, false), (16, 15, true)]
        {
            assert_eq!(sleeps(cores, replicas), expected, "{cores} cores, {replicas} replicas");
        }
    }
}
