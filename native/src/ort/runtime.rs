//! ONNX Runtime, opened once by path, and one session per graph on the wanted device.

mod error_text;
mod logged;
mod on_stream;
mod preload;
mod registered;
mod small_graphs;
mod with_weights;

use self::error_text::plain;
use self::with_weights::{CopyLog, frugal, with_weights};
use crate::core::device::Device;
use crate::gpu::stream::Stream;
use crate::ort::assignment;
use crate::ort::assignment::RECORD;
use crate::ort::environment;
use crate::ort::home::{Home, Reach};
use crate::ort::provider::{CAPTURE, Kind, PROFILE, Provider};
use crate::ort::session::GraphSession;
use crate::ort::session::OpenSession;
use crate::ort::turn::Turns;
use crate::ort::webgpu;
use crate::ort::weight_store::DeviceWeights;
use ort::AsPointer;
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Threads inside one run of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub reader: u32,
    pub step: u32,
}

impl Threads {
    /// The threads of the configuration, or those that fit this machine and `replicas` that run at the same time.
    ///
    /// A reader gets the cores beside that of the event loop and that of a decode. Its threads wait for each other at every operator, so
    /// one without a core delays all. Of two cores it gets one: with both it takes two thirds of the time on an idle machine, and twice the
    /// time on a busy one. The operators of a step are so short that a second thread saves a sixth of the time and costs a third more of
    /// the processor's.
    pub fn new(configured: Option<u32>, replicas: usize) -> Threads {
        if let Some(threads) = configured {
            return Threads { reader: threads.max(1), step: threads.max(1) };
        }
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Threads { reader: Threads::of_reader(cores, replicas), step: 1 }
    }

    /// The threads of a session on the device. On a GPU the processor has shapes to compute, and launches.
    pub fn on(self, device: Device) -> Threads {
        if device == Device::Cpu { self } else { Threads { reader: 1, step: 1 } }
    }

    /// The threads of a session that `replicas` share: the threads that start a run, and as many others as each would have alone.
    pub fn shared(self, replicas: usize) -> Threads {
        let all = |own: u32| 1 + (own - 1) * replicas as u32;
        Threads { reader: all(self.reader), step: all(self.step) }
    }

    fn of_reader(cores: usize, replicas: usize) -> u32 {
        (cores.saturating_sub(2) / replicas).clamp(1, THREADS_MAX) as u32
    }
}

/// Threads at most: the matrices of one observation keep no more busy.
const THREADS_MAX: usize = 8;

/// How long, in microseconds, a thread of a run looks for its next part before it sleeps. The next operator follows within this time, and
/// waking a thread would take as long as its part. After the run it sleeps at once.
const SPIN_US: &str = "100";

/// The configuration entry for the folder of the weight files of a graph in memory.
const WEIGHTS_BESIDE: &str = "session.model_external_initializers_file_folder_path";

/// A part of ONNX Runtime's text about shapes of a graph that TensorRT has in several parts: inner shapes are missing.
const NOT_PROFILED: &str = "explicitly specify profiles";

/// A part of ONNX Runtime's text about a graph that it does not capture.
const NOT_CAPTURED: &str = "cannot use the graph capture feature";

/// The runtime of this process. It is opened once; later paths are ignored.
pub struct Runtime {
    environment: ort::environment::Environment,
    folder: PathBuf,
}

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Opens the library at `path`, the first time it is called.
pub fn open(path: &Path) -> Result<&'static Runtime, String> {
    RUNTIME.get_or_init(|| Runtime::new(path)).as_ref().map_err(Clone::clone)
}

pub struct Providers {
    /// The providers, the preferred one first; empty for the CPU.
    pub chain: Vec<Provider>,
    pub beside: Beside,
    pub turns: Turns,
    pub stream: Option<Arc<Stream>>,
}

impl Providers {
    /// Whether the replicas of a model share sessions, and so also packed and folded weights. ONNX Runtime's CPU provider runs one session
    /// on many threads at once, each with its own memory; a GPU's has one stream.
    pub fn shares_sessions(&self) -> bool {
        self.chain.is_empty()
    }

    /// The memory that its sessions compute in.
    fn home(&self) -> Home {
        self.turns.device().and_then(|device| Reach::of(device).home()).unwrap_or(Home::HOST)
    }

    fn without(&self, keys: &[&str]) -> Providers {
        self.each(|provider| provider.without(keys))
    }

