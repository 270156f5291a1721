//! Calls that tests alone make. The library that ships has none of them. The rules of `abi.rs` apply.

use super::{answer, engine, text};
use crate::abi::engine::Engine;
use crate::core::rehearsal::Plan;
use crate::core::status::{Failure, Status};
use crate::core::ticket::Ticket;

/// Begins a rehearsal in this process: `plan` is the JSON of a `Plan`.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_rehearse(plan: *const u8, plan_len: u32) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        let plan: Result<Plan, _> = serde_json::from_str(unsafe { text(plan, plan_len) }?);
        plan.map_err(|error| Failure::new(Status::Misuse, error.to_string()))?.begin();
        Ok(Status::Ok as i32)
    })
}

/// Writes the latent frames of a memory slot and the digest of their values to `to`. `Misuse` while an inference has the slot.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_memory(handle: *const Engine, model: f64, slot: u32, to: *mut [u64; 2]) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        let (to, content) = unsafe { (to.as_mut(), engine(handle)?.memory(Ticket::from_wire(model), slot)?) };
        let to = to.ok_or_else(|| Failure::new(Status::Misuse, "the buffer is null"))?;
        *to = [content.0 as u64, content.1];
        Ok(Status::Ok as i32)
    })
}
