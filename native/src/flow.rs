//! One model on one device: prefill or extend, then the flow loop, on tensors that are bound once.
//!
//! Euler: x starts as noise at `t_start`; `steps` times x ← x + (t_next − t) · v(x, t). Times, direction and sign are data of
//! the bundle. With guidance the graphs have two branches, with and without instruction, which are combined to v here.

mod resident;
mod roles;

use self::resident::residents;
use self::roles::{EntryRoles, NO_PORTS, Owner, Roles, bound};
use crate::episode::{Entry, Episodes, Pass};
use crate::euler;
use crate::graph::{Changed, Copies, DeviceBlock, Graph, Reach, Storage, Tensor, Terminator};
use crate::manifest::{Extent, Flow, Graph as GraphSpec, Guided, Manifest, Role};
use crate::runtime::Threads;
use crate::weights::Loaded;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The graphs of a bundle and all their tensors. Graphs are dropped before the memory that they are bound to.
pub struct Network {
    prefill: Graph,
    extend: Option<Graph>,
    denoise: Graph,
    tensors: Vec<Tensor>,
    /// What the runs differ in, the largest last; with memory one for each session slot, all alike.
    variants: Vec<Extent>,
    at: Roles,
    flow: Flow,
    branches: usize,
    video: Option<Video>,
    guide_action: Option<f32>,
    /// Keeps the memory alive that the graphs are bound to.
    _episodes: Option<Arc<Episodes>>,
}

/// The latent of predicted frames: denoised together with the action's, then not used.
struct Video {
    latent: usize,
    velocity: usize,
    guide: Option<f32>,
}

/// One of each graph: its file, or its session, which replicas may share.
#[derive(Clone)]
pub struct Graphs<T> {
    /// Of `prefill.onnx`.
    pub prefill: T,
    /// Of `extend.onnx`, on a model with memory.
    pub extend: Option<T>,
    /// Of `denoise.onnx`.
    pub denoise: T,
}

/// Files of the graphs.
pub type Files = Graphs<PathBuf>;

impl Files {
    /// Opens the sessions in parallel: the start takes as long as the slowest.
    pub fn open(
        &self,
        Threads { reader, step }: Threads,
        open: impl Fn(&Path, u32) -> Result<Arc<Loaded>, String> + Sync,
    ) -> Result<Graphs<Arc<Loaded>>, String> {
        let open = &open;
        std::thread::scope(|scope| {
            let extend = self.extend.as_ref().map(|path| scope.spawn(move || open(path, reader)));
            let denoise = scope.spawn(|| open(&self.denoise, step));
            let prefill = open(&self.prefill, reader)?;
            let joined = |handle: std::thread::ScopedJoinHandle<'_, Result<Arc<Loaded>, String>>| {
                handle.join().unwrap_or_else(|_| Err("opening a graph panicked".into()))
            };
            Ok(Graphs { prefill, extend: extend.map(joined).transpose()?, denoise: joined(denoise)? })
        })
    }
}