    /// The same with other options.
    pub fn each(&self, change: impl Fn(&Provider) -> Provider) -> Providers {
        let chain = self.chain.iter().map(change).collect();
        Providers { chain, beside: self.beside, turns: self.turns, stream: self.stream.clone() }
    }
}

/// The nodes of a device's graph that may run on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// None.
    Nothing,
    Shapes,
    /// Small nodes outside of the layers that WebGPU has no kernels for (`ort/webgpu.rs`).
    Light,
}

impl Runtime {
    fn new(path: &Path) -> Result<Runtime, String> {
        let environment = ort::init_from(path)
            .map_err(|error| format!("ONNX Runtime cannot be opened: {error}"))?
            .with_name("tendon")
            .with_telemetry(false)
            .with_logger(Arc::new(|level, _category, _id, _place, message| {
                if matches!(level, LogLevel::Error | LogLevel::Fatal) {
                    logged::keep(message);
                }
            }))
            .build()
            .map_err(|error| format!("ONNX Runtime cannot be started: {error}"))?;
        environment.set_log_level(LogLevel::Error);
        // SAFETY: the runtime is kept in a static.
        unsafe { environment::set(environment.ptr().cast_mut()) };
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        Ok(Runtime { environment, folder })
    }

    /// A session of the graph at `path`, or of `made`, which was made of it, with these providers and weights; the error is the reason.
    /// Without providers it runs on the CPU.
    pub fn session(
        &self,
        (path, made): (&Path, Option<&[u8]>),
        threads: u32,
        providers: &Providers,
        weights: &DeviceWeights,
    ) -> Result<GraphSession, String> {
        let captures = providers.chain.iter().any(Provider::captures);
        // Both graphs have the same weights.
        let initializers = if weights.weights.is_empty() { None } else { Some(Arc::new(weights.of_graph(path)?)) };
        let refused = CopyLog::default();
        let commit = |mut builder: SessionBuilder| {
            if let Some(initializers) = &initializers {
                builder = with_weights(builder, initializers)?;
                let kept = (providers.stream.clone(), initializers.clone());
                builder = match &providers.chain[..] {
                    [] => Self::keeping(kept, frugal(builder, initializers)?)?,
                    _ => refused.log_to(builder, kept)?,
                };
            }
            match made {
                None => builder.commit_from_file(path),
                Some(model) => {
                    // A folded weight is read from the file once more.
                    if let (Some(_), Some(folder)) = (&initializers, path.parent()) {
                        builder = builder.with_config_entry(WEIGHTS_BESIDE, folder.to_string_lossy())?;
                    }
                    builder.commit_from_memory(model)
                }
            }
        };
        let (plain, without_profiles) = (providers.without(&CAPTURE), providers.without(&PROFILE));
        let (opened, is_captured) = match self.opened(threads, providers, commit) {
            // Nodes on the CPU cannot be captured, and a replay would not read or write values there. Kernels are then launched one by one.
            Err(text) if captures && text.contains(NOT_CAPTURED) => (self.opened(threads, &plain, commit)?, false),
            Ok(opened) if captures && providers.home().is_left(opened.get(), (path, made))? => {
                drop(opened);
                (self.opened(threads, &plain, commit)?, false)
            }
            Err(text) if text.contains(NOT_PROFILED) && without_profiles.chain != providers.chain => {
                return self.session((path, made), threads, &without_profiles, weights);
            }
            opened => (opened?, captures),
        };
        if !providers.chain.is_empty() {
            match providers.beside {
                Beside::Nothing => {}
                Beside::Shapes => assignment::check(opened.get(), path, made)?,
                Beside::Light => webgpu::admit(opened.get())?,
            }
        }
        let own_bytes = initializers.map_or(0, |initializers| refused.own_bytes(&initializers, weights, providers));
        Ok(GraphSession::new(opened, is_captured, weights.clone(), own_bytes))
    }

    fn opened(
        &self,
        threads: u32,
        providers: &Providers,
        commit: impl FnOnce(SessionBuilder) -> ort::Result<Session>,
    ) -> Result<OpenSession, String> {
        providers.chain.iter().try_for_each(|provider| self.ready(provider))?;
        logged::forget();
        let turn = providers.turns.outside_captures();
        let session = self.builder(threads, providers).and_then(commit);
        drop(turn);
        let opened = session.map(|session| OpenSession::new(session, providers.turns)).map_err(|error| message(&error));
        // Other sessions of the load are dropped because of this failure.
        opened.inspect_err(|text| providers.turns.note_loss(text))
    }

