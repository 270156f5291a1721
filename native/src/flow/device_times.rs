//! Registers a network's tensors with the driver, and times its work by the device's clock.

use super::Network;
use crate::episode::Entry;
use crate::ort::driver_device::DriverUse;
use crate::ort::graph::Graph;

/// The device's time for one chunk, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceTimes {
    /// The run of prefill or extend.
    pub prefill_ms: f32,
    pub denoise_ms: f32,
}

impl Network {
    /// Registers the tensors with the driver, and has runs return when their work is in the stream, where our kernels follow them.
    pub(super) fn attach(&mut self) {
        let mut driver_device = std::mem::take(&mut self.driver_device);
        self.tensors.iter_mut().for_each(|tensor| driver_device.register(tensor));
        if let Some(device_flow) = &mut self.device_flow {
            device_flow.register(&mut driver_device);
            [Some(&mut self.prefill), self.extend.as_mut(), self.denoise.as_mut()]
                .into_iter()
                .flatten()
                .for_each(Graph::follow);
        }
        let runs = self.runs() as usize;
        let graphs = [(Some(&mut self.prefill), 1), (self.extend.as_mut(), 1), (self.denoise.as_mut(), runs)];
        for (graph, runs) in graphs {
            if let Some(graph) = graph {
                graph.time(driver_device.laps(runs));
            }
        }
        self.driver_device = driver_device;
    }

    /// The text of a failed inference, with the driver's answer if that says that the device is lost. It waits for the stream, since copies
    /// of a failed run must not read what the host writes next.
    pub fn explained(&self, text: String) -> String {
        let loss = self.driver_device.stream().and_then(|stream| stream.loss());
        let text = loss.map_or(text.clone(), |loss| format!("{text}; {loss}"));
        self.prefill.turns().note_loss(&text);
        text
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
        let prefill_ms = reader.device_ms()?;
        let denoise_ms = self.denoise.as_mut().map_or(Some(0.0), Graph::device_ms)?;
        Some(DeviceTimes { prefill_ms, denoise_ms })
    }
}
