//! A graph bound to fixed memory: tensors are made and bound once, for each variant; a run is one call.
//!
//! `ort`'s binding copies a tensor made from borrowed memory, so this module uses the raw API.

mod tensor;

pub use tensor::{Memory, Tensor, port_len};

use crate::manifest::{Dtype, Extent, Port, Role};
use crate::memory::Block;
use crate::running::Stop;
use crate::weights::Loaded;
use ort::sys::{self, OrtIoBinding, OrtRunOptions, OrtValue};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// A port and the memory that it is bound to.
pub struct Bound<'a> {
    /// Name, type and shape in the graph.
    pub port: &'a Port,
    /// Address of its first value, for each variant of the binding.
    pub address: Box<dyn Fn(usize) -> *mut c_void + 'a>,
}

/// How a device reads the memory that a graph's inputs are bound to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reach {
    /// Where it is: a CPU. What was bound once is read anew by every run.
    InPlace,
    /// ONNX Runtime copies an input to the device when it is **bound**, not when it runs: what changes is bound again before
    /// each run. Without that nothing fails, but the rows have nothing to do with the frames.
    Copied,
    /// The CPU plays such a device, for a test (`rehearsal.rs`).
    Rehearsed {
        /// Nothing is bound again.
        stale: bool,
        /// No run ends.
        hangs: bool,
    },
}

/// Which inputs differ from those of the graph's last run on this variant.
#[derive(Clone, Copy, PartialEq)]
pub enum Changed {
    /// Any of them.
    All,
    /// Only those of a flow step: latents and time.
    Step,
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
}

impl Stop for Terminator {
    /// Ends the run that uses these options as soon as its current node is done.
    fn set(&self) {
        // SAFETY: live options. A failure would mean that the run goes on to its end, which the flow loop's own check covers.
        let _ = check(unsafe { (ort::api().RunOptionsSetTerminate)(self.0) });
    }

