//! The result of an inference.

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
        /// Tokens that are kept from earlier chunks of the episode.
        cached_tokens: u32,
        /// Values clamped to their column's range.
        clamped: u32,
        /// 1 if the episode's memory window was started anew.
        cache_reset: u32,
        /// Last frame decoded → start on a replica, microseconds.
        decoded_us: u32,
        /// Observe → start on a replica.
        queue_us: u32,
        /// Images, text and state → prefix cache.
        prefill_us: u32,
        /// All flow steps.
        denoise_us: u32,
        /// The device's part of `prefill_us`, by its own events; 0 if unknown.
        prefill_device_us: u32,
        /// The device's part of `denoise_us`.
        denoise_device_us: u32,
        /// Model values → robot units.
        encode_us: u32,
        /// Observations of the batch, this one included.
        batch: u32,
        /// Microseconds of its frames' decodes; also of a failed inference.
        frames_us: u32,
        /// The index of the first frame that could not be decoded, after `Image` or `Decoder`.
        bad_frame: u32,
        /// Start on a replica → end, also of a failed inference; 0 if it did not start.
        model_us: u32,
        /// The replica; `tendon_placement` has its device.
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