    /// The options of a session, without those of its file.
    fn builder(&self, threads: u32, providers: &Providers) -> ort::Result<SessionBuilder> {
        let mut builder = Self::keeping(providers.stream.clone(), self.plain(threads)?)?;
        if providers.chain.is_empty() {
            return Ok(builder);
        }
        let dispatches: Vec<_> = providers.chain.iter().map(Provider::dispatch).collect();
        builder = builder.with_execution_providers(dispatches)?;
        match providers.beside {
            // It refuses a graph that would run on the CPU in part.
            Beside::Nothing => Ok(builder.with_disable_cpu_fallback()?),
            // The nodes on the CPU are checked when the session is open.
            Beside::Shapes | Beside::Light => Ok(builder.with_config_entry(RECORD.0, RECORD.1)?),
        }
    }

    /// Options of a session on the CPU.
    pub fn plain(&self, threads: u32) -> ort::Result<SessionBuilder> {
        let mut builder = Session::builder(&self.environment)?
            .with_intra_threads(threads as usize)?
            .with_inter_threads(1)?
            // Threads must not spin outside of runs, where they would keep the event loop from its core.
            .with_intra_op_spinning(threads > 1)?
            .with_config_entry("session.intra_op.spin_duration_us", SPIN_US)?
            .with_config_entry("session.force_spinning_stop", "1")?
            .with_inter_op_spinning(false)?;
        if !has_vnni() {
            builder = builder.with_config_entry("session.x64quantprecision", "1")?;
        }
        Ok(builder)
    }

    /// Whether a provider can be used at all; opens the libraries that it needs.
    pub fn ready(&self, provider: &Provider) -> Result<(), String> {
        match provider.kind {
            Kind::Cuda => {
                self.needs(registered::LIBRARY)?;
                preload::cuda(&self.folder)?;
                self.register_cuda();
                Ok(())
            }
            Kind::TensorRt => {
                self.needs("libonnxruntime_providers_tensorrt.so")?;
                preload::cuda(&self.folder)?;
                preload::tensorrt(&self.folder)?;
                self.register_cuda();
                Ok(())
            }
            Kind::WebGpu => webgpu::absent().map_or(Ok(()), Err),
        }
    }

    /// The folder of the library, with those of its providers.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn needs(&self, file: &str) -> Result<(), String> {
        if self.folder.join(file).exists() {
            return Ok(());
        }
        Err(format!("{file} is not beside libonnxruntime.so.1"))
    }
}

/// Whether the processor sums products of int8 in 32 bits. Otherwise ONNX Runtime's default kernels add two products in 16 bits, which
/// saturates: rows would be wrong without an error. Its precise kernels give the right integers, more slowly.
fn has_vnni() -> bool {
    is_x86_feature_detected!("avx512vnni") || is_x86_feature_detected!("avxvnni")
}

/// The text of a failure, with the error that ONNX Runtime has logged.
fn message(error: &ort::Error) -> String {
    let (said, logged) = (plain(&error.to_string()), plain(&logged::last()));
    if logged.is_empty() || said.contains(&logged) { said } else { format!("{said}; {logged}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_the_cores_that_event_loop_and_decode_leave_and_replicas_share_them() {
        for (cores, replicas, threads) in
            [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 2), (8, 2, 3), (64, 1, 8), (64, 16, 3)]
        {
            assert_eq!(Threads::of_reader(cores, replicas), threads, "{cores} cores, {replicas} replicas");
        }
        assert_eq!(Threads::new(Some(3), 1), Threads { reader: 3, step: 3 });
        assert_eq!(Threads::new(None, 1).step, 1);
        assert_eq!(Threads::new(Some(8), 1).on(Device::Cuda(0)), Threads { reader: 1, step: 1 });
        assert_eq!(Threads::new(Some(8), 1).on(Device::Cpu), Threads { reader: 8, step: 8 });
        // The thread of a run, that of a replica, is one of them.
        assert_eq!(Threads::new(Some(3), 2).shared(2), Threads { reader: 5, step: 5 });
        assert_eq!(Threads::new(Some(1), 4).shared(4), Threads { reader: 1, step: 1 });
    }
}
