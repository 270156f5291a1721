//! Copies of host tensors in a device's memory. They are bound once and written before a run.

use crate::core::memory::Block;
use crate::gpu::stream::Stream;
use crate::ort::device_memory::DeviceBlock;
use crate::ort::environment::{check, copy};
use crate::ort::turn::Turns;
use ort::sys::{OrtIoBinding, OrtValue};
use std::ffi::{CString, c_void};

use std::sync::Arc;

/// The inputs that differ from those of the graph's last run on this variant.
#[derive(Clone, Copy, PartialEq)]
pub enum Changed {
    All,
    /// Only the inputs of a flow step: latents and time.
    Step,
}

impl Changed {
    /// The inputs that change at a step: cache and memory stay for the whole loop.
    pub fn of(step: u32) -> Changed {
        if step == 0 { Changed::All } else { Changed::Step }
    }
}

/// The host tensor of a copy: its address on the first variant, and whether it is the result of a flow, which must not lie where the noise
/// does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Origin {
    pub(super) address: *mut c_void,
    pub(super) is_result: bool,
}

/// The copies of host tensors in the memory of one device. The graphs of a network share them: a tensor that two of them read is copied
/// once.
#[derive(Default)]
pub struct Mirrors {
    copies: Vec<Mirror>,
    /// The stream of the runs. Changed values are copied in it, and the host does not wait.
    stream: Option<Arc<Stream>>,
    /// Why nothing can be written into the device's memory. Changed inputs are bound again then, which copies them for each graph.
    refused: Option<String>,
}

struct Mirror {
    origin: Origin,
    block: DeviceBlock,
    /// A constant of the bundle, written once for the rows of a run.
    fixed: bool,
    /// Bytes of a constant that the device has.
    kept: usize,
    /// The host has newer values.
    due: bool,
}

// SAFETY: the address in an origin is compared and never followed.
unsafe impl Send for Mirrors {}

impl Mirrors {
    /// Notes that the host has new values in all tensors that change.
    pub fn renew(&mut self) {
        self.copies.iter_mut().for_each(|mirror| mirror.due |= !mirror.fixed);
    }

    /// Copies in the stream of the runs, if the replica has one, on a thread that has entered its context. The host tensors must not change
    /// before the runs that read them are done.
    pub fn on(stream: Option<&Arc<Stream>>) -> Mirrors {
        Mirrors { stream: stream.cloned(), ..Mirrors::default() }
    }

    pub(super) fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    pub fn bytes(&self) -> usize {
        self.copies.iter().map(|mirror| mirror.block.bytes()).sum()
    }

    /// Why inputs are bound again for each run; None if they are written.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The number and the address of the copy of a host tensor. `make` gives memory for the largest run.
    pub(super) fn of(
        &mut self,
        origin: Origin,
        fixed: bool,
        make: impl FnOnce() -> Result<DeviceBlock, String>,
    ) -> Result<(usize, *mut c_void), String> {
        let found = self.copies.iter().position(|mirror| mirror.origin == origin);
        let at = match found {
            Some(at) => at,
            None => {
                self.copies.push(Mirror { origin, block: make()?, fixed, kept: 0, due: true });
                self.copies.len() - 1
            }
        };
        Ok((at, self.copies[at].block.address()))
    }

    /// Whether values can be written into the device's memory; without a stream the first input of all is the test.
    pub(super) fn try_once(&mut self, pair: &Pair) -> bool {
        if self.stream.is_none() && self.copies.len() == 1 && self.refused.is_none() {
            self.refused = copy(&[pair.host], &mut [pair.device.cast_const()]).err();
        }
        self.refused.is_none()
    }
}

/// A tensor on the host and its copy on the device. The graph owns both values.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) mirror: usize,
    pub(super) host: *const OrtValue,
    pub(super) device: *mut OrtValue,
    /// The address on the host.
    pub(super) start: *mut c_void,
    pub(super) bytes: usize,
}

/// An input that the device has a copy of.
pub(super) struct Input {
    pub(super) steps: bool,
    pub(super) bytes: usize,
    pub(super) transfer: Transfer,
}

pub(super) enum Transfer {
    /// It is bound again, which copies it.
    Bound(CString, *mut OrtValue),
    Written(Pair),
    Played(Shadow),
}

impl Input {
    fn is_due(&self, changed: Changed, mirrors: &Mirrors) -> bool {
        match (&self.transfer, changed) {
            (_, Changed::Step) => self.steps,
            (Transfer::Written(pair), Changed::All) => {
                let Mirror { fixed, kept, due, .. } = mirrors.copies[pair.mirror];
                if fixed { kept < pair.bytes } else { due }
            }
            (_, Changed::All) => true,
        }
    }

    /// It is written once and not for each observation.
    fn is_fixed(&self, mirrors: &Mirrors) -> bool {
        matches!(&self.transfer, Transfer::Written(pair) if mirrors.copies[pair.mirror].fixed)
    }
}

/// Host memory that plays a device's.
pub(super) struct Shadow {
    host: *const u8,
    copy: Block,
}

impl Shadow {
    /// # Safety
    /// `host` is readable for `bytes` bytes as long as the shadow lives.
    pub(super) unsafe fn new(host: *const u8, bytes: usize) -> Result<Shadow, String> {
        let mut shadow = Shadow { host, copy: Block::lazy(bytes)? };
        shadow.renew();
        Ok(shadow)
    }

