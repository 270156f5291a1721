//! A loaded model: what all its replicas share, and how it is loaded and ended.

use crate::chunk::Encoder;
use crate::frame::{FrameSlots, FrameSpec};
use crate::graph::Terminator;
use crate::layout::{NO_SLOT, ObserveRequest};
use crate::manifest::{LoadPlan, Manifest, NormStats};
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
use std::path::{Path, PathBuf};
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
    /// Result slots that wait for a replica.
    pub queue: Queue<u16>,
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
        let LoadPlan { mut manifest, files, device, replicas, threads } =
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
        let graphs = (path(&manifest.graphs.prefill.file)?, path(&manifest.graphs.denoise.file)?);
        let replicas = replicas.max(1) as usize;
        let (placement, networks) = place(&manifest, (&graphs.0, &graphs.1), &device, replicas, threads.max(1), host)?;
        let terminators: Vec<_> =
            networks.iter().map(|made| made.as_ref().map(|(_, terminator)| terminator.clone())).collect();
        let model = Arc::new(Model {
            frames: Arc::new(frames),
            prompt,
            encoder,
            noise_key,
            queue: Queue::new(host.runs.len()),
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

    /// Tokens of an observation with this instruction and `frames` frames; None when the instruction does not fit.
    pub fn measure(&self, instruction: &str, frames: usize) -> Option<usize> {
        let text = self.prompt.instruction(instruction)?;
        Some(frames * self.manifest.image.tokens + self.prompt.len(text.len()))
    }

    /// Queues one observation. `self` is an `Arc` because the run keeps the model alive.
    pub fn observe(
        self: &Arc<Model>,
        request: &ObserveRequest,
        instruction: &str,
        runs: &RunSlots,
    ) -> Result<Ticket, Failure> {
        let misuse = |text: String| Failure::new(Status::Misuse, text);
        let count = request.frames_len as usize;
        if count != self.manifest.frames_max() {
            return Err(misuse(format!("{count} frames, expected {}", self.manifest.frames_max())));
        }
        if request.state_len as usize != self.manifest.state.columns.len() {
            return Err(misuse(format!(
                "{} state values, expected {}",
                request.state_len,
                self.manifest.state.columns.len()
            )));
        }
        if request.slot != NO_SLOT {
            return Err(misuse("this model has no episode memory".into()));
        }
        let Some(instruction) = self.prompt.instruction(instruction) else {
            return Err(Failure::new(Status::TooLong, "the instruction is longer than the model's prompt"));
        };
        let frames = &request.frames[..count];
        for (claimed, &frame) in frames.iter().enumerate() {
            if !self.frames.claim(Ticket(frame)) {
                self.frames.unclaim(&frames[..claimed]);
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
            job.submitted = Instant::now();
        });
        let busy = |text: &str| {
            self.frames.unclaim(frames);
            Failure::new(Status::Busy, text)
        };
        let (ticket, index) = opened.ok_or_else(|| busy("every result slot is taken"))?;
        self.queue.push(index).map_err(|index| {
            runs.withdraw(index);
            busy("the model's queue is full")
        })?;
        Ok(ticket)
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
        self.queue.close();
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

type Made = Option<(crate::flow::Network, Arc<Terminator>)>;

/// One network per replica on the first device that takes them all.
fn place(
    manifest: &Manifest,
    graphs: (&Path, &Path),
    word: &str,
    replicas: usize,
    threads: u32,
    host: &Host,
) -> Result<(Placement, Vec<Made>), Failure> {
    if word == "echo" {
        let placement = Placement { device: word.into(), refused: Vec::new() };
        return Ok((placement, (0..replicas).map(|_| None).collect()));
    }
    let fail = |text: String| Failure::new(Status::Load, text);
    let candidates = Device::candidates(word).ok_or_else(|| fail(format!("unknown device '{word}'")))?;
    let runtime = runtime::open(&host.runtime).map_err(fail)?;
    let mut refused: Vec<Refused> = Vec::new();
    for device in candidates {
        runtime.forget_logged();
        let network = || -> Result<Made, String> {
            let terminator = Terminator::new()?;
            let network = crate::flow::Network::open(runtime, manifest, graphs, device, threads, &terminator)?;
            Ok(Some((network, terminator)))
        };
        match (0..replicas).map(|_| network()).collect::<Result<Vec<_>, _>>() {
            Ok(networks) => return Ok((Placement { device: device.name(), refused }, networks)),
            Err(reason) => refused.push(Refused { device: device.name(), reason }),
        }
    }
    let tried: Vec<String> = refused.iter().map(|refused| format!("{}: {}", refused.device, refused.reason)).collect();
    Err(fail(tried.join("; ")))
}
