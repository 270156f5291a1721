//! Sessions of the engine's own graphs, which have neither weights nor a file.

use super::{Beside, Providers, Runtime};
use crate::bundle::onnx;
use crate::core::device::Device;
use crate::ort::home::Reach;
use crate::ort::program::Program;
use crate::ort::provider::{self, GpuOptions};
use crate::ort::session::OpenSession;

impl Runtime {
    /// Why no graph runs on the device; None if one does.
    pub fn refusal(&self, device: Device) -> Option<String> {
        self.alone(device, &onnx::one_relu()).err()
    }

    /// A session of a graph without weights, wholly on the device.
    pub fn alone(&self, device: Device, graph: &[u8]) -> Result<OpenSession, String> {
        // TensorRT is tried alone, since CUDA behind it would hide its failure.
        let mut chain = provider::chain(device, &GpuOptions::default(), None);
        chain.truncate(1);
        let providers = Providers { chain, beside: Beside::Nothing, turns: Reach::of(device).turns(), stream: None };
        self.opened(1, &providers, |mut builder| builder.commit_from_memory(graph))
    }

    /// A session of an own graph, wholly on a device that a model runs on. CUDA runs it for TensorRT, in the same memory: it moves values
    /// and computes nothing. The limits of a model's graphs do not apply.
    pub fn program(&self, device: Device, model: &[u8]) -> Result<Program, String> {
        let device = if let Device::TensorRt(id) = device { Device::Cuda(id) } else { device };
        let chain = provider::chain(device, &GpuOptions::default(), None);
        let providers = Providers { chain, beside: Beside::Nothing, turns: Reach::of(device).turns(), stream: None };
        self.opened(1, &providers, |mut builder| builder.commit_from_memory(model)).map(Program::new)
    }
}
