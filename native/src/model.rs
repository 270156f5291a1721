//! A loaded model: what all its replicas share, and how it is loaded and ended.

use crate::chunk::Encoder;
use crate::episode::{Entry, Episodes, Pass};
use crate::flow::{Files, Network};
use crate::frame::{FrameSlots, FrameSpec};
use crate::graph::Terminator;
use crate::layout::{NO_SLOT, ObserveRequest};
use crate::manifest::{Graph, LoadPlan, Manifest, NormStats, Role};
use crate::noise;
use crate::pool::Completion;
use crate::prompt::Prompt;
use crate::queue::Queue;
use crate::replica::Replica;
use crate::run::RunSlots;
use crate::runtime::{self, Device};
use crate::status::{Failure, Status, Ticket};
use crate::sync::lock;
use crate::thread;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

/// The runs that a replica works on now, and the way to stop it.
pub struct Running {
    /// Result slots of the batch.
    pub batch: Mutex<Vec<u16>>,
    /// None on `echo`.
    pub terminator: Option<Arc<Terminator>>,
}

/// Where a model runs, and why not elsewhere.
#[derive(serde::Serialize, Clone)]
pub struct Placement {
    /// The device's word, for example `cpu` or `echo`.
    pub device: String,
    /// Devices tried before, with the reason of each refusal.
    pub refused: Vec<Refused>,
    /// Replicas that run.
    pub replicas: usize,
    /// Session slots over all replicas; 0 on a model without memory.
    pub slots: usize,
}

/// A device that was not to be had.
#[derive(serde::Serialize, Clone)]
pub struct Refused {
    /// The device's word.
    pub device: String,
    /// One sentence.
    pub reason: String,
}

