//! Faults on purpose, and the meaning of the runtime's errors: a lost device, a failed inference or a bad bundle.

use crate::core::status::Status;

/// A fault of an inference, on purpose.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "rehearsal", derive(serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Fault {
    /// Nothing.
    None = 0,
    /// Its replica hangs until the process ends.
    Hang = 1,
    /// Its device fails.
    Device = 2,
    /// Native code panics.
    Panic = 3,
    /// Its replica hangs until others have ended the inference, and works again then.
    #[cfg(feature = "rehearsal")]
    Late,
    /// The thread of its replica ends.
    #[cfg(feature = "rehearsal")]
    Die,
    /// A frame of the inference cannot be read.
    #[cfg(feature = "rehearsal")]
    Feed,
    /// Its device has no memory left for it.
    #[cfg(feature = "rehearsal")]
    Memory,
}

impl Fault {
    /// The faults that a drill may ask for, with their names in the generated file.
    pub const NAMES: &[(&str, Fault)] =
        &[("none", Fault::None), ("hang", Fault::Hang), ("device", Fault::Device), ("panic", Fault::Panic)];

    /// The fault of a number in a request.
    pub fn from_wire(number: u32) -> Option<Fault> {
        Fault::NAMES.iter().map(|&(_, fault)| fault).find(|&fault| fault as u32 == number)
    }
}

/// The text of a lost device, as ONNX Runtime's CUDA provider writes it.
pub const DEVICE_LOST: &str = "CUDA failure 700: an illegal memory access was encountered ; GPU=0";

/// The text of a device without memory, as the same provider writes it.
#[cfg(any(test, feature = "rehearsal"))]
pub const DEVICE_FULL: &str = "CUDA failure 2: out of memory ; GPU=0";

/// Errors of CUDA (cudaError_t) after which every later call of the process fails: ECC, NVLink, illegal address, launch time-out, destroyed
/// context, device assert, hardware stack, illegal instruction, misaligned address, address space, program counter, launch failure,
/// unknown.
pub const CUDA_STICKY: &[u32] = &[214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999];

/// Answers of the driver that mean the same of a device that has worked: it is unavailable, there is none, or it has another number.
pub const CUDA_GONE: &[u32] = &[46, 100, 101];

/// Texts of errors without a number that mean the same.
const LOST: &[&str] = &["device lost", "device is lost", "devicelost", "device removed"];

/// Whether an error of the runtime is a failure of the device and not of one inference.
pub fn is_device_failure(text: &str) -> bool {
    let number = |rest: &str| rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
    let lower = text.to_ascii_lowercase();
    let sticky = ["cuda failure", "cuda error"]
        .iter()
        .flat_map(|word| lower.split(word).skip(1))
        .filter_map(number)
        .any(|number| CUDA_STICKY.contains(&number));
    sticky || LOST.iter().any(|word| lower.contains(word))
}

/// Texts of errors about missing memory: of CUDA, ONNX Runtime's arenas, cuBLAS, cuDNN, TensorRT, WebGPU, the C++ library, and our own
/// blocks (`core/memory.rs`, `ort/device_memory.rs`).
const NO_MEMORY: &[&str] = &[
    "out of memory",
    "out_of_memory",
    "outofmemory",
    "failed to allocate memory",
    "smaller than requested bytes",
    "_status_alloc_failed",
    "memory allocation error",
    "bad_alloc",
    "bytes of memory: cannot allocate",
    "bytes of the device's memory",
    "the device has no room for",
];

/// Texts of ONNX Runtime about a graph that no device can run.
const NO_GRAPH: &[&str] =
    &["load model from", "protobuf parsing failed", "invalid model", "not a registered function/op"];

/// The status of an error of the runtime, `otherwise` for an unknown text. A lost device comes first, because it has no memory to give
/// either.
pub fn status_of(text: &str, otherwise: Status) -> Status {
    let lower = text.to_ascii_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    if is_device_failure(text) {
        Status::DeviceLost
    } else if says(NO_MEMORY) {
        Status::OutOfMemory
    } else if says(NO_GRAPH) {
        Status::BadBundle
    } else {
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_device_is_told_from_a_failed_run() {
        for lost in [
            DEVICE_LOST,
            "CUDA failure 719: unspecified launch failure ; GPU=0",
            "Non-zero status code ... CUDA error 710: device-side assert triggered",
            "WebGPU device lost (2): reset",
        ] {
            assert!(is_device_failure(lost), "{lost}");
        }
        for run in [
            DEVICE_FULL,
            "Non-zero status code returned while running Gather node: indices element out of data bounds, idx=700",
            "the memory slot is gone",
        ] {
            assert!(!is_device_failure(run), "{run}");
        }
    }

    #[test]
    fn what_an_error_says_about_the_future_is_told_from_its_words() {
        for (status, text) in [
            (Status::DeviceLost, DEVICE_LOST),
            (
                Status::OutOfMemory,
                "CUDA failure 2: out of memory ; GPU=0 ; hostname=robot ; expr=cudaMalloc((void**)&p, size);",
            ),
            (
                Status::OutOfMemory,
                "BFCArena::AllocateRawInternal Available memory of 1048576 is smaller than requested bytes of 8388608",
            ),
            (Status::OutOfMemory, "Failed to allocate memory for requested buffer of size 4096"),
            (Status::OutOfMemory, "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0"),
            (Status::OutOfMemory, "std::bad_alloc"),
            (Status::OutOfMemory, "the device has no room for 4096 bytes more"),
            (Status::OutOfMemory, "no 4096 bytes of the device's memory: it refuses"),
            (Status::OutOfMemory, "no 4096 bytes of memory: Cannot allocate memory (os error 12)"),
            (Status::BadBundle, "Load model from /b/denoise.onnx failed:Protobuf parsing failed."),
            (Status::Load, "OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library"),
        ] {
            assert_eq!(status_of(text, Status::Load), status, "{text}");
        }
    }
}
