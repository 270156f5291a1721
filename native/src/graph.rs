//! A graph bound to fixed memory: tensors are made and bound once, for each variant; a run is one call.
//!
//! `ort`'s binding copies a tensor made from borrowed memory, so this module uses the raw API.

mod assignment;
mod device;
mod session;
mod tensor;
mod terminator;
mod turn;

pub use assignment::{OnCpu, RECORD, on_cpu};
pub use device::{DeviceBlock, Home};
pub use session::Opened;
pub use tensor::{Storage, Tensor, port_len};
pub use terminator::Terminator;
pub use turn::Turns;

use self::device::Info;
use crate::manifest::{Dtype, Extent, Port, Role};
use crate::memory::Block;
use crate::weights::Loaded;
use ort::AsPointer;
use ort::sys::{self, OrtIoBinding, OrtValue};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// A port and the memory that it is bound to.
pub struct Bound<'a> {
    /// Name, type and shape in the graph.
    pub port: &'a Port,
    /// Address of its first value, for each variant of the binding.
    pub address: Box<dyn Fn(usize) -> *mut c_void + 'a>,
    /// It is memory of the device, in which it stays.
    pub on_device: bool,
}

/// How a device reads the memory that a graph's inputs are bound to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reach {
    /// Where it is: a CPU. What was bound once is read anew by every run.
    InPlace,
    /// The device computes in memory of its own. ONNX Runtime copies an input of the host to it when it is **bound**, not when it
    /// runs: what changes is bound again before each run. Without that nothing fails, but the rows have nothing to do with the frames.
    Copied(Home),
    /// The CPU plays such a device, for a test (`rehearsal.rs`).
    Rehearsed {
        /// Nothing is bound again.
        stale: bool,
        /// No run ends.
        hangs: bool,
    },
}

impl Reach {
    /// The memory that the device computes in, unless it is that of every tensor.
    pub fn home(self) -> Option<Home> {
        match self {
            Reach::InPlace => None,
            Reach::Copied(home) => Some(home),
            Reach::Rehearsed { .. } => Some(Home::HOST),
        }
    }

    /// Whether its sessions may be used side by side.
    pub fn turns(self) -> Turns {
        self.home().map_or(Turns::Free, |home| home.turns)
    }
}

/// Which inputs differ from those of the graph's last run on this variant.
#[derive(Clone, Copy, PartialEq)]
pub enum Changed {
    /// Any of them.
    All,
    /// Only those of a flow step: latents and time.
    Step,
}

impl Changed {
    /// Before a step of the flow: cache and memory are those of the whole loop.
    pub fn of(step: u32) -> Changed {
        if step == 0 { Changed::All } else { Changed::Step }
    }
}

/// Bytes between the host and its device.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Copies {
    /// Inputs that are bound again.
    pub to_device: usize,
    /// Outputs that the host reads.
    pub from_device: usize,
}

impl std::ops::AddAssign for Copies {
    fn add_assign(&mut self, more: Copies) {
        self.to_device += more.to_device;
        self.from_device += more.from_device;
    }
}

/// A session with one binding per variant.
pub struct Graph {
    bindings: Vec<*mut OrtIoBinding>,
    values: Vec<*mut OrtValue>,
    reach: Reach,
    /// Inputs of each variant that the device has a copy of; none where they are read in place.
    copied: Vec<Vec<Input>>,
    /// Bytes of each variant's outputs that the device copies to the host.
    returned: Vec<usize>,
    options: Arc<Terminator>,
    /// Replicas on a CPU share it.
    session: Arc<Loaded>,
}

/// An input that the device has a copy of.
struct Input {
    name: CString,
    value: *mut OrtValue,
    bytes: usize,
    /// It changes with every flow step.
    steps: bool,
    /// The copy of a device that the CPU plays.
    rehearsed: Option<Shadow>,
}

