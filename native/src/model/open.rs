//! Opens the networks of a model's replicas on their devices. Replicas on a CPU share their sessions.

use super::Model;
use super::placement::{ProofFailure, Target};
use crate::bundle::manifest::Graph;
use crate::bundle::onnx;
use crate::core::device::Device;
use crate::core::dtype::Dtype;
use crate::core::rehearsal::{self, Rehearsal};
use crate::episode::Episodes;
use crate::flow::{Files, Graphs, Network, Whole, memory_resides, variants};
use crate::gpu::driver;
use crate::gpu::stream::Stream;
use crate::ort::driver_device::{self, DriverDevice};
use crate::ort::engine_cache;
use crate::ort::home::Reach;
use crate::ort::provider::{self, GpuOptions, Kind};
use crate::ort::runtime::{Beside, Providers, Runtime, Threads};
use crate::ort::session::{GraphSession, Tally};
use crate::ort::weight_store::{DeviceWeights, Store};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) struct Opening<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) wanted: &'a Target,
    /// Why the steps of a flow are run one by one; None if a flow is run as one graph where that is possible.
    pub(super) apart: Option<&'a str>,
    /// The weights on the devices, which are kept for a second try.
    pub(super) copied: &'a RefCell<Copied>,
}

/// The weights on devices, and how many bytes this load has copied there.
#[derive(Default)]
pub(super) struct Copied {
    stores: Vec<Arc<Store>>,
    bytes: usize,
    /// Whether a flow was one graph on a device.
    pub(super) has_whole: bool,
}

/// The network of a replica, and why its device runs the steps of a flow one by one. None if it does not, and on a CPU, where nothing waits
/// between them.
pub(super) type OpenNetwork = (Network, Option<String>);

struct Site {
    device: Device,
    reach: Reach,
    /// The files of the graphs.
    files: Files,
    /// All steps of a flow as one graph, or why they are not. Both None on a CPU.
    whole: Option<Whole>,
    apart: Option<String>,
    device_weights: DeviceWeights,
    /// None if each replica opens its own.
    sessions: Option<Graphs<Arc<GraphSession>>>,
}

impl Model {
    /// The network of each replica on its device, and how the weights lie there.
    pub(super) fn networks(
        &self,
        opening: &Opening<'_>,
        devices: &[Device],
    ) -> Result<(Vec<OpenNetwork>, Tally), ProofFailure> {
        // Memory on a device that was tried before may be needed now.
        self.episodes.iter().for_each(|episodes| episodes.lie_nowhere());
        let mut sites: Vec<Site> = Vec::new();
        let mut tally = Tally::default();
        let mut networks = Vec::with_capacity(devices.len());
        for (replica, &device) in devices.iter().enumerate() {
            let refused = |reason: String| ProofFailure::Refused(replica, reason);
            if self.closing.load(Ordering::Acquire) {
                return Err(refused("its load was left".into()));
            }
            // This thread copies the weights, and makes the memory of sessions.
            let _entered = driver_device::enter(device);
            let known = sites.iter().position(|site| site.device == device);
            let at = match known {
                Some(at) => at,
                None => {
                    let together = devices.iter().filter(|&&other| other == device).count();
                    sites.push(self.site(opening, device, together, &mut tally).map_err(refused)?);
                    sites.len() - 1
                }
            };
            let network = self.network(opening, &sites[at], replica, &mut tally).map_err(refused)?;
            networks.push((network, sites[at].apart.clone()));
        }
        tally.copied_bytes = opening.copied.borrow().bytes;
        Ok((networks, tally))
    }

    fn network(
        &self,
        opening: &Opening<'_>,
        site: &Site,
        replica: usize,
        tally: &mut Tally,
    ) -> Result<Network, String> {
        let driver_device = self.driver_device(opening, site.device)?;
        let own = || self.sessions(opening, site, opening.wanted.threads, driver_device.stream());
        let sessions = site.sessions.clone().map_or_else(own, Ok)?;
        let Graphs { prefill, extend, denoise } = &sessions;
        [Some(prefill), extend.as_ref(), denoise.as_ref()].into_iter().flatten().for_each(|session| tally.add(session));
        let terminator = self.running[replica].stopper().ok_or("it has no run options")?;
        let episodes = self.episodes.get(replica).cloned();
        if let Some(episodes) = &episodes {
            self.remember(opening, site, &sessions, episodes)?;
        }
        let of = (&self.manifest, &self.encoder);
        Network::new(
            of,
            driver_device,
            (sessions, site.whole.as_ref()),
            site.reach,
            terminator,
            episodes,
            opening.wanted.shown().is_some(),
        )
    }

