//! ONNX Runtime's environment of this process, and the raw API's types and errors.

use crate::core::dtype::Dtype;
use ort::sys::{self, OrtEnv, OrtValue};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Null until the library is open.
static ENVIRONMENT: AtomicPtr<OrtEnv> = AtomicPtr::new(null_mut());

/// Switches ONNX Runtime's own telemetry off, before the library is opened.
///
/// Since 1.30 the Linux library keeps a device id and an event database in the user's cache folder and sends them to its
/// vendor. Only this variable prevents that; the API's switch works only after the files are made.
pub fn forbid_telemetry() {
    // SAFETY: both are C strings. glibc's setenv may move the table while another thread is in getenv; this runs once,
    // early, after Bun has read its environment. There is no other way.
    unsafe { libc::setenv(c"ORT_DISABLE_TELEMETRY".as_ptr(), c"1".as_ptr(), 1) };
}

/// Keeps the environment for calls of the raw API.
///
/// # Safety
/// It lives until the process ends.
pub unsafe fn set(environment: *mut OrtEnv) {
    ENVIRONMENT.store(environment, Ordering::Release);
}

pub fn element(dtype: Dtype) -> sys::ONNXTensorElementDataType {
    use sys::ONNXTensorElementDataType as Type;
    match dtype {
        Dtype::F32 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        Dtype::F16 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        Dtype::Bf16 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        Dtype::I32 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        Dtype::U8 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        Dtype::I64 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        Dtype::Bool => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
    }
}

/// The sentence of a failed status.
pub fn check(status: sys::OrtStatusPtr) -> Result<(), String> {
    // SAFETY: the status comes straight from a call of the API and is consumed here.
    unsafe { ort::Error::<()>::result_from_status(status) }.map_err(|error| error.to_string())
}

/// Copies tensors between host and device in one call, which ends when the host may write what it gave and read what it got.
pub fn copy(from: &[*const OrtValue], to: &mut [*const OrtValue]) -> Result<(), String> {
    if from.is_empty() {
        return Ok(());
    }
    let environment = ENVIRONMENT.load(Ordering::Acquire);
    if environment.is_null() {
        return Err("ONNX Runtime is not open".into());
    }
    // SAFETY: the process's environment, and as many live values of equal size on both sides; no stream: the provider's own.
    check(unsafe { (ort::api().CopyTensors)(environment, from.as_ptr(), to.as_mut_ptr(), null_mut(), from.len()) })
}
