//! What an inference gives back.

use super::{Field, Struct};
use std::mem::{offset_of, size_of};

abi_struct! {
    /// The result of one inference. Written before its completion is called, unchanged until `tendon_slot_free`.
    ChunkResult {
        /// Rows of the chunk.
        rows: u32,
        /// Values per row.
        columns: u32,
        /// Image, text and state tokens.
        prompt_tokens: u32,
        /// Those kept from earlier chunks of the episode.
        cached_tokens: u32,
        /// Values clamped to their column's range.
        clamped: u32,
        /// 1 when the episode's memory window was started anew.
        cache_reset: u32,
        /// Last frame decoded → start on a replica, microseconds.
        decoded_us: u32,
        /// Observe → start on a replica.
        queue_us: u32,
        /// Images, text and state → prefix cache.
        prefill_us: u32,
        /// All flow steps.
        denoise_us: u32,
        /// Of `prefill_us` what the device was at, by its own events; 0 where it does not tell.
        prefill_device_us: u32,
        /// Of `denoise_us` the same.
        denoise_device_us: u32,
        /// Model values → robot units.
        encode_us: u32,
        /// Observations that ran in the same batch, this one included.
        batch: u32,
        /// What the decodes of its frames took, microseconds; also of an inference that failed.
        frames_us: u32,
        /// Of an inference that ended with `Image` or `Decoder`: the place of the first frame that could not be decoded.
        bad_frame: u32,
        /// Start on a replica → end, however it ended; 0 of an inference that did not start.
        model_us: u32,
        /// The replica that ran it; `tendon_placement` has its device.
        replica: u32,
        /// Row-major values in robot units.
        values: [f32; 2048],
    }
}

impl ChunkResult {
    /// No rows.
    // SAFETY: the struct is plain numbers.
    pub const ZERO: ChunkResult = unsafe { std::mem::zeroed() };
}