    /// Allows the next run.
    fn unset(&self) {
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

/// A session with one binding per variant.
pub struct Graph {
    bindings: Vec<*mut OrtIoBinding>,
    values: Vec<*mut OrtValue>,
    reach: Reach,
    /// Inputs of each variant; none where they are read in place.
    copied: Vec<Vec<Input>>,
    options: Arc<Terminator>,
    /// Replicas on a CPU share it.
    session: Arc<Loaded>,
}

/// An input that the device has a copy of.
struct Input {
    name: CString,
    value: *mut OrtValue,
    /// It changes with every flow step.
    steps: bool,
    /// The copy of a device that the CPU plays.
    rehearsed: Option<Shadow>,
}

/// Memory that stands for a device's.
struct Shadow {
    host: *const u8,
    copy: Block<u8>,
}

impl Shadow {
    /// # Safety
    /// `host` is readable for `bytes` bytes as long as the shadow lives.
    unsafe fn new(host: *const u8, bytes: usize) -> Result<Shadow, String> {
        let mut shadow = Shadow { host, copy: Block::lazy(bytes)? };
        shadow.renew();
        Ok(shadow)
    }

    fn renew(&mut self) {
        // SAFETY: readable, as `new` demands; the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.host, self.copy.address(), self.copy.len()) };
    }
}

// SAFETY: the raw objects belong to the session and have no tie to a thread; `&mut self` keeps runs of a binding apart, and ONNX
// Runtime allows runs of one session at the same time.
unsafe impl Send for Graph {}

impl Graph {
    /// Binds `inputs` and `outputs` for every variant: runs differ in their sizes, or in the session slot.
    ///
    /// # Safety
    /// Each address is that of memory for the port's type and the variant's shape, which outlives the graph; nobody may access
    /// it during `run` of that variant.
    pub unsafe fn bind(
        session: Arc<Loaded>,
        options: Arc<Terminator>,
        reach: Reach,
        variants: &[Extent],
        inputs: &[Bound<'_>],
        outputs: &[Bound<'_>],
    ) -> Result<Graph, String> {
        let mut graph = Graph { bindings: Vec::new(), values: Vec::new(), reach, copied: Vec::new(), options, session };
        let api = ort::api();
        let mut memory_info = null_mut();
        // SAFETY: raw calls with live objects and out pointers; each status is checked, and what is made is owned by
        // `graph`, which releases it also when a later call fails. The memory behind each value is the caller's.
        unsafe {
            check((api.CreateCpuMemoryInfo)(
                sys::OrtAllocatorType::OrtDeviceAllocator,
                sys::OrtMemType::OrtMemTypeDefault,
                &mut memory_info,
            ))?;
            let result = variants.iter().enumerate().try_for_each(|(variant, &extent)| {
                let mut binding = null_mut();
                check((api.CreateIoBinding)(graph.session.session(), &mut binding))?;
                graph.bindings.push(binding);
                let mut copied = Vec::new();
                for (bind, ports, given) in [(api.BindInput, inputs, true), (api.BindOutput, outputs, false)] {
                    for Bound { port, address } in ports {
                        let shape: Vec<i64> = port.shape.iter().map(|dim| dim.size(extent) as i64).collect();
                        let (kind, size) = element(port.dtype);
                        let bytes = shape.iter().product::<i64>() as usize * size;
                        let mut start = address(variant);
                        let rehearsed = match reach {
                            Reach::Rehearsed { .. } if given => Some(Shadow::new(start.cast(), bytes)?),
                            _ => None,
                        };
                        if let Some(shadow) = &rehearsed {
                            start = shadow.copy.address().cast();
                        }
                        let mut value = null_mut();
                        check((api.CreateTensorWithDataAsOrtValue)(
                            memory_info,
                            start,
                            bytes,
                            shape.as_ptr(),
                            shape.len(),
                            kind,
                            &mut value,
                        ))?;
                        graph.values.push(value);
                        let name = CString::new(port.name.as_str())
                            .map_err(|_| "a tensor name contains a zero byte".to_string())?;
                        check(bind(binding, name.as_ptr(), value)).map_err(|error| format!("{name:?}: {error}"))?;
                        if given && reach != Reach::InPlace {
                            let steps = matches!(port.role, Role::Latent | Role::VideoLatent | Role::Time);
                            copied.push(Input { name, value, steps, rehearsed });
                        }
                    }
                }
                graph.copied.push(copied);
                Ok::<(), String>(())
            });
            (api.ReleaseMemoryInfo)(memory_info);
            result?;
        }
        Ok(graph)
    }

    /// Runs one variant. `tensors` is borrowed so that nobody reads them meanwhile.
    pub fn run(&mut self, variant: usize, changed: Changed, _tensors: &mut [Tensor]) -> Result<(), String> {
        self.renew(variant, changed)?;
        if matches!(self.reach, Reach::Rehearsed { hangs: true, .. }) {
            loop {
                std::thread::park();
            }
        }
        let api = ort::api();
        // SAFETY: live session, options and binding; the memory lives as `bind` demands.
        check(unsafe { (api.RunWithBinding)(self.session.session(), self.options.0, self.bindings[variant]) })?;
        if self.reach == Reach::Copied {
            // SAFETY: as above.
            check(unsafe { (api.SynchronizeBoundOutputs)(self.bindings[variant]) })?;
        }
        Ok(())
    }

    /// Gives the device the inputs that have changed. On a CPU there is nothing to do.
    fn renew(&mut self, variant: usize, changed: Changed) -> Result<(), String> {
        if matches!(self.reach, Reach::InPlace | Reach::Rehearsed { stale: true, .. }) {
            return Ok(());
        }
        let (api, binding) = (ort::api(), self.bindings[variant]);
        for input in self.copied[variant].iter_mut().filter(|input| input.steps || changed == Changed::All) {
            match &mut input.rehearsed {
                Some(shadow) => shadow.renew(),
                // SAFETY: live binding, name and value; the input's memory lives as `bind` demands.
                None => check(unsafe { (api.BindInput)(binding, input.name.as_ptr(), input.value) })?,
            }
        }
        // SAFETY: live binding.
        check(unsafe { (api.SynchronizeBoundInputs)(binding) })
    }
}

/// Element type of ONNX Runtime, and bytes per element.
fn element(dtype: Dtype) -> (sys::ONNXTensorElementDataType, usize) {
    use sys::ONNXTensorElementDataType as Type;
    match dtype {
        Dtype::F32 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4),
        Dtype::I64 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8),
        Dtype::Bool => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1),
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

/// The sentence of a failed status.
fn check(status: sys::OrtStatusPtr) -> Result<(), String> {
    // SAFETY: the status comes straight from a call of the API and is consumed here.
    unsafe { ort::Error::<()>::result_from_status(status) }.map_err(|error| error.to_string())
}
