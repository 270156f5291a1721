//! A tensor: its name, role and page-locked memory.

use crate::manifest::{Dtype, Extent, Port, Role};
use crate::memory::Block;
use std::ffi::c_void;

/// Values of one tensor; more is a mistake in a manifest.
const VALUES_MAX: usize = 1 << 32;

/// The memory of one tensor, for the largest run.
pub enum Memory {
    /// 32-bit floats.
    F32(Block<f32>),
    /// 64-bit integers.
    I64(Block<i64>),
    /// Booleans, one byte each.
    Bool(Block<u8>),
}

/// A tensor that graphs are bound to.
pub struct Tensor {
    /// The name in the graph that owns it.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Its memory.
    pub memory: Memory,
}

impl Tensor {
    /// Zeroed, page-locked memory for a run of `most`.
    pub fn new(port: &Port, most: Extent) -> Result<Tensor, String> {
        let len = port_len(port, most)?;
        let memory = match port.dtype {
            Dtype::F32 => Memory::F32(Block::locked(len)?),
            Dtype::I64 => Memory::I64(Block::locked(len)?),
            Dtype::Bool => Memory::Bool(Block::locked(len)?),
        };
        Ok(Tensor { name: port.name.clone(), role: port.role, memory })
    }

    /// The type of its values.
    pub fn dtype(&self) -> Dtype {
        match &self.memory {
            Memory::F32(_) => Dtype::F32,
            Memory::I64(_) => Dtype::I64,
            Memory::Bool(_) => Dtype::Bool,
        }
    }

    /// Number of values, for the largest run.
    pub fn len(&self) -> usize {
        match &self.memory {
            Memory::F32(block) => block.len(),
            Memory::I64(block) => block.len(),
            Memory::Bool(block) => block.len(),
        }
    }

    /// Its first value, for `Graph::bind`.
    pub fn address(&self) -> *mut c_void {
        match &self.memory {
            Memory::F32(block) => block.address().cast(),
            Memory::I64(block) => block.address().cast(),
            Memory::Bool(block) => block.address().cast(),
        }
    }

    /// The values of an f32 tensor.
    pub fn floats(&mut self) -> &mut [f32] {
        match &mut self.memory {
            Memory::F32(block) => block,
            _ => panic!("tensor {} does not hold f32", self.name),
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
