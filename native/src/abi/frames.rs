//! The calls of a frame: put, spent, drop. The rules of `abi.rs` apply.

use super::{answer, bytes, engine, ticketed};
use crate::abi::engine::Engine;
use crate::core::ticket::Ticket;

/// Copies a JPEG of at most `JPEG_BYTES_MAX` bytes and queues its decode; different turns alternate. Returns the frame's ticket, or `Status::Busy`.
/// It ends in `tendon_observe`, whose run then waits for the decode, or in `tendon_frame_drop`. It has no completion, unless one of
/// `tendon_frame_watch` and `tendon_frame_drop` has returned 1.
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

/// Frees a frame that no run has taken. A frame that is still queued is not decoded. Returns 0 if the slot is free; 1 if it is when
/// the completion says `Cancelled`, since a decoder has the frame.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_drop(handle: *const Engine, model: f64, frame: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { engine(handle)?.frame_drop(Ticket::from_wire(model), Ticket::from_wire(frame)) })
}

/// Asks how the decode of a frame ends. Returns 1 if its completion will say so; otherwise what that would have said: `Ok`, `Image`
/// (it cannot be decoded) or `Decoder`. A frame that is watched cannot be observed before its completion.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_watch(handle: *const Engine, model: f64, frame: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { engine(handle)?.frame_watch(Ticket::from_wire(model), Ticket::from_wire(frame)) })
}

/// Microseconds that the decode of a frame took, whether it came out right or not, and also if it was dropped meanwhile. 0 if it was
/// not decoded, or not yet.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_spent(handle: *const Engine, model: f64, frame: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { engine(handle)?.frame_spent(Ticket::from_wire(model), Ticket::from_wire(frame)) })
}
