//! What the devices of this machine say, for `doctor`. It needs no engine.

use super::{answer, text};
use crate::driver::{self, Driver};
use crate::runtime::{self, Device};
use crate::status::{Failure, Status};
use std::path::Path;

/// The driver, and each kind of device with the reason why nothing runs on its first one.
#[derive(serde::Serialize)]
struct Devices {
    driver: Driver,
    tried: Vec<Tried>,
}

#[derive(serde::Serialize)]
struct Tried {
    device: String,
    /// None: it runs a graph.
    refused: Option<String>,
}

/// Tries each kind of device but the CPU with a graph of one node, through the ONNX Runtime at the absolute path `runtime`, and writes
/// what came out to `to`, as JSON. Returns the length, or the length needed if it is more than `to_len`. Blocks: up to a minute where
/// TensorRT is. `Status::Load` when ONNX Runtime cannot be opened.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable for `to_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_devices(runtime: *const u8, runtime_len: u32, to: *mut u8, to_len: u32) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        let path = unsafe { text(runtime, runtime_len) }?;
        runtime::forbid_telemetry();
        let runtime = runtime::open(Path::new(path)).map_err(|text| Failure::new(Status::Load, text))?;
        let tried = [Device::TensorRt(0), Device::Cuda(0), Device::WebGpu(0)]
            .map(|device| Tried { device: device.name(), refused: runtime.refusal(device) });
        let json =
            serde_json::to_string(&Devices { driver: driver::read(), tried: tried.into() }).expect("plain strings");
        if json.len() <= to_len as usize && !to.is_null() {
            // SAFETY: `to` is writable for `to_len` bytes, at least the text's.
            unsafe { std::ptr::copy_nonoverlapping(json.as_ptr(), to, json.len()) };
        }
        Ok(json.len() as i32)
    })
}
