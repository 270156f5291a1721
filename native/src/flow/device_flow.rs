//! Latents that stay on an NVIDIA GPU from their noise to the rows of a chunk. Our kernels advance and decode them (`native/cuda/`).
//!
//! All work is in the replica's stream, behind that of its graphs. The noise and the inputs of chunk decode go there in one copy each, with
//! the times of all steps. Then graph and flow update alternate, and chunk decode ends. With captured graphs the host waits once, for rows
//! and verdicts; otherwise it waits after each graph too. Without this the host copies velocities, adds them to latents, and copies those
//! back, step by step.

use super::Video;
use super::decode_inputs::DecodeInputs;
use super::inputs::Inputs;
use super::roles::{Owner, Roles};
use crate::bundle::manifest::{Flow, Guided, Manifest, Port, Role};
use crate::core::memory::Block;
use crate::flow::encoder::Encoder;
use crate::gpu::chunk::{self, Batch, Plans, Verdict};
use crate::gpu::device::{Device, Memory};
use crate::gpu::{Address, CudaError, flow};
use crate::ort::driver_device::DriverDevice;
use crate::ort::graph::BoundPort;
use crate::ort::tensor::Tensor;
use std::ffi::c_void;
use std::sync::Arc;

/// Threads of a block; a few blocks hold the values of a chunk.
const THREADS: u32 = 128;
const VERDICT: usize = size_of::<Verdict>() / 4;

struct Latent {
    /// The host tensors of its noise and of its velocity, by their numbers.
    tensor: usize,
    velocity_tensor: usize,
    values: Memory,
    velocity: Memory,
    /// The result of a whole flow, which must not lie where the noise does.
    result: Option<Memory>,
    guide: Option<f32>,
    update: flow::Kernel,
}

/// An input of the step graph for its time.
struct TimeInput {
    tensor: usize,
    memory: Memory,
}

/// A network's latents on its device.
pub(super) struct DeviceFlow {
    device: Arc<Device>,
    latents: Vec<Latent>,
    times: Vec<TimeInput>,
    decode_inputs: DecodeInputs,
    decode: chunk::Kernel,
    plans: Plans,
    /// A verdict for each row of the batch, then `[batch, rows, columns]` f32: a smaller batch copies less.
    decoded: Memory,
    decoded_here: Block,
    chunk: usize,
    branches: usize,
    batch: usize,
    /// Work that reads or writes host memory may be in the stream.
    busy: bool,
}

/// The facts that the latents are advanced and decoded with.
pub(super) struct Parts<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) encoder: &'a Encoder,
    pub(super) owned: &'a [(Owner, Tensor)],
    pub(super) at: &'a Roles,
    pub(super) video: Option<&'a Video>,
    pub(super) batch: usize,
    /// The denoise graph has all steps in it.
    pub(super) whole: bool,
}

impl DeviceFlow {
    /// Makes memory, kernels and plans. None if our kernels are not asked for, or if the driver device says why they are not launched.
    pub(super) fn of(
        driver_device: &mut DriverDevice,
        parts: &Parts<'_>,
        resides: Result<(), String>,
    ) -> Option<DeviceFlow> {
        driver_device.kernels()?;
        let warmed = |()| {
            DeviceFlow::new(driver_device, parts)
                .and_then(|device_flow| device_flow.warmed(parts))
                .map_err(|error| error.to_string())
        };
        let made = resides.and_then(warmed);
        let (device_flow, outcome) = match made {
            Ok(device_flow) => (Some(device_flow), Ok(())),
            Err(reason) => (None, Err(reason)),
        };
        driver_device.launches(outcome);
        device_flow
    }

