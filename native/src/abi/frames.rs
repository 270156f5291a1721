//! The calls of a frame: put, spent, drop. The rules of `abi.rs` apply.

use super::{answer, bytes, done, engine, ticketed};
use crate::engine::Engine;
use crate::ticket::Ticket;

/// Copies a JPEG of at most `JPEG_BYTES_MAX` bytes and queues its decode; different turns alternate. Returns the frame's ticket, or `Status::Busy`.
/// The completion says `Ok`, `Image` (refused; the slot still needs `tendon_frame_drop`) or `Cancelled` (dropped meanwhile).
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_put(
    handle: *const Engine,
    model: f64,
    camera: u32,
    turn: u32,
    jpeg: *const u8,
    jpeg_len: u32,
) -> f64 {
    // SAFETY: the caller's pointers.
    ticketed(|| unsafe { engine(handle)?.frame_put(Ticket::from_wire(model), camera, turn, bytes(jpeg, jpeg_len)?) })
}

/// Frees a frame that no run has taken. A frame that is still queued is not decoded.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_drop(handle: *const Engine, model: f64, frame: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.frame_drop(Ticket::from_wire(model), Ticket::from_wire(frame))) })
}

/// Microseconds that the decode of a frame took, whether it came out right or not, and also if it was dropped meanwhile; to be asked
/// at its completion. 0 if it was not decoded.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_frame_spent(handle: *const Engine, model: f64, frame: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { engine(handle)?.frame_spent(Ticket::from_wire(model), Ticket::from_wire(frame)) })
}
