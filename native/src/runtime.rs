//! ONNX Runtime: opened once by path, and one session per graph on the device that was asked for.

use crate::graph::Reach;
use crate::sync::lock;
use crate::weights::{FOLDED_BYTES_MAX, Given, Loaded, Weights};
use ort::AsPointer;
use ort::ep::{self, ExecutionProviderDispatch};
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Switches ONNX Runtime's own telemetry off, to be called before the library is opened.
///
/// Since 1.30 the Linux library keeps a device id and an event database in the user's cache folder and sends them to its
/// vendor. Only this variable prevents that; the API's switch works only after the files are made.
pub fn forbid_telemetry() {
    // SAFETY: both are C strings. glibc's setenv may move the table while another thread is in getenv; this runs once,
    // early, after Bun has read its environment. There is no other way.
    unsafe { libc::setenv(c"ORT_DISABLE_TELEMETRY".as_ptr(), c"1".as_ptr(), 1) };
}

/// Threads inside one run of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Of prefill and extend.
    pub reader: u32,
    /// Of a flow step.
    pub step: u32,
}

impl Threads {
    /// As the configuration says, or as this machine has for a model whose `replicas` run at the same time.
    ///
    /// A reader gets the cores that are left beside the event loop's and that of a decode: its threads wait for each other at every
    /// operator, so that one without a core of its own holds up all. Of two cores it gets one: with both it takes two thirds of the
    /// time when nothing else runs, and twice the time when something does. The operators of a step are so short that a second
    /// thread would save a sixth of the time and cost a third more of the processor's.
    pub fn new(given: Option<u32>, replicas: usize) -> Threads {
        if let Some(given) = given {
            return Threads { reader: given.max(1), step: given.max(1) };
        }
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Threads { reader: Threads::of_reader(cores, replicas), step: 1 }
    }

    /// Of a session that `replicas` share: the threads that start a run, and as many beside them as each would have alone.
    pub fn shared(self, replicas: usize) -> Threads {
        let all = |own: u32| 1 + (own - 1) * replicas as u32;
        Threads { reader: all(self.reader), step: all(self.step) }
    }

    fn of_reader(cores: usize, replicas: usize) -> u32 {
        (cores.saturating_sub(2) / replicas).clamp(1, THREADS_MAX) as u32
    }
}

/// The matrices of one observation keep no more threads busy.
const THREADS_MAX: usize = 8;

/// How long a thread of a run looks for its next part before it sleeps. The operators of a run follow each other within this time, and
/// to wake a sleeping thread would take as long as its part; behind the run it looks no longer.
const SPIN_US: &str = "100";

/// The runtime of this process. It is opened once; later paths are ignored.
pub struct Runtime {
    environment: ort::environment::Environment,
    folder: PathBuf,
    /// The last error that ONNX Runtime logged: its status texts alone never name a missing file.
    logged: Arc<Mutex<String>>,
}

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Opens the library at `path`, the first time it is called.
pub fn open(path: &Path) -> Result<&'static Runtime, String> {
    RUNTIME.get_or_init(|| Runtime::new(path)).as_ref().map_err(Clone::clone)
}

/// Where a model may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The CPU provider, the reference.
    Cpu,
    /// CUDA provider on a device.
    Cuda(i32),
    /// TensorRT provider on a device.
    TensorRt(i32),
    /// WebGPU provider on a device.
    WebGpu(i32),
}

impl Device {
    /// The devices to try, in order, for a name in the configuration; None for an unknown name.
    pub fn candidates(word: &str) -> Option<Vec<Device>> {
        let numbered = |prefix: &str| word.strip_prefix(prefix)?.parse::<u8>().ok().map(i32::from);
        Some(match word {
            "auto" => vec![Device::TensorRt(0), Device::Cuda(0), Device::WebGpu(0), Device::Cpu],
            "cpu" => vec![Device::Cpu],
            _ => vec![
                None.or_else(|| numbered("cuda:").map(Device::Cuda))
                    .or_else(|| numbered("tensorrt:").map(Device::TensorRt))
                    .or_else(|| numbered("webgpu:").map(Device::WebGpu))?,
            ],
        })
    }

    /// Whether the replicas of a model use the same sessions, and so the same weights, packed ones and folded ones among them. ONNX
    /// Runtime's CPU provider runs one session on many threads at once, each run with memory of its own; a GPU's has one stream.
    pub fn shares_sessions(self) -> bool {
        self == Device::Cpu
    }

    /// How it reads what it is bound to.
    pub fn reach(self) -> Reach {
        if self == Device::Cpu { Reach::InPlace } else { Reach::Copied }
    }

    /// Its name in the configuration.
    pub fn name(self) -> String {
        match self {
            Device::Cpu => "cpu".into(),
            Device::Cuda(id) => format!("cuda:{id}"),
            Device::TensorRt(id) => format!("tensorrt:{id}"),
            Device::WebGpu(id) => format!("webgpu:{id}"),
        }
    }
}

impl Runtime {
    fn new(path: &Path) -> Result<Runtime, String> {
        let logged = Arc::new(Mutex::new(String::new()));
        let keep = logged.clone();
        let environment = ort::init_from(path)
            .map_err(|error| format!("ONNX Runtime cannot be opened: {error}"))?
            .with_name("tendon")
            .with_telemetry(false)
            .with_logger(Arc::new(move |level, _category, _id, _place, message| {
                if matches!(level, LogLevel::Error | LogLevel::Fatal) {
                    *lock(&keep) = message.into();
                }
            }))
            .build()
            .map_err(|error| format!("ONNX Runtime cannot be started: {error}"))?;
        environment.set_log_level(LogLevel::Error);
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        Ok(Runtime { environment, folder, logged })
    }