    /// The driver for a replica on the device. It is empty where ONNX Runtime lacks libraries, and so refuses the device itself.
    fn driver_device(
        &self,
        Opening { runtime, wanted, .. }: &Opening<'_>,
        device: Device,
    ) -> Result<DriverDevice, String> {
        let providers = self.providers(runtime, &wanted.gpu, device)?;
        let lacks = providers.chain.iter().any(|provider| runtime.ready(provider).is_err());
        Ok(if lacks { DriverDevice::default() } else { DriverDevice::of(device, &wanted.gpu) })
    }

    /// Places the session memory of a replica where its graphs compute, or on the host with the reason.
    fn remember(
        &self,
        opening: &Opening<'_>,
        site: &Site,
        sessions: &Graphs<Arc<GraphSession>>,
        episodes: &Episodes,
    ) -> Result<(), String> {
        let Reach::Copied(home) = site.reach else { return episodes.lie_on_host(None) };
        let there = memory_resides(&self.manifest.graphs, sessions, (&site.files, site.whole.as_ref()), home)
            .and_then(|()| episodes.lie_on(home, |model| opening.runtime.program(site.device, model)));
        there.or_else(|reason| episodes.lie_on_host(Some(reason)))
    }

    /// The site of a device on which `together` replicas run.
    fn site(&self, opening: &Opening<'_>, device: Device, together: usize, tally: &mut Tally) -> Result<Site, String> {
        let Opening { runtime, wanted, apart, .. } = *opening;
        if device == Device::Cpu && self.manifest.compute == Some(Dtype::Bf16) {
            return Err(
                "its graphs compute in bf16, for which ONNX Runtime has no kernels on a CPU: f16 is computed there"
                    .into(),
            );
        }
        let (mut files, mut reach) = (wanted.files.clone(), Reach::of(device));
        let mut alone = false;
        if let Some(Rehearsal { playing, graphs, driver, .. }) = rehearsal::of(&device.name()) {
            // Each replica has a stream, as on a GPU.
            alone = driver.is_some();
            reach = Reach::Played(playing);
            let names = &self.manifest.graphs;
            let replace = |file: &mut PathBuf, name: &str| graphs.get(name).map(|other| other.clone_into(file));
            replace(&mut files.prefill, &names.prefill.file);
            for (file, graph) in [(&mut files.extend, &names.extend), (&mut files.denoise, &names.denoise)] {
                if let (Some(file), Some(graph)) = (file, graph) {
                    replace(file, &graph.file);
                }
            }
        }
        // A CPU reads and writes in place: nothing waits between two steps. A model without a flow has none.
        let step = files.denoise.as_deref().zip(self.manifest.graphs.denoise.as_ref());
        let (whole, apart) = match (reach, step, apart) {
            (Reach::InPlace, ..) | (_, None, _) => (None, None),
            (.., Some(reason)) => (None, Some(reason.into())),
            (_, Some((path, Graph { file, .. })), None) => match Whole::of(&self.manifest, path) {
                Ok(whole) => (Some(whole), None),
                Err(reason) => (None, Some(format!("{file} cannot become one graph: {reason}"))),
            },
        };
        opening.copied.borrow_mut().has_whole |= whole.is_some();
        let providers = self.providers(runtime, &wanted.gpu, device)?;
        let device_weights = device_weights(opening, (device, reach), (&files, &providers), tally);
        let mut site = Site { device, reach, files, whole, apart, device_weights, sessions: None };
        if !alone && providers.shares_sessions() {
            site.sessions = Some(self.sessions(opening, &site, wanted.threads.shared(together), None)?);
        }
        Ok(site)
    }

