//! One model on one device: prefill or extend, then the flow loop, on tensors that are bound once.
//!
//! Euler: x starts as noise at `t_start`; `steps` times x ← x + (t_next − t) · v(x, t). Times, direction and sign are data of the bundle.
//! With guidance the graphs have two branches, with and without instruction, and v is made of both.

mod decode_inputs;
mod device_flow;
mod device_times;
pub mod encoder;
pub mod euler;
mod inputs;
mod mode;
pub mod noise;
mod pictures;
#[cfg(test)]
mod ports_tests;
mod resident;
mod roles;
mod session_blocks;
mod stages;
mod steps;
mod whole;

pub use device_times::DeviceTimes;
pub use mode::FlowMode;
pub use resident::memory_resides;
pub use whole::Whole;

use self::device_flow::{DeviceFlow, Parts};
use self::inputs::Inputs;
use self::pictures::{Pictures, blacken};
use self::resident::{latents_reside, residents};
use self::roles::{NO_PORTS, Owner, Roles, bound};
use crate::bundle::manifest::{Extent, Flow, Graph as GraphSpec, Guided, Manifest, Port, Role};
use crate::episode::{DeviceRows, Entry, Episodes, Pass};
use crate::flow::encoder::Encoder;
use crate::gpu::chunk::Refusal;
use crate::ort::device_memory::DeviceBlock;
use crate::ort::driver_device::DriverDevice;
use crate::ort::graph::{Binding, BoundPort, Graph};
use crate::ort::home::Reach;
use crate::ort::mirrors::Changed;
use crate::ort::mirrors::Mirrors;
use crate::ort::runtime::Threads;
use crate::ort::session::GraphSession;
use crate::ort::tensor::Tensor;
use crate::ort::terminator::Terminator;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The graphs of a bundle and all their tensors. Graphs are dropped before the memory that they are bound to.
pub struct Network {
    prefill: Graph,
    extend: Option<Graph>,
    /// None: prefill gives the chunk.
    denoise: Option<Graph>,
    /// The denoise graph has all steps in it.
    whole: bool,
    tensors: Vec<Tensor>,
    mirrors: Mirrors,
    /// The sizes of inferences, the largest last; with memory one for each place, all alike.
    variants: Vec<Extent>,
    at: Roles,
    inputs: Inputs,
    flow: Option<Flow>,
    branches: usize,
    /// Values of one row of the latent.
    action_width: usize,
    video: Option<Video>,
    guide_action: Option<f32>,
    /// Latents of continued rows, as they were before the loop; empty on a model whose chunks continue none.
    prefix_latents: Vec<f32>,
    /// Latents on the device, if our kernels advance them.
    device_flow: Option<DeviceFlow>,
    /// Both keep the memory that the graphs are bound to.
    _episodes: Option<Arc<Episodes>>,
    driver_device: DriverDevice,
    rows: Option<Arc<DeviceRows>>,
}

/// The latent of predicted frames. It is denoised with the action's, then not used.
struct Video {
    latent: usize,
    velocity: usize,
    guide: Option<f32>,
}

/// One value for each graph: its file, or its session, which replicas may share.
#[derive(Clone)]
pub struct Graphs<T> {
    pub prefill: T,
    pub extend: Option<T>,
    pub denoise: Option<T>,
}

pub type Files = Graphs<PathBuf>;

impl Files {
    /// Opens the sessions in parallel, in the time of the slowest. `whole` replaces the step graph.
    pub fn open(
        &self,
        Threads { reader, step }: Threads,
        whole: Option<&Whole>,
        open: impl Fn((&Path, Option<&[u8]>), u32) -> Result<Arc<GraphSession>, String> + Sync,
    ) -> Result<Graphs<Arc<GraphSession>>, String> {
        let open = &open;
        let made = whole.map(|whole| &whole.model[..]);
        std::thread::scope(|scope| {
            let extend = self.extend.as_ref().map(|path| scope.spawn(move || open((path, None), reader)));
            let denoise = self.denoise.as_ref().map(|path| scope.spawn(move || open((path, made), step)));
            let prefill = open((&self.prefill, None), reader)?;
            let joined = |handle: std::thread::ScopedJoinHandle<'_, Result<Arc<GraphSession>, String>>| {
                handle.join().unwrap_or_else(|_| Err("opening a graph panicked".into()))
            };
            Ok(Graphs { prefill, extend: extend.map(joined).transpose()?, denoise: denoise.map(joined).transpose()? })
        })
    }
}