impl Input {
    fn is_due(&self, changed: Changed) -> bool {
        self.steps || changed == Changed::All
    }
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
    /// Each address is that of memory for the port's type and the variant's shape, which outlives the graph, of the device if the
    /// port's is; nobody may access it during `run` of that variant.
    pub unsafe fn bind(
        session: Arc<Loaded>,
        options: Arc<Terminator>,
        reach: Reach,
        variants: &[Extent],
        inputs: &[Bound<'_>],
        outputs: &[Bound<'_>],
    ) -> Result<Graph, String> {
        let (bindings, values, copied, returned) = Default::default();
        let mut graph = Graph { bindings, values, reach, copied, returned, options, session };
        let host = Home::HOST.info()?;
        let device = reach.home().unwrap_or(Home::HOST).info()?;
        let turn = reach.turns().wait();
        let bound = variants.iter().enumerate().try_for_each(|(variant, &extent)| {
            let place = |on_device: bool| if on_device { &device } else { &host };
            // SAFETY: the caller's.
            unsafe { graph.variant(variant, extent, place, inputs, outputs) }
        });
        // Before a graph that is not whole is dropped, which waits for its own.
        drop(turn);
        bound.map(|()| graph)
    }

    /// # Safety
    /// As `bind` says.
    unsafe fn variant<'a>(
        &mut self,
        variant: usize,
        extent: Extent,
        place: impl Fn(bool) -> &'a Info,
        inputs: &[Bound<'_>],
        outputs: &[Bound<'_>],
    ) -> Result<(), String> {
        let api = ort::api();
        let mut binding = null_mut();
        let (mut copied, mut returned) = (Vec::new(), 0);
        // SAFETY: raw calls with live objects and out pointers; each status is checked, and what is made is owned by `self`, which
        // releases it also when a later call fails. The memory behind each value is the caller's.
        unsafe {
            check((api.CreateIoBinding)(self.session.get().ptr().cast_mut(), &mut binding))?;
            self.bindings.push(binding);
            for (bind, ports, given) in [(api.BindInput, inputs, true), (api.BindOutput, outputs, false)] {
                for Bound { port, address, on_device } in ports {
                    let shape: Vec<i64> = port.shape.iter().map(|dim| dim.size(extent) as i64).collect();
                    let bytes = shape.iter().product::<i64>() as usize * port.dtype.bytes();
                    let mut start = address(variant);
                    let copies = self.reach != Reach::InPlace && !on_device;
                    let rehearsed = match self.reach {
                        Reach::Rehearsed { .. } if given && copies => Some(Shadow::new(start.cast(), bytes)?),
                        _ => None,
                    };
                    if let Some(shadow) = &rehearsed {
                        start = shadow.copy.address().cast();
                    }
                    let mut value = null_mut();
                    check((api.CreateTensorWithDataAsOrtValue)(
                        place(*on_device).pointer(),
                        start,
                        bytes,
                        shape.as_ptr(),
                        shape.len(),
                        element(port.dtype),
                        &mut value,
                    ))?;
                    self.values.push(value);
                    let name = CString::new(port.name.as_str())
                        .map_err(|_| "a tensor name contains a zero byte".to_string())?;
                    check(bind(binding, name.as_ptr(), value)).map_err(|error| format!("{name:?}: {error}"))?;
                    if given && copies {
                        let steps = matches!(port.role, Role::Latent | Role::VideoLatent | Role::Time);
                        copied.push(Input { name, value, bytes, steps, rehearsed });
                    } else if copies {
                        returned += bytes;
                    }
                }
            }
        }
        self.copied.push(copied);
        self.returned.push(returned);
        Ok(())
    }

    /// Runs one variant. `tensors` is borrowed so that nobody reads them meanwhile.
    pub fn run(&mut self, variant: usize, changed: Changed, _tensors: &mut [Tensor]) -> Result<(), String> {
        let _turn = self.reach.turns().wait();
        self.renew(variant, changed)?;
        if matches!(self.reach, Reach::Rehearsed { hangs: true, .. }) {
            loop {
                std::thread::park();
            }
        }
        let api = ort::api();
        let session = self.session.get().ptr().cast_mut();
        // SAFETY: live session, options and binding; the memory lives as `bind` demands.
        check(unsafe { (api.RunWithBinding)(session, self.options.0, self.bindings[variant]) })?;
        if matches!(self.reach, Reach::Copied(_)) {
            // SAFETY: as above.
            check(unsafe { (api.SynchronizeBoundOutputs)(self.bindings[variant]) })?;
        }
        Ok(())
    }

    /// What a run of a variant copies between host and device.
    pub fn copies(&self, variant: usize, changed: Changed) -> Copies {
        let due = self.copied[variant].iter().filter(|input| input.is_due(changed));
        Copies { to_device: due.map(|input| input.bytes).sum(), from_device: self.returned[variant] }
    }

    /// Gives the device the inputs that have changed. On a CPU there is nothing to do.
    fn renew(&mut self, variant: usize, changed: Changed) -> Result<(), String> {
        if matches!(self.reach, Reach::InPlace | Reach::Rehearsed { stale: true, .. }) {
            return Ok(());
        }
        let (api, binding) = (ort::api(), self.bindings[variant]);
        for input in self.copied[variant].iter_mut().filter(|input| input.is_due(changed)) {
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

/// Element type of ONNX Runtime.
fn element(dtype: Dtype) -> sys::ONNXTensorElementDataType {
    use sys::ONNXTensorElementDataType as Type;
    match dtype {
        Dtype::F32 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        Dtype::I64 => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        Dtype::Bool => Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _turn = self.reach.turns().wait();
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
