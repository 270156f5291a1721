//! One model on one device: prefill, then the flow loop, on tensors that are bound once.
//!
//! Euler: x starts as noise at `t_start`; `steps` times x ← x + dt · v(x, t) with dt = (t_end − t_start) / steps.
//! Direction and sign are data of the bundle.

use crate::graph::{Graph, Memory, Tensor, Terminator};
use crate::manifest::{Flow, Graph as GraphSpec, Manifest, Port, Role};
use crate::runtime::{Device, Runtime};
use ort::session::Session;
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
        let own = inputs.iter().chain(outputs).chain(step_inputs.iter().filter(|port| port.role != Role::Cache));
        let tensors = own.chain(step_outputs).map(|port| Tensor::new(port, batch)).collect::<Result<Vec<_>, _>>()?;
        let find = |name: &str| {
            tensors.iter().find(|tensor| tensor.name == name).ok_or_else(|| format!("no tensor is named {name}"))
        };
        let bound = |ports: &[Port]| -> Result<Vec<(String, &Tensor)>, String> {
            let source = |port: &Port| if port.role == Role::Cache { port.from.clone() } else { None };
            (ports.iter())
                .map(|port| Ok((port.name.clone(), find(&source(port).unwrap_or(port.name.clone()))?)))
                .collect()
        };
        let graph = |session: Session, inputs: &[Port], outputs: &[Port]| -> Result<Graph, String> {
            let (inputs, outputs) = (bound(inputs)?, bound(outputs)?);
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
        let prefill = graph(sessions.0, inputs, outputs)?;
        let denoise = graph(sessions.1, step_inputs, step_outputs)?;
        let role = |role: Role| {
            (tensors.iter().position(|tensor| tensor.role == role))
                .ok_or_else(|| format!("no tensor has the role {role:?}"))
        };
        let at = Roles {
            images: role(Role::Images)?,
            tokens: role(Role::Tokens)?,
            token_mask: role(Role::TokenMask)?,
            latent: role(Role::Latent)?,
            time: role(Role::Time)?,
            velocity: role(Role::Velocity)?,
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
