//! The calls of an inference: observe, cancel, withdraw, commit, abort, slot_free. The rules of `abi.rs` apply.

use super::{answer, done, engine, text, ticketed};
use crate::abi::engine::Engine;
use crate::core::layout::ObserveRequest;
use crate::core::status::{Failure, Status};
use crate::core::ticket::Ticket;

/// Queues one inference, which starts once its frames are decoded. Returns the inference's ticket; its remainder by `TICKET_INDEX_COUNT` is the index for
/// `tendon_result`. The frames belong to the inference from here on; with a failure they stay with the caller. A frame that cannot be
/// decoded ends the inference with `Image`, or with `Decoder`; `bad_frame` of its result is the first one, whose reason is the inference's text.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_observe(
    handle: *const Engine,
    request: *const ObserveRequest,
    instruction: *const u8,
    instruction_len: u32,
) -> f64 {
    ticketed(|| {
        // SAFETY: the caller's pointers.
        unsafe {
            let request = request.as_ref().ok_or_else(|| Failure::new(Status::Misuse, "the request is null"))?;
            engine(handle)?.observe(request, text(instruction, instruction_len)?)
        }
    })
}

/// Asks an inference to stop: a queued one is not started, a running one ends before its next flow step, a finished one stays as it
/// is. The completion says `Cancelled`, or how the inference had ended before.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_cancel(handle: *const Engine, inference: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.cancel(Ticket::from_wire(inference))) })
}

/// Cancels an inference that has not started. Returns 1, and its completion says `Cancelled`; or 0 if it has started or ended.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_withdraw(handle: *const Engine, inference: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { Ok(i32::from(engine(handle)?.withdraw(Ticket::from_wire(inference)))) })
}

/// Keeps what an inference with a chunk adds to its episode's memory.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_commit(handle: *const Engine, inference: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.close_inference(Ticket::from_wire(inference), true)) })
}

/// Discards what an ended inference would add to its episode's memory.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_abort(handle: *const Engine, inference: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.close_inference(Ticket::from_wire(inference), false)) })
}

/// Frees the result slot of a committed or aborted run; its result may be overwritten from now on.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_slot_free(handle: *const Engine, inference: f64) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(engine(handle)?.slot_free(Ticket::from_wire(inference))) })
}
