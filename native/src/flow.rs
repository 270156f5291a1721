//! One model on one device: prefill, then the flow loop, on tensors that are bound once.
//!
//! Euler: x starts as noise at `t_start`; `steps` times x ← x + dt · v(x, t) with dt = (t_end − t_start) / steps.
//! Direction and sign are data of the bundle.

use crate::graph::{Graph, Memory, Tensor, Terminator};
use crate::manifest::{Dtype, Flow, Graph as GraphSpec, Manifest, Port, Role};
use crate::runtime::{Device, Runtime};
use ort::session::Session;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The two graphs of a bundle and all their tensors. Graphs are dropped before the memory they are bound to.
pub struct Network {
    prefill: Graph,
    denoise: Graph,
    tensors: Vec<Tensor>,
    /// Indices into `tensors`.
    at: Roles,
    flow: Flow,
}

struct Roles {
    images: usize,
    tokens: usize,
    token_mask: usize,
    latent: usize,
    time: usize,
    velocity: usize,
}

impl Network {
    /// Opens both graphs on `device`. The error is a sentence.
    pub fn open(
        runtime: &Runtime,
        manifest: &Manifest,
        paths: (&Path, &Path),
        device: Device,
        threads: u32,
        options: &Arc<Terminator>,
    ) -> Result<Network, String> {
        let batch = manifest.batch;
        let GraphSpec { inputs, outputs, .. } = &manifest.graphs.prefill;
        let GraphSpec { inputs: step_inputs, outputs: step_outputs, .. } = &manifest.graphs.denoise;
        // Each graph's own tensors; a cache input of the denoise graph is an output of the prefill graph. Names are looked up
        // in the graph that they belong to: two graphs may use the same one.
        let make = |ports: &[Port]| -> Result<Vec<Tensor>, String> {
            ports.iter().filter(|port| port.from.is_none()).map(|port| Tensor::new(port, batch)).collect()
        };
        let mut tensors = make(inputs)?;
        tensors.extend(make(outputs)?);
        let prefill_tensors = tensors.len();
        tensors.extend(make(step_inputs)?);
        tensors.extend(make(step_outputs)?);
        let bound = |ports: &[Port], own: &Range<usize>| -> Result<Vec<(String, &Tensor)>, String> {
            (ports.iter())
                .map(|port| {
                    let (name, place, role) = match &port.from {
                        Some(source) => (source, 0..prefill_tensors, Role::Cache),
                        None => (&port.name, own.clone(), port.role),
                    };
                    let tensor = tensors[place].iter().find(|tensor| tensor.name == *name && tensor.role == role);
                    Ok((port.name.clone(), tensor.ok_or_else(|| format!("no tensor is named {name}"))?))
                })
                .collect()
        };
        let graph = |session: Session, spec: &GraphSpec, own: Range<usize>| -> Result<Graph, String> {
            let (inputs, outputs) = (bound(&spec.inputs, &own)?, bound(&spec.outputs, &own)?);
            // SAFETY: graphs and tensors end up in one Network, whose fields drop in order; the blocks never move.
            unsafe { Graph::bind(session, options.clone(), batch, &inputs, &outputs) }
        };
        // Side by side: a start waits for the slower one only.
        let sessions = std::thread::scope(|scope| {
            let denoise = scope.spawn(|| runtime.session(paths.1, device, threads));
            let prefill = runtime.session(paths.0, device, threads);
            let denoise = denoise.join().unwrap_or_else(|_| Err("opening the denoise graph panicked".into()));
            Ok::<_, String>((prefill?, denoise?))
        })?;
        let prefill = graph(sessions.0, &manifest.graphs.prefill, 0..prefill_tensors)?;
        let denoise = graph(sessions.1, &manifest.graphs.denoise, prefill_tensors..tensors.len())?;
        // What a run indexes into is of the length and type that it counts on.
        let role = |role: Role, dtype: Dtype, len: usize| {
            let at = tensors.iter().position(|tensor| tensor.role == role);
            let at = at.ok_or_else(|| format!("no tensor has the role {role:?}"))?;
            if tensors[at].dtype() != dtype || tensors[at].len() != len {
                return Err(format!("the tensor of role {role:?} is not {dtype:?} of {len} values"));
            }
            Ok(at)
        };
        let (prompt, chunk) =
            (batch * manifest.prompt.tokens_max, batch * manifest.action.rows * manifest.action.width);
        let at = Roles {
            images: role(Role::Images, Dtype::F32, batch * manifest.frames_max() * manifest.frame_values())?,
            tokens: role(Role::Tokens, Dtype::I64, prompt)?,
            token_mask: role(Role::TokenMask, Dtype::Bool, prompt)?,
            latent: role(Role::Latent, Dtype::F32, chunk)?,
            time: role(Role::Time, Dtype::F32, 1)?,
            velocity: role(Role::Velocity, Dtype::F32, chunk)?,
        };
        let flow = Flow { ..manifest.flow };
        Ok(Network { prefill, denoise, tensors, at, flow })
    }

    /// Row `row` of the images, `[cameras · frames, 3, height, width]`.
    pub fn images(&mut self, row: usize, batch: usize) -> &mut [f32] {
        part(self.tensors[self.at.images].floats(), row, batch)
    }

    /// Row `row` of the tokens and of their mask.
    pub fn prompt(&mut self, row: usize, batch: usize) -> (&mut [i64], &mut [u8]) {
        let [tokens, mask] =
            self.tensors.get_disjoint_mut([self.at.tokens, self.at.token_mask]).expect("two roles are two tensors");
        match (&mut tokens.memory, &mut mask.memory) {
            (Memory::I64(tokens), Memory::Bool(mask)) => (part(tokens, row, batch), part(mask, row, batch)),
            _ => panic!("tokens are i64 and their mask is bool"),
        }
    }

    /// Row `row` of the latent, `[rows, width]`: noise before the loop, the chunk after it.
    pub fn latent(&mut self, row: usize, batch: usize) -> &mut [f32] {
        part(self.tensors[self.at.latent].floats(), row, batch)
    }

    /// Images and prompt of the first `rows` rows → cache.
    pub fn prefill(&mut self, rows: usize) -> Result<(), String> {
        self.prefill.run(rows, &mut self.tensors).map_err(|error| format!("prefill: {error}"))
    }

    /// All flow steps on the first `rows` of `batch` rows. `go_on` is asked before each step; false ends the loop early
    /// and is what is returned.
    pub fn denoise(&mut self, rows: usize, batch: usize, mut go_on: impl FnMut() -> bool) -> Result<bool, String> {
        let dt = (self.flow.t_end - self.flow.t_start) / f64::from(self.flow.steps);
        for step in 0..self.flow.steps {
            if !go_on() {
                return Ok(false);
            }
            self.tensors[self.at.time].floats()[0] = (self.flow.t_start + f64::from(step) * dt) as f32;
            self.denoise.run(rows, &mut self.tensors).map_err(|error| format!("denoise step {step}: {error}"))?;
            let [latent, velocity] =
                self.tensors.get_disjoint_mut([self.at.latent, self.at.velocity]).expect("two roles are two tensors");
            let (latent, velocity) = (latent.floats(), velocity.floats());
            let used = latent.len() / batch * rows;
            for (x, v) in latent[..used].iter_mut().zip(&velocity[..used]) {
                *x += dt as f32 * v;
            }
        }
        Ok(true)
    }
}

/// Row `row` of a tensor whose first dimension is the batch.
fn part<T>(values: &mut [T], row: usize, batch: usize) -> &mut [T] {
    let len = values.len() / batch;
    &mut values[row * len..(row + 1) * len]
}
