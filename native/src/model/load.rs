//! Loads a model: reads the bundle and its parity vectors, then places it on devices (`placement.rs`).

use super::Model;
use super::placement::Target;
use crate::bundle::manifest::{Graph, Manifest, NormStats, Role};
use crate::bundle::prompt::Prompt;
use crate::bundle::weights::Weights;
use crate::core::active_batch::Running;
use crate::core::completion::Completions;
use crate::core::fault::status_of;
use crate::core::memory;
use crate::core::queue::Queue;
use crate::core::status::{Failure, Status};
use crate::core::sync::lock;
use crate::core::thread;
use crate::core::ticket::{Kind, Ticket};
use crate::episode::{Episodes, SessionLimits};
use crate::flow::Files;
use crate::flow::encoder::Encoder;
use crate::flow::noise;
use crate::image::frame::{FrameSlots, FrameSpec, Worker};
use crate::image::jpeg::{Decoder, Library};
use crate::model::devices::Devices;
use crate::model::inference::InferenceSlots;
use crate::model::parity::Vectors;
use crate::model::plan::LoadPlan;
use crate::model::stages::{Exam, Stages, StagesPlan};
use crate::model::watchdog::Crew;
use crate::ort::runtime::{self, Threads};
use crate::ort::terminator::Terminator;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub struct Host {
    pub runtime: PathBuf,
    pub jpeg: Arc<Library>,
    pub inferences: Arc<InferenceSlots>,
    pub frames_max: usize,
    pub completions: Arc<Completions>,
    pub devices: Devices,
}

impl Model {
    /// Loads the model of `ticket` and proves it on every replica. Blocks, so it has its own thread; soon after `given_up` is set it ends.
    pub fn load(plan: &str, ticket: Ticket, host: &Host, given_up: &Arc<AtomicBool>) -> Result<Arc<Model>, Failure> {
        let mut refused = Vec::new();
        loop {
            let (model, target) = Model::read(plan, ticket, host, given_up)?;
            match model.place(&target, host, refused)? {
                None => return model.watched(!target.weights.is_empty()),
                Some(more) => refused = more,
            }
        }
    }

