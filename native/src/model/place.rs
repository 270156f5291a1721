//! Finds the device that a model runs on: the first on which every replica can be opened and computes the bundle's parity vectors.

use super::{Model, Placement, Refused};
use crate::driver;
use crate::engines;
use crate::flow::{Files, Network};
use crate::graph::{Copies, Reach, Turns};
use crate::model::Host;
use crate::parity::Vectors;
use crate::provider::{self, GpuOptions};
use crate::rehearsal::{self, Rehearsal};
use crate::replica::{Proof, Replica};
use crate::runtime::{self, Beside, Device, Providers, Threads};
use crate::status::{Failure, Status};
use crate::sync::lock;
use crate::thread;
use crate::weights::Weights;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long the replicas of a device may take for their first runs. A provider that compiles the graphs first takes minutes.
const PROOF_MAX: Duration = Duration::from_secs(600);

/// Why the replicas do not serve.
enum Unproved {
    /// The device cannot be used, or computes wrongly: a sentence.
    Refused(String),
    /// A first run does not end.
    Hangs,
}

impl From<String> for Unproved {
    fn from(reason: String) -> Unproved {
        Unproved::Refused(reason)
    }
}

/// What to run, and where.
pub(super) struct Wanted<'a> {
    /// Files of the graphs.
    pub(super) files: Files,
    /// What the graphs keep outside of them.
    pub(super) weights: Arc<Weights>,
    /// The word of the configuration.
    pub(super) device: &'a str,
    /// Threads inside one run.
    pub(super) threads: Threads,
    /// How it runs on a GPU.
    pub(super) gpu: GpuOptions,
    /// What every replica must compute; none on `echo`.
    pub(super) vectors: Option<Arc<Vectors>>,
}

impl Model {
    /// Starts the replicas on the first device that is right. Those refused before it are kept with their reasons.
    pub(super) fn place(self: &Arc<Model>, wanted: &Wanted<'_>, host: &Host) -> Result<(), Failure> {
        let fail = |text: String| Failure::new(Status::Load, text);
        if wanted.device == "echo" {
            let networks = self.running.iter().map(|_| None).collect();
            return match self.start(networks, None, PROOF_MAX) {
                Ok(_) => {
                    self.settle("echo".into(), Vec::new(), Vec::new(), Default::default());
                    Ok(())
                }
                Err(Unproved::Refused(reason)) => Err(fail(reason)),
                Err(Unproved::Hangs) => Err(fail("its thread does not start".into())),
            };
        }
        let candidates = (Device::candidates(wanted.device)).ok_or_else(|| {
            fail(format!("unknown device '{}', expected auto, cpu, cuda:N, tensorrt:N or webgpu:N", wanted.device))
        })?;
        let runtime = runtime::open(&host.runtime).map_err(fail)?;
        let mut refused: Vec<Refused> = Vec::new();
        for device in candidates {
            let played = rehearsal::of(&device.name()).is_some();
            let unfit =
                (wanted.device == "auto" && !played).then(|| self.unfit_for_auto(device, &wanted.gpu)).flatten();
            if let Some(reason) = unfit {
                refused.push(Refused { device: device.name(), reason });
                continue;
            }
            runtime.forget_logged();
            let most = rehearsal::of(&device.name()).and_then(|rehearsal| rehearsal.proof_ms_max);
            let most = most.map_or(PROOF_MAX, Duration::from_millis);
            let proved = (self.networks(runtime, wanted, device)).map_err(Unproved::Refused).and_then(|networks| {
                let traffic = networks.first().and_then(Option::as_ref).map(Network::traffic).unwrap_or_default();
                Ok((traffic, self.start(networks, wanted.vectors.clone(), most)?))
            });
            match proved {
                Ok((traffic, differences)) => {
                    self.settle(device.name(), refused, differences, traffic);
                    return Ok(());
                }
                Err(Unproved::Refused(reason)) => refused.push(Refused { device: device.name(), reason }),
                // Its thread may go on at any time, on the memory of this model: no other device is tried with it.
                Err(Unproved::Hangs) => {
                    let ms = most.as_millis();
                    return Err(fail(format!(
                        "{}: its first runs had not ended after {ms} ms; name another device, or correct this one",
                        device.name()
                    )));
                }
            }
        }
        let tried: Vec<String> =
            refused.iter().map(|Refused { device, reason }| format!("{device}: {reason}")).collect();
        Err(fail(format!("{}; name another device, or correct this one", tried.join(". "))))
    }

    fn settle(&self, device: String, refused: Vec<Refused>, parity: Vec<f32>, traffic: (usize, Copies)) {
        let slots = self.episodes.iter().map(|episodes| episodes.len()).sum();
        let (device_bytes, copies) = traffic;
        let replicas = self.running.len();
        let placement = Placement { device, refused, replicas, slots, parity, device_bytes, copies };
        // Set once: a model is placed once.
        let _ = self.placement.set(placement);
    }

    /// Why `auto` does not try the device; one that is named is tried.
    fn unfit_for_auto(&self, device: Device, options: &GpuOptions) -> Option<String> {
        provider::fits(device, options, device.reach()).err().or_else(|| device.unfit_for_auto())
    }

