//! A network on a card: its tensors registered with the driver, its runs timed by the device.

use super::Network;
use crate::card::{Card, CardUse};
use crate::episode::Entry;

/// What the device was at for one chunk, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceTimes {
    /// The run of prefill or extend.
    pub prefill_ms: f32,
    /// All runs of the denoise graph.
    pub denoise_ms: f32,
}

impl Network {
    /// Takes what its replica has of the driver. Its sessions were told of the same stream.
    pub fn put_on(&mut self, mut card: Card) {
        self.tensors.iter_mut().for_each(|tensor| card.register(tensor));
        let steps = if self.whole { 1 } else { self.flow.steps as usize };
        let timed = [(Some(&mut self.prefill), 1), (self.extend.as_mut(), 1), (Some(&mut self.denoise), steps)];
        for (graph, runs) in timed {
            if let Some(graph) = graph {
                graph.time(card.laps(runs));
            }
        }
        self.card = card;
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
