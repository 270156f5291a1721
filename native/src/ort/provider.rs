//! The options of each execution provider, made from the options of a load plan. No GPU is needed here.

use crate::bundle::manifest::{Extent, Port};
use crate::core::device::Device;
use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider, ExecutionProviderDispatch};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// How models run on a GPU: the table `[gpu]` of tendon.toml and the same keys of a model. By default a provider computes what the CPU
/// computes.
#[derive(Deserialize, Clone, Debug, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GpuOptions {
    /// The type that TensorRT may compute in where the graph has f32.
    pub precision: Precision,
    /// A graph's kernels are captured once and launched as one.
    pub cuda_graph: bool,
    /// On NVIDIA GPUs our kernels advance latents and decode chunks, in the replica's stream (`flow/device_flow.rs`).
    pub own_kernels: bool,
    /// The device code of this build, a fat binary; None without.
    pub kernels: Option<PathBuf>,
    /// Bytes of one graph's arena on the device, at least 1; None: no bound.
    pub arena_bytes_max: Option<u64>,
    /// The folder for TensorRT's engines; None: it builds them at every start.
    pub engine_cache: Option<PathBuf>,
}

impl Default for GpuOptions {
    fn default() -> GpuOptions {
        GpuOptions {
            precision: Precision::F32,
            cuda_graph: false,
            own_kernels: false,
            kernels: None,
            arena_bytes_max: None,
            engine_cache: None,
        }
    }
}

/// A type of numbers to compute in.
#[derive(Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    F32,
    F16,
    /// Half precision: bfloat16.
    Bf16,
}

/// An execution provider, and its options by ONNX Runtime's names.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub kind: Kind,
    pub pairs: Vec<(&'static str, String)>,
}

/// The providers that are asked by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cuda,
    TensorRt,
    WebGpu,
}

/// The option of each provider that captures a graph's kernels.
pub const CAPTURE: [&str; 3] = ["enable_cuda_graph", "trt_cuda_graph_enable", "enableGraphCapture"];

/// The options of TensorRT for the shapes that an engine is built for. Without them it builds one again for each shape that it meets.
pub const PROFILE: [&str; 3] = ["trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"];

/// The values of `PROFILE` for a graph with these inputs: engines are fastest in the largest variant, which is the last.
pub fn profile(inputs: &[Port], variants: &[Extent]) -> Option<[String; 3]> {
    let shapes = |extent: &Extent| {
        let line = |port: &Port| {
            let sizes: Vec<String> = port.shape.iter().map(|dim| dim.size(*extent).to_string()).collect();
            format!("{}:{}", port.name, sizes.join("x"))
        };
        let lines: Vec<String> = inputs.iter().filter(|port| !port.shape.is_empty()).map(line).collect();
        lines.join(",")
    };
    // TensorRT's lists have no other way to write such a name.
    let is_told = inputs.iter().all(|port| !port.name.contains([',', ':']));
    let (smallest, largest) = (variants.first()?, variants.last().filter(|_| is_told)?);
    Some([shapes(smallest), shapes(largest), shapes(largest)])
}

impl Provider {
    pub fn captures(&self) -> bool {
        self.pairs.iter().any(|(key, value)| CAPTURE.contains(key) && *value == flag(true))
    }

    pub fn without(&self, keys: &[&str]) -> Provider {
        let pairs = self.pairs.iter().filter(|(key, _)| !keys.contains(key)).cloned().collect();
        Provider { kind: self.kind, pairs }
    }

    /// Has TensorRT build its engine at once, for all variants of a graph.
    pub fn for_shapes(mut self, profile: Option<[String; 3]>) -> Provider {
        if let (Kind::TensorRt, Some(profile)) = (self.kind, profile) {
            self.pairs.extend(PROFILE.into_iter().zip(profile));
        }
        self
    }

