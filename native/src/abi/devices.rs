//! The calls about devices: those of this machine, for `doctor`, and those that the models of an engine run on.

use super::{answer, done, engine, text, written};
use crate::abi::engine::Engine;
use crate::core::device::Device;
use crate::core::status::{Failure, Status};
use crate::gpu::driver::{self, Driver};
use crate::ort::{environment, runtime};
use std::path::Path;

/// The NVIDIA driver, and each kind of device.
#[derive(serde::Serialize)]
struct Devices {
    driver: Driver,
    tried: Vec<DeviceCheck>,
}

#[derive(serde::Serialize)]
struct DeviceCheck {
    device: String,
    /// Why the device runs no graph; None if it runs one.
    refused: Option<String>,
}

/// Tries a graph of one node on each kind of device but the CPU, with the ONNX Runtime at the absolute path `runtime`, and writes the
/// results to `to` (JSON). Returns the length, or the length needed if it is more than `to_len`. Blocks, for up to a minute with TensorRT.
/// Returns `Status::Load` if ONNX Runtime cannot be opened.
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

/// Writes the figures of each device that has replicas (JSON, `devices::Figures`) to `to`. Returns the length, or the length needed if it
/// is more than `to_len`.
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

/// Drains a device: its replicas finish their inferences, take no more, and are out then. Each loss is a completion of its model's ticket
/// with `Status::ReplicaOut`. The memory of the replicas' session slots is lost: the caller ensures that no session needs it. Returns
/// `Misuse` if the device has no replicas or is lost, and if a model would have no replica left.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_drain(handle: *const Engine, device: *const u8, device_len: u32) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.drain(text(device, device_len)?)) })
}
