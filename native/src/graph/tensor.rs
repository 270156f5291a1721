//! A tensor: its name, role, type and size, and where its values lie.

use super::device::DeviceBlock;
use crate::manifest::{Dtype, Extent, Port, Role};
use crate::memory::Block;
use std::ffi::c_void;

/// Values of one tensor; more is a mistake in a manifest.
const VALUES_MAX: usize = 1 << 32;

/// Where a tensor's values lie, for the largest run.
pub enum Storage {
    /// 32-bit floats in page-locked memory.
    F32(Block<f32>),
    /// 64-bit integers in page-locked memory.
    I64(Block<i64>),
    /// Booleans, one byte each, in page-locked memory.
    Bool(Block<u8>),
    /// Memory of the device, which the host does not read.
    Device(DeviceBlock),
}

/// A tensor that graphs are bound to.
pub struct Tensor {
    /// The name in the graph that owns it.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// The type of its values.
    pub dtype: Dtype,
    /// Number of values, for the largest run.
    pub len: usize,
    /// Where they lie.
    pub storage: Storage,
}

impl Tensor {
    /// Zeroed, page-locked memory for a run of `most`.
    pub fn new(port: &Port, most: Extent) -> Result<Tensor, String> {
        let len = port_len(port, most)?;
        let storage = match port.dtype {
            Dtype::F32 => Storage::F32(Block::locked(len)?),
            Dtype::I64 => Storage::I64(Block::locked(len)?),
            Dtype::Bool => Storage::Bool(Block::locked(len)?),
        };
        Ok(Tensor { name: port.name.clone(), role: port.role, dtype: port.dtype, len, storage })
    }

    /// Memory of the device for a run of `most`, as `make` gives out so many bytes of it.
    pub fn on_device(
        port: &Port,
        most: Extent,
        make: impl FnOnce(usize) -> Result<DeviceBlock, String>,
    ) -> Result<Tensor, String> {
        let len = port_len(port, most)?;
        let storage = Storage::Device(make(len * port.dtype.bytes())?);
        Ok(Tensor { name: port.name.clone(), role: port.role, dtype: port.dtype, len, storage })
    }

    /// Its first value, for `Graph::bind`.
    pub fn address(&self) -> *mut c_void {
        match &self.storage {
            Storage::F32(block) => block.address().cast(),
            Storage::I64(block) => block.address().cast(),
            Storage::Bool(block) => block.address().cast(),
            Storage::Device(block) => block.address(),
        }
    }

    /// Bytes of the device's memory.
    pub fn device_bytes(&self) -> usize {
        if let Storage::Device(block) = &self.storage { block.bytes() } else { 0 }
    }

    /// Whether it lies on the device.
    pub fn is_on_device(&self) -> bool {
        matches!(self.storage, Storage::Device(_))
    }

    /// The values of an f32 tensor in page-locked memory.
    pub fn floats(&mut self) -> &mut [f32] {
        match &mut self.storage {
            Storage::F32(block) => block,
            _ => panic!("tensor {} does not hold f32 for the host", self.name),
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