/// A model with its queue, frame slots and replicas.
pub struct Model {
    /// What the engine needs of the manifest.
    pub manifest: Manifest,
    /// Slots for frames on their way.
    pub frames: Arc<FrameSlots>,
    /// Tokens of instruction and state.
    pub prompt: Prompt,
    /// Latent to rows.
    pub encoder: Encoder,
    /// Key of the noise.
    pub noise_key: [u32; 2],
    /// Result slots that wait: for any replica, or for the one that holds their session's memory.
    queues: Vec<Queue<u16>>,
    /// Memory of each replica; none on a model without it.
    pub episodes: Vec<Arc<Episodes>>,
    /// Tokens that a state tensor stands for: 1 where a graph has one.
    state_tokens: usize,
    /// One per replica.
    pub running: Vec<Running>,
    /// Set when the model goes: what is queued is cancelled.
    pub closing: AtomicBool,
    /// Where it runs.
    pub placement: Placement,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What loading needs of the engine.
pub struct Host {
    /// Path of ONNX Runtime.
    pub runtime: PathBuf,
    /// The engine's result slots.
    pub runs: Arc<RunSlots>,
    /// Frame slots per model.
    pub frames_max: usize,
    /// Whom to tell.
    pub done: Completion,
}

impl Model {
    /// Loads the model into the engine's place `place_index` and runs it once on every replica. Blocks: called on a thread
    /// of its own.
    pub fn load(plan: &str, place_index: usize, host: &Host) -> Result<Arc<Model>, Failure> {
        let fail = |text: String| Failure::new(Status::Load, text);
        let LoadPlan { mut manifest, files, device, replicas, threads, slots } =
            serde_json::from_str(plan).map_err(|error| Failure::new(Status::Misuse, format!("load plan: {error}")))?;
        manifest.check().map_err(fail)?;
        let path = |file: &str| {
            files.get(file).map(PathBuf::from).ok_or_else(|| fail(format!("the load plan has no path for {file}")))
        };
        let stats: NormStats = std::fs::read_to_string(path(&manifest.norm)?)
            .map_err(|error| fail(format!("{}: {error}", manifest.norm)))
            .and_then(|text| {
                serde_json::from_str(&text).map_err(|error| fail(format!("{}: {error}", manifest.norm)))
            })?;
        let tokenizer = path(&manifest.tokenizer)?;
        let prompt = Prompt::load(&mut manifest, &stats.state, &tokenizer).map_err(fail)?;
        let encoder = Encoder::new(&manifest, &stats.action).map_err(fail)?;
        let noise_key = noise::key(&manifest.export_id).ok_or_else(|| fail("export_id is not hexadecimal".into()))?;
        let frames =
            FrameSlots::new(FrameSpec::new(&manifest.image), place_index, frame_slots(&manifest, host.frames_max)?)
                .map_err(fail)?;
        let graphs = &manifest.graphs;
        let prefill = path(&graphs.prefill.file)?;
        let extend = graphs.extend.as_ref().map(|extend| path(&extend.file)).transpose()?;
        let denoise = path(&graphs.denoise.file)?;
        let graph_files = Files { prefill: &prefill, extend: extend.as_deref(), denoise: &denoise };
        let replicas = replicas.max(1) as usize;
        let episodes: Vec<Arc<Episodes>> = match manifest.memory {
            Some(facts) => (0..replicas)
                .map(|_| Episodes::new(&manifest, facts, slots).map(Arc::new))
                .collect::<Result<_, _>>()
                .map_err(fail)?,
            None => Vec::new(),
        };
        let (placement, networks) = place(&manifest, &graph_files, &device, replicas, &episodes, threads.max(1), host)?;
        let has_state = |graph: &Graph| graph.inputs.iter().any(|port| port.role == Role::State);
        let state_tokens =
            [Some(&graphs.prefill), graphs.extend.as_ref(), Some(&graphs.denoise)].into_iter().flatten().any(has_state);
        let terminators: Vec<_> =
            networks.iter().map(|made| made.as_ref().map(|(_, terminator)| terminator.clone())).collect();
        let model = Arc::new(Model {
            frames: Arc::new(frames),
            prompt,
            encoder,
            noise_key,
            queues: (0..episodes.len().max(1)).map(|_| Queue::new(host.runs.len())).collect(),
            episodes,
            state_tokens: usize::from(state_tokens),
            running: (terminators.into_iter())
                .map(|terminator| Running { batch: Mutex::new(Vec::with_capacity(manifest.batch)), terminator })
                .collect(),
            closing: AtomicBool::new(false),
            placement,
            threads: Mutex::new(Vec::new()),
            manifest,
        });
        let (ready, warmed) = mpsc::channel();
        for (index, made) in networks.into_iter().enumerate() {
            let network = made.map(|(network, _)| network);
            let replica = Replica::new(model.clone(), index, network, host.runs.clone(), host.done);
            let ready = ready.clone();
            match thread::spawn(&format!("tendon-replica-{index}"), move || replica.work(&ready)) {
                Ok(thread) => lock(&model.threads).push(thread),
                Err(text) => {
                    model.close();
                    return Err(fail(text));
                }
            }
        }
        drop(ready);
        for _ in 0..replicas {
            let warm = warmed.recv().unwrap_or_else(|_| Err("a replica ended during its first run".into()));
            if let Err(text) = warm {
                model.close();
                return Err(fail(text));
            }
        }
        Ok(model)
    }

    /// Where a run of this slot goes: its replica's index, and its slot there. None for a slot that is not there.
    fn home(&self, slot: u32) -> Option<(usize, usize)> {
        let per_replica = self.episodes.first()?.len();
        let (replica, slot) = (slot as usize / per_replica, slot as usize % per_replica);
        (replica < self.episodes.len()).then_some((replica, slot))
    }

    /// The replica's memory, and the slot in it.
    pub fn episode(&self, slot: u32) -> Option<(&Arc<Episodes>, usize)> {
        let (replica, slot) = self.home(slot)?;
        Some((&self.episodes[replica], slot))
    }

    /// The queue that a replica takes its runs from.
    pub fn queue(&self, replica: usize) -> &Queue<u16> {
        &self.queues[replica % self.queues.len()]
    }