impl Network {
    /// Binds the sessions to new tensors, and takes the replica's driver device: the sessions use its stream. The error is a sentence.
    /// A network that is `shown` keeps no tensor in the memory of a device.
    pub fn new(
        (manifest, encoder): (&Manifest, &Encoder),
        mut driver_device: DriverDevice,
        (sessions, whole): (Graphs<Arc<GraphSession>>, Option<&Whole>),
        reach: Reach,
        options: &Arc<Terminator>,
        episodes: Option<Arc<Episodes>>,
        shown: bool,
    ) -> Result<Network, String> {
        let variants = variants(manifest, reach, episodes.as_ref().map(|episodes| episodes.places()));
        let most = *variants.last().ok_or("it has no session slot")?;
        let graphs = &manifest.graphs;
        let home = reach.home().filter(|_| !shown);
        let stays = residents(graphs, &sessions, home)?;
        // The tensors of each graph. Blocks and memories belong to the episodes; extend writes to the outputs of prefill.
        let mut owned: Vec<(Owner, Tensor)> = Vec::new();
        let mut ports: Vec<(Owner, &Port)> = Vec::new();
        for (owner, declared) in [
            (Owner::Prefill, &graphs.prefill.inputs),
            (Owner::Prefill, &graphs.prefill.outputs),
            (Owner::Extend, graphs.extend.as_ref().map_or(&NO_PORTS, |extend| &extend.inputs)),
            (Owner::Denoise, graphs.denoise.as_ref().map_or(&NO_PORTS, |denoise| &denoise.inputs)),
            (Owner::Denoise, graphs.denoise.as_ref().map_or(&NO_PORTS, |denoise| &denoise.outputs)),
        ] {
            for port in declared.iter().filter(|port| port.from.is_none() && port.role != Role::Block) {
                ports.push((owner, port));
                let stays = owner == Owner::Prefill && port.role == Role::Cache && stays.contains(port.name.as_str());
                owned.push((
                    owner,
                    match home.filter(|_| stays) {
                        Some(home) => Tensor::on_device(port, most, |bytes| {
                            DeviceBlock::new(sessions.prefill.get(), home, bytes)
                        })?,
                        None => Tensor::new(port, most)?,
                    },
                ));
            }
        }
        let at = Roles::find(manifest, most.batch, &owned)?;
        // The tensors exist before a graph is bound, since a graph must not outlive the memory that it is bound to.
        let (owners, mut tensors): (Vec<Owner>, Vec<Tensor>) = owned.into_iter().unzip();
        blacken(manifest, &ports, &mut tensors);
        let written = Inputs::new(manifest, most.batch, &ports, &mut tensors)?;
        let owned: Vec<(Owner, Tensor)> = owners.into_iter().zip(tensors).collect();
        let guide = manifest.guide(Guided::Video);
        let video = roles::video(manifest, &owned)?.map(|(latent, velocity)| Video { latent, velocity, guide });
        let denoise = graphs.denoise.as_ref().map(|denoise| whole.map_or(denoise, |whole| &whole.spec));
        let (video_at, whole_there) = (video.as_ref(), whole.is_some());
        let parts =
            Parts { manifest, encoder, owned: &owned, at: &at, video: video_at, batch: most.batch, whole: whole_there };
        let step = denoise.zip(sessions.denoise.as_ref()).ok_or_else(|| "the model has no flow".into());
        let resides = step.and_then(|(denoise, session)| latents_reside(denoise, session, home));
        let device_flow = DeviceFlow::of(&mut driver_device, &parts, resides);
        let mut mirrors = Mirrors::on(driver_device.stream());
        let mut graph = |session: Arc<GraphSession>, spec: &GraphSpec, owner: Owner| -> Result<Graph, String> {
            let stays = |port, is_input| {
                device_flow.as_ref().filter(|_| owner == Owner::Denoise)?.bound(port, &owned, is_input)
            };
            let bind = |port, is_input| {
                stays(port, is_input).map_or_else(|| bound(port, owner, most, &owned, episodes.as_deref()), Ok)
            };
            // The result of a whole flow replaces its noise.
            let noise = owned[at.latent].1.address();
            let inputs = spec.inputs.iter().map(|port| bind(port, true)).collect::<Result<_, _>>()?;
            let outputs = (spec.outputs.iter())
                .map(|port| match port.role {
                    Role::Latent if device_flow.is_none() => Ok(BoundPort::fixed(port, noise, false)),
                    _ => bind(port, false),
                })
                .collect::<Result<_, _>>()?;
            let with = Binding { reach, options, variants: &variants, mirrors: &mut mirrors };
            // SAFETY: graphs, tensors and episodes end up in one Network, whose fields drop in order; blocks never move. The
            // replica's thread is the only one to run graphs, on slots that their runs have taken.
            unsafe { Graph::bind(session, with, inputs, outputs) }
        };
        let prefill = graph(sessions.prefill, &graphs.prefill, Owner::Prefill)?;
        let mut other = |session: Option<_>, spec: Option<&GraphSpec>, owner: Owner| {
            session.zip(spec).map(|(session, spec)| graph(session, spec, owner)).transpose()
        };
        let denoise = other(sessions.denoise, denoise, Owner::Denoise)?;
        let extend = other(sessions.extend, graphs.extend.as_ref(), Owner::Extend)?;
        let prefix_latents =
            if manifest.action.prefix > 0 { most.batch * manifest.action.rows * manifest.action.width } else { 0 };
        let mut network = Network {
            prefill,
            extend,
            denoise,
            whole: whole.is_some(),
            mirrors,
            tensors: owned.into_iter().map(|(_, tensor)| tensor).collect(),
            variants,
            at,
            inputs: written,
            flow: manifest.flow.clone(),
            branches: manifest.branches(),
            action_width: manifest.action.width,
            video,
            guide_action: manifest.guide(Guided::Action),
            prefix_latents: vec![0.0; prefix_latents],
            rows: episodes.as_ref().and_then(|episodes| episodes.device()),
            device_flow,
            _episodes: episodes,
            driver_device,
        };
        network.attach();
        Ok(network)
    }