impl Network {
    /// Binds the sessions to tensors of their own. The error is a sentence.
    pub fn new(
        manifest: &Manifest,
        sessions: Graphs<Arc<Loaded>>,
        reach: Reach,
        options: &Arc<Terminator>,
        episodes: Option<Arc<Episodes>>,
    ) -> Result<Network, String> {
        let variants = variants(manifest, reach, episodes.as_ref().map(|episodes| episodes.len()));
        let most = *variants.last().ok_or("it has no session slot")?;
        let graphs = &manifest.graphs;
        let stays = residents(graphs, &sessions, reach.home())?;
        // Each graph's own tensors. Blocks and memories belong to the episodes; extend writes to the outputs of prefill.
        let mut owned: Vec<(Owner, Tensor)> = Vec::new();
        for (owner, ports) in [
            (Owner::Prefill, &graphs.prefill.inputs),
            (Owner::Prefill, &graphs.prefill.outputs),
            (Owner::Extend, graphs.extend.as_ref().map_or(&NO_PORTS, |extend| &extend.inputs)),
            (Owner::Denoise, &graphs.denoise.inputs),
            (Owner::Denoise, &graphs.denoise.outputs),
        ] {
            for port in ports.iter().filter(|port| port.from.is_none() && port.role != Role::Block) {
                let stays = owner == Owner::Prefill && port.role == Role::Cache && stays.contains(port.name.as_str());
                owned.push((
                    owner,
                    match reach.home().filter(|_| stays) {
                        Some(home) => Tensor::on_device(port, most, |bytes| {
                            DeviceBlock::new(sessions.prefill.get(), home, bytes)
                        })?,
                        None => Tensor::new(port, most)?,
                    },
                ));
            }
        }
        let graph = |session: Arc<Loaded>, spec: &GraphSpec, owner: Owner| -> Result<Graph, String> {
            let bind = |port| bound(port, owner, most, &owned, episodes.as_deref());
            let inputs = spec.inputs.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
            let outputs = spec.outputs.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
            // SAFETY: graphs, tensors and episodes end up in one Network, whose fields drop in order; blocks never move. The
            // replica's thread is the only one to run graphs, on slots that their runs have taken.
            unsafe { Graph::bind(session, options.clone(), reach, &variants, &inputs, &outputs) }
        };
        let Graphs { prefill, extend, denoise } = sessions;
        let prefill = graph(prefill, &graphs.prefill, Owner::Prefill)?;
        let denoise = graph(denoise, &graphs.denoise, Owner::Denoise)?;
        let extend = match (extend, &graphs.extend) {
            (Some(session), Some(spec)) => Some(graph(session, spec, Owner::Extend)?),
            _ => None,
        };
        let at = Roles::find(manifest, most.batch, &owned)?;
        let video = roles::video(manifest, &owned)?;
        let guide = |what: Guided| {
            manifest
                .guidance
                .as_ref()
                .filter(|guidance| guidance.apply.contains(&what))
                .map(|guidance| guidance.scale as f32)
        };
        Ok(Network {
            prefill,
            extend,
            denoise,
            tensors: owned.into_iter().map(|(_, tensor)| tensor).collect(),
            variants,
            at,
            flow: Flow { ..manifest.flow },
            branches: manifest.branches(),
            video: video.map(|(latent, velocity)| Video { latent, velocity, guide: guide(Guided::Video) }),
            guide_action: guide(Guided::Action),
            _episodes: episodes,
        })
    }

    /// Bytes of its tensors in the device's memory, and what one observation alone copies between the host and the device.
    pub fn traffic(&self) -> (usize, Copies) {
        let mut copies = Copies::default();
        copies += self.extend.as_ref().unwrap_or(&self.prefill).copies(0, Changed::All);
        for step in 0..self.flow.steps {
            copies += self.denoise.copies(0, Changed::of(step));
        }
        (self.tensors.iter().map(Tensor::device_bytes).sum(), copies)
    }

    fn entry(&self, entry: Entry) -> EntryRoles {
        match entry {
            Entry::Later => self.at.extend.unwrap_or(self.at.prefill),
            _ => self.at.prefill,
        }
    }

    /// Rows of its largest run.
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

    /// Row `row` of the images of a graph, `[cameras · frames, 3, height, width]`.
    pub fn images(&mut self, entry: Entry, row: usize) -> &mut [f32] {
        let (at, rows) = (self.entry(entry).images, self.rows_max());
        part(self.tensors[at].floats(), row, rows)
    }

    /// Row `row` of the tokens and of their mask, for one branch, as long as the longest prompt. A run on a shorter variant, which
    /// has one row, reads its beginning.
    pub fn prompt(&mut self, entry: Entry, row: usize, branch: usize) -> (&mut [i64], &mut [u8]) {
        let EntryRoles { tokens, token_mask, .. } = self.entry(entry);
        let (branches, rows) = (self.branches, self.rows_max());
        let [tokens, mask] = self.tensors.get_disjoint_mut([tokens, token_mask]).expect("two roles are two tensors");
        match (&mut tokens.storage, &mut mask.storage) {
            (Storage::I64(tokens), Storage::Bool(mask)) => {
                (part(part(tokens, row, rows), branch, branches), part(part(mask, row, rows), branch, branches))
            }
            _ => panic!("tokens are i64 and their mask is bool"),
        }
    }

    /// Branches of the graphs: 2 with guidance.
    pub fn branches(&self) -> usize {
        self.branches
    }

