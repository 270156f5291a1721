//! Our own kernels on an NVIDIA GPU: the driver opened by path, the device code that this build has, and each kernel's launch.
//!
//! The kernels are in `native/cuda/`; `src/setup/gpu-kernels.mjs` makes one fat binary of them with the CUDA compiler. Needs the
//! driver alone: no CUDA toolkit, no runtime library.
//!
//! Tests run it on a CPU: the same kernels compiled as C++ behind a library that answers as the driver does (`native/cuda/driver.h`),
//! loaded and launched by this code (`native/tests/kernels/`). The same tests passed on an NVIDIA H200. The engine launches them where the
//! operator asks for it (`ort/driver_device.rs`), and the parity gate judges their values as it judges those of the graphs.

pub(crate) mod calls;
pub mod chunk;
pub mod context;
pub mod device;
pub mod driver;
pub mod flow;
pub mod stream;
pub mod vulkan;

use std::ffi::c_void;

/// An address in the memory of a device.
pub type Address = u64;

/// What a call of the driver, or the way to it, can fail with.
#[derive(Clone, Debug, PartialEq)]
pub enum CudaError {
    /// `libcuda.so.1` cannot be opened, or lacks a call: the loader's words.
    NoDriver(String),
    /// There is no device of that number.
    NoDevice(i32),
    /// The device has no room for so many bytes.
    OutOfMemory(usize),
    /// The host has no memory, or this process may not lock it, for so many bytes.
    Unlockable(usize),
    /// The device code has nothing for this device, or was made for a newer driver.
    BadModule(String),
    /// The device code has no kernel of that name.
    NoKernel(String),
    /// The device is of no use to this process any more: a kernel wrote where it may not, or the device fell off the bus.
    DeviceLost(String),
    /// Another failure: the call, and the driver's words.
    Call(String),
}

impl std::fmt::Display for CudaError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CudaError::NoDriver(reason) => write!(to, "the NVIDIA driver cannot be used: {reason}"),
            CudaError::NoDevice(index) => write!(to, "there is no CUDA device {index}"),
            CudaError::OutOfMemory(bytes) => write!(to, "the device has no room for {bytes} bytes more"),
            CudaError::Unlockable(bytes) => write!(to, "cuMemHostRegister: no room to page-lock {bytes} bytes more"),
            CudaError::BadModule(reason) => write!(to, "the device cannot take the kernels of this build: {reason}"),
            CudaError::NoKernel(name) => write!(to, "the kernels of this build lack {name}"),
            CudaError::DeviceLost(reason) => write!(to, "the device is lost: {reason}"),
            CudaError::Call(reason) => to.write_str(reason),
        }
    }
}

/// The parameters of a launch, as the driver takes them: the address of each value.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &mut [$((&raw const $value).cast_mut().cast::<std::ffi::c_void>()),*]
    };
}
use params;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
}

/// Blocks of `size` that hold `count`, one at least.
fn blocks(count: usize, size: usize) -> u32 {
    u32::try_from(count.div_ceil(size).max(1)).expect("a grid that a device takes")
}

type Params<'a> = &'a mut [*mut c_void];
