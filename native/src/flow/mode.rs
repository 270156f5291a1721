//! How a network runs its flow, and the bytes that one observation copies for it.

use super::Network;
use super::device_flow::DeviceFlow;
use crate::ort::graph::Copies;
use crate::ort::mirrors::Changed;
use crate::ort::tensor::Tensor;

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowMode {
    /// The model has no flow.
    None,
    /// Each step is an inference of the host's.
    #[default]
    Steps,
    Whole,
    /// One graph, whose kernels the device keeps and launches as one.
    Captured,
}

impl Network {
    pub fn mode(&self) -> FlowMode {
        match &self.denoise {
            None => FlowMode::None,
            Some(_) if !self.whole => FlowMode::Steps,
            Some(denoise) if denoise.is_captured() => FlowMode::Captured,
            Some(_) => FlowMode::Whole,
        }
    }

    /// Runs of the denoise graph for one chunk.
    pub(super) fn runs(&self) -> u32 {
        if self.whole { 1 } else { self.flow.as_ref().map_or(0, |flow| flow.steps) }
    }

    /// Bytes of its tensors in the device's memory, and the bytes that one observation copies between host and device.
    pub fn traffic(&mut self) -> (usize, Copies) {
        let mut copies = Copies::default();
        self.mirrors.renew();
        copies += self.extend.as_ref().unwrap_or(&self.prefill).copies(0, Changed::All, &mut self.mirrors);
        let runs = self.runs();
        if let Some(denoise) = &mut self.denoise {
            for step in 0..runs {
                copies += denoise.copies(0, Changed::of(step), &mut self.mirrors);
            }
        }
        let (sent, returned, kept) = self.device_flow.as_ref().map_or((0, 0, 0), DeviceFlow::bytes);
        copies += Copies { to_device: sent, from_device: returned };
        (kept + self.tensors.iter().map(Tensor::device_bytes).sum::<usize>() + self.mirrors.bytes(), copies)
    }
}
