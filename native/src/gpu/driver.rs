//! The NVIDIA driver of this machine: `libcuda.so.1`, opened when it is asked for. Nothing here starts work on a GPU.

use libloading::{Library, Symbol};
use serde::Serialize;
use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;

/// What CUDA 13, which the provider libraries are built for, needs of a driver: the number of `cuDriverGetVersion`.
pub const VERSION_MIN: i32 = 13_000;

/// What the loader says of a library that it does not open: `libloading` itself only says that it failed.
pub fn loader_error(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The state of the driver.
#[derive(Serialize, Debug, PartialEq)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Driver {
    /// `libcuda.so.1` cannot be opened.
    Absent {
        /// The loader's words.
        reason: String,
    },
    /// It serves an older CUDA than `VERSION_MIN`.
    Old {
        /// The CUDA that it serves.
        version: String,
        /// The CUDA that is needed.
        needed: String,
    },
    /// It is there, and has no device for this process.
    NoDevice {
        /// The CUDA that it serves.
        version: String,
    },
    /// It is there and does not start.
    Failed {
        /// The CUDA that it serves.
        version: String,
        /// The call that failed, and the driver's own name of the failure.
        reason: String,
    },
    /// It has devices.
    Ready {
        /// The CUDA that it serves.
        version: String,
        /// In the order of their numbers.
        devices: Vec<Gpu>,
    },
}

/// One GPU.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct Gpu {
    /// The vendor's name of it.
    pub name: String,
    /// Architecture, for example `sm_90`.
    pub arch: String,
    /// Bytes of its memory.
    pub bytes: u64,
}

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: c_int = 100;

/// The calls that are made of the driver, so that a test can play one. A code of 0 is success.
trait Calls {
    fn init(&self) -> c_int;
    fn version(&self) -> Result<c_int, c_int>;
    fn count(&self) -> Result<c_int, c_int>;
    fn gpu(&self, index: c_int) -> Result<Gpu, c_int>;
    fn name_of(&self, code: c_int) -> String;
}

/// Asks the driver. Takes up to a second where there is a GPU that nobody uses.
pub fn read() -> Driver {
    match Cuda::open() {
        Ok(calls) => state(&calls),
        Err(reason) => Driver::Absent { reason },
    }
}

/// The GPU of that number, if the driver has it.
pub fn gpu(index: i32) -> Option<Gpu> {
    let Driver::Ready { devices, .. } = read() else { return None };
    devices.get(usize::try_from(index).ok()?).cloned()
}

fn state(calls: &dyn Calls) -> Driver {
    // Answered also where there is no device.
    let number = calls.version().unwrap_or(0);
    let version = dotted(number);
    if number < VERSION_MIN {
        return Driver::Old { version, needed: dotted(VERSION_MIN) };
    }
    let failed = |call: &str, code: c_int, version: String| match code {
        NO_DEVICE => Driver::NoDevice { version },
        _ => Driver::Failed { version, reason: format!("{call}: {}", calls.name_of(code)) },
    };
    match calls.init() {
        0 => {}
        code => return failed("cuInit", code, version),
    }
    let count = match calls.count() {
        Ok(0) => return Driver::NoDevice { version },
        Ok(count) => count,
        Err(code) => return failed("cuDeviceGetCount", code, version),
    };
    match (0..count).map(|index| calls.gpu(index)).collect() {
        Ok(devices) => Driver::Ready { version, devices },
        Err(code) => failed("cuDeviceGet", code, version),
    }
}

/// `13000` as `13.0`.
fn dotted(number: c_int) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// The real driver. It stays open: once started, it has threads of its own.
struct Cuda(ManuallyDrop<Library>);

type Ask<T> = unsafe extern "C" fn(*mut T) -> c_int;
type AskOf<T> = unsafe extern "C" fn(*mut T, c_int) -> c_int;

impl Cuda {
    fn open() -> Result<Cuda, String> {
        // SAFETY: the driver's own library; what it does when it is opened is its vendor's business on this machine.
        let library = unsafe { Library::new("libcuda.so.1") }.map_err(|error| loader_error(&error))?;
        Ok(Cuda(ManuallyDrop::new(library)))
    }