    pub(super) fn address(&self) -> *mut c_void {
        self.copy.address().cast()
    }

    fn renew(&mut self) {
        // SAFETY: readable, as `new` demands; the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.host, self.copy.address(), self.copy.len()) };
    }
}

/// The copies of one variant's runs.
#[derive(Default)]
pub(super) struct Feed {
    pub(super) inputs: Vec<Input>,
    /// Outputs in the device's memory that the host reads.
    pub(super) outputs: Vec<Pair>,
    /// Bytes of outputs that ONNX Runtime copies to the host.
    pub(super) returned: usize,
    /// Buffers for one call, so that a run allocates nothing.
    from: Vec<*const OrtValue>,
    to: Vec<*const OrtValue>,
}

impl Feed {
    /// Allocates the buffers for the most copies of one call.
    pub(super) fn reserve(&mut self) {
        let most = self.inputs.len().max(self.outputs.len());
        self.from.reserve(most);
        self.to.reserve(most);
    }

    pub(super) fn returns_nothing(&self) -> bool {
        self.outputs.is_empty() && self.returned == 0
    }

    /// Copies changed inputs to the device.
    ///
    /// # Safety
    /// The values and their memory live, and no other thread uses them meanwhile; `binding` is that of the variant.
    pub(super) unsafe fn send(
        &mut self,
        (turns, binding): (Turns, *mut OrtIoBinding),
        changed: Changed,
        mirrors: &mut Mirrors,
    ) -> Result<(), String> {
        let mut bound = false;
        self.from.clear();
        self.to.clear();
        for input in &mut self.inputs {
            if !input.is_due(changed, mirrors) {
                continue;
            }
            match &mut input.transfer {
                Transfer::Played(shadow) => match &mirrors.stream {
                    // SAFETY: the shadow is as large as the original.
                    Some(stream) => {
                        unsafe { copy_in_stream(stream, shadow.address(), shadow.host.cast(), input.bytes) }?
                    }
                    None => shadow.renew(),
                },
                Transfer::Written(pair) => {
                    let mirror = &mut mirrors.copies[pair.mirror];
                    (mirror.due, mirror.kept) = (false, mirror.kept.max(pair.bytes));
                    if let Some(stream) = &mirrors.stream {
                        // SAFETY: the mirror holds what the largest run has.
                        unsafe { copy_in_stream(stream, mirror.block.address(), pair.start, pair.bytes) }?;
                        continue;
                    }
                    self.from.push(pair.host);
                    self.to.push(pair.device.cast_const());
                }
                Transfer::Bound(name, value) => {
                    bound = true;
                    // SAFETY: live binding, name and value, as demanded.
                    check(unsafe { (ort::api().BindInput)(binding, name.as_ptr(), *value) })?;
                }
            }
        }
        copy(&self.from, &mut self.to)?;
        // SAFETY: live binding.
        if bound { turns.settle(|| check(unsafe { (ort::api().SynchronizeBoundInputs)(binding) })) } else { Ok(()) }
    }

    /// Copies outputs to the host. Other graphs find them on the device. It waits for the stream, if the run was left in it or a copy was
    /// put there.
    ///
    /// # Safety
    /// The contract is that of `send`.
    pub(super) unsafe fn fetch(&mut self, mirrors: &mut Mirrors, was_left: bool) -> Result<(), String> {
        self.from.clear();
        self.to.clear();
        for pair in &self.outputs {
            let mirror = &mut mirrors.copies[pair.mirror];
            mirror.due = false;
            if let Some(stream) = &mirrors.stream {
                // SAFETY: the host has the bytes of this run, and the mirror those of the largest.
                let copied = unsafe { stream.copy_out(pair.start, mirror.block.address() as u64, pair.bytes) };
                copied.map_err(|error| error.to_string())?;
                continue;
            }
            self.from.push(pair.device.cast_const());
            self.to.push(pair.host);
        }
        match &mirrors.stream {
            Some(stream) if was_left || !self.outputs.is_empty() => stream.wait().map_err(|error| error.to_string()),
            _ => copy(&self.from, &mut self.to),
        }
    }

    /// Bytes that a run copies to the device and from it for an observation, without constants. Marks the values as present on the device.
    pub(super) fn bytes(&self, changed: Changed, mirrors: &mut Mirrors) -> (usize, usize) {
        let due = self.inputs.iter().filter(|input| input.is_due(changed, mirrors) && !input.is_fixed(mirrors));
        let sent = due.map(|input| input.bytes).sum();
        let written = self.inputs.iter().filter_map(|input| match &input.transfer {
            Transfer::Written(pair) => Some(pair),
            _ => None,
        });
        written.chain(&self.outputs).for_each(|pair| mirrors.copies[pair.mirror].due = false);
        (sent, self.returned + self.outputs.iter().map(|pair| pair.bytes).sum::<usize>())
    }
}

/// Puts a copy to the device's memory into the stream.
///
/// # Safety
/// `bytes` at both memory, which live until the stream is through with them; those of the host do not change until then.
unsafe fn copy_in_stream(stream: &Stream, to: *mut c_void, from: *const c_void, bytes: usize) -> Result<(), String> {
    // SAFETY: the caller's.
    unsafe { stream.copy_in(to as u64, from, bytes) }.map_err(|error| error.to_string())
}
