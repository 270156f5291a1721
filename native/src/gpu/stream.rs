//! Our own stream, and the times of its work by the device's clock.

use super::calls::Handle;
use super::context::Context;
use super::{Address, CudaError};
use crate::core::fault::{CUDA_GONE, CUDA_STICKY};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stream does not wait for the default stream, like ONNX Runtime's own streams.
const NON_BLOCKING: u32 = 1;

/// The streams of this process: one for each replica.
static STREAMS: AtomicUsize = AtomicUsize::new(0);

/// A sequence of work on a device.
pub struct Stream {
    context: Arc<Context>,
    handle: Handle,
}

// SAFETY: the driver takes a stream from any thread, and what is here does not change.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new(context: &Arc<Context>) -> Result<Arc<Stream>, CudaError> {
        let mut handle = null_mut();
        context.within(|calls| {
            // SAFETY: an out pointer.
            calls.check("cuStreamCreate", unsafe { (calls.stream_create)(&mut handle, NON_BLOCKING) })
        })?;
        STREAMS.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Stream { context: context.clone(), handle }))
    }

    pub(super) fn count() -> usize {
        STREAMS.load(Ordering::Relaxed)
    }

    /// The address for ONNX Runtime's options. A user keeps the stream, because the address is invalid after its end.
    pub fn address(&self) -> usize {
        self.handle as usize
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Puts a copy of host memory to the device into the stream. Registered memory (`Context::register`) is read when the stream gets
    /// there, other memory before this returns.
    ///
    /// # Safety
    /// `bytes` at both addresses live until the copy is done, and those at `from` do not change.
    pub unsafe fn copy_in(&self, to: Address, from: *const c_void, bytes: usize) -> Result<(), CudaError> {
        let calls = self.context.calls();
        // SAFETY: the caller's.
        calls.check("cuMemcpyHtoDAsync", unsafe { (calls.copy_in)(to, from, bytes, self.handle) })
    }

    /// Puts a copy of the device's memory to the host into the stream.
    ///
    /// # Safety
    /// `bytes` at both addresses live until the copy is done; no thread uses those at `to` meanwhile.
    pub unsafe fn copy_out(&self, to: *mut c_void, from: Address, bytes: usize) -> Result<(), CudaError> {
        let calls = self.context.calls();
        // SAFETY: the caller's.
        calls.check("cuMemcpyDtoHAsync", unsafe { (calls.copy_out)(to, from, bytes, self.handle) })
    }

    /// Puts a copy inside of the device's memory into the stream.
    ///
    /// # Safety
    /// `bytes` at both addresses do not overlap and live until the copy is done.
    pub unsafe fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<(), CudaError> {
        let calls = self.context.calls();
        // SAFETY: the caller's.
        calls.check("cuMemcpyDtoDAsync", unsafe { (calls.copy)(to, from, bytes, self.handle) })
    }

    /// Waits for all of its work, on a thread that has entered its context; returns the error of an earlier kernel.
    pub fn wait(&self) -> Result<(), CudaError> {
        let calls = self.context.calls();
        // SAFETY: a live stream.
        calls.check("cuStreamSynchronize", unsafe { (calls.stream_wait)(self.handle) })
    }

    /// Why the device is lost, by the number of the driver's answer; None if it works. A lost device answers every call so. The thread has
    /// entered the context.
    pub fn loss(&self) -> Option<CudaError> {
        let calls = self.context.calls();
        // SAFETY: a live stream.
        let code = unsafe { (calls.stream_wait)(self.handle) };
        let is_lost = [CUDA_STICKY, CUDA_GONE].iter().any(|codes| codes.contains(&code.cast_unsigned()));
        match calls.check("cuStreamSynchronize", code) {
            Err(CudaError::Call(text) | CudaError::DeviceLost(text)) if is_lost => Some(CudaError::DeviceLost(text)),
            _ => None,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        STREAMS.fetch_sub(1, Ordering::Relaxed);
        // The driver waits for its work.
        self.context.release(|calls| {
            // SAFETY: made by `new`; every user keeps it alive.
            calls.check("cuStreamDestroy", unsafe { (calls.stream_destroy)(self.handle) })
        });
    }
}

/// The times of runs, each between two events of a stream. All events are made at once, and a run costs two calls of the driver.
///
/// Its thread has entered the stream's context.
pub struct Laps {
    stream: Arc<Stream>,
    events: Vec<[Handle; 2]>,
    begun: usize,
    ended: usize,
    /// The driver refused an event, or there were more runs than events: times are unknown until `clear`.
    unknown: bool,
}

// SAFETY: the driver takes an event from any thread; `&mut self` keeps its users apart.
unsafe impl Send for Laps {}

impl Laps {
    pub fn new(stream: &Arc<Stream>, runs: usize) -> Result<Laps, CudaError> {
        let events = Vec::with_capacity(runs);
        let mut laps = Laps { stream: stream.clone(), events, begun: 0, ended: 0, unknown: false };
        stream.context.within(|calls| {
            for _ in 0..runs {
                let mut pair = [null_mut(); 2];
                for event in &mut pair {
                    // SAFETY: an out pointer. What is null of a pair that fails is not destroyed.
                    let code = unsafe { (calls.event_create)(event, 0) };
                    if code != 0 {
                        laps.events.push(pair);
                        return calls.check("cuEventCreate", code);
                    }
                }
                laps.events.push(pair);
            }
            Ok(())
        })?;
        Ok(laps)
    }

    pub fn clear(&mut self) {
        (self.begun, self.ended, self.unknown) = (0, 0, false);
    }

    /// Begins a run behind the present work of the stream.
    pub fn begin(&mut self) {
        self.unknown |= self.begun != self.ended;
        if !self.unknown && self.record(self.begun, 0) {
            self.begun += 1;
        }
    }

    pub fn end(&mut self) {
        if !self.unknown && self.ended < self.begun && self.record(self.ended, 1) {
            self.ended += 1;
        }
    }

    fn record(&mut self, run: usize, which: usize) -> bool {
        // SAFETY: a live event and stream.
        let recorded = self.events.get(run).is_some_and(|pair| unsafe {
            (self.stream.context.calls().event_record)(pair[which], self.stream.handle) == 0
        });
        self.unknown |= !recorded;
        recorded
    }

    /// The milliseconds of all runs since `clear`, and clears; None if one is unknown or there was none. Waits for the end of the last run.
    pub fn take_ms(&mut self) -> Option<f32> {
        let whole = !self.unknown && self.begun == self.ended && self.ended > 0;
        let runs = &self.events[..self.ended];
        let total = runs.last().filter(|_| whole).and_then(|[_, last]| {
            let total = self.stream.context.apart(|calls| {
                // SAFETY: a live event, recorded.
                calls.check("cuEventSynchronize", unsafe { (calls.event_wait)(*last) })?;
                runs.iter().try_fold(0.0, |total, [begin, end]| {
                    let mut ms = 0.0;
                    // SAFETY: an out pointer and live events, both reached.
                    let code = unsafe { (calls.event_elapsed)(&mut ms, *begin, *end) };
                    calls.check("cuEventElapsedTime", code).map(|()| total + ms)
                })
            });
            total.ok()
        });
        self.clear();
        total
    }
}

impl Drop for Laps {
    fn drop(&mut self) {
        self.stream.context.release(|calls| {
            for &event in self.events.iter().flatten().filter(|event| !event.is_null()) {
                // SAFETY: made by `new`, destroyed once, before the stream.
                unsafe { (calls.event_destroy)(event) };
            }
            Ok(())
        });
    }
}
