//! A stream of a device, the memory that its work uses, and the module of our kernels. The stream orders all work.

use super::calls::{Calls, Handle};
use super::context::Context;
use super::stream::Stream;
use super::{Address, CudaError, Params, Shape};
use std::ffi::{CString, c_void};
use std::path::Path;
use std::sync::Arc;

/// A device and its stream. Only a thread that has entered the context puts work into the stream.
pub struct Device {
    stream: Arc<Stream>,
}

impl Device {
    /// Device `index` of the driver at `path` (`libcuda.so.1` is the system's) for this thread, with a new stream. ONNX Runtime uses the
    /// same context.
    pub fn open(path: &Path, index: i32) -> Result<Arc<Device>, CudaError> {
        let context = Context::open(path, index)?;
        context.enter()?;
        Ok(Device::on(Stream::new(&context)?))
    }

    pub fn on(stream: Arc<Stream>) -> Arc<Device> {
        Arc::new(Device { stream })
    }

    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    fn calls(&self) -> &Calls {
        self.stream.context().calls()
    }

    /// `bytes` of its memory, with undefined values.
    pub fn memory(self: &Arc<Self>, bytes: usize) -> Result<Memory, CudaError> {
        let mut address = 0;
        let made = self.stream.context().within(|calls| {
            // SAFETY: an out pointer.
            calls.check("cuMemAlloc", unsafe { (calls.memory_alloc)(&mut address, bytes.max(1)) })
        });
        match made {
            Err(CudaError::OutOfMemory(_)) => Err(CudaError::OutOfMemory(bytes)),
            Err(error) => Err(error),
            Ok(()) => Ok(Memory { device: self.clone(), address, bytes }),
        }
    }

    /// A copy of `values` in its memory, after a wait for it.
    pub fn copy_of<T: Copy>(self: &Arc<Self>, values: &[T]) -> Result<Memory, CudaError> {
        let memory = self.memory(size_of_val(values))?;
        self.stream.context().within(|_| {
            // SAFETY: the memory is as large as the values, which stay until the stream is through with them.
            unsafe { self.stream.copy_in(memory.address, values.as_ptr().cast(), size_of_val(values)) }?;
            self.wait()
        })?;
        Ok(memory)
    }

    /// Waits for all work of the stream, and returns the error of an earlier kernel.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.stream.wait()
    }

    /// Puts a launch into the stream.
    ///
    /// # Safety
    /// `params` are the values that the kernel takes, in number and type. They address memory of this device that is large enough
    /// and lives until the stream is through with it.
    pub(super) unsafe fn launch(&self, function: &Function, shape: Shape, params: Params<'_>) -> Result<(), CudaError> {
        let Shape { grid: [gx, gy, gz], block: [bx, by, bz] } = shape;
        let (params, extra) = (params.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: the caller vouches for the parameters; the function's module is kept by the function.
        let code = unsafe {
            (self.calls().launch)(function.handle, gx, gy, gz, bx, by, bz, 0, self.stream.handle(), params, extra)
        };
        self.calls().check("cuLaunchKernel", code)
    }
}

pub struct Memory {
    device: Arc<Device>,
    address: Address,
    bytes: usize,
}

impl Memory {
    pub fn address(&self) -> Address {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn read<T: Copy + Default>(&self, len: usize) -> Result<Vec<T>, CudaError> {
        let mut values = vec![T::default(); len];
        let bytes = size_of_val(&values[..]);
        assert!(bytes <= self.bytes, "a read stays inside its memory");
        // SAFETY: as many bytes as both have; the values stay until the stream is through with them.
        unsafe { self.device.stream.copy_out(values.as_mut_ptr().cast(), self.address, bytes) }?;
        self.device.wait()?;
        Ok(values)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.device.stream.context().release(|calls| {
            // SAFETY: allocated by `Device::memory`; cuMemFree waits for what uses it.
            calls.check("cuMemFree", unsafe { (calls.memory_free)(self.address) })
        });
    }
}

/// First bytes of a fat binary.
pub const FAT_BINARY: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();

/// The loaded kernels of a fat binary: the driver takes the code of this device, or compiles the PTX.
pub struct Module {
    device: Arc<Device>,
    handle: Handle,
}

// SAFETY: the driver takes a module from any thread, and what is here does not change.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// `image`: a fat binary, as `nvcc -fatbin` makes it.
    pub fn load(device: &Arc<Device>, image: &[u8]) -> Result<Arc<Module>, CudaError> {
        if !image.starts_with(&FAT_BINARY) {
            return Err(CudaError::BadModule("it is no fat binary".into()));
        }
        let mut handle = std::ptr::null_mut();
        device.stream.context().within(|calls| {
            // SAFETY: a fat binary says its own length; that it is whole is known from the digest of the executable's files.
            calls
                .check("cuModuleLoadData", unsafe { (calls.module_load)(&mut handle, image.as_ptr().cast::<c_void>()) })
        })?;
        Ok(Arc::new(Module { device: device.clone(), handle }))
    }

    /// The device and the stream in which its kernels are launched.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub fn function(self: &Arc<Self>, name: &str) -> Result<Function, CudaError> {
        let text = CString::new(name).map_err(|_| CudaError::NoKernel(name.into()))?;
        let mut handle = std::ptr::null_mut();
        let found = self.device.stream.context().within(|calls| {
            // SAFETY: an out pointer, and a C string that lives through the call.
            let code = unsafe { (calls.module_function)(&mut handle, self.handle, text.as_ptr()) };
            calls.check("cuModuleGetFunction", code)
        });
        found.map_err(|error| match error {
            CudaError::Call(_) => CudaError::NoKernel(name.into()),
            error => error,
        })?;
        Ok(Function { handle, module: self.clone() })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.device.stream.context().release(|calls| {
            // SAFETY: loaded by `load`; functions keep the module.
            calls.check("cuModuleUnload", unsafe { (calls.module_unload)(self.handle) })
        });
    }
}

/// One kernel of a loaded module.
pub struct Function {
    handle: Handle,
    module: Arc<Module>,
}

// SAFETY: as a module.
unsafe impl Send for Function {}
// SAFETY: as a module.
unsafe impl Sync for Function {}

impl Function {
    /// Launches it in the stream of its module.
    ///
    /// # Safety
    /// The contract is that of `Device::launch`.
    pub(super) unsafe fn launch(&self, shape: Shape, params: Params<'_>) -> Result<(), CudaError> {
        // SAFETY: the caller's.
        unsafe { self.module.device.launch(self, shape, params) }
    }
}
