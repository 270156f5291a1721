//! Registers the CUDA provider's library with the environment. A session opens the library itself, but copies between host and GPU outside
//! of a session (`CopyTensors`) need the registration. Without it ONNX Runtime 1.30 says "Data transfer implementation between source and
//! destination device was not found", with it it calls `cudaMemcpy`. The first was seen with the real library and a driver without a
//! device, the second on an NVIDIA H200.

use super::Runtime;
use std::sync::OnceLock;

pub(super) const LIBRARY: &str = "libonnxruntime_providers_cuda.so";

/// Our name for it.
const NAME: &str = "tendon-cuda";

impl Runtime {
    /// Registers it at the first call. If that or a copy fails, inputs are bound for each run, rows of sessions lie on the host, and
    /// weights are copied by runs.
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
