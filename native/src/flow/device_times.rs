//! Registers a network's tensors with the driver, and times its work by the device's clock.

use super::Network;
use crate::core::device::Device;
use crate::episode::Entry;
use crate::gpu::CudaError;
use crate::ort::driver_device::DriverUse;
use crate::ort::graph::Graph;
use crate::ort::terminator::Terminator;

/// The device's time for one chunk, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceTimes {
    /// The run of prefill or extend.
    pub prefill_ms: f32,
    pub denoise_ms: f32,
}

impl Network {
    /// Registers the tensors with the driver, and puts the work into the stream of the driver device. `options` are those of its
    /// inferences.
    pub(super) fn attach(&mut self, options: &Terminator) -> Result<(), String> {
        let mut driver_device = std::mem::take(&mut self.driver_device);
        self.tensors.iter_mut().for_each(|tensor| driver_device.register(tensor));
        if let (Some(device_flow), Some(stream)) = (&mut self.device_flow, driver_device.stream().cloned()) {
            device_flow.register(&mut driver_device);
            self.mirrors.copy_in(stream);
            let graphs = || [Some(&self.prefill), self.extend.as_ref(), Some(&self.denoise)].into_iter().flatten();
            // ONNX Runtime gives page-locked memory that kernels were launched with back at the end of a run that it waits for. Without
            // the wait it keeps all of that until the session is closed. Then it frees the memory in a callback of the stream, which CUDA
            // refuses, and the process is aborted. A captured graph launches no kernel by itself.
            if graphs().all(Graph::is_captured) {
                options.leave_running()?;
            }
            [Some(&mut self.prefill), self.extend.as_mut(), Some(&mut self.denoise)]
                .into_iter()
                .flatten()
                .for_each(Graph::follow);
        }
        let steps = if self.whole { 1 } else { self.flow.steps as usize };
        let graphs = [(Some(&mut self.prefill), 1), (self.extend.as_mut(), 1), (Some(&mut self.denoise), steps)];
        for (graph, runs) in graphs {
            if let Some(graph) = graph {
                graph.time(driver_device.laps(runs));
            }
        }
        self.driver_device = driver_device;
        Ok(())
    }

    /// Why its device is lost, by the driver's answer; None if that works, and without a driver.
    pub fn loss(&self) -> Option<CudaError> {
        self.driver_device.stream()?.loss()
    }

    /// The device that it is lost with.
    pub fn device(&self) -> Option<Device> {
        self.denoise.device()
    }

    /// Makes this thread the one that runs it; once, before its first run.
    pub fn enter(&self) {
        self.driver_device.enter();
    }

    pub fn driver_use(&self) -> Option<&DriverUse> {
        self.driver_device.usage()
    }

    /// The device's times since `read`; None if the device does not time its work.
    pub fn device_times(&mut self, entry: Entry) -> Option<DeviceTimes> {
        let reader = match (&mut self.extend, entry) {
            (Some(extend), Entry::Later) => extend,
            _ => &mut self.prefill,
        };
        let (prefill_ms, denoise_ms) = (reader.device_ms()?, self.denoise.device_ms()?);
        Some(DeviceTimes { prefill_ms, denoise_ms })
    }
}
