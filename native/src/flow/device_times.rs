//! A network on a card: its tensors registered with the driver, its runs timed by the device.

use super::Network;
use crate::episode::Entry;
use crate::ort::driver_device::CardUse;
use crate::ort::graph::Graph;
use crate::ort::terminator::Terminator;

/// What the device was at for one chunk, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceTimes {
    /// The run of prefill or extend.
    pub prefill_ms: f32,
    /// All runs of the denoise graph.
    pub denoise_ms: f32,
}

impl Network {
    /// Lets the driver copy from and to its tensors, and arranges its runs in the stream of its card. `options`: those of its runs.
    pub(super) fn put_on(&mut self, options: &Terminator) -> Result<(), String> {
        let mut card = std::mem::take(&mut self.card);
        self.tensors.iter_mut().for_each(|tensor| card.register(tensor));
        if let (Some(own), Some(stream)) = (&mut self.own, card.stream().cloned()) {
            own.register(&mut card);
            options.leave_running()?;
            self.mirrors.copy_in(stream);
            [Some(&mut self.prefill), self.extend.as_mut(), Some(&mut self.denoise)]
                .into_iter()
                .flatten()
                .for_each(Graph::follow);
        }
        let steps = if self.whole { 1 } else { self.flow.steps as usize };
        let timed = [(Some(&mut self.prefill), 1), (self.extend.as_mut(), 1), (Some(&mut self.denoise), steps)];
        for (graph, runs) in timed {
            if let Some(graph) = graph {
                graph.time(card.laps(runs));
            }
        }
        self.card = card;
        Ok(())
    }

    /// Makes this thread the one that runs it; once, before its first run.
    pub fn enter(&self) {
        self.card.enter();
    }

    /// What it has of the driver.
    pub fn card_use(&self) -> Option<&CardUse> {
        self.card.told()
    }

    /// What the device was at since `read`; None where it does not time its runs, or one of them.
    pub fn device_times(&mut self, entry: Entry) -> Option<DeviceTimes> {
        let reader = match (&mut self.extend, entry) {
            (Some(extend), Entry::Later) => extend,
            _ => &mut self.prefill,
        };
        let (prefill_ms, denoise_ms) = (reader.device_ms()?, self.denoise.device_ms()?);
        Some(DeviceTimes { prefill_ms, denoise_ms })
    }
}