    /// Reads the bundle. No replica runs yet.
    fn read(
        plan: &str,
        ticket: Ticket,
        host: &Host,
        given_up: &Arc<AtomicBool>,
    ) -> Result<(Arc<Model>, Arc<Target>), Failure> {
        let fail = |text: String| Failure::new(status_of(&text, Status::Load), text);
        let bad = |text: String| Failure::new(status_of(&text, Status::BadBundle), text);
        let LoadPlan {
            mut manifest,
            files,
            device,
            replicas,
            threads,
            slots,
            parked_bytes_max,
            inference_ms_max,
            counted,
            on_processor,
            gpu,
            stages,
        } = serde_json::from_str(plan).map_err(|error| Failure::new(Status::Misuse, format!("load plan: {error}")))?;
        manifest.check().map_err(bad)?;
        let path = |file: &str| {
            files.get(file).map(PathBuf::from).ok_or_else(|| fail(format!("the load plan has no path for {file}")))
        };
        let stats: NormStats = std::fs::read_to_string(path(&manifest.norm)?)
            .map_err(|error| bad(format!("{}: {error}", manifest.norm)))
            .and_then(|text| serde_json::from_str(&text).map_err(|error| bad(format!("{}: {error}", manifest.norm))))?;
        let tokenizer = manifest.tokenizer.as_deref().map(path).transpose()?;
        let prompt = Prompt::load(&mut manifest, &stats.state, tokenizer.as_deref()).map_err(bad)?;
        let encoder = Encoder::new(&manifest, &stats.action).map_err(bad)?;
        let noise_key = noise::key(&manifest.export_id).ok_or_else(|| bad("export_id is not hexadecimal".into()))?;
        let place_index = ticket.index(Kind::Model).expect("a model's ticket");
        let slots_max = if counted { host.frames_max } else { 2 * manifest.frames_max() };
        let count = frame_slots(&manifest, slots_max)?;
        let frames = FrameSlots::new(FrameSpec::of(&manifest), place_index, count, counted).map_err(fail)?;
        let graphs = &manifest.graphs;
        let prefill = path(&graphs.prefill.file)?;
        let extend = graphs.extend.as_ref().map(|extend| path(&extend.file)).transpose()?;
        let denoise = graphs.denoise.as_ref().map(|denoise| path(&denoise.file)).transpose()?;
        let graph_files = Files { prefill, extend, denoise };
        let replicas = replicas.max(1) as usize;
        let asked =
            SessionLimits { places: slots, parked_bytes_max: parked_bytes_max.map(|bytes| bytes / replicas as u64) };
        let episodes: Vec<Arc<Episodes>> = match manifest.memory {
            Some(facts) => (0..replicas)
                .map(|_| Episodes::new(&manifest, facts, asked).map(Arc::new))
                .collect::<Result<_, _>>()
                .map_err(bad)?,
            None => Vec::new(),
        };
        let has_state = |graph: &Graph| graph.inputs.iter().any(|port| port.role == Role::State);
        let state_tokens = [Some(&graphs.prefill), graphs.extend.as_ref(), graphs.denoise.as_ref()]
            .into_iter()
            .flatten()
            .any(has_state);
        let echo = device.is_echo();
        let exam = if echo { None } else { Some(Arc::new(exam(&manifest, &files, stages, host).map_err(bad)?)) };
        if !echo {
            runtime::open(&host.runtime).map_err(fail)?;
        }
        let weights = if echo { Weights::none() } else { Weights::open(&manifest, &files).map_err(bad)? };
        let running = (0..replicas)
            .map(|_| {
                let terminator = if echo { None } else { Some(Terminator::new()?) };
                Ok(Running::new(manifest.batch, terminator))
            })
            .collect::<Result<_, String>>()
            .map_err(fail)?;
        let model = Arc::new(Model {
            frames: Arc::new(frames),
            prompt,
            encoder,
            noise_key,
            queues: (0..episodes.len().max(1)).map(|_| Queue::new(host.inferences.len())).collect(),
            episodes,
            state_tokens: usize::from(state_tokens),
            running,
            inference_max: Duration::from_millis(inference_ms_max),
            crew: Crew::new(replicas),
            ticket,
            inferences: host.inferences.clone(),
            completions: host.completions.clone(),
            given_up: given_up.clone(),
            closing: AtomicBool::new(false),
            placement: OnceLock::new(),
            hardware: OnceLock::new(),
            decode_queues: OnceLock::new(),
            leaving: (0..replicas).map(|_| AtomicBool::new(false)).collect(),
            threads: Mutex::new(Vec::new()),
            watchdog: Mutex::new(None),
            manifest,
        });
        let threads = Threads::new(threads, device.on_processor(replicas).max(on_processor));
        let target = Target { files: graph_files, weights: Arc::new(weights), device, threads, gpu, exam };
        Ok((model, Arc::new(target)))
    }

    /// The model with its watchdog, once it is placed.
    fn watched(self: Arc<Model>, is_large: bool) -> Result<Arc<Model>, Failure> {
        if is_large {
            // The first inferences of a large model leave hundreds of megabytes free in the heap.
            memory::trim_heap();
        }
        let watched = self.clone();
        match thread::spawn("tendon-watchdog", move || watched.watch()) {
            Ok(thread) => *lock(&self.watchdog) = Some(thread),
            Err(text) => {
                self.close();
                return Err(Failure::new(Status::Load, text));
            }
        }
        Ok(self)
    }
}

/// Frame slots of a model: as many as the engine was opened with, fewer if their tensors take more than `FRAME_BYTES_MAX`.
fn frame_slots(manifest: &Manifest, most: usize) -> Result<usize, Failure> {
    let fit = FRAME_BYTES_MAX / FrameSpec::of(manifest).bytes();
    if fit < manifest.frames_max() {
        return Err(Failure::new(
            Status::OutOfMemory,
            "the frames of one observation take more memory than all frames may",
        ));
    }
    Ok(fit.min(most))
}

/// Bytes of page-locked memory for the frames of one model.
const FRAME_BYTES_MAX: usize = 1 << 30;

/// The bundle's parity vectors, or the cases of the load plan, with decoded frames.
fn exam(
    manifest: &Manifest,
    files: &HashMap<String, String>,
    stages: Option<StagesPlan>,
    host: &Host,
) -> Result<Exam, String> {
    let mut worker = Worker::new(Decoder::new(&host.jpeg)?)?;
    if let Some(plan) = stages {
        return Stages::read(manifest, plan, &mut worker).map(Exam::Stages);
    }
    let path =
        |file: &str| files.get(file).map(PathBuf::from).ok_or_else(|| format!("the load plan has no path for {file}"));
    Vectors::read(manifest, path, &mut worker).map(Exam::Parity)
}
