//! What a replica on an NVIDIA GPU asks of the driver by itself, beside what ONNX Runtime asks of it.
//!
//! - The tensors of the host that the device copies from and to are registered with the driver, which then copies them without a buffer of
//!   its own between. Frames are registered where the device reads them, in the inputs of the graphs: the frame slots, which are many more,
//!   are read by the host alone.
//! - All runs of the replica are in one stream of its own, which ONNX Runtime is told of (`user_compute_stream`), and each run is between
//!   two events of it: their times are the device's.
//! - With `own_kernels` our kernels are loaded (`native/cuda/`) and launched in that stream.
//!
//! A driver that refuses any of this refuses no model: the placement says what is not there and why. Tests ask the
//! driver that the CPU plays (`native/cuda/driver_host.h`); an NVIDIA H200 has run all of it.

use crate::core::device::Device;
use crate::core::memory::{Block, Plain};
use crate::core::rehearsal;
use crate::gpu::context::{self, Context};
use crate::gpu::device::{self, Module};
use crate::gpu::stream::{Laps, Stream};
use crate::ort::provider::GpuOptions;
use crate::ort::tensor::Tensor;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Serialize, Clone, Default, Debug, PartialEq)]
pub struct DriverUse {
    /// Bytes of host memory that the driver copies from and to by itself.
    pub registered_bytes: usize,
    /// Why it does not so for all that the device reads.
    pub unregistered: Option<String>,
    pub timed: bool,
    pub untimed: Option<String>,
    /// Our kernels advance its latents and decode its chunks.
    pub launched: bool,
    /// Why they do not, though `own_kernels` asks for it.
    pub unlaunched: Option<String>,
}

/// The number of an NVIDIA GPU and its driver; None of another device, and where no driver is asked.
pub fn driver_of(device: Device) -> Option<(i32, PathBuf)> {
    let (Device::Cuda(index) | Device::TensorRt(index)) = device else { return None };
    match rehearsal::of(&device.name()) {
        None => Some((index, PathBuf::from("libcuda.so.1"))),
        // The CPU plays the device, and a library the driver.
        Some(rehearsal) => rehearsal.driver.map(|driver| (index, driver)),
    }
}

/// Bytes of an NVIDIA GPU's memory, free and in all; None of another device, and where the driver does not say. To be asked once a
/// provider works on it, whose context is used.
pub fn memory(device: Device) -> Option<(u64, u64)> {
    let (index, driver) = driver_of(device)?;
    Context::open(&driver, index).and_then(|context| context.memory()).ok()
}

/// For each thread that opens graphs for the device, copies to it or runs there: another thread's capture of a CUDA graph neither refuses
/// what this one does, nor ends of it. Models are loaded side by side. A driver that refuses this says more when it is asked for more.
pub fn relax_thread(device: Device) {
    if let Some((_, driver)) = driver_of(device) {
        let _ = context::relax_thread(&driver);
    }
}

/// The device code of this build. A driver that the CPU plays has the kernels in itself, and looks at the first bytes alone.
fn image(device: Device, options: &GpuOptions) -> Result<Vec<u8>, String> {
    if rehearsal::of(&device.name()).is_some() {
        return Ok(device::FAT_BINARY.to_vec());
    }
    let path = options.kernels.as_ref().ok_or("this build has no GPU kernels")?;
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The driver, as a replica has it.
#[derive(Default)]
pub struct DriverDevice {
    driver: Option<PathBuf>,
    context: Option<Arc<Context>>,
    stream: Option<Arc<Stream>>,
    /// Our kernels, for work in the stream.
    module: Option<Arc<Module>>,
    /// None where no driver is asked.
    usage: Option<DriverUse>,
}

impl DriverDevice {
    /// For a replica on the device, with what the options ask for; nothing of it on one that is no NVIDIA GPU.
    pub fn of(device: Device, options: &GpuOptions) -> DriverDevice {
        let Some((index, driver)) = driver_of(device) else { return DriverDevice::default() };
        let (mut module, mut usage) = (None, DriverUse::default());
        let context = Context::open(&driver, index).map_err(|error| error.to_string());
        usage.unregistered = context.as_ref().err().cloned();
        let stream = context.clone().and_then(|context| Stream::new(&context).map_err(|error| error.to_string()));
        usage.untimed = stream.as_ref().err().cloned();
        if options.own_kernels {
            let loaded = stream.clone().and_then(|stream| {
                let image = image(device, options)?;
                Module::load(&device::Device::on(stream), &image).map_err(|error| error.to_string())
            });
            match loaded {
                Ok(loaded) => module = Some(loaded),
                Err(reason) => usage.unlaunched = Some(reason),
            }
        }
        DriverDevice { driver: Some(driver), context: context.ok(), stream: stream.ok(), module, usage: Some(usage) }
    }

    /// Our kernels, where they advance latents and decode chunks: a thread that has entered launches them.
    pub fn kernels(&self) -> Option<&Arc<Module>> {
        self.module.as_ref().filter(|_| self.usage.as_ref().is_some_and(|usage| usage.unlaunched.is_none()))
    }

    /// What `own_kernels` has come to: `Err` has the reason why they are not launched.
    pub fn launches(&mut self, outcome: Result<(), String>) {
        let Some(usage) = &mut self.usage else { return };
        (usage.launched, usage.unlaunched) = (outcome.is_ok(), outcome.err());
    }

    /// The stream of its runs. A session that is told of it keeps it.
    pub fn stream(&self) -> Option<&Arc<Stream>> {
        self.stream.as_ref()
    }

    /// Registers a tensor of the host. What the driver refuses is copied through its buffer, as before.
    pub fn register(&mut self, tensor: &mut Tensor) {
        let (Some(context), Some(usage)) = (&self.context, &mut self.usage) else { return };
        match tensor.register(context) {
            Ok(bytes) => usage.registered_bytes += bytes,
            Err(error) => usage.unregistered = Some(error.to_string()),
        }
    }

    pub fn register_block<T: Plain>(&mut self, block: &mut Block<T>) {
        let (Some(context), Some(usage)) = (&self.context, &mut self.usage) else { return };
        match context.register_block(block) {
            Ok(()) => usage.registered_bytes += block.registered_bytes(),
            Err(error) => usage.unregistered = Some(error.to_string()),
        }
    }

    /// Times for so many runs of a graph; None where the device does not time them.
    pub fn laps(&mut self, runs: usize) -> Option<Laps> {
        let (Some(stream), Some(usage)) = (&self.stream, &mut self.usage) else { return None };
        let made = Laps::new(stream, runs);
        match &made {
            Ok(_) => usage.timed = true,
            Err(error) => usage.untimed = Some(error.to_string()),
        }
        made.ok()
    }

    /// For the thread of the replica, once, before its first run: it is relaxed (`relax_thread`) and has the context that its events and our
    /// kernels need. Where the driver refuses that, it refuses these too: no time is known, and a run with our kernels fails.
    pub fn enter(&self) {
        if let Some(driver) = &self.driver {
            let _ = context::relax_thread(driver);
        }
        if let Some(stream) = &self.stream {
            let _ = stream.context().enter();
        }
    }

    pub fn usage(&self) -> Option<&DriverUse> {
        self.usage.as_ref()
    }
}