    /// A session of the graph at `path` on exactly this device, or the reason why not.
    pub fn session(&self, path: &Path, device: Device, threads: u32, weights: &Arc<Weights>) -> Result<Loaded, String> {
        let provider: Option<ExecutionProviderDispatch> = match device {
            Device::Cpu => None,
            Device::Cuda(id) => {
                self.needs("libonnxruntime_providers_cuda.so")?;
                // TF32 has ten bits of mantissa: its rows would not be those of f32.
                Some(ep::CUDA::default().with_device_id(id).with_tf32(false).build())
            }
            Device::TensorRt(id) => {
                self.needs("libonnxruntime_providers_tensorrt.so")?;
                Some(ep::TensorRT::default().with_device_id(id).build())
            }
            Device::WebGpu(id) => {
                needs_gpu_node()?;
                Some(ep::WebGPU::default().with_device_id(id).build())
            }
        };
        let given = if weights.is_empty() { None } else { Some(weights.of_graph(path)?) };
        let session = || -> ort::Result<Session> {
            let mut builder = Session::builder(&self.environment)?
                .with_intra_threads(threads as usize)?
                .with_inter_threads(1)?
                // Spinning threads would keep the event loop from its core, outside of runs.
                .with_intra_op_spinning(threads > 1)?
                .with_config_entry("session.intra_op.spin_duration_us", SPIN_US)?
                .with_config_entry("session.force_spinning_stop", "1")?
                .with_inter_op_spinning(false)?;
            if !has_vnni() {
                builder = builder.with_config_entry("session.x64quantprecision", "1")?;
            }
            if let Some(provider) = provider {
                // Refuses a graph that would run on the CPU in part.
                builder =
                    builder.with_execution_providers([provider.error_on_failure()])?.with_disable_cpu_fallback()?;
            }
            if let Some(given) = &given {
                builder = with_weights(builder, given)?;
                if device == Device::Cpu {
                    builder = frugal(builder)?;
                }
            }
            builder.commit_from_file(path)
        };
        session().map(|session| Loaded::new(session, weights.clone())).map_err(|error| {
            let logged = lock(&self.logged);
            if logged.is_empty() { error.to_string() } else { format!("{error}; {logged}") }
        })
    }

    /// Clears the last logged error, before another device is tried.
    pub fn forget_logged(&self) {
        lock(&self.logged).clear();
    }

    fn needs(&self, file: &str) -> Result<(), String> {
        if self.folder.join(file).exists() {
            return Ok(());
        }
        Err(format!("{file} is not beside libonnxruntime.so.1"))
    }
}

/// The options of a session whose graph keeps its weights in mapped files.
fn with_weights(mut builder: SessionBuilder, given: &Given) -> ort::Result<SessionBuilder> {
    // SAFETY: live options; `session` drops them before what is given, and makes a `Loaded` of what comes of them.
    unsafe { given.add_to(builder.ptr_mut()) }.map_err(ort::Error::new)?;
    Ok(builder.with_config_entry("optimization.constant_folding_max_output_size_in_bytes", FOLDED_BYTES_MAX)?)
}

/// Makes the runs of a large model on a CPU give back what they no longer need: a widened matrix is as large as a hundred frames, and
/// an arena would keep the most that any two of them had, for each run at a time.
fn frugal(builder: SessionBuilder) -> ort::Result<SessionBuilder> {
    let plain = ep::CPU::default().with_arena_allocator(false).build();
    Ok(builder.with_memory_pattern(false)?.with_execution_providers([plain])?)
}

/// Whether the processor sums products of int8 in 32 bits. Without that ONNX Runtime's default kernels add two products of int8
/// weights in 16 bits, which saturates: rows would be wrong without an error. Its precise ones give the same integers, more slowly.
fn has_vnni() -> bool {
    is_x86_feature_detected!("avx512vnni") || is_x86_feature_detected!("avxvnni")
}

/// WebGPU on a software rasteriser is far slower than the CPU provider: it is tried only where there is a GPU.
fn needs_gpu_node() -> Result<(), String> {
    let nodes = ["/dev/dri/renderD128", "/dev/nvidia0"];
    if nodes.iter().any(|node| Path::new(node).exists()) {
        return Ok(());
    }
    Err("no GPU: neither /dev/dri/renderD128 nor /dev/nvidia0 is there".into())
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
        // A run's own thread is one of them, that of a replica.
        assert_eq!(Threads::new(Some(3), 2).shared(2), Threads { reader: 5, step: 5 });
        assert_eq!(Threads::new(Some(1), 4).shared(4), Threads { reader: 1, step: 1 });
    }

    #[test]
    fn a_device_word_names_what_is_tried() {
        assert_eq!(Device::candidates("cpu"), Some(vec![Device::Cpu]));
        assert_eq!(Device::candidates("cuda:1"), Some(vec![Device::Cuda(1)]));
        assert_eq!(Device::candidates("auto").map(|devices| devices.len()), Some(4));
        for word in ["", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:999", "webgpu:x"] {
            assert_eq!(Device::candidates(word), None, "{word}");
        }
    }
}