    fn call<T>(&self, name: &str, call: impl FnOnce(&T) -> c_int) -> Result<(), c_int> {
        /// `CUDA_ERROR_NOT_FOUND`: of a driver without the call.
        const NOT_FOUND: c_int = 500;
        // SAFETY: the callers name each function with its type in cuda.h.
        let found: Symbol<'_, T> = unsafe { self.0.get(name.as_bytes()) }.map_err(|_| NOT_FOUND)?;
        match call(&found) {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

impl Calls for Cuda {
    fn init(&self) -> c_int {
        // SAFETY: CUresult cuInit(unsigned flags); 0 is the only flag that there is.
        self.call::<unsafe extern "C" fn(u32) -> c_int>("cuInit", |init| unsafe { init(0) }).err().unwrap_or(0)
    }

    fn version(&self) -> Result<c_int, c_int> {
        let mut version = 0;
        // SAFETY: CUresult cuDriverGetVersion(int *).
        self.call::<Ask<c_int>>("cuDriverGetVersion", |ask| unsafe { ask(&mut version) })?;
        Ok(version)
    }

    fn count(&self) -> Result<c_int, c_int> {
        let mut count = 0;
        // SAFETY: CUresult cuDeviceGetCount(int *).
        self.call::<Ask<c_int>>("cuDeviceGetCount", |ask| unsafe { ask(&mut count) })?;
        Ok(count)
    }

    fn gpu(&self, index: c_int) -> Result<Gpu, c_int> {
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        const MAJOR: c_int = 75;
        const MINOR: c_int = 76;
        let (mut device, mut bytes) = (0, 0_usize);
        // SAFETY: CUresult cuDeviceGet(CUdevice *, int).
        self.call::<AskOf<c_int>>("cuDeviceGet", |ask| unsafe { ask(&mut device, index) })?;
        let attribute = |which: c_int| {
            let mut value = 0;
            // SAFETY: CUresult cuDeviceGetAttribute(int *, CUdevice_attribute, CUdevice).
            self.call::<Attribute>("cuDeviceGetAttribute", |ask| unsafe { ask(&mut value, which, device) })?;
            Ok::<c_int, c_int>(value)
        };
        let (major, minor) = (attribute(MAJOR)?, attribute(MINOR)?);
        // SAFETY: CUresult cuDeviceTotalMem_v2(size_t *, CUdevice).
        self.call::<AskOf<usize>>("cuDeviceTotalMem_v2", |ask| unsafe { ask(&mut bytes, device) })?;
        let mut name = [0_u8; 256];
        let (start, len) = (name.as_mut_ptr().cast(), name.len() as c_int);
        // SAFETY: CUresult cuDeviceGetName(char *, int len, CUdevice).
        self.call::<Name>("cuDeviceGetName", |ask| unsafe { ask(start, len, device) })?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned();
        Ok(Gpu { name, arch: format!("sm_{major}{minor}"), bytes: bytes as u64 })
    }

    fn name_of(&self, code: c_int) -> String {
        type Name = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
        let mut name = std::ptr::null();
        // SAFETY: CUresult cuGetErrorName(CUresult, const char **).
        let named = self.call::<Name>("cuGetErrorName", |ask| unsafe { ask(code, &mut name) });
        if named.is_err() || name.is_null() {
            return format!("error {code}");
        }
        // SAFETY: a static C string of the driver.
        format!("{} ({code})", unsafe { CStr::from_ptr(name) }.to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that answers as it is told.
    struct Played {
        version: c_int,
        init: c_int,
        gpus: Vec<Gpu>,
    }

    impl Calls for Played {
        fn init(&self) -> c_int {
            self.init
        }
        fn version(&self) -> Result<c_int, c_int> {
            Ok(self.version)
        }
        fn count(&self) -> Result<c_int, c_int> {
            Ok(self.gpus.len() as c_int)
        }
        fn gpu(&self, index: c_int) -> Result<Gpu, c_int> {
            Ok(self.gpus[index as usize].clone())
        }
        fn name_of(&self, code: c_int) -> String {
            format!("CODE_{code}")
        }
    }

    fn h200() -> Gpu {
        Gpu { name: "NVIDIA H200".into(), arch: "sm_90".into(), bytes: 150 << 30 }
    }

    fn played(version: c_int, init: c_int, gpus: Vec<Gpu>) -> Driver {
        state(&Played { version, init, gpus })
    }

    #[test]
    fn a_driver_is_old_without_device_broken_or_ready() {
        let version = String::from("13.0");
        assert_eq!(played(12_080, 0, vec![h200()]), Driver::Old { version: "12.8".into(), needed: version.clone() });
        assert_eq!(played(13_000, NO_DEVICE, Vec::new()), Driver::NoDevice { version: version.clone() });
        assert_eq!(played(13_000, 0, Vec::new()), Driver::NoDevice { version: version.clone() });
        assert_eq!(
            played(13_000, 803, vec![h200()]),
            Driver::Failed { version: version.clone(), reason: "cuInit: CODE_803".into() }
        );
        assert_eq!(played(13_000, 0, vec![h200()]), Driver::Ready { version, devices: vec![h200()] });
        assert_eq!(dotted(13_020), "13.2");
    }

    #[test]
    fn the_state_is_told_as_json_with_its_name() {
        let told = serde_json::to_value(played(13_000, 0, vec![h200()])).expect("plain data");
        assert_eq!(told["state"], "ready");
        assert_eq!(told["devices"][0]["arch"], "sm_90");
        assert_eq!(
            serde_json::to_value(Driver::NoDevice { version: "13.0".into() }).expect("data")["state"],
            "no_device"
        );
    }

    #[test]
    fn the_driver_of_this_machine_can_be_asked() {
        // Whatever it says: on a machine without one it is the loader's sentence, which names the library.
        if let Driver::Absent { reason } = read() {
            assert!(reason.contains("libcuda.so.1"), "{reason}");
        }
    }
}
