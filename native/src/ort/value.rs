//! Values over borrowed memory, and their copies between host and device.

use crate::core::dtype::Dtype;
use crate::ort::environment::{check, copy, element};
use crate::ort::home::{Home, Info};
use crate::ort::turn::Turns;
use ort::sys::{ONNXTensorElementDataType, OrtValue};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A tensor for ONNX Runtime. It owns no memory.
pub struct Value {
    raw: *mut OrtValue,
    turns: Turns,
    start: *mut c_void,
    bytes: usize,
    is_on_host: bool,
}

// SAFETY: the object has no tie to a thread; its uses are serialised where the provider needs that.
unsafe impl Send for Value {}
// SAFETY: as above; what is here does not change.
unsafe impl Sync for Value {}

impl Value {
    /// A tensor of this type and shape at `start`, in `home`. `turns` guards its copies.
    ///
    /// # Safety
    /// The values live as long as this is used.
    pub unsafe fn over(
        home: Home,
        turns: Turns,
        start: *mut c_void,
        dtype: Dtype,
        shape: &[usize],
    ) -> Result<Value, String> {
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        let shape: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        let info = home.info()?;
        let _turn = turns.wait();
        // SAFETY: the caller's.
        let mut value = unsafe { Value::at(&info, start, bytes, (&shape, element(dtype))) }?;
        value.turns = turns;
        value.is_on_host = home == Home::HOST;
        Ok(value)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A tensor of `bytes` at `start`, in the memory of `info`. It waits for no turn.
    ///
    /// # Safety
    /// The bytes are valid for this shape and type while the value, and what uses it, lives.
    pub unsafe fn at(
        info: &Info,
        start: *mut c_void,
        bytes: usize,
        (dims, kind): (&[i64], ONNXTensorElementDataType),
    ) -> Result<Value, String> {
        let (mut raw, make) = (null_mut(), ort::api().CreateTensorWithDataAsOrtValue);
        // SAFETY: live objects and an out pointer, released in Drop; the memory is the caller's.
        check(unsafe { make(info.pointer(), start, bytes, dims.as_ptr(), dims.len(), kind, &mut raw) })?;
        Ok(Value { raw, turns: Turns::Free, start, bytes, is_on_host: false })
    }

    pub fn pointer(&self) -> *mut OrtValue {
        self.raw
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: made in `over`, released once.
        self.turns.release(|| unsafe { (ort::api().ReleaseValue)(self.raw) });
    }
}

/// Copies one value to another of the same size, without an allocation.
///
/// # Safety
/// The contract is that of `transfer`.
pub unsafe fn transfer_one(turns: Turns, from: &Value, to: &Value) -> Result<(), String> {
    assert!(from.bytes == to.bytes, "what is copied has the size of its place");
    if from.is_on_host && to.is_on_host {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from.start.cast::<u8>(), to.start.cast::<u8>(), from.bytes) };
        return Ok(());
    }
    let _turn = turns.wait();
    copy(&[from.raw.cast_const()], &mut [to.raw.cast_const()])
}

/// Copies the first of each pair to the second, of the same size, in one call. Both may be used when it returns.
///
/// # Safety
/// No thread writes to the first or uses the second meanwhile; no two of them overlap.
pub unsafe fn transfer(turns: Turns, pairs: &[(&Value, &Value)]) -> Result<(), String> {
    assert!(pairs.iter().all(|(from, to)| from.bytes == to.bytes), "what is copied has the size of its place");
    // ONNX Runtime does not copy from host to host, which happens if the CPU plays a device.
    let (on_host, apart): (Vec<_>, Vec<_>) = pairs.iter().partition(|(from, to)| from.is_on_host && to.is_on_host);
    for (from, to) in on_host {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from.start.cast::<u8>(), to.start.cast::<u8>(), from.bytes) };
    }
    let from: Vec<_> = apart.iter().map(|(from, _)| from.raw.cast_const()).collect();
    let mut to: Vec<_> = apart.iter().map(|(_, to)| to.raw.cast_const()).collect();
    let _turn = turns.wait();
    copy(&from, &mut to)
}