    fn new(driver_device: &mut DriverDevice, parts: &Parts<'_>) -> Result<DeviceFlow, CudaError> {
        let Parts { manifest, encoder, owned, at, video, batch, whole } = *parts;
        let module = driver_device.kernels().cloned().expect("asked by the caller");
        let device = module.device().clone();
        let bytes = |tensor: usize| owned[tensor].1.len * owned[tensor].1.dtype.bytes();
        let latent = |tensor: usize, velocity_tensor: usize, guide: Option<f32>| {
            Ok(Latent {
                tensor,
                velocity_tensor,
                values: device.memory(bytes(tensor))?,
                velocity: device.memory(bytes(velocity_tensor))?,
                result: whole.then(|| device.memory(bytes(tensor))).transpose()?,
                guide,
                update: flow::Kernel::find(&module)?,
            })
        };
        let velocity = at.velocity.expect("only a flow has a latent on the device");
        let mut latents = vec![latent(at.latent, velocity, manifest.guide(Guided::Action))?];
        if let Some(video) = video {
            latents.push(latent(video.latent, video.velocity, video.guide)?);
        }
        let is_time = |(owner, tensor): &(Owner, Tensor)| *owner == Owner::Denoise && tensor.role == Role::Time;
        let times_of = owned.iter().enumerate().filter(|(_, one)| !whole && is_time(one));
        let times = times_of
            .map(|(tensor, _)| Ok(TimeInput { tensor, memory: device.memory(bytes(tensor))? }))
            .collect::<Result<Vec<_>, CudaError>>()?;
        let (rows, columns) = encoder.size();
        let steps = if whole { 0 } else { manifest.steps() as usize };
        let table = steps * times.iter().map(|time| time.memory.bytes()).sum::<usize>();
        let states = manifest.state.columns.len();
        let decode_inputs =
            DecodeInputs::new(&device, (batch, states), (manifest.action.prefix * columns, columns), table)?;
        let len = batch * (rows * columns + VERDICT);
        let mut decoded_here = Block::locked(4 * len).map_err(CudaError::Call)?;
        driver_device.register_block(&mut decoded_here);
        Ok(DeviceFlow {
            decode: chunk::Kernel::find(&module)?,
            plans: Plans::new(&device, encoder.facts(), states as u32)?,
            decoded: device.memory(4 * len)?,
            decoded_here,
            chunk: rows * columns,
            branches: manifest.branches(),
            batch,
            busy: false,
            device,
            latents,
            times,
            decode_inputs,
        })
    }

    /// Launches each kernel once, on the present values of the tensors, and waits. A driver may load a kernel at its first launch. If that
    /// fails here, the host does the kernel's work; in an inference it would take the device out of service.
    fn warmed(mut self, parts: &Parts<'_>) -> Result<DeviceFlow, CudaError> {
        let context = self.device.stream().context().clone();
        let launched = context.within(|_| self.launch_all(parts));
        self.finish();
        launched.map(|()| self)
    }

    fn launch_all(&mut self, Parts { owned, whole, .. }: &Parts<'_>) -> Result<(), CudaError> {
        self.begun();
        for Latent { tensor, velocity_tensor, values, velocity, result, .. } in &self.latents {
            let noise = result.iter().chain([values]).map(|memory| (memory, *tensor));
            for (memory, from) in noise.chain([(velocity, *velocity_tensor)]) {
                let from = owned[from].1.address().cast_const();
                // SAFETY: as many bytes on both sides; `finish` waits before anybody writes to them.
                unsafe { self.device.stream().copy_in(memory.address(), from, memory.bytes()) }?;
            }
        }
        self.decode_inputs.send(&self.device)?;
        if !whole {
            self.advance(self.batch, 0.0)?;
        }
        self.decode(self.batch)
    }

    /// Registers its host memory with the driver.
    pub(super) fn register(&mut self, driver_device: &mut DriverDevice) {
        driver_device.register_block(&mut self.decode_inputs.host);
    }

