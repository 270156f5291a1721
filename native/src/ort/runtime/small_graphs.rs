//! Sessions of the engine's own graphs, which have no weights and no file.

use super::{Beside, Providers, Runtime};
use crate::bundle::onnx;
use crate::core::device::Device;
use crate::ort::home::Reach;
use crate::ort::program::Program;
use crate::ort::provider::{self, GpuOptions};
use crate::ort::session::OpenSession;

impl Runtime {
    /// Why nothing runs on the device; None if it does.
    pub fn refusal(&self, device: Device) -> Option<String> {
        self.alone(device, &onnx::one_relu()).err()
    }

    /// A session of a graph without weights on the device, nothing of it on the CPU.
    pub fn alone(&self, device: Device, graph: &[u8]) -> Result<OpenSession, String> {
        // TensorRT by itself: it is not there because CUDA is.
        let mut chain = provider::chain(device, &GpuOptions::default(), None);
        chain.truncate(1);
        let providers = Providers { chain, beside: Beside::Nothing, turns: Reach::of(device).turns(), stream: None };
        self.opened(1, &providers, |mut builder| builder.commit_from_memory(graph))
    }

    /// A session of a graph of the engine's own on a device that a model runs on, all of it there. TensorRT's is run by CUDA, in the same
    /// memory: it moves values and computes nothing. It has none of the limits of a model's graphs.
    pub fn program(&self, device: Device, model: &[u8]) -> Result<Program, String> {
        let device = if let Device::TensorRt(id) = device { Device::Cuda(id) } else { device };
        let turns = Reach::of(device).turns();
        let chain = provider::chain(device, &GpuOptions::default(), None);
        let providers = Providers { chain, beside: Beside::Nothing, turns, stream: None };
        let opened = self.opened(1, &providers, |mut builder| builder.commit_from_memory(model))?;
        Ok(Program::new(opened, turns))
    }
}