    pub fn rows_max(&self) -> usize {
        self.variants.last().map_or(1, |extent| extent.batch)
    }

    /// The variants of a model without memory, which differ in shape.
    pub fn variants(&self) -> &[Extent] {
        &self.variants
    }

    /// The smallest variant of a model without memory for `rows` rows whose longest prompt has `tokens` tokens.
    pub fn variant(&self, rows: usize, tokens: usize) -> usize {
        let holds = |extent: &Extent| extent.batch >= rows && extent.prompt >= tokens;
        self.variants.iter().position(holds).unwrap_or(self.variants.len() - 1)
    }

    /// The bytes of frame `frame` of a camera in row `row` of the images of a graph.
    pub fn picture(&mut self, entry: Entry, row: usize, camera: usize, frame: usize) -> &mut [u8] {
        let pictures = match (entry, &self.at.extend) {
            (Entry::Later, Some(pictures)) => pictures,
            _ => &self.at.prefill,
        };
        let (Pictures { tensor, first, bytes }, rows) = (pictures[camera], self.rows_max());
        &mut part(self.tensors[tensor].bytes(), row, rows)[first + frame * bytes..][..bytes]
    }

    /// Writes row `row` of the prompt inputs of a branch's graphs. `write` gives tokens and mask, as long as the longest prompt, and
    /// returns the number of tokens. An inference on a shorter variant, which has one row, reads the beginning.
    pub fn prompt(
        &mut self,
        entry: Entry,
        row: usize,
        branch: usize,
        write: impl FnOnce(&mut [i64], &mut [u8]) -> usize,
    ) -> usize {
        let reader = if entry == Entry::Later && self.extend.is_some() { Owner::Extend } else { Owner::Prefill };
        self.inputs.prompt(&mut self.tensors, reader, (row, branch), write)
    }

    /// Keeps the first `count` rows of the latent of row `row` in place, and writes their number to the denoise graph.
    pub fn set_prefix(&mut self, row: usize, count: usize) {
        self.inputs.set_prefix(row, count);
        let len = self.prefix_len(row);
        let begin = row * self.latent(row).len();
        if let Some(device_flow) = &mut self.device_flow {
            device_flow.set_prefix(row, len);
        } else if len > 0 {
            let Network { prefix_latents, tensors, at, .. } = self;
            prefix_latents[begin..][..len].copy_from_slice(&tensors[at.latent].floats()[begin..][..len]);
        }
    }