    /// The memory of a port of the denoise graph, if it is on the device.
    pub(super) fn bound(&self, port: &Port, owned: &[(Owner, Tensor)], is_input: bool) -> Option<BoundPort> {
        let is = |tensor: usize| owned[tensor].1.name == port.name && owned[tensor].1.role == port.role;
        let latent = |latent: &Latent| match (is_input, &latent.result) {
            (true, _) if is(latent.tensor) => Some(latent.values.address()),
            (false, Some(result)) if port.role == Role::Latent => Some(result.address()),
            (false, None) if is(latent.velocity_tensor) => Some(latent.velocity.address()),
            _ => None,
        };
        let time = |time: &TimeInput| (is_input && is(time.tensor)).then(|| time.memory.address());
        let found = self.latents.iter().find_map(latent).or_else(|| self.times.iter().find_map(time));
        found.map(|address| BoundPort::fixed(port, address as *mut c_void, true))
    }

    /// Writes the inputs of chunk decode for row `row` of the batch, in robot units.
    pub(super) fn tell(&mut self, row: usize, state: &[f32], prefix: &[f32]) {
        self.decode_inputs.set_row(row, state, prefix);
    }

    /// Keeps the first `values` of the latent of row `row` in place.
    pub(super) fn set_prefix(&mut self, row: usize, values: usize) {
        self.decode_inputs.set_prefix(row, values);
    }

    /// Bytes that an observation copies to the device and from it, and bytes of the device's memory.
    pub(super) fn bytes(&self) -> (usize, usize, usize) {
        let noise: usize = self.latents.iter().map(|latent| latent.values.bytes()).sum();
        let alone: usize = (0..self.latents.len()).map(|index| self.noise_bytes(index, 1)).sum();
        let latents = self.latents.iter().flat_map(|latent| [&latent.velocity].into_iter().chain(&latent.result));
        let times = self.times.iter().map(|time| &time.memory);
        let kept: usize = latents.chain(times).chain([&self.decoded]).map(Memory::bytes).sum();
        let prefix = noise + self.decode_inputs.device.bytes() + self.plans.memory_bytes() + kept;
        (alone + self.decode_inputs.host.len(), self.decoded_bytes(1), prefix)
    }

    /// Bytes of the noise of `rows` rows of the batch; the latent of predicted frames has one row.
    fn noise_bytes(&self, index: usize, rows: usize) -> usize {
        let all = self.latents[index].values.bytes();
        if index == 0 { all / self.batch * rows } else { all }
    }

    /// Bytes of the verdicts, and of the rows of the first `rows` chunks.
    fn decoded_bytes(&self, rows: usize) -> usize {
        4 * (self.batch * VERDICT + rows * self.chunk)
    }

    /// Notes that the inputs of an inference may be on their way in the stream.
    pub(super) fn begun(&mut self) {
        self.busy = true;
    }

    /// Puts noise, times and the inputs of chunk decode into the stream, for the first `rows` rows of the batch.
    pub(super) fn begin(
        &mut self,
        rows: usize,
        inputs: &Inputs,
        tensors: &mut [Tensor],
        flow: &Flow,
    ) -> Result<(), CudaError> {
        let mut at = 0;
        for step in 0..if self.times.is_empty() { 0 } else { flow.steps } {
            inputs.time(tensors, flow.time(step), flow.time(flow.steps));
            for time in &self.times {
                let times_of = tensors[time.tensor].bytes();
                self.decode_inputs.table()[at..][..times_of.len()].copy_from_slice(times_of);
                at += times_of.len();
            }
        }
        self.begun();
        for (index, Latent { tensor, values, .. }) in self.latents.iter().enumerate() {
            let (from, bytes) = (tensors[*tensor].address().cast_const(), self.noise_bytes(index, rows));
            // SAFETY: both sides hold the largest run; `settle` waits before anybody writes to them again.
            unsafe { self.device.stream().copy_in(values.address(), from, bytes) }?;
        }
        self.decode_inputs.send(&self.device)
    }

