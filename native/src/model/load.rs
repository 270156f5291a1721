//! Loads a model: reads the bundle, opens one network per replica on the first device that works, and runs each once.

use super::{Model, Placement, Refused, Running};
use crate::chunk::Encoder;
use crate::episode::Episodes;
use crate::flow::{Files, Network};
use crate::frame::{FrameSlots, FrameSpec};
use crate::graph::Terminator;
use crate::manifest::{Graph, LoadPlan, Manifest, NormStats, Role};
use crate::noise;
use crate::pool::Completion;
use crate::prompt::Prompt;
use crate::queue::Queue;
use crate::replica::Replica;
use crate::run::RunSlots;
use crate::runtime::{self, Device};
use crate::status::{Failure, Status};
use crate::sync::lock;
use crate::thread;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};

/// What loading needs of the engine.
pub struct Host {
    /// Path of ONNX Runtime.
    pub runtime: PathBuf,
    /// The engine's result slots.
    pub runs: Arc<RunSlots>,
    /// Frame slots per model.
    pub frames_max: usize,
    /// Called with completions.
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
}

/// Frame slots of a model: as many as the engine was opened with, or fewer if their tensors would take more than
/// `FRAME_BYTES_MAX`.
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

/// One network per replica, on the first device on which all can be opened.
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
