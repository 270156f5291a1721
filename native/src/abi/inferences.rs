//! The calls of an inference: observe, cancel, withdraw, commit, abort, slot_free. The rules of `abi.rs` apply.

use super::{answer, calls, done, engine, text, ticketed};
use crate::abi::engine::Engine;
use crate::core::layout::ObserveRequest;
use crate::core::status::{Failure, Status};
use crate::core::ticket::Ticket;

/// Queues one inference, which starts once its frames are decoded. Returns the inference's ticket, whose remainder by `TICKET_INDEX_COUNT`
/// is the index for `tendon_result`. The frames belong to the inference, but stay with the caller if this fails. A frame that cannot be
/// decoded ends the inference with `Image` or `Decoder`. `bad_frame` of the result is the first such frame, and the text of the inference
/// is the reason.
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

calls! {
    /// Asks an inference to stop: a queued one does not start, a running one ends before its next flow step, an ended one stays as it is.
    /// The completion says `Cancelled`, or how the inference had ended before.
    fn tendon_cancel(engine, inference: f64) { done(engine.cancel(Ticket::from_wire(inference))) }

    /// Cancels an inference that has not started. Returns 1, and the completion says `Cancelled`. Returns 0 if it has started or ended.
    fn tendon_withdraw(engine, inference: f64) { Ok(i32::from(engine.withdraw(Ticket::from_wire(inference)))) }

    /// Keeps what an inference with a chunk adds to its episode's memory.
    fn tendon_commit(engine, inference: f64) { done(engine.close_inference(Ticket::from_wire(inference), true)) }

    /// Discards what an ended inference would add to its episode's memory.
    fn tendon_abort(engine, inference: f64) { done(engine.close_inference(Ticket::from_wire(inference), false)) }

    /// Frees the result slot of a committed or aborted inference. Its result may be overwritten from now on.
    fn tendon_slot_free(engine, inference: f64) { done(engine.slot_free(Ticket::from_wire(inference))) }
}
