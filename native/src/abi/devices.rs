//! What the devices of this machine say, for `doctor`, without an engine; and those that an engine's models run on.

use super::{answer, done, engine, text, written};
use crate::abi::engine::Engine;
use crate::core::device::Device;
use crate::core::status::{Failure, Status};
use crate::gpu::driver::{self, Driver};
use crate::ort::{environment, runtime};
use std::path::Path;

/// The driver, and each kind of device with the reason why nothing runs on its first one.
#[derive(serde::Serialize)]
struct Devices {
    driver: Driver,
    tried: Vec<DeviceCheck>,
}

#[derive(serde::Serialize)]
struct DeviceCheck {
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
        environment::forbid_telemetry();
        let runtime = runtime::open(Path::new(path)).map_err(|text| Failure::new(Status::Load, text))?;
        let tried = [Device::TensorRt(0), Device::Cuda(0), Device::WebGpu(0)]
            .map(|device| DeviceCheck { device: device.name(), refused: runtime.refusal(device) });
        let json =
            serde_json::to_string(&Devices { driver: driver::read(), tried: tried.into() }).expect("plain strings");
        // SAFETY: the caller's.
        Ok(unsafe { written(&json, to, to_len) })
    })
}

/// Writes what each device with replicas holds and how it is (JSON, see `devices::Figures`) to `to`. Returns the length, or the length
/// needed if it is more than `to_len`.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable for `to_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_device_figures(handle: *const Engine, to: *mut u8, to_len: u32) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        unsafe {
            let json = engine(handle)?.device_figures();
            Ok(written(&json, to, to_len))
        }
    })
}

/// Drains a device: its replicas end the runs that they have, take no more, and are out then, each told with its model's ticket and
/// `Status::ReplicaOut`. What lies in the memory of their session slots is lost: the caller sees to it that no session needs it. `Misuse`
/// where the device has no replicas or is lost, and where a model would have no replica left that works.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_drain(handle: *const Engine, device: *const u8, device_len: u32) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.drain(text(device, device_len)?)) })
}
