//! Options of a session whose weights lie in mapped files.

use super::Providers;
use super::on_stream::logger;
use crate::bundle::weights::FOLDED_BYTES_MAX;
use crate::core::memory;
use crate::core::sync::lock;
use crate::ort::initializers::Initializers;
use crate::ort::weight_store::DeviceWeights;
use ort::AsPointer;
use ort::ep;
use ort::logging::LogLevel;
use ort::session::builder::SessionBuilder;
use std::sync::{Arc, Mutex};

pub(super) fn with_weights(mut builder: SessionBuilder, initializers: &Initializers) -> ort::Result<SessionBuilder> {
    // SAFETY: live options; `session` gives what is made with them a logger that keeps the initializers.
    unsafe { initializers.add_to(builder.ptr_mut()) }.map_err(ort::Error::new)?;
    Ok(builder.with_config_entry("optimization.constant_folding_max_output_size_in_bytes", FOLDED_BYTES_MAX)?)
}

/// Float32 weights of a graph that may be in memory a second time, packed for the kernels. One of pi0.5 has 11 GB.
const PACKED_BYTES_MAX: usize = 4 << 30;

/// Has a large model on a CPU return the memory of a run. A widened matrix is as large as a hundred frames, and an arena would keep the
/// most that any two of them had, for each run at a time.
///
/// Weights of float32 are not widened, and their runs keep an arena. The system clears every page that it gives anew: without an arena a
/// third of the time of a chunk of SmolVLA. Too many of them are read where they are mapped, and a run packs the part that it works on.
pub(super) fn frugal(builder: SessionBuilder, initializers: &Initializers) -> ort::Result<SessionBuilder> {
    memory::return_large_blocks();
    let is_large = initializers.bytes(None) > PACKED_BYTES_MAX;
    if initializers.are_f32() && !is_large {
        return Ok(builder);
    }
    let plain = ep::CPU::default().with_arena_allocator(false).build();
    let builder = builder.with_memory_pattern(false)?.with_execution_providers([plain])?;
    Ok(if initializers.are_f32() { builder.with_prepacking(false)? } else { builder })
}

/// The names of weights that a session on a device has copied from the file although they were given. ONNX Runtime logs each.
#[derive(Clone, Default)]
pub(super) struct CopyLog(Arc<Mutex<Vec<String>>>);

impl CopyLog {
    /// Collects the names from a session's log and keeps its errors, as the log of all sessions does. A session has one logger, so this one
    /// also holds what the session uses, as that of `keeping` does.
    pub(super) fn log_to(
        &self,
        builder: SessionBuilder,
        kept: impl Send + Sync + 'static,
    ) -> ort::Result<SessionBuilder> {
        // An earlier try with other options may have left names.
        lock(&self.0).clear();
        let names = self.0.clone();
        let log = logger(kept, move |message| lock(&names).extend(refused(message).map(String::from)));
        Ok(builder.with_logger(log)?.with_log_level(LogLevel::Warning)?)
    }

    /// Bytes that the session has copied for itself; on a device all weights that do not lie there.
    pub(super) fn own_bytes(
        &self,
        initializers: &Initializers,
        weights: &DeviceWeights,
        providers: &Providers,
    ) -> usize {
        match weights.store {
            Some(_) => initializers.bytes(Some(&lock(&self.0))),
            None if providers.chain.is_empty() => 0,
            None => initializers.bytes(None),
        }
    }
}

/// The weight that a warning names, if it is about one.
fn refused(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("Cannot use user supplied initializer with name: (")?;
    rest.split_once(") because ").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_that_is_not_read_where_it_was_given_is_found_in_the_warning() {
        let said = "Cannot use user supplied initializer with name: (blocks.0.wq(1)) because the ORT planned memory location device \
                    Device:[DeviceType:0 MemoryType:0] ) is different from what is supplied (Device:[DeviceType:1])";
        assert_eq!(refused(said), Some("blocks.0.wq(1)"));
        assert_eq!(refused("Serializing optimized model with name: (x) because "), None);
    }
}