    /// Writes row `row` of every state tensor.
    pub fn state(&mut self, row: usize, mut write: impl FnMut(&mut [f32])) {
        let rows = self.rows_max();
        for &at in &self.at.states {
            write(part(self.tensors[at].floats(), row, rows));
        }
    }

    /// Row `row` of the latent, `[rows, width]`: noise before the loop, the chunk after it.
    pub fn latent(&mut self, row: usize) -> &mut [f32] {
        let rows = self.rows_max();
        part(self.tensors[self.at.latent].floats(), row, rows)
    }

    /// The latent of the predicted frames, on a model that has one.
    pub fn video_latent(&mut self) -> Option<&mut [f32]> {
        let at = self.video.as_ref()?.latent;
        Some(self.tensors[at].floats())
    }

    /// Sets how much of memory and block is valid, in tokens.
    pub fn lengths(&mut self, pass: Pass, frame_tokens: usize) {
        let Roles { extend_memory_length, memory_length, block_length, .. } = self.at;
        for (at, frames) in
            [(extend_memory_length, pass.kept), (memory_length, pass.kept), (block_length, pass.written)]
        {
            if let Some(at) = at
                && let Storage::I64(value) = &mut self.tensors[at].storage
            {
                value[0] = (frames * frame_tokens) as i64;
            }
        }
    }

    /// Images and prompt of a variant → cache.
    pub fn read(&mut self, entry: Entry, variant: usize) -> Result<(), String> {
        match (&mut self.extend, entry) {
            (Some(extend), Entry::Later) => {
                extend.run(variant, Changed::All, &mut self.tensors).map_err(|error| format!("extend: {error}"))
            }
            _ => (self.prefill.run(variant, Changed::All, &mut self.tensors))
                .map_err(|error| format!("prefill: {error}")),
        }
    }

    /// All flow steps of a variant. `go_on` is asked before each step; false ends the loop early and is what is returned.
    pub fn denoise(&mut self, variant: usize, mut go_on: impl FnMut(u32) -> bool) -> Result<bool, String> {
        let (rows, most) = (self.variants[variant].batch, self.rows_max());
        for step in 0..self.flow.steps {
            if !go_on(step) {
                return Ok(false);
            }
            let (t, next) = (self.flow.time(step), self.flow.time(step + 1));
            self.tensors[self.at.time].floats()[0] = t as f32;
            self.denoise
                .run(variant, Changed::of(step), &mut self.tensors)
                .map_err(|error| format!("denoise step {step}: {error}"))?;
            let dt = (next - t) as f32;
            let used = self.tensors[self.at.latent].len / most * rows;
            self.advance(self.at.latent, self.at.velocity, self.guide_action, used, dt);
            if let Some(Video { latent, velocity, guide }) = self.video {
                self.advance(latent, velocity, guide, self.tensors[latent].len, dt);
            }
        }
        Ok(true)
    }

    /// One step of a latent, its first `used` values.
    fn advance(&mut self, latent: usize, velocity: usize, guide: Option<f32>, used: usize, dt: f32) {
        let [latent, velocity] = self.tensors.get_disjoint_mut([latent, velocity]).expect("two roles are two tensors");
        euler::advance(&mut latent.floats()[..used], velocity.floats(), self.branches, guide, dt);
    }
}

/// What the runs of a model differ in, the largest last.
///
/// On a CPU a batch of two takes as long as two runs: the first of them would wait for nothing. A lone run then has the length of
/// its own prompt and nobody else's, so that its bits do not depend on its neighbours. Elsewhere what waits together runs together,
/// at the one length.
fn variants(manifest: &Manifest, reach: Reach, slots: Option<usize>) -> Vec<Extent> {
    let longest = manifest.prompt.tokens_max;
    match slots {
        Some(slots) => vec![manifest.extent(1, longest); slots],
        None if reach == Reach::InPlace => {
            manifest.prompt.buckets.iter().chain([&longest]).map(|&prompt| manifest.extent(1, prompt)).collect()
        }
        None => (1..=manifest.batch).map(|rows| manifest.extent(rows, longest)).collect(),
    }
}

/// Row `row` of a tensor whose first dimension has `rows` rows.
fn part<T>(values: &mut [T], row: usize, rows: usize) -> &mut [T] {
    let len = values.len() / rows;
    &mut values[row * len..(row + 1) * len]
}
