//! Memory of a device, from ONNX Runtime's provider for it.

use crate::ort::environment::{check, copy};
use crate::ort::home::Home;
use crate::ort::turn::Turns;
use crate::ort::value::Value;
use ort::AsPointer;
use ort::session::{Session, SharedSessionInner};
use ort::sys::{self, OrtAllocator};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::Arc;

const BYTE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;

/// Runs a session with the input `x` and the output `y`. Both may be used again afterwards.
fn pass(session: &Session, turns: Turns, x: &Value, y: &Value) -> Result<(), String> {
    let (api, mut binding, session) = (ort::api(), null_mut(), session.ptr().cast_mut());
    // SAFETY: a live session, C strings, values that live through the run, and an object that is released once.
    unsafe {
        check((api.CreateIoBinding)(session, &mut binding))?;
        let ran = check((api.BindInput)(binding, c"x".as_ptr(), x.pointer()))
            .and_then(|()| check((api.BindOutput)(binding, c"y".as_ptr(), y.pointer())))
            .and_then(|()| turns.settle(|| check((api.SynchronizeBoundInputs)(binding))))
            .and_then(|()| check((api.RunWithBinding)(session, null(), binding)))
            .and_then(|()| turns.settle(|| check((api.SynchronizeBoundOutputs)(binding))));
        (api.ReleaseIoBinding)(binding);
        ran
    }
}

/// A fixed block of a device's memory, never moved. Its first values are undefined.
pub struct DeviceBlock {
    start: *mut c_void,
    bytes: usize,
    allocator: *mut OrtAllocator,
    turns: Turns,
    /// The session owns the allocator.
    session: ManuallyDrop<Arc<SharedSessionInner>>,
}

// SAFETY: the block and its allocator have no tie to a thread; their uses are serialised where the provider needs that.
unsafe impl Send for DeviceBlock {}

impl DeviceBlock {
    /// `bytes` in `home`, from the provider of `session`.
    pub fn new(session: &Session, home: Home, bytes: usize) -> Result<DeviceBlock, String> {
        let info = home.info()?;
        let _turn = home.turns.wait();
        let api = ort::api();
        let (mut allocator, mut start) = (null_mut(), null_mut());
        // SAFETY: a live session and out pointers; the allocator is released in Drop, also when it has no memory to give.
        unsafe {
            check((api.CreateAllocator)(session.ptr(), info.pointer(), &mut allocator))?;
            let got = check((api.AllocatorAlloc)(allocator, bytes.max(1), &mut start));
            let session = ManuallyDrop::new(session.inner());
            let block = DeviceBlock { start, bytes, allocator, turns: home.turns, session };
            got.map(|()| block).map_err(|error| format!("no {bytes} bytes of the device's memory: {error}"))
        }
    }

    /// A block with these values, which are copied when this returns.
    pub fn of(session: &Session, home: Home, values: &[u8]) -> Result<DeviceBlock, String> {
        let block = DeviceBlock::new(session, home, values.len())?;
        let (host, device, dims) = (Home::HOST.info()?, home.info()?, [values.len() as i64]);
        // SAFETY: as many bytes on both sides; both outlive the call, which only reads those of the host.
        let [from, to] = unsafe {
            [
                Value::at(&host, values.as_ptr().cast_mut().cast(), values.len(), (&dims, BYTE))?,
                Value::at(&device, block.start, values.len(), (&dims, BYTE))?,
            ]
        };
        let _turn = home.turns.wait();
        match copy(&[from.pointer()], &mut [to.pointer()]) {
            // No part of a WebGPU block can be addressed: it is a handle.
            Err(_) if home.turns != Turns::One => block.fill(session, home, values)?,
            copied => copied?,
        }
        Ok(block)
    }

    /// Copies the values by runs of `session`, whose graph gives bytes out unchanged. Its provider can write into its own memory even where
    /// the environment has no copy (`CopyTensors` needs a registered provider library). Each piece lies in the device's memory twice while
    /// it is copied. **No GPU has run this yet**: an NVIDIA H200 takes `CopyTensors`.
    fn fill(&self, session: &Session, home: Home, values: &[u8]) -> Result<(), String> {
        const PIECE_BYTES: usize = 64 << 20;
        let (host, device) = (Home::HOST.info()?, home.info()?);
        for (at, piece) in values.chunks(PIECE_BYTES).enumerate() {
            let dims = [piece.len() as i64];
            // SAFETY: as many bytes on both sides, inside of the values and of this block; a run only reads its input.
            let [from, to] = unsafe {
                let start = self.start.cast::<u8>().add(at * PIECE_BYTES).cast();
                [
                    Value::at(&host, piece.as_ptr().cast_mut().cast(), piece.len(), (&dims, BYTE))?,
                    Value::at(&device, start, piece.len(), (&dims, BYTE))?,
                ]
            };
            pass(session, home.turns, &from, &to)?;
        }
        Ok(())
    }

    /// The address in the device's memory, or the handle of a buffer; the host must not read it.
    pub fn address(&self) -> *mut c_void {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        // SAFETY: made in `new`, given back once, the session last, which may end with it. A failure would leak the block.
        self.turns.close(|| unsafe {
            if !self.start.is_null() {
                let _ = check((ort::api().AllocatorFree)(self.allocator, self.start));
            }
            (ort::api().ReleaseAllocator)(self.allocator);
            ManuallyDrop::drop(&mut self.session);
        });
    }
}
