//! A tensor: its name, role, type and size, and where its values lie.

use crate::bundle::manifest::{Extent, Port, Role};
use crate::core::dtype::Dtype;
use crate::core::memory::Block;
use crate::gpu::CudaError;
use crate::gpu::context::Context;
use crate::ort::device_memory::DeviceBlock;
use std::ffi::c_void;
use std::sync::Arc;

/// Values of one tensor; more is a mistake in a manifest.
const VALUES_MAX: usize = 1 << 32;

pub enum Storage {
    /// Page-locked memory.
    Host(Block),
    /// Memory of the device, which the host does not read.
    Device(DeviceBlock),
}

/// A tensor that graphs are bound to.
pub struct Tensor {
    /// The name in the graph that owns it.
    pub name: String,
    pub role: Role,
    pub dtype: Dtype,
    /// Number of values, for the largest run.
    pub len: usize,
    pub storage: Storage,
}

impl Tensor {
    /// Zeroed, page-locked memory for an inference of `most`.
    pub fn new(port: &Port, most: Extent) -> Result<Tensor, String> {
        let len = port_len(port, most)?;
        let storage = Storage::Host(Block::locked(len * port.dtype.bytes())?);
        Ok(Tensor { name: port.name.clone(), role: port.role, dtype: port.dtype, len, storage })
    }

    /// Memory of the device for an inference of `most`; `make` gives it.
    pub fn on_device(
        port: &Port,
        most: Extent,
        make: impl FnOnce(usize) -> Result<DeviceBlock, String>,
    ) -> Result<Tensor, String> {
        let len = port_len(port, most)?;
        let storage = Storage::Device(make(len * port.dtype.bytes())?);
        Ok(Tensor { name: port.name.clone(), role: port.role, dtype: port.dtype, len, storage })
    }

    pub fn address(&self) -> *mut c_void {
        match &self.storage {
            Storage::Host(block) => block.address().cast(),
            Storage::Device(block) => block.address(),
        }
    }

    /// Registers a tensor of the host's memory with the driver of a GPU; returns the registered bytes.
    pub fn register(&mut self, context: &Arc<Context>) -> Result<usize, CudaError> {
        let Storage::Host(block) = &mut self.storage else { return Ok(0) };
        context.register_block(block).map(|()| block.registered_bytes())
    }

    pub fn device_bytes(&self) -> usize {
        if let Storage::Device(block) = &self.storage { block.bytes() } else { 0 }
    }

    pub fn is_on_device(&self) -> bool {
        matches!(self.storage, Storage::Device(_))
    }

    /// The bytes of its values, in page-locked memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        let bytes = self.len * self.dtype.bytes();
        match &mut self.storage {
            Storage::Host(block) => &mut block[..bytes],
            Storage::Device(_) => panic!("tensor {} does not lie in the host's memory", self.name),
        }
    }

    /// The values of an f32 tensor in page-locked memory.
    pub fn floats(&mut self) -> &mut [f32] {
        match &mut self.storage {
            Storage::Host(block) if self.dtype == Dtype::F32 => block.floats_mut(),
            _ => panic!("tensor {} does not hold f32 for the host", self.name),
        }
    }

    /// Writes `values` from value `start` on as the tensor's type. Values behind the tensor's end are left out.
    pub fn write(&mut self, start: usize, values: impl IntoIterator<Item = f64>) {
        fn put<const N: usize>(to: &mut [u8], values: impl IntoIterator<Item = f64>, bytes: impl Fn(f64) -> [u8; N]) {
            to.chunks_exact_mut(N).zip(values).for_each(|(to, value)| to.copy_from_slice(&bytes(value)));
        }
        let dtype = self.dtype;
        let to = &mut self.bytes()[start * dtype.bytes()..];
        match dtype {
            Dtype::F32 => put(to, values, |value| (value as f32).to_ne_bytes()),
            Dtype::I64 => put(to, values, |value| (value as i64).to_ne_bytes()),
            Dtype::I32 => put(to, values, |value| (value as i32).to_ne_bytes()),
            Dtype::U8 => put(to, values, |value| [value as u8]),
            Dtype::Bool => put(to, values, |value| [u8::from(value != 0.0)]),
            Dtype::F16 | Dtype::Bf16 => {
                panic!("tensor {} is of half precision, which the host does not write", self.name)
            }
        }
    }
}

/// Number of values of a port's tensor in a run of `extent`.
pub fn port_len(port: &Port, extent: Extent) -> Result<usize, String> {
    let mut sizes = port.shape.iter().map(|dim| dim.size(extent));
    sizes
        .try_fold(1, |len: usize, size| len.checked_mul(size).filter(|len| *len <= VALUES_MAX))
        .ok_or_else(|| format!("tensor {} has more than {VALUES_MAX} values", port.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::manifest::Dim;

    fn port(dtype: Dtype, shape: Vec<Dim>) -> Port {
        Port { name: "x".into(), role: Role::Cache, from: None, dtype, shape, buckets: None, cameras: None }
    }

    #[test]
    fn numbers_are_written_as_the_type_of_the_tensor() {
        let given = [7.0, -3.0, 0.0];
        for dtype in [Dtype::F32, Dtype::I64, Dtype::I32, Dtype::U8, Dtype::Bool] {
            let mut tensor = Tensor::new(&port(dtype, vec![Dim::Fixed(4)]), Extent { batch: 1, prompt: 1, prefix: 1 })
                .expect("a tensor");
            tensor.write(1, given);
            let number = |bytes: &[u8]| match (dtype, bytes) {
                (Dtype::F32, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]).into(),
                (Dtype::I32, &[a, b, c, d]) => i32::from_ne_bytes([a, b, c, d]).into(),
                (_, &[byte]) => byte.into(),
                (_, _) => i64::from_ne_bytes(bytes.try_into().expect("eight bytes")) as f64,
            };
            let found: Vec<f64> = tensor.bytes().chunks(dtype.bytes()).map(number).collect();
            let expected = match dtype {
                Dtype::Bool => [0.0, 1.0, 1.0, 0.0],
                Dtype::U8 => [0.0, 7.0, 0.0, 0.0],
                _ => [0.0, 7.0, -3.0, 0.0],
            };
            assert_eq!(found, expected, "{dtype:?}");
        }
    }

    #[test]
    fn a_tensor_of_each_dtype_holds_its_bytes_zeroed_and_aligned() {
        let most = Extent { batch: 3, prompt: 5, prefix: 7 };
        let all = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I32, Dtype::I64, Dtype::U8, Dtype::Bool];
        for dtype in all {
            let port = port(dtype, vec![Dim::Batch, Dim::Prefix, Dim::Fixed(11)]);
            let tensor = Tensor::new(&port, most).expect("memory");
            assert_eq!((tensor.dtype, tensor.len, tensor.address() as usize % 4096), (dtype, 3 * 7 * 11, 0));
            // SAFETY: that number of bytes is the tensor's, and nothing writes to them.
            let bytes =
                unsafe { std::slice::from_raw_parts(tensor.address().cast::<u8>(), tensor.len * dtype.bytes()) };
            assert!(bytes.iter().all(|&byte| byte == 0), "{dtype:?}");
        }
    }
}
