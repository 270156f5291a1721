//! The NVIDIA driver of this machine: `libcuda.so.1`, opened for each question. No work starts on a GPU.

use crate::gpu::CudaError;
use crate::gpu::calls::Calls;
use serde::Serialize;
use std::ffi::{CStr, c_int};
use std::path::Path;

/// The oldest driver for CUDA 13, which the provider libraries need: the number of `cuDriverGetVersion`.
pub const VERSION_MIN: i32 = 13_000;

#[derive(Serialize, Debug, PartialEq)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Driver {
    /// `libcuda.so.1` cannot be opened.
    Absent {
        reason: String,
    },
    Old {
        version: String,
        needed: String,
    },
    NoDevice {
        version: String,
    },
    /// It exists and does not start.
    Failed {
        version: String,
        /// The failed call, and the driver's name of the failure.
        reason: String,
    },
    Ready {
        version: String,
        devices: Vec<Gpu>,
    },
}

#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct Gpu {
    pub name: String,
    /// Architecture, for example `sm_90`.
    pub arch: String,
    pub bytes: u64,
}

/// Asks the driver, which takes up to a second with an unused GPU.
pub fn read() -> Driver {
    match Calls::open(Path::new("libcuda.so.1")) {
        Ok(calls) => state(version(&calls), || devices(&calls)),
        Err(CudaError::NoDriver(reason)) => Driver::Absent { reason },
        Err(error) => Driver::Absent { reason: error.to_string() },
    }
}

/// The GPU of that number, if the driver has it.
pub fn gpu(index: i32) -> Option<Gpu> {
    let Driver::Ready { devices, .. } = read() else { return None };
    devices.get(usize::try_from(index).ok()?).cloned()
}

/// `devices` starts the driver, unless that is too old.
fn state(number: c_int, devices: impl FnOnce() -> Result<Vec<Gpu>, CudaError>) -> Driver {
    let version = dotted(number);
    if number < VERSION_MIN {
        return Driver::Old { version, needed: dotted(VERSION_MIN) };
    }
    match devices() {
        Ok(devices) if devices.is_empty() => Driver::NoDevice { version },
        Ok(devices) => Driver::Ready { version, devices },
        Err(error) => Driver::Failed { version, reason: error.to_string() },
    }
}

/// `13000` as `13.0`.
fn dotted(number: c_int) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// The CUDA version of the driver, 0 if it does not say. It needs no device.
fn version(calls: &Calls) -> c_int {
    let mut version = 0;
    // SAFETY: an out pointer.
    unsafe { (calls.version)(&mut version) };
    version
}

/// Starts the driver. Empty if it has no device for this process.
fn devices(calls: &Calls) -> Result<Vec<Gpu>, CudaError> {
    // SAFETY: 0 is the only flag of cuInit.
    let started = unsafe { (calls.init)(0) };
    if Calls::is_no_device(started) {
        return Ok(Vec::new());
    }
    calls.check("cuInit", started)?;
    let mut count = 0;
    // SAFETY: an out pointer.
    calls.check("cuDeviceGetCount", unsafe { (calls.device_count)(&mut count) })?;
    (0..count).map(|index| device(calls, index)).collect()
}

fn device(calls: &Calls, index: c_int) -> Result<Gpu, CudaError> {
    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
    const MAJOR: c_int = 75;
    const MINOR: c_int = 76;
    let (mut device, mut major, mut minor, mut bytes, mut name) = (0, 0, 0, 0, [0_u8; 256]);
    // SAFETY: out pointers, and the length of the buffer for the name.
    unsafe {
        calls.check("cuDeviceGet", (calls.device_get)(&mut device, index))?;
        calls.check("cuDeviceGetAttribute", (calls.device_attribute)(&mut major, MAJOR, device))?;
        calls.check("cuDeviceGetAttribute", (calls.device_attribute)(&mut minor, MINOR, device))?;
        calls.check("cuDeviceTotalMem", (calls.device_bytes)(&mut bytes, device))?;
        let (start, len) = (name.as_mut_ptr().cast(), name.len() as c_int);
        calls.check("cuDeviceGetName", (calls.device_name)(start, len, device))?;
    }
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned();
    Ok(Gpu { name, arch: format!("sm_{major}{minor}"), bytes: bytes as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Gpu {
        Gpu { name: "NVIDIA H200".into(), arch: "sm_90".into(), bytes: 150 << 30 }
    }

    #[test]
    fn a_driver_is_old_without_device_broken_or_ready() {
        let version = String::from("13.0");
        let old = state(12_080, || panic!("an old driver is not started"));
        assert_eq!(old, Driver::Old { version: "12.8".into(), needed: version.clone() });
        assert_eq!(state(13_000, || Ok(Vec::new())), Driver::NoDevice { version: version.clone() });
        let failed = CudaError::Call("cuInit: CODE_803 (803)".into());
        let reason = failed.to_string();
        assert_eq!(state(13_000, || Err(failed)), Driver::Failed { version: version.clone(), reason });
        assert_eq!(state(13_000, || Ok(vec![h200()])), Driver::Ready { version, devices: vec![h200()] });
        assert_eq!(dotted(13_020), "13.2");
    }

    #[test]
    fn the_state_is_told_as_json_with_its_name() {
        let json = serde_json::to_value(state(13_000, || Ok(vec![h200()]))).expect("plain data");
        assert_eq!(json["state"], "ready");
        assert_eq!(json["devices"][0]["arch"], "sm_90");
        assert_eq!(
            serde_json::to_value(Driver::NoDevice { version: "13.0".into() }).expect("data")["state"],
            "no_device"
        );
    }

    #[test]
    fn the_driver_of_this_machine_can_be_asked() {
        // Any answer is right; without a driver it is the loader's sentence, which names the library.
        if let Driver::Absent { reason } = read() {
            assert!(reason.contains("libcuda.so.1"), "{reason}");
        }
    }
}
