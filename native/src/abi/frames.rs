//! The calls of a frame: put, drop, watch, spent. The rules of `abi.rs` apply.

use super::{answer, bytes, calls, engine, ticketed};
use crate::abi::engine::Engine;
use crate::core::ticket::Ticket;

/// Copies a JPEG of at most `JPEG_BYTES_MAX` bytes and queues its decode. Frames of different turns alternate. Returns the frame's ticket,
/// or `Status::Busy`. The frame ends in `tendon_observe`, whose inference waits for the decode, or in `tendon_frame_drop`. It has no
/// completion, unless `tendon_frame_watch` or `tendon_frame_drop` has returned 1.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_put(
    handle: *const Engine,
    model: f64,
    turn: u32,
    jpeg: *const u8,
    jpeg_len: u32,
) -> f64 {
    // SAFETY: the caller's pointers.
    ticketed(|| unsafe { engine(handle)?.frame_put(Ticket::from_wire(model), turn, bytes(jpeg, jpeg_len)?) })
}

calls! {
    /// Frees a frame that no inference has taken. A frame that is still queued is not decoded. Returns 0 if the slot is free. Returns 1 if
    /// a decoder has the frame: the slot is free when the completion says `Cancelled`.
    fn tendon_frame_drop(engine, model: f64, frame: f64) {
        engine.frame_drop(Ticket::from_wire(model), Ticket::from_wire(frame))
    }

    /// Asks how the decode of a frame ends. Returns 1 if the completion will say so, else the status: `Ok`, `Image` (the file cannot be
    /// decoded) or `Decoder`. A frame that is watched cannot be observed before its completion.
    fn tendon_frame_watch(engine, model: f64, frame: f64) {
        engine.frame_watch(Ticket::from_wire(model), Ticket::from_wire(frame))
    }

    /// Microseconds that the decode of a frame took, also if the file was refused or the frame was dropped meanwhile. 0 if the decode has
    /// not ended.
    fn tendon_frame_spent(engine, model: f64, frame: f64) {
        engine.frame_spent(Ticket::from_wire(model), Ticket::from_wire(frame))
    }
}