    /// What its sessions may run on, and with which options; the reason why the device cannot do what they say.
    fn providers(&self, runtime: &runtime::Runtime, options: &GpuOptions, device: Device) -> Result<Providers, String> {
        provider::fits(device, options, device.reach())?;
        let beside = match device {
            Device::WebGpu(_) => Beside::Light,
            _ if options.shapes_on_cpu => Beside::Shapes,
            _ => Beside::Nothing,
        };
        let turns = device.reach().turns();
        if rehearsal::of(&device.name()).is_some() {
            return Ok(Providers { chain: Vec::new(), beside, turns: Turns::Free });
        }
        let kept = match (device, &options.engine_cache) {
            (Device::TensorRt(id), Some(root)) => self.engines(runtime, options, root, id)?,
            _ => None,
        };
        Ok(Providers { chain: provider::chain(device, options, kept.as_deref()), beside, turns })
    }

    /// The folder of this bundle's engines for the GPU. None where GPU or TensorRT are not found: the provider then says why, in words
    /// of its own.
    fn engines(
        &self,
        runtime: &runtime::Runtime,
        options: &GpuOptions,
        root: &Path,
        id: i32,
    ) -> Result<Option<PathBuf>, String> {
        let (Some(gpu), Some(tensorrt)) = (driver::gpu(id), engines::tensorrt(runtime.folder())) else {
            return Ok(None);
        };
        let bundle = &self.manifest.export_id;
        let key = engines::Key { arch: &gpu.arch, tensorrt: &tensorrt, precision: options.precision, bundle };
        let folder = key.folder(root);
        engines::make(&folder).map(|()| Some(folder))
    }

    /// Each replica's network on the device.
    fn networks(
        &self,
        runtime: &runtime::Runtime,
        wanted: &Wanted<'_>,
        device: Device,
    ) -> Result<Vec<Option<Network>>, String> {
        let providers = self.providers(runtime, &wanted.gpu, device)?;
        let mut files = wanted.files.clone();
        let mut reach = device.reach();
        if let Some(Rehearsal { stale, hangs, graphs, .. }) = rehearsal::of(&device.name()) {
            reach = Reach::Rehearsed { stale, hangs };
            let names = &self.manifest.graphs;
            let replace = |file: &mut PathBuf, name: &str| graphs.get(name).map(|other| other.clone_into(file));
            replace(&mut files.prefill, &names.prefill.file);
            replace(&mut files.denoise, &names.denoise.file);
            if let (Some(file), Some(extend)) = (&mut files.extend, &names.extend) {
                replace(file, &extend.file);
            }
        }
        let replicas = self.running.len();
        let sessions = |threads: Threads| {
            files.open(threads, |path, threads| {
                runtime.session(path, threads, &providers, &wanted.weights).map(Arc::new)
            })
        };
        let shared = (providers.shares_sessions()).then(|| sessions(wanted.threads.shared(replicas))).transpose()?;
        let each = (0..replicas).map(|replica| {
            let own = shared.clone().map_or_else(|| sessions(wanted.threads), Ok)?;
            let terminator = self.running[replica].stopper().ok_or("it has no run options")?;
            Network::new(&self.manifest, own, reach, terminator, self.episodes.get(replica).cloned()).map(Some)
        });
        each.collect()
    }

    /// Starts one thread per replica and waits until all have proved their networks; the largest differences. After a refusal none
    /// runs any more; one that hangs is left behind.
    fn start(
        self: &Arc<Model>,
        networks: Vec<Option<Network>>,
        vectors: Option<Arc<Vectors>>,
        most: Duration,
    ) -> Result<Vec<f32>, Unproved> {
        let begun = Instant::now();
        let (prove, proofs) = mpsc::channel::<Proof>();
        let mut serves = Vec::new();
        let mut started = Ok(());
        for (index, network) in networks.into_iter().enumerate() {
            let replica = Replica::new(self.clone(), index, network);
            let (prove, vectors) = (prove.clone(), vectors.clone());
            let (serve, may_serve) = mpsc::channel();
            let work = move || replica.work(vectors, &prove, &may_serve);
            self.crew.started(index);
            match thread::spawn(&format!("tendon-replica-{index}"), work) {
                Ok(thread) => lock(&self.threads).push(thread),
                Err(text) => {
                    self.crew.ended(index);
                    started = Err(text);
                    break;
                }
            }
            serves.push(serve);
        }
        drop(prove);
        let outcome = started.map_err(Unproved::Refused).and_then(|()| {
            let mut worst: Vec<f32> = Vec::new();
            for _ in &serves {
                let sizes = match proofs.recv_timeout(most.saturating_sub(begun.elapsed())) {
                    Ok(proof) => proof?,
                    Err(RecvTimeoutError::Timeout) => return Err(Unproved::Hangs),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err("a replica ended during its first run".to_string().into());
                    }
                };
                worst.resize(sizes.len(), 0.0);
                worst.iter_mut().zip(sizes).for_each(|(worst, size)| *worst = worst.max(size));
            }
            Ok(worst)
        });
        if outcome.is_ok() {
            for serve in &serves {
                // Cannot fail: a replica that has proved its network waits for this.
                let _ = serve.send(());
            }
            return outcome;
        }
        drop(serves);
        if matches!(outcome, Err(Unproved::Hangs)) {
            lock(&self.threads).clear();
            return outcome;
        }
        for thread in lock(&self.threads).drain(..) {
            // Cannot fail: a replica catches its panics.
            let _ = thread.join();
        }
        outcome
    }
}
