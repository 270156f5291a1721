//! Calls of the NVIDIA driver (`cuda.h`, CUDA 12 and later), found by name in a library that is opened by path.

use super::CudaError;
use crate::core::fault::CUDA_STICKY;
use libloading::Library;
use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

/// `CUresult`; 0 is success.
pub type Code = c_int;
/// `CUcontext`, `CUstream`, `CUmodule`, `CUfunction`: the driver's objects.
pub type Handle = *mut c_void;

const OUT_OF_MEMORY: Code = 2;
/// `CUDA_ERROR_NO_DEVICE` and `CUDA_ERROR_INVALID_DEVICE`.
const NO_DEVICE: [Code; 2] = [100, 101];
/// Invalid image, no binary for this GPU, invalid PTX, unsupported PTX version.
const BAD_MODULE: [Code; 4] = [200, 209, 218, 222];

macro_rules! calls {
    ($($(#[$about:meta])* $field:ident = $symbol:literal: ($($arg:ty),*);)*) => {
        pub struct Calls {
            $($(#[$about])* pub $field: unsafe extern "C" fn($($arg),*) -> Code,)*
            /// It is never closed: a driver that has started has its own threads.
            _library: ManuallyDrop<Library>,
        }

        impl Calls {
            /// Opens the driver at `path`, or the system's: `libcuda.so.1`.
            pub fn open(path: &Path) -> Result<Calls, CudaError> {
                // SAFETY: the driver's own library; what it does when it is opened is its vendor's business. The symbols have the
                // signatures of cuda.h.
                unsafe {
                    let library = Library::new(path).map_err(no_driver)?;
                    $(let $field = *library.get($symbol).map_err(no_driver)?;)*
                    Ok(Calls { $($field,)* _library: ManuallyDrop::new(library) })
                }
            }
        }
    };
}

calls! {
    init = "cuInit": (c_uint);
    version = "cuDriverGetVersion": (*mut c_int);
    device_count = "cuDeviceGetCount": (*mut c_int);
    device_get = "cuDeviceGet": (*mut c_int, c_int);
    device_name = "cuDeviceGetName": (*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute": (*mut c_int, c_int, c_int);
    device_bytes = "cuDeviceTotalMem_v2": (*mut usize, c_int);
    context_flags = "cuDevicePrimaryCtxSetFlags_v2": (c_int, c_uint);
    context_retain = "cuDevicePrimaryCtxRetain": (*mut Handle, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2": (c_int);
    context_set = "cuCtxSetCurrent": (Handle);
    context_push = "cuCtxPushCurrent_v2": (Handle);
    context_pop = "cuCtxPopCurrent_v2": (*mut Handle);
    capture_mode = "cuThreadExchangeStreamCaptureMode": (*mut c_int);
    stream_create = "cuStreamCreate": (*mut Handle, c_uint);
    stream_destroy = "cuStreamDestroy_v2": (Handle);
    stream_wait = "cuStreamSynchronize": (Handle);
    event_create = "cuEventCreate": (*mut Handle, c_uint);
    event_destroy = "cuEventDestroy_v2": (Handle);
    event_record = "cuEventRecord": (Handle, Handle);
    event_wait = "cuEventSynchronize": (Handle);
    event_elapsed = "cuEventElapsedTime": (*mut f32, Handle, Handle);
    host_register = "cuMemHostRegister_v2": (*mut c_void, usize, c_uint);
    host_unregister = "cuMemHostUnregister": (*mut c_void);
    module_load = "cuModuleLoadData": (*mut Handle, *const c_void);
    module_unload = "cuModuleUnload": (Handle);
    module_function = "cuModuleGetFunction": (*mut Handle, Handle, *const c_char);
    memory_info = "cuMemGetInfo_v2": (*mut usize, *mut usize);
    memory_alloc = "cuMemAlloc_v2": (*mut u64, usize);
    memory_free = "cuMemFree_v2": (u64);
    copy_in = "cuMemcpyHtoDAsync_v2": (u64, *const c_void, usize, Handle);
    copy_out = "cuMemcpyDtoHAsync_v2": (*mut c_void, u64, usize, Handle);
    copy = "cuMemcpyDtoDAsync_v2": (u64, u64, usize, Handle);
    launch = "cuLaunchKernel":
        (Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
    error_name = "cuGetErrorName": (Code, *mut *const c_char);
}

/// The loader's own text: `libloading` keeps them in the source of its error.
pub fn loader_error(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn no_driver(error: libloading::Error) -> CudaError {
    CudaError::NoDriver(loader_error(&error))
}

impl Calls {
    /// A code as a result; `what` is the call.
    pub fn check(&self, what: &str, code: Code) -> Result<(), CudaError> {
        if code == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: an out pointer; the text is the driver's and static.
        let named = unsafe { (self.error_name)(code, &mut name) } == 0 && !name.is_null();
        // SAFETY: as above, a C string.
        let name = if named { unsafe { CStr::from_ptr(name) }.to_string_lossy() } else { "an unknown error".into() };
        let text = format!("{what}: {name} ({code})");
        Err(match code {
            OUT_OF_MEMORY => CudaError::OutOfMemory(0),
            code if BAD_MODULE.contains(&code) => CudaError::BadModule(text),
            code if CUDA_STICKY.contains(&(code as u32)) => CudaError::DeviceLost(text),
            _ => CudaError::Call(text),
        })
    }

    pub fn is_no_device(code: Code) -> bool {
        NO_DEVICE.contains(&code)
    }
}
