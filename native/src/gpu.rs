//! Our own kernels on an NVIDIA GPU: the driver, the device code of this build, and each kernel's launch.
//!
//! The kernels are in `native/cuda/`; `src/setup/gpu-kernels.mjs` compiles them to one fat binary. Only the driver is needed: no CUDA
//! toolkit and no runtime library.
//!
//! A CPU runs all of it in tests: the same kernels, compiled as C++ with a library that answers as the driver does
//! (`native/cuda/driver.h`), loaded and launched by this code (`native/tests/kernels/`). The same tests passed on an NVIDIA H200. The
//! engine launches the kernels if the operator asks for it (`ort/driver_device.rs`), and the parity gate checks their values as those of
//! the graphs.

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

/// The failures of a call of the driver, or of opening it.
#[derive(Clone, Debug, PartialEq)]
pub enum CudaError {
    /// `libcuda.so.1` cannot be opened, or lacks a call: the loader's words.
    NoDriver(String),
    /// There is no device of that number.
    NoDevice(i32),
    /// The device has no room for this many bytes.
    OutOfMemory(usize),
    /// The host has no memory for this many bytes, or this process may not lock it.
    Unlockable(usize),
    /// The device code has nothing for this device, or was made for a newer driver.
    BadModule(String),
    /// The device code has no kernel of that name.
    NoKernel(String),
    /// The device cannot be used by this process any more: a kernel wrote out of bounds, or the device fell off the bus.
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

/// The parameters of a launch for the driver: the address of each value.
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

/// The number of blocks of `size` for `count` threads, at least one.
fn blocks(count: usize, size: usize) -> u32 {
    u32::try_from(count.div_ceil(size).max(1)).expect("a grid that a device takes")
}

type Params<'a> = &'a mut [*mut c_void];
