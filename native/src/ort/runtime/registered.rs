//! Tells the environment of the CUDA provider's library. A session opens that library by itself; copies between the host and a GPU that
//! belong to no session (`CopyTensors`) know a way only where it was registered: without it ONNX Runtime 1.30 says "Data transfer
//! implementation between source and destination device was not found", with it it calls `cudaMemcpy`. The first was seen with
//! the real library beside a driver that has no device, the second on an NVIDIA H200.

use super::Runtime;
use std::sync::OnceLock;

pub(super) const LIBRARY: &str = "libonnxruntime_providers_cuda.so";

/// A name of ours for it.
const NAME: &str = "tendon-cuda";

impl Runtime {
    /// Registers it, the first time it is called. Where that fails, or a copy all the same, inputs are bound for each run, rows of
    /// sessions lie on the host, and weights are copied by runs.
    pub(super) fn register_cuda(&self) {
        static REGISTERED: OnceLock<()> = OnceLock::new();
        REGISTERED.get_or_init(|| {
            let file = self.folder.join(LIBRARY);
            if file.exists() {
                let _ = self.environment.register_ep_library(NAME, file);
            }
        });
    }
}