    /// Values of the latent of row `row` that stay in place.
    fn prefix_len(&self, row: usize) -> usize {
        self.inputs.prefix_rows(row) * self.action_width
    }

    /// Branches of the graphs: 2 with guidance.
    pub fn branches(&self) -> usize {
        self.branches
    }

    /// Writes row `row` of every state tensor.
    pub fn state(&mut self, row: usize, mut write: impl FnMut(&mut [f32])) {
        let rows = self.rows_max();
        let Network { at, tensors, .. } = self;
        for &at in &at.states {
            write(part(tensors[at].floats(), row, rows));
        }
    }

    /// Writes the state and the continued rows that the device decodes the chunk of row `row` with, in robot units.
    pub fn tell(&mut self, row: usize, state: &[f32], prefix: &[f32]) {
        if let Some(device_flow) = &mut self.device_flow {
            device_flow.tell(row, state, prefix);
        }
    }

    /// The clamped rows of a chunk that the device has decoded, and how many values were clamped or why the chunk is refused. A refused
    /// chunk's latent is on the host. None if the host decodes.
    pub fn decoded(&self, row: usize) -> Option<(&[f32], Result<u32, Refusal>)> {
        self.device_flow.as_ref().map(|device_flow| device_flow.decoded(row))
    }

    /// Row `row` of the latent, `[rows, width]`: noise before the loop, the chunk after it unless the device has decoded that. Without a flow
    /// it is the chunk that prefill has given.
    pub fn latent(&mut self, row: usize) -> &mut [f32] {
        let rows = self.rows_max();
        part(self.tensors[self.at.latent].floats(), row, rows)
    }

    /// The latent of predicted frames, on a model that has one.
    pub fn video_latent(&mut self) -> Option<&mut [f32]> {
        let at = self.video.as_ref()?.latent;
        Some(self.tensors[at].floats())
    }

    /// Sets the valid tokens of memory and block.
    pub fn lengths(&mut self, pass: Pass, frame_tokens: usize) {
        self.inputs.lengths(&mut self.tensors, pass.kept * frame_tokens, pass.written * frame_tokens);
    }

    /// Images and prompt of a variant → cache.
    pub fn read(&mut self, entry: Entry, variant: usize) -> Result<(), String> {
        let Network { prefill, extend, mirrors, tensors, device_flow, .. } = self;
        mirrors.renew();
        if let Some(device_flow) = device_flow {
            device_flow.begun();
        }
        match (extend, entry) {
            (Some(extend), Entry::Later) => {
                extend.run(variant, Changed::All, mirrors, tensors).map_err(|error| format!("extend: {error}"))
            }
            _ => prefill.run(variant, Changed::All, mirrors, tensors).map_err(|error| format!("prefill: {error}")),
        }
    }
}

impl Drop for Network {
    /// A stopped or failed inference may have left work in the stream, which must end before the memory is freed.
    fn drop(&mut self) {
        if let Some(device_flow) = &mut self.device_flow {
            device_flow.finish();
        }
    }
}

/// The sizes of a model's inferences, the largest last.
///
/// On a CPU a batch of two takes as long as two inferences, and the first would wait for nothing. So each has a batch of one with its
/// prompt's length, and its bits do not depend on its neighbours. On a device a batch computes together, with one length.
pub fn variants(manifest: &Manifest, reach: Reach, places: Option<usize>) -> Vec<Extent> {
    let longest = manifest.prompt_max();
    match places {
        Some(places) => vec![manifest.extent(1, longest); places],
        None if reach == Reach::InPlace => manifest.prompt_lengths().map(|prompt| manifest.extent(1, prompt)).collect(),
        None => (1..=manifest.batch).map(|rows| manifest.extent(rows, longest)).collect(),
    }
}

/// Row `row` of a tensor whose first dimension has `rows` rows.
fn part<T>(values: &mut [T], row: usize, rows: usize) -> &mut [T] {
    let len = values.len() / rows;
    &mut values[row * len..(row + 1) * len]
}
