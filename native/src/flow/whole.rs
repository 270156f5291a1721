//! All steps of a flow as one graph (`bundle/onnx/unroll.rs`), for a device: between two steps the host has nothing to do.

use super::inputs::time_value;
use crate::bundle::manifest::{Dim, Flow, Graph as GraphSpec, Guided, Manifest, Port, Role};
use crate::bundle::onnx::unroll::{Latent, Loop, Time, result, unroll};
use crate::bundle::onnx::{F32, I64};
use crate::core::dtype::Dtype;
use crate::ort::tensor::Tensor;
use std::path::Path;

/// The graph and its ports: the inputs of a step but the time, and the latent that the rows are read from.
pub struct Whole {
    pub model: Vec<u8>,
    /// Its inputs and outputs. The output has the role of the latent.
    pub spec: GraphSpec,
}

impl Whole {
    /// Makes the graph from the step graph at `path`. The error is a sentence: the steps have to be run one by one.
    pub fn of(manifest: &Manifest, path: &Path) -> Result<Whole, String> {
        let (Some(step), Some(flow)) = (&manifest.graphs.denoise, &manifest.flow) else {
            return Err("it has no flow".into());
        };
        let input = |role: Role| step.inputs.iter().find(|port| port.role == role);
        let output = |role: Role| step.outputs.iter().find(|port| port.role == role);
        let ports = step.inputs.iter().filter(|port| port.role == Role::Time);
        let times = ports.map(|port| step_times(manifest, flow, port)).collect::<Result<Vec<_>, _>>()?;
        let latent = input(Role::Latent).ok_or("it has no latent")?;
        let mut latents = vec![moved(manifest, latent, output(Role::Velocity), Guided::Action)?];
        if let Some(video) = input(Role::VideoLatent) {
            latents.push(moved(manifest, video, output(Role::VideoVelocity), Guided::Video)?);
        }
        let steps: Vec<f32> = (0..flow.steps).map(|step| flow.step(step).1).collect();
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let model = unroll(&bytes, &Loop { times: &times, steps: &steps, latents: &latents })?;
        let inputs = step.inputs.iter().filter(|port| port.role != Role::Time).cloned().collect();
        let last = Port { name: result(&latent.name, steps.len()), ..latent.clone() };
        Ok(Whole { model, spec: GraphSpec { file: step.file.clone(), inputs, outputs: vec![last] } })
    }
}

/// The time of every step, in the same bits that an input gets when steps are run one by one.
fn step_times<'a>(manifest: &Manifest, flow: &Flow, port: &'a Port) -> Result<Time<'a>, String> {
    if port.shape != [Dim::Fixed(1)] {
        return Err("it is told more of a step than a time that all rows have".into());
    }
    let kind = match port.dtype {
        Dtype::F32 => F32,
        Dtype::I64 => I64,
        _ => return Err(format!("{} is no time: it is {:?}", port.name, port.dtype)),
    };
    let each = Port { shape: vec![Dim::Fixed(flow.steps as usize)], ..port.clone() };
    let mut tensor = Tensor::new(&each, manifest.extent(1, manifest.prompt_max()))?;
    tensor.write(0, (0..flow.steps).map(|step| time_value(flow.time(step), port.buckets)));
    let values = tensor.bytes().chunks(port.dtype.bytes()).map(<[u8]>::to_vec).collect();
    Ok(Time { name: &port.name, kind, values })
}

/// How a latent is advanced. The rows are read from the action's latent.
fn moved<'a>(
    manifest: &Manifest,
    latent: &'a Port,
    velocity: Option<&'a Port>,
    what: Guided,
) -> Result<Latent<'a>, String> {
    let branches = manifest.branches();
    let velocity = velocity.ok_or_else(|| format!("{} has no velocity", latent.name))?;
    let ([rows, rest @ ..], [branched, own @ ..]) = (&latent.shape[..], &velocity.shape[..]) else {
        return Err(format!("{} or its velocity has no dimension", latent.name));
    };
    let alike = rest == own && if branches == 1 { rows == branched } else { halves(*rows, *branched, branches) };
    if !alike || latent.dtype != Dtype::F32 || velocity.dtype != Dtype::F32 {
        return Err(format!("{} and its velocity differ in more than their branches", latent.name));
    }
    let (name, velocity, read) = (&latent.name, &velocity.name, what == Guided::Action);
    Ok(Latent { name, velocity, branches, guide: manifest.guide(what), read })
}

/// The rows of a latent that has one, and of its velocity, which has one for each branch.
fn halves(rows: Dim, branched: Dim, branches: usize) -> bool {
    rows == Dim::Fixed(1) && branched == Dim::Fixed(branches) && branches == 2
}

#[cfg(test)]
mod tests;
