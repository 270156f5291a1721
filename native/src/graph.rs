//! A graph bound to fixed memory: tensors are made and bound once, for each batch size; a run is one call.
//!
//! `ort`'s own binding copies a tensor made from borrowed memory, so this module goes to the raw API underneath it.

use crate::manifest::{Dim, Dtype, Port, Role};
use crate::memory::Block;
use ort::AsPointer;
use ort::session::Session;
use ort::sys::{self, OrtIoBinding, OrtRunOptions, OrtValue};
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::Arc;

/// Values of one tensor; more is a mistake in a manifest.
const VALUES_MAX: usize = 1 << 32;

/// The memory of one tensor, for the largest batch.
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
    shape: Vec<Dim>,
}

impl Tensor {
    /// Zeroed, page-locked memory for `batch` rows.
    pub fn new(port: &Port, batch: usize) -> Result<Tensor, String> {
        let mut sizes = port.shape.iter().map(|dim| if let Dim::Fixed(size) = dim { *size } else { batch });
        let len = sizes
            .try_fold(1, |len: usize, size| len.checked_mul(size).filter(|len| *len <= VALUES_MAX))
            .ok_or_else(|| format!("tensor {} has more than {VALUES_MAX} values", port.name))?;
        let memory = match port.dtype {
            Dtype::F32 => Memory::F32(Block::locked(len)?),
            Dtype::I64 => Memory::I64(Block::locked(len)?),
            Dtype::Bool => Memory::Bool(Block::locked(len)?),
        };
        Ok(Tensor { name: port.name.clone(), role: port.role, memory, shape: port.shape.clone() })
    }

    /// The type of its values.
    pub fn dtype(&self) -> Dtype {
        match &self.memory {
            Memory::F32(_) => Dtype::F32,
            Memory::I64(_) => Dtype::I64,
            Memory::Bool(_) => Dtype::Bool,
        }
    }

    /// Number of values, for the largest batch.
    pub fn len(&self) -> usize {
        match &self.memory {
            Memory::F32(block) => block.len(),
            Memory::I64(block) => block.len(),
            Memory::Bool(block) => block.len(),
        }
    }

    /// The values of an f32 tensor.
    pub fn floats(&mut self) -> &mut [f32] {
        match &mut self.memory {
            Memory::F32(block) => block,
            _ => panic!("tensor {} does not hold f32", self.name),
        }
    }

    /// Address, element type, bytes per element.
    fn raw(&self) -> (*mut std::ffi::c_void, sys::ONNXTensorElementDataType, usize) {
        use sys::ONNXTensorElementDataType as Type;
        match &self.memory {
            Memory::F32(block) => (block.address().cast(), Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4),
            Memory::I64(block) => (block.address().cast(), Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8),
            Memory::Bool(block) => (block.address().cast(), Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1),
        }
    }
}

/// Stops a run from another thread.
pub struct Terminator(*mut OrtRunOptions);

// SAFETY: the options are only touched through SetTerminate and UnsetTerminate, which ONNX Runtime allows from any thread.
unsafe impl Send for Terminator {}
// SAFETY: as above.
unsafe impl Sync for Terminator {}

impl Terminator {
    /// Fresh run options.
    pub fn new() -> Result<Arc<Terminator>, String> {
        let mut options = null_mut();
        // SAFETY: an out pointer for one object, released in Drop.
        check(unsafe { (ort::api().CreateRunOptions)(&mut options) })?;
        Ok(Arc::new(Terminator(options)))
    }

    /// Ends the run that uses these options as soon as its current node is done.
    pub fn set(&self) {
        // SAFETY: live options. A failure would mean that the run goes on to its end, which the flow loop's own check covers.
        let _ = check(unsafe { (ort::api().RunOptionsSetTerminate)(self.0) });
    }

    /// Allows the next run.
    pub fn unset(&self) {
        // SAFETY: live options. A failure would end the next run with an error that is reported.
        let _ = check(unsafe { (ort::api().RunOptionsUnsetTerminate)(self.0) });
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        // SAFETY: made in `new`, released once.
        unsafe { (ort::api().ReleaseRunOptions)(self.0) };
    }
}

