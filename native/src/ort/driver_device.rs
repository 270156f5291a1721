//! The driver objects that a replica on an NVIDIA GPU uses directly, beside ONNX Runtime.
//!
//! - Host tensors that the device reads or writes are registered with the driver, which then copies them without its own buffer. Frames are
//!   registered in the inputs of the graphs. The frame slots, which are many more, are read by the host alone.
//! - All work of the replica is in its own stream, which ONNX Runtime uses too (`user_compute_stream`). Each inference is between two
//!   events of the stream, which give the device's time.
//! - With `own_kernels` our kernels are loaded (`native/cuda/`) and launched in that stream.
//!
//! No model is refused if the driver refuses any of this: the placement says what is missing and why. Tests use a driver that the CPU
//! plays (`native/cuda/driver_host.h`); an NVIDIA H200 has run all of it.

use crate::core::device::Device;
use crate::core::lost;
use crate::core::memory::Block;
use crate::core::rehearsal;
use crate::gpu::context::{self, Context, Entered};
use crate::gpu::device::{self, Module};
use crate::gpu::stream::{Laps, Stream};
use crate::ort::provider::GpuOptions;
use crate::ort::tensor::Tensor;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Serialize, Clone, Default, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DriverUse {
    /// Bytes of registered host memory.
    pub registered_bytes: usize,
    /// Why some host memory that the device reads is not registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_reason: Option<String>,
    /// Why the device times no inference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_reason: Option<String>,
    /// Whether our kernels advance its latents and decode its chunks.
    pub kernels: bool,
    /// Why they do not, although `own_kernels` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels_reason: Option<String>,
}

/// The number of an NVIDIA GPU and the path of its driver; None for another device, and without a driver.
pub fn driver_of(device: Device) -> Option<(i32, PathBuf)> {
    let (Device::Cuda(index) | Device::TensorRt(index)) = device else { return None };
    match rehearsal::of(&device.name()) {
        None => Some((index, PathBuf::from("libcuda.so.1"))),
        // The CPU plays the device, and a library plays the driver.
        Some(rehearsal) => rehearsal.driver.map(|driver| (index, driver)),
    }
}

/// Bytes of an NVIDIA GPU's memory, free and in all; None for another device, and if the driver does not say. It is measured once a
/// provider works there, whose context is used.
pub fn memory(device: Device) -> Option<(u64, u64)> {
    let (index, driver) = driver_of(device)?;
    Context::open(&driver, index).and_then(|context| context.memory()).ok()
}

/// Prepares a thread that opens graphs for the device, copies to it or frees there, until what is returned is dropped. ONNX Runtime copies on
/// the present device of a thread, which is the first one until the thread enters another.
///
/// The thread stays relaxed: another thread's capture of a CUDA graph then neither refuses its calls nor ends because of them. Models are
/// loaded side by side. A driver that refuses this refuses later calls too, with a reason. Nothing on a lost device is used or freed.
pub fn enter(device: Device) -> Option<Entered> {
    let (index, driver) = driver_of(device).filter(|_| !lost::is_lost(device))?;
    let _ = context::relax_thread(&driver);
    Context::open(&driver, index).and_then(|context| context.entered()).ok()
}

/// The device code of this build. A played driver has the kernels already, and reads the first bytes alone.
fn image(device: Device, options: &GpuOptions) -> Result<Vec<u8>, String> {
    if rehearsal::of(&device.name()).is_some() {
        return Ok(device::FAT_BINARY.to_vec());
    }
    let path = options.kernels.as_ref().ok_or("this build has no GPU kernels")?;
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The driver objects of a replica.
#[derive(Default)]
pub struct DriverDevice {
    driver: Option<PathBuf>,
    context: Option<Arc<Context>>,
    stream: Option<Arc<Stream>>,
    /// Our kernels, for work in the stream.
    module: Option<Arc<Module>>,
    /// None without a driver.
    usage: Option<DriverUse>,
}

impl DriverDevice {
    /// The driver objects for a replica on the device, as the options say; empty for other devices.
    pub fn of(device: Device, options: &GpuOptions) -> DriverDevice {
        let Some((index, driver)) = driver_of(device) else { return DriverDevice::default() };
        let (mut module, mut usage) = (None, DriverUse::default());
        let context = Context::open(&driver, index).map_err(|error| error.to_string());
        usage.registration_reason = context.as_ref().err().cloned();
        let stream = context.clone().and_then(|context| Stream::new(&context).map_err(|error| error.to_string()));
        usage.times_reason = stream.as_ref().err().cloned();
        if options.own_kernels {
            let loaded = stream.clone().and_then(|stream| {
                let image = image(device, options)?;
                Module::load(&device::Device::on(stream), &image).map_err(|error| error.to_string())
            });
            match loaded {
                Ok(loaded) => module = Some(loaded),
                Err(reason) => usage.kernels_reason = Some(reason),
            }
        }
        DriverDevice { driver: Some(driver), context: context.ok(), stream: stream.ok(), module, usage: Some(usage) }
    }

    /// Our kernels, if they advance latents and decode chunks. Only a thread that has entered launches them.
    pub fn kernels(&self) -> Option<&Arc<Module>> {
        self.module.as_ref().filter(|_| self.usage.as_ref().is_some_and(|usage| usage.kernels_reason.is_none()))
    }

    /// Notes whether the kernels are launched, or why not.
    pub fn launches(&mut self, outcome: Result<(), String>) {
        let Some(usage) = &mut self.usage else { return };
        (usage.kernels, usage.kernels_reason) = (outcome.is_ok(), outcome.err());
    }

    /// The stream of its work. A session that uses the stream keeps it.
    pub fn stream(&self) -> Option<&Arc<Stream>> {
        self.stream.as_ref()
    }

    /// Registers a host tensor. If the driver refuses, the tensor is copied through the driver's buffer.
    pub fn register(&mut self, tensor: &mut Tensor) {
        let (Some(context), Some(usage)) = (&self.context, &mut self.usage) else { return };
        match tensor.register(context) {
            Ok(bytes) => usage.registered_bytes += bytes,
            Err(error) => usage.registration_reason = Some(error.to_string()),
        }
    }

    pub fn register_block(&mut self, block: &mut Block) {
        let (Some(context), Some(usage)) = (&self.context, &mut self.usage) else { return };
        match context.register_block(block) {
            Ok(()) => usage.registered_bytes += block.registered_bytes(),
            Err(error) => usage.registration_reason = Some(error.to_string()),
        }
    }

    /// The clock for `runs` runs of a graph; None if the device does not time them.
    pub fn laps(&mut self, runs: usize) -> Option<Laps> {
        let (Some(stream), Some(usage)) = (&self.stream, &mut self.usage) else { return None };
        let made = Laps::new(stream, runs);
        if let Err(error) = &made {
            usage.times_reason = Some(error.to_string());
        }
        made.ok()
    }

    /// Prepares the replica's thread before its first inference: it is relaxed and enters the context, for as long as it lives. If the
    /// driver refuses, no time is known, and an inference that copies in the stream fails.
    pub fn enter(&self) {
        if let Some(driver) = &self.driver {
            let _ = context::relax_thread(driver);
        }
        if let Some(context) = &self.context {
            let _ = context.enter();
        }
    }

    pub fn usage(&self) -> Option<&DriverUse> {
        self.usage.as_ref()
    }
}
