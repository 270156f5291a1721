//! The WebGPU provider: whether `auto` takes its device, and which nodes it must compute.

use crate::core::device::Device;
use crate::gpu::vulkan::Adapters;
use crate::ort::assignment::{OnCpu, on_cpu, refuse};
use ort::session::Session;
use std::path::Path;

/// Operators that the CPU may compute outside of the layers: their results from lengths, positions and masks are small. WebGPU has few
/// kernels for booleans, and sine and cosine of older operator sets alone.
const LIGHT: &[&str] = &["Cos", "Identity", "Sin"];

/// Part of the name of every node of a layer (`src/bundle/graph.ts` names nodes after their scopes).
const LAYER: &str = "blocks.";

/// Why `auto` does not try it: a software rasteriser is far slower than the CPU provider. A user who names it gets it.
pub fn unfit_for_auto(device: Device) -> Option<String> {
    let Device::WebGpu(_) = device else { return None };
    let adapters = Adapters::probe();
    if let Adapters::Software(name) = adapters {
        return Some(format!("its only adapter is {name}, which computes on the CPU; to use it name webgpu:0"));
    }
    without(adapters)
}

/// Why it cannot be tried at all: without an adapter the provider fails too, with many lines on standard error.
pub fn absent() -> Option<String> {
    without(Adapters::probe())
}

fn without(adapters: &Adapters) -> Option<String> {
    // If adapters cannot be listed, the device nodes decide.
    let Adapters::None(reason) = adapters else { return None };
    let nodes = ["/dev/dri/renderD128", "/dev/nvidia0"];
    let gpu = nodes.iter().any(|node| Path::new(node).exists());
    (!gpu).then(|| format!("no GPU: neither /dev/dri/renderD128 nor /dev/nvidia0 is there ({reason})"))
}

/// Refuses a session whose graph the CPU computes in part, but for light operators.
pub fn admit(session: &Session) -> Result<(), String> {
    judge(&on_cpu(session)?)
}

fn judge(on_cpu: &[OnCpu]) -> Result<(), String> {
    refuse(on_cpu, |node| LIGHT.contains(&node.operator.as_str()) && !node.name.contains(LAYER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(operator: &str, name: &str) -> OnCpu {
        OnCpu { operator: operator.into(), name: name.into() }
    }

    #[test]
    fn lengths_and_positions_may_lie_on_the_cpu_and_nothing_of_a_layer() {
        let light = [node("Cos", "world.cos"), node("Identity", "identity")];
        assert_eq!(judge(&light), Ok(()));
        for heavy in [
            node("MatMul", "expert.matmul"),
            node("Cos", "world.blocks.0.cos"),
            node("Add", "expert.add"),
            node("com.microsoft.Add", "x"),
        ] {
            let [one, two] = light.clone();
            let refused = judge(&[one, heavy.clone(), two]).unwrap_err();
            assert!(refused.contains(&format!("{} '{}' of the graph", heavy.operator, heavy.name)), "{refused}");
        }
    }
}