    /// Prompt tokens of a run with an instruction of `text` tokens: image, text and state tokens.
    pub fn prompt_tokens(&self, pass: Pass, text: usize, state: Option<&[f32]>) -> usize {
        let images = match &self.manifest.memory {
            Some(memory) => (pass.kept + pass.written) * memory.tokens,
            None => self.manifest.frames_max() * self.manifest.image.tokens,
        };
        images + self.prompt.len(text, state) + self.state_tokens
    }

    /// Prompt tokens of an observation; without state values in its longest form, without a slot as a first one.
    pub fn measure(&self, request: &ObserveRequest, instruction: &str) -> Result<usize, Failure> {
        let misuse = |text: &str| Failure::new(Status::Misuse, text);
        let text = self.prompt.instruction(instruction).ok_or_else(too_long)?;
        let state = match request.state_len as usize {
            0 => None,
            len if len == self.manifest.state.columns.len() => Some(&request.state[..len]),
            _ => return Err(misuse("the state has not the model's number of values")),
        };
        let pass = match (request.slot, &self.manifest.memory) {
            (NO_SLOT, Some(memory)) => Pass { entry: Entry::First, kept: 0, written: memory.first },
            (NO_SLOT, None) => NO_MEMORY,
            (slot, _) => (self.episode(slot).and_then(|(episodes, slot)| episodes.plan(slot)))
                .ok_or_else(|| misuse("the model has no such slot"))?,
        };
        Ok(self.prompt_tokens(pass, text.len(), state))
    }

    /// Queues one observation. `self` is an `Arc` because the run keeps the model alive.
    pub fn observe(
        self: &Arc<Model>,
        request: &ObserveRequest,
        instruction: &str,
        runs: &RunSlots,
    ) -> Result<Ticket, Failure> {
        let misuse = |text: String| Failure::new(Status::Misuse, text);
        let home = match (request.slot, self.manifest.memory.is_some()) {
            (NO_SLOT, false) => None,
            (slot, true) => Some(self.home(slot).ok_or_else(|| misuse("the model has no such slot".into()))?),
            (_, false) => return Err(misuse("this model has no episode memory".into())),
        };
        let pass = home.and_then(|(replica, slot)| self.episodes[replica].plan(slot)).unwrap_or(NO_MEMORY);
        let frames = &self.manifest.frames;
        let expected =
            self.manifest.cameras.len() * if pass.entry == Entry::First { frames.first } else { frames.later };
        let count = request.frames_len as usize;
        if count != expected {
            return Err(misuse(format!("{count} frames, expected {expected}")));
        }
        if request.state_len as usize != self.manifest.state.columns.len() {
            return Err(misuse(format!(
                "{} state values, expected {}",
                request.state_len,
                self.manifest.state.columns.len()
            )));
        }
        let instruction = self.prompt.instruction(instruction).ok_or_else(too_long)?;
        let episode = home.map(|(replica, slot)| (self.episodes[replica].clone(), slot));
        if episode.as_ref().is_some_and(|(episodes, slot)| !episodes.take(*slot)) {
            return Err(misuse("another run has the slot".into()));
        }
        let give_back = |claimed: &[u32]| {
            self.frames.unclaim(claimed);
            if let Some((replica, slot)) = home {
                self.episodes[replica].settle(slot, false);
            }
        };
        let frames = &request.frames[..count];
        for (claimed, &frame) in frames.iter().enumerate() {
            if !self.frames.claim(Ticket(frame)) {
                give_back(&frames[..claimed]);
                return Err(misuse(format!("frame {claimed} is not decoded, already taken or stale")));
            }
        }
        let opened = runs.open(|job| {
            job.model = Some(self.clone());
            job.frames = request.frames;
            job.frames_len = count;
            job.state = request.state;
            job.instruction = Some(instruction);
            job.step = request.step;
            job.seed = u64::from(request.seed_high) << 32 | u64::from(request.seed_low);
            job.fail_step = request.fail_step;
            job.episode = episode;
            job.submitted = Instant::now();
        });
        let busy = |text: &str| {
            give_back(frames);
            Failure::new(Status::Busy, text)
        };
        let (ticket, index) = opened.ok_or_else(|| busy("every result slot is taken"))?;
        self.queue(home.map_or(0, |(replica, _)| replica)).push(request.turn, index).map_err(|index| {
            runs.withdraw(index);
            busy("the model's queue is full")
        })?;
        Ok(ticket)
    }