    /// Writes the times of a step to the graph.
    pub(super) fn step(&self, step: u32) -> Result<(), CudaError> {
        let all: usize = self.times.iter().map(|time| time.memory.bytes()).sum();
        let mut from = self.decode_inputs.table_address() + (step as usize * all) as Address;
        for TimeInput { memory, .. } in &self.times {
            // SAFETY: the table has the times of all steps, one after the other.
            unsafe { self.device.stream().copy(memory.address(), from, memory.bytes()) }?;
            from += memory.bytes() as Address;
        }
        Ok(())
    }

    /// Advances the latents of the first `rows` rows of the batch by the velocities of the graph.
    pub(super) fn advance(&self, rows: usize, dt: f32) -> Result<(), CudaError> {
        for (index, Latent { values, velocity, guide, update, .. }) in self.latents.iter().enumerate() {
            let (all, count) = ((values.bytes() / 4) as u64, (self.noise_bytes(index, rows) / 4) as u64);
            let prefix = if index == 0 { self.decode_inputs.prefix_values() } else { 0 };
            let (latent, velocity_at) = (values.address(), velocity.address());
            let branch = (velocity.bytes() / 4 / self.branches) as u64;
            let (guide, row) = (*guide, all / self.batch as u64);
            let step =
                flow::Step { latent, velocity: velocity_at, count, branch, dt, guide, prefix_values: prefix, row };
            // SAFETY: both tensors hold the values of the largest run, and live as long as the stream has work on them: the network
            // waits for that before it drops anything.
            unsafe { update.launch(&step, THREADS) }?;
        }
        Ok(())
    }

    /// Decodes the chunks of the first `rows` rows, and waits for them.
    pub(super) fn decode(&mut self, rows: usize) -> Result<(), CudaError> {
        let action = &self.latents[0];
        let verdicts = self.decoded.address();
        let batch = Batch {
            latents: action.result.as_ref().unwrap_or(&action.values).address(),
            states: self.decode_inputs.states(),
            prefixes: self.decode_inputs.prefixes(),
            prefix_rows: self.decode_inputs.prefix_rows_address(),
            values: verdicts + 4 * (self.batch * VERDICT) as Address,
            verdicts,
            chunks: rows as u32,
        };
        let here = self.decoded_here.address();
        // SAFETY: memory as large as plans and batch say, which lives as that of `advance`; and as many bytes on both sides.
        unsafe {
            self.decode.launch(&self.plans, &batch, THREADS)?;
            self.device.stream().copy_out(here.cast(), verdicts, self.decoded_bytes(rows))?;
        }
        self.settle()
    }

    /// Waits for the stream, if work may be in it.
    pub(super) fn settle(&mut self) -> Result<(), CudaError> {
        if !self.busy {
            return Ok(());
        }
        self.device.wait()?;
        self.busy = false;
        Ok(())
    }

    /// Waits for the stream on a thread with any context, when the network is dropped.
    pub(super) fn finish(&mut self) {
        if self.busy {
            self.device.stream().context().release(|_| self.device.wait());
            self.busy = false;
        }
    }

    /// Copies the action's latent to the host tensor of its noise.
    pub(super) fn fetch(&mut self, tensors: &mut [Tensor]) -> Result<(), CudaError> {
        let Latent { tensor, values, result, .. } = &self.latents[0];
        let from = result.as_ref().unwrap_or(values);
        // SAFETY: as many bytes on both sides; nobody reads them before the wait.
        unsafe { self.device.stream().copy_out(tensors[*tensor].address(), from.address(), from.bytes()) }?;
        self.begun();
        self.settle()
    }

    /// The clamped rows of a chunk, and how many values were clamped or why it is refused. `Encoder::encode` on the latent gives the reason
    /// as a sentence.
    pub(super) fn decoded(&self, row: usize) -> (&[f32], Result<u32, chunk::Refusal>) {
        let (verdicts, chunks) = self.decoded_here.floats().split_at(self.batch * VERDICT);
        let verdict = Verdict::of(verdicts[row * VERDICT..].iter().map(|value| value.to_bits()));
        (&chunks[row * self.chunk..][..self.chunk], self.plans.facts().judge(&verdict))
    }
}