    /// A session of each graph on the device.
    fn sessions(
        &self,
        Opening { runtime, wanted, .. }: &Opening<'_>,
        Site { device, reach, files, whole, device_weights, .. }: &Site,
        threads: Threads,
        stream: Option<&Arc<Stream>>,
    ) -> Result<Graphs<Arc<GraphSession>>, String> {
        let providers = self.providers(runtime, &wanted.gpu, *device)?.on_stream(stream);
        if let Some(ms) = rehearsal::of(&device.name()).and_then(|rehearsal| rehearsal.opens_ms) {
            std::thread::sleep(Duration::from_millis(ms));
        }
        let graphs = &self.manifest.graphs;
        let variants = variants(&self.manifest, *reach, self.episodes.first().map(|_| 1));
        files.open(threads.on(*device), whole.as_ref(), |graph, threads| {
            let _entered = driver_device::enter(*device);
            let shown =
                wanted.shown().filter(|_| files.prefill == graph.0).and_then(|stages| stages.prefill.as_deref());
            let inputs = match &graphs.extend {
                Some(extend) if files.extend.as_deref() == Some(graph.0) => &extend.inputs,
                _ => match (&graphs.denoise, whole) {
                    (Some(_), Some(whole)) if files.denoise.as_deref() == Some(graph.0) => &whole.spec.inputs,
                    (Some(denoise), _) if files.denoise.as_deref() == Some(graph.0) => &denoise.inputs,
                    _ => &graphs.prefill.inputs,
                },
            };
            let shapes = provider::profile(inputs, &variants);
            let providers = providers.each(|provider| provider.clone().for_shapes(shapes.clone()));
            runtime.session((graph.0, graph.1.or(shown)), threads, &providers, device_weights).map(Arc::new)
        })
    }

    /// The providers of its sessions, or the reason why the device cannot do what the options say.
    fn providers(&self, runtime: &Runtime, options: &GpuOptions, device: Device) -> Result<Providers, String> {
        provider::fits(device, options)?;
        let beside = match device {
            Device::WebGpu(_) => Beside::Light,
            _ => Beside::Shapes,
        };
        let turns = Reach::of(device).turns();
        if rehearsal::of(&device.name()).is_some() {
            return Ok(Providers { chain: Vec::new(), beside, turns, stream: None });
        }
        let kept = match (device, &options.engine_cache) {
            (Device::TensorRt(id), Some(root)) => self.engines(runtime, options, root, id)?,
            _ => None,
        };
        Ok(Providers { chain: provider::chain(device, options, kept.as_deref()), beside, turns, stream: None })
    }

    /// The folder of this bundle's engines for the GPU. None if the GPU or TensorRT is not found: the provider then says why.
    fn engines(
        &self,
        runtime: &Runtime,
        options: &GpuOptions,
        root: &Path,
        id: i32,
    ) -> Result<Option<PathBuf>, String> {
        let (Some(gpu), Some(tensorrt)) = (driver::gpu(id), engine_cache::tensorrt(runtime.folder())) else {
            return Ok(None);
        };
        let bundle = &self.manifest.export_id;
        let key = engine_cache::Key { arch: &gpu.arch, tensorrt: &tensorrt, precision: options.precision, bundle };
        let folder = key.folder(root);
        engine_cache::make(&folder).map(|()| Some(folder))
    }
}

/// The weights for the sessions on a device: in its memory, once. If that fails, each session copies them there.
fn device_weights(
    Opening { runtime, wanted, copied, .. }: &Opening<'_>,
    (device, reach): (Device, Reach),
    (Files { prefill, extend, denoise }, providers): (&Files, &Providers),
    tally: &mut Tally,
) -> DeviceWeights {
    let weights = wanted.weights.clone();
    let (Reach::Copied(home), Some(first), false) = (reach, providers.chain.first(), weights.is_empty()) else {
        return DeviceWeights { weights, store: None };
    };
    let graphs = [Some(&**prefill), extend.as_deref(), denoise.as_deref()];
    let graphs: Vec<&Path> = graphs.into_iter().flatten().collect();
    let made = match first.kind {
        Kind::TensorRt => Err("TensorRT builds them into its engines".into()),
        Kind::Cuda => Store::of(&weights, &graphs, home, || runtime.alone(device, &onnx::bytes_through())),
        Kind::WebGpu => Store::of(&weights, &graphs, home, || runtime.alone(device, &onnx::one_relu())),
    };
    match made {
        Ok((store, bytes)) => {
            let mut copied = copied.borrow_mut();
            copied.bytes += bytes;
            copied.stores.push(store.clone());
            DeviceWeights { weights, store: Some(store) }
        }
        Err(reason) => {
            tally.reason.get_or_insert(reason);
            DeviceWeights { weights, store: None }
        }
    }
}