/// A session with one binding per batch size.
pub struct Graph {
    bindings: Vec<*mut OrtIoBinding>,
    values: Vec<*mut OrtValue>,
    options: Arc<Terminator>,
    session: Session,
}

// SAFETY: the raw objects belong to the session and have no tie to a thread; `&mut self` keeps runs apart.
unsafe impl Send for Graph {}

impl Graph {
    /// Binds `inputs` and `outputs`, each under the name given beside it, for batches of 1 to `batch`.
    ///
    /// # Safety
    /// The tensors must outlive the graph, and nobody may look at their memory during `run`.
    pub unsafe fn bind(
        session: Session,
        options: Arc<Terminator>,
        batch: usize,
        inputs: &[(String, &Tensor)],
        outputs: &[(String, &Tensor)],
    ) -> Result<Graph, String> {
        let mut graph = Graph { bindings: Vec::new(), values: Vec::new(), options, session };
        let api = ort::api();
        let mut memory_info = null_mut();
        // SAFETY: raw calls with live objects and out pointers; each status is checked, and what is made is owned by
        // `graph`, which releases it also when a later call fails. The memory behind each value is the tensor's.
        unsafe {
            check((api.CreateCpuMemoryInfo)(
                sys::OrtAllocatorType::OrtDeviceAllocator,
                sys::OrtMemType::OrtMemTypeDefault,
                &mut memory_info,
            ))?;
            let result = (1..=batch).try_for_each(|rows| {
                let mut binding = null_mut();
                check((api.CreateIoBinding)(graph.session.ptr().cast_mut(), &mut binding))?;
                graph.bindings.push(binding);
                for (bind, ports) in [(api.BindInput, inputs), (api.BindOutput, outputs)] {
                    for (name, tensor) in ports {
                        let shape: Vec<i64> = (tensor.shape.iter())
                            .map(|dim| if let Dim::Fixed(size) = dim { *size as i64 } else { rows as i64 })
                            .collect();
                        let (address, kind, size) = tensor.raw();
                        let bytes = shape.iter().product::<i64>() as usize * size;
                        let mut value = null_mut();
                        check((api.CreateTensorWithDataAsOrtValue)(
                            memory_info,
                            address,
                            bytes,
                            shape.as_ptr(),
                            shape.len(),
                            kind,
                            &mut value,
                        ))?;
                        graph.values.push(value);
                        let name = CString::new(name.as_str())
                            .map_err(|_| "a tensor name contains a zero byte".to_string())?;
                        check(bind(binding, name.as_ptr(), value)).map_err(|error| format!("{name:?}: {error}"))?;
                    }
                }
                Ok::<(), String>(())
            });
            (api.ReleaseMemoryInfo)(memory_info);
            result?;
        }
        Ok(graph)
    }

    /// Runs the first `rows` rows of the bound tensors. `tensors` is borrowed so that nobody reads them meanwhile.
    pub fn run(&mut self, rows: usize, _tensors: &mut [Tensor]) -> Result<(), String> {
        // SAFETY: live session, options and binding; the tensors live as `bind` demands.
        check(unsafe {
            (ort::api().RunWithBinding)(self.session.ptr().cast_mut(), self.options.0, self.bindings[rows - 1])
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let api = ort::api();
        // SAFETY: made in `bind`, released once, before the session.
        unsafe {
            self.bindings.iter().for_each(|&binding| (api.ReleaseIoBinding)(binding));
            self.values.iter().for_each(|&value| (api.ReleaseValue)(value));
        }
    }
}

/// A raw status to a sentence.
fn check(status: sys::OrtStatusPtr) -> Result<(), String> {
    // SAFETY: the status comes straight from a call of the API and is consumed here.
    unsafe { ort::Error::<()>::result_from_status(status) }.map_err(|error| error.to_string())
}