    /// Has the provider work in a stream of the caller, which outlives its sessions. CUDA and TensorRT take its address, also CUDA behind
    /// TensorRT. They capture graphs in the stream, and do not destroy it.
    pub fn on_stream(mut self, address: usize) -> Provider {
        self.pairs.extend([("has_user_compute_stream", flag(true)), ("user_compute_stream", address.to_string())]);
        self
    }

    /// The provider for `ort`. A failure is an error: by default it is logged, and the graph runs on the CPU.
    pub fn dispatch(&self) -> ExecutionProviderDispatch {
        fn with_pairs<E: ArbitrarilyConfigurableExecutionProvider>(provider: E, pairs: &[(&'static str, String)]) -> E {
            pairs.iter().fold(provider, |provider, (key, value)| provider.with_arbitrary_config(key, value))
        }
        let built = match self.kind {
            Kind::Cuda => with_pairs(ep::CUDA::default(), &self.pairs).build(),
            Kind::TensorRt => with_pairs(ep::TensorRT::default(), &self.pairs).build(),
            Kind::WebGpu => with_pairs(ep::WebGPU::default(), &self.pairs).build(),
        };
        built.error_on_failure()
    }
}

/// Whether a device can do what the options say; the error is the reason. On the CPU the options have no meaning: it computes what the
/// graph says.
pub fn fits(device: Device, options: &GpuOptions) -> Result<(), String> {
    match device {
        Device::Cpu => return Ok(()),
        // Its device number is that of a context that the caller has made, not that of an adapter.
        Device::WebGpu(id) if id != 0 => {
            return Err("WebGPU has one device, the fastest adapter of the machine: webgpu:0".into());
        }
        _ => {}
    }
    if options.precision != Precision::F32 && !matches!(device, Device::TensorRt(_)) {
        let provider = device.name();
        return Err(format!(
            "precision is not f32, but {provider} computes in the types of the graph; only TensorRT does"
        ));
    }
    Ok(())
}

/// The providers of a session on the device, the preferred one first; empty for the CPU. `engines` is the folder of TensorRT's engines for
/// this bundle and GPU.
pub fn chain(device: Device, options: &GpuOptions, engines: Option<&Path>) -> Vec<Provider> {
    match device {
        Device::Cpu => Vec::new(),
        Device::Cuda(id) => vec![cuda(id, options)],
        // CUDA runs what TensorRT cannot.
        Device::TensorRt(id) => vec![tensorrt(id, options, engines), cuda(id, options)],
        Device::WebGpu(id) => vec![webgpu(id, options)],
    }
}

fn flag(on: bool) -> String {
    if on { "1".into() } else { "0".into() }
}

fn cuda(id: i32, options: &GpuOptions) -> Provider {
    let mut pairs = vec![
        ("device_id", id.to_string()),
        // Products of f32 keep their 23 bits of mantissa.
        ("use_tf32", flag(false)),
        ("enable_cuda_graph", flag(options.cuda_graph)),
        // All memory is allocated at load: more calls cost nothing in an inference.
        ("arena_extend_strategy", "kSameAsRequested".into()),
    ];
    if let Some(bytes) = options.arena_bytes_max {
        pairs.push(("gpu_mem_limit", bytes.to_string()));
    }
    Provider { kind: Kind::Cuda, pairs }
}

fn tensorrt(id: i32, options: &GpuOptions, engines: Option<&Path>) -> Provider {
    let mut pairs = vec![
        ("device_id", id.to_string()),
        ("trt_fp16_enable", flag(options.precision == Precision::F16)),
        ("trt_bf16_enable", flag(options.precision == Precision::Bf16)),
        ("trt_cuda_graph_enable", flag(options.cuda_graph)),
        ("trt_engine_cache_enable", flag(engines.is_some())),
        ("trt_timing_cache_enable", flag(engines.is_some())),
    ];
    if let Some(folder) = engines {
        let folder = folder.to_string_lossy();
        pairs.push(("trt_engine_cache_path", folder.to_string()));
        pairs.push(("trt_timing_cache_path", folder.to_string()));
    }
    if let Some(bytes) = options.arena_bytes_max {
        pairs.push(("trt_max_workspace_size", bytes.to_string()));
    }
    Provider { kind: Kind::TensorRt, pairs }
}

fn webgpu(id: i32, options: &GpuOptions) -> Provider {
    // ONNX Runtime's default layout gives wrong convolutions of six channels. Positions and lengths have 64 bits: without kernels for them,
    // which compute in 32 bits, the CPU would compute them between two halves of the graph.
    let mut pairs = vec![("deviceId", id.to_string()), ("preferredLayout", "NCHW".into()), ("enableInt64", flag(true))];
    if options.cuda_graph {
        pairs.push(("enableGraphCapture", flag(true)));
    }
    Provider { kind: Kind::WebGpu, pairs }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(device: Device, options: &GpuOptions, engines: Option<&Path>) -> Vec<String> {
        let line = |Provider { kind, pairs }: Provider| {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{kind:?} {}", pairs.join(" "))
        };
        chain(device, options, engines).into_iter().map(line).collect()
    }

    #[test]
    fn without_options_a_provider_computes_what_the_cpu_computes() {
        let options = GpuOptions::default();
        assert_eq!(
            lines(Device::Cuda(1), &options, None),
            ["Cuda device_id=1 use_tf32=0 enable_cuda_graph=0 arena_extend_strategy=kSameAsRequested"]
        );
        assert_eq!(lines(Device::WebGpu(0), &options, None), ["WebGpu deviceId=0 preferredLayout=NCHW enableInt64=1"]);
        assert!(lines(Device::Cpu, &options, None).is_empty());
    }

    #[test]
    fn tensorrt_has_cuda_behind_it_with_options_of_its_own() {
        let options = GpuOptions {
            precision: Precision::F16,
            cuda_graph: true,
            arena_bytes_max: Some(2 << 30),
            ..GpuOptions::default()
        };
        let [first, behind] = &lines(Device::TensorRt(2), &options, Some(Path::new("/c/e")))[..] else {
            panic!("two providers")
        };
        assert_eq!(
            first,
            "TensorRt device_id=2 trt_fp16_enable=1 trt_bf16_enable=0 trt_cuda_graph_enable=1 trt_engine_cache_enable=1 \
             trt_timing_cache_enable=1 trt_engine_cache_path=/c/e trt_timing_cache_path=/c/e trt_max_workspace_size=2147483648"
        );
        assert_eq!(
            behind,
            "Cuda device_id=2 use_tf32=0 enable_cuda_graph=1 arena_extend_strategy=kSameAsRequested gpu_mem_limit=2147483648"
        );
        let plain = GpuOptions { precision: Precision::Bf16, ..GpuOptions::default() };
        assert_eq!(
            lines(Device::TensorRt(0), &plain, None)[0],
            "TensorRt device_id=0 trt_fp16_enable=0 trt_bf16_enable=1 trt_cuda_graph_enable=0 trt_engine_cache_enable=0 \
             trt_timing_cache_enable=0"
        );
    }

    #[test]
    fn what_a_device_cannot_do_is_refused_with_the_option_s_name_and_the_cpu_refuses_nothing() {
        let half = GpuOptions { precision: Precision::F16, ..GpuOptions::default() };
        for device in [Device::Cuda(0), Device::WebGpu(0)] {
            let refused = fits(device, &half).expect_err("a refusal");
            assert!(refused.starts_with("precision is not f32, but "), "{device:?}: {refused}");
            assert_eq!(fits(device, &GpuOptions::default()), Ok(()));
        }
        assert_eq!([fits(Device::TensorRt(0), &half), fits(Device::Cpu, &half)], [Ok(()), Ok(())]);
    }

    #[test]
    fn each_provider_captures_a_graph_in_words_of_its_own_and_is_the_same_without() {
        let captured = GpuOptions { cuda_graph: true, ..GpuOptions::default() };
        for device in [Device::Cuda(0), Device::TensorRt(0), Device::WebGpu(0)] {
            assert_eq!(fits(device, &captured), Ok(()), "{device:?}");
            let (capturing, plain) = (chain(device, &captured, None), chain(device, &GpuOptions::default(), None));
            assert!(capturing.iter().all(Provider::captures) && !plain.iter().any(Provider::captures), "{device:?}");
            for (capturing, plain) in capturing.iter().zip(&plain) {
                assert_eq!(capturing.without(&CAPTURE), plain.without(&CAPTURE));
                assert!(!capturing.without(&CAPTURE).captures());
            }
        }
        assert!(chain(Device::Cpu, &captured, None).is_empty());
    }

    #[test]
    fn tensorrt_builds_its_engine_once_for_the_smallest_and_the_largest_variant() {
        let port = |name: &str, shape: &str| {
            let text = format!(r#"{{"name": "{name}", "role": "tokens", "dtype": "i64", "shape": {shape}}}"#);
            serde_json::from_str::<Port>(&text).expect("a port")
        };
        let ports = [port("ids", r#"["batch", "prompt"]"#), port("mask", r#"["batch", 4, "prefix"]"#), port("n", "[]")];
        let variants = [1, 2, 4].map(|batch| Extent { batch, prompt: 32, prefix: 96 });
        let made = profile(&ports, &variants).expect("a profile");
        assert_eq!(made, ["ids:1x32,mask:1x4x96", "ids:4x32,mask:4x4x96", "ids:4x32,mask:4x4x96"]);
        let [first, behind] = &chain(Device::TensorRt(0), &GpuOptions::default(), None)
            .into_iter()
            .map(|provider| provider.for_shapes(Some(made.clone())))
            .collect::<Vec<_>>()[..]
        else {
            panic!("two providers")
        };
        assert!(first.pairs.ends_with(&PROFILE.into_iter().zip(made.clone()).collect::<Vec<_>>()));
        assert_eq!(*behind, cuda(0, &GpuOptions::default()));
        assert!(!first.without(&PROFILE).pairs.iter().any(|(key, _)| key.contains("profile")));
        assert_eq!(profile(&[port("a:b", "[1]")], &variants), None);
    }

    #[test]
    fn both_providers_of_a_gpu_work_in_one_stream_of_ours() {
        let address = 0x7f00_0000_0010;
        for provider in chain(Device::TensorRt(1), &GpuOptions::default(), None) {
            let pairs = provider.on_stream(address).pairs;
            let last: Vec<(&str, &str)> = pairs.iter().rev().take(2).map(|(key, value)| (*key, &value[..])).collect();
            assert_eq!(last, [("user_compute_stream", "139637976727568"), ("has_user_compute_stream", "1")]);
        }
    }

    #[test]
    fn a_load_plan_says_what_differs_and_nothing_that_is_not_known() {
        let read = serde_json::from_str::<GpuOptions>;
        assert_eq!(read("{}").expect("a plan"), GpuOptions::default());
        let options = read(r#"{"precision":"bf16","arenaBytesMax":1,"engineCache":"/c"}"#).expect("a plan");
        assert_eq!((options.precision, options.arena_bytes_max), (Precision::Bf16, Some(1)));
        assert_eq!(options.engine_cache.as_deref(), Some(Path::new("/c")));
        assert!(read(r#"{"precision":"f8"}"#).is_err());
        assert!(read(r#"{"cuda_grahp":true}"#).is_err());
    }

    #[test]
    fn webgpu_has_one_device() {
        let fits = |id| fits(Device::WebGpu(id), &GpuOptions::default());
        assert_eq!(fits(0), Ok(()));
        assert!(fits(1).is_err_and(|text| text.contains("webgpu:0")));
    }
}