    /// Takes a run back that no replica has taken yet. False when one has.
    pub fn take_back(&self, index: u16, frames: &[u32]) -> bool {
        let waited = self.queues.iter().any(|queue| queue.remove(|&waiting| waiting == index).is_some());
        if waited {
            frames.iter().for_each(|&frame| self.frames.finish(Ticket(frame)));
        }
        waited
    }

    /// Ends the native run of the batch that holds `index` if everybody in it has been cancelled.
    pub fn stop_if_all_cancelled(&self, index: u16, cancelled: impl Fn(u16) -> bool) {
        for running in &self.running {
            let batch = lock(&running.batch);
            if batch.contains(&index)
                && batch.iter().all(|&other| cancelled(other))
                && let Some(terminator) = &running.terminator
            {
                terminator.set();
            }
        }
    }

    /// Cancels what is queued, ends the replicas and joins them.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.queues.iter().for_each(Queue::close);
        for running in &self.running {
            let batch = lock(&running.batch);
            if let (false, Some(terminator)) = (batch.is_empty(), &running.terminator) {
                terminator.set();
            }
        }
        for thread in lock(&self.threads).drain(..) {
            // A replica catches its panics; one that died all the same has nothing left to join.
            let _ = thread.join();
        }
    }
}

/// Frame slots of a model: as many as the engine was opened with, fewer where a large tensor would take more than
/// `FRAME_BYTES_MAX` for all of them.
fn frame_slots(manifest: &Manifest, most: usize) -> Result<usize, Failure> {
    let fit = FRAME_BYTES_MAX / (manifest.frame_values() * size_of::<f32>());
    if fit < manifest.frames_max() {
        return Err(Failure::new(Status::Load, "the frames of one observation take more memory than all frames may"));
    }
    Ok(fit.min(most))
}

/// Page-locked memory for the frames of one model: 1 GiB.
const FRAME_BYTES_MAX: usize = 1 << 30;

type Made = Option<(Network, Arc<Terminator>)>;

/// One network per replica on the first device that takes them all.
fn place(
    manifest: &Manifest,
    files: &Files<'_>,
    word: &str,
    replicas: usize,
    episodes: &[Arc<Episodes>],
    threads: u32,
    host: &Host,
) -> Result<(Placement, Vec<Made>), Failure> {
    let slots = episodes.iter().map(|episodes| episodes.len()).sum();
    let placement = |device: String, refused| Placement { device, refused, replicas, slots };
    if word == "echo" {
        return Ok((placement(word.into(), Vec::new()), (0..replicas).map(|_| None).collect()));
    }
    let fail = |text: String| Failure::new(Status::Load, text);
    let candidates = Device::candidates(word).ok_or_else(|| fail(format!("unknown device '{word}'")))?;
    let runtime = runtime::open(&host.runtime).map_err(fail)?;
    let mut refused: Vec<Refused> = Vec::new();
    for device in candidates {
        runtime.forget_logged();
        let network = |replica: usize| -> Result<Made, String> {
            let terminator = Terminator::new()?;
            let memory = episodes.get(replica).cloned();
            let network = Network::open(runtime, manifest, files, device, threads, &terminator, memory)?;
            Ok(Some((network, terminator)))
        };
        match (0..replicas).map(network).collect::<Result<Vec<_>, _>>() {
            Ok(networks) => return Ok((placement(device.name(), refused), networks)),
            Err(reason) => refused.push(Refused { device: device.name(), reason }),
        }
    }
    let tried: Vec<String> = refused.iter().map(|refused| format!("{}: {}", refused.device, refused.reason)).collect();
    Err(fail(tried.join("; ")))
}

/// How a run of a model without memory goes.
pub const NO_MEMORY: Pass = Pass { entry: Entry::First, kept: 0, written: 0 };

fn too_long() -> Failure {
    Failure::new(Status::TooLong, "the instruction is longer than the model's prompt")
}
