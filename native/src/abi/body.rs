//! The calls of request bodies. The rules of `abi.rs` apply; the handle is that of `tendon_bodies_open`, and no engine is needed.

use super::{answer, bytes, done};
use crate::core::layout::{BodyResult, BodyRules};
use crate::core::status::{Failure, Status};
use crate::http::body::{Bodies, OnScanned};

/// # Safety
/// `handle` must come from `tendon_bodies_open` and not have been closed.
unsafe fn bodies<'a>(handle: *const Bodies) -> Result<&'a Bodies, Failure> {
    // SAFETY: the caller vouches for the pointer.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::new(Status::Misuse, "the handle of bodies is null"))
}

/// Starts the threads that scan bodies: `*out` becomes the handle of the calls below until `tendon_bodies_close`. The threads call
/// `completion` with a body's id and `Ok`, `Syntax`, `Depth`, `Values` or `Panic`. It must not make a call.
///
/// # Safety
/// Pointers as the module's rules say; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_bodies_open(completion: Option<OnScanned>, out: *mut *mut Bodies) -> i32 {
    answer(|| {
        let misuse = |text: &str| Failure::new(Status::Misuse, text);
        let completion = completion.ok_or_else(|| misuse("the completion is null"))?;
        // SAFETY: the caller's pointer.
        let out = unsafe { out.as_mut() }.ok_or_else(|| misuse("the out pointer is null"))?;
        let opened = Bodies::open(completion).map_err(|text| Failure::new(Status::Load, text))?;
        *out = Box::into_raw(Box::new(opened));
        Ok(Status::Ok as i32)
    })
}

/// Scans the queued bodies, joins the threads and frees all bodies. Blocks until then.
///
/// # Safety
/// `handle` comes from `tendon_bodies_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_bodies_close(handle: *mut Bodies) -> i32 {
    answer(|| {
        if handle.is_null() {
            return Err(Failure::new(Status::Misuse, "the handle of bodies is null"));
        }
        // SAFETY: made by Box::into_raw in `tendon_bodies_open`, given back once.
        unsafe { Box::from_raw(handle) }.close();
        Ok(Status::Ok as i32)
    })
}

/// Makes an empty body for `capacity` bytes. Returns its id, or `Busy`.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_body_make(handle: *const Bodies, capacity: u32) -> i32 {
    // SAFETY: the caller's pointer.
    answer(|| unsafe { Ok(bodies(handle)?.make(capacity as usize)? as i32) })
}

/// Appends bytes to a body that has not been scanned. A body takes at most its capacity.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_body_write(handle: *const Bodies, body: u32, start: *const u8, len: u32) -> i32 {
    // SAFETY: the caller's pointers.
    answer(|| unsafe { done(bodies(handle)?.write(body, bytes(start, len)?)) })
}

/// Queues the one scan of a body. Bodies of different turns alternate. The completion comes once.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_body_scan(handle: *const Bodies, body: u32, turn: u32, rules: *const BodyRules) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        unsafe {
            let rules = rules.as_ref().ok_or_else(|| Failure::new(Status::Misuse, "the rules are null"))?;
            done(bodies(handle)?.scan(body, turn, rules))
        }
    })
}

/// Writes the result of a scan to `to`, after its completion.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_body_result(handle: *const Bodies, body: u32, to: *mut BodyResult) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        unsafe {
            let to = to.as_mut().ok_or_else(|| Failure::new(Status::Misuse, "the buffer is null"))?;
            *to = bodies(handle)?.result(body)?;
        }
        Ok(Status::Ok as i32)
    })
}

/// Frees a body before its scan or after its completion.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_body_free(handle: *const Bodies, body: u32) -> i32 {
    // SAFETY: the caller's pointer.
    answer(|| unsafe { done(bodies(handle)?.free(body)) })
}
