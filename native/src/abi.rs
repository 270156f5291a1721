//! The C ABI: the only code that reads pointers of the caller. The calls of a frame are in `abi/frames.rs`, those of an inference in
//! `abi/inferences.rs`, those of request bodies in `abi/body.rs`, those of connections in `abi/connections.rs`, those of devices in
//! `abi/devices.rs`.
//!
//! Rules for all calls, unless a call says otherwise:
//! - A call returns at once. Each accepted `tendon_load`, `tendon_unload` and `tendon_observe` ends in one completion `(ticket, status)`. A
//!   frame has one if `tendon_frame_watch` or `tendon_frame_drop` says so. A completion is called on any native thread, and during
//!   `tendon_unload`, `tendon_cancel` and `tendon_withdraw` also on the caller's. It must not call the engine, and must stay valid until
//!   `tendon_close` returns.
//! - Any thread may make a call, one at a time: a call during another one is `Status::Misuse`.
//! - A ticket is a double, a whole number above 0. A result below 0 is a `Status`, 0 is success, a result above 0 is a ticket.
//!   `tendon_last_error` gives the text of a refused call on the same thread, `tendon_error_text` that of a completion.
//! - Pointers belong to the caller, are not null unless said, and are not kept after the call returns.
//! - A panic inside becomes `Status::Panic`; nothing unwinds into the caller.

mod body;
mod connections;
mod devices;
pub mod engine;
pub mod frames;
pub mod inferences;
mod print;
#[cfg(feature = "rehearsal")]
pub mod rehearsals;

pub use print::typescript;

use crate::abi::engine::{Engine, InCall};
use crate::core::completion::{Completion, count_panic};
use crate::core::layout::{ABI_VERSION, ChunkResult, ObserveRequest, OpenOptions, Stats};
use crate::core::status::{ErrorText, Failure, Status};
use crate::core::ticket::Ticket;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;

thread_local! {
    static LAST_ERROR: RefCell<ErrorText> = const { RefCell::new(ErrorText::new()) };
}

/// Runs a call. The text of a failure is kept for `tendon_last_error`; a panic is caught.
fn answer(call: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    caught(call).unwrap_or_else(|status| status as i32)
}

fn ticketed(call: impl FnOnce() -> Result<Ticket, Failure>) -> f64 {
    caught(call).map_or_else(|status| f64::from(status as i32), Ticket::to_wire)
}

fn caught<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Status> {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(_) => {
            count_panic();
            Failure::new(Status::Panic, "the engine panicked")
        }
    };
    LAST_ERROR.with_borrow_mut(|text| text.set(format_args!("{}", failure.text)));
    Err(failure.status)
}

fn done(result: Result<(), Failure>) -> Result<i32, Failure> {
    result.map(|()| Status::Ok as i32)
}

/// Writes a text if it fits. Returns its length.
///
/// # Safety
/// `to` is writable for `to_len` bytes, or null.
unsafe fn written(text: &str, to: *mut u8, to_len: u32) -> i32 {
    if text.len() <= to_len as usize && !to.is_null() {
        // SAFETY: `to` is writable for `to_len` bytes, at least the text's.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len()) };
    }
    text.len() as i32
}

/// # Safety
/// `start` must be readable for `len` bytes, which live as long as the caller's frame.
unsafe fn text<'a>(start: *const u8, len: u32) -> Result<&'a str, Failure> {
    // SAFETY: passed on to the caller.
    let bytes = unsafe { bytes(start, len) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::new(Status::Misuse, "a text is not UTF-8"))
}

/// # Safety
/// Like `text`.
unsafe fn bytes<'a>(start: *const u8, len: u32) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Failure::new(Status::Misuse, "a pointer is null"));
    }
    // SAFETY: not null; the caller vouches for the length.
    Ok(unsafe { std::slice::from_raw_parts(start, len as usize) })
}

/// # Safety
/// `engine` must come from `tendon_open` and not have been closed.
unsafe fn engine<'a>(engine: *const Engine) -> Result<InCall<'a>, Failure> {
    let misuse = |text: &str| Failure::new(Status::Misuse, text);
    // SAFETY: the caller vouches for the pointer.
    let engine = unsafe { engine.as_ref() }.ok_or_else(|| misuse("the engine is null"))?;
    engine.begin().ok_or_else(|| misuse("another thread is in a call of this engine; calls come one at a time"))
}

/// Declares calls of an engine whose other arguments are numbers.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($engine:ident $(, $arg:ident: $kind:ty)*) $body:block)*) => {
        $($(#[$doc])*
        ///
        /// # Safety
        /// `handle` comes from `tendon_open` and has not been closed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(handle: *const Engine, $($arg: $kind),*) -> i32 {
            answer(|| {
                // SAFETY: the caller's.
                let $engine = unsafe { engine(handle) }?;
                $body
            })
        })*
    };
}
use calls;

/// Version of the library, `MAJOR.MINOR.PATCH`; a static C string.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Sizes and offsets of every struct and the value of every constant, as JSON; a static C string.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_layout() -> *const c_char {
    static LAYOUT: OnceLock<CString> = OnceLock::new();
    LAYOUT.get_or_init(|| CString::new(print::json()).unwrap_or_default()).as_ptr()
}

/// Opens an engine: `*out` becomes the handle of all other calls until `tendon_close`.
///
/// `runtime` and `jpeg` are the absolute paths of libonnxruntime.so.1 and libturbojpeg.so.0, UTF-8. The call blocks for a few milliseconds.
/// It returns `Status::Load` if a library cannot be opened.
///
/// # Safety
/// Pointers as the module's rules say; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_open(
    options: *const OpenOptions,
    runtime: *const u8,
    runtime_len: u32,
    jpeg: *const u8,
    jpeg_len: u32,
    completion: Option<Completion>,
    out: *mut *mut Engine,
) -> i32 {
    answer(|| {
        let misuse = |text: &str| Failure::new(Status::Misuse, text);
        let completion = completion.ok_or_else(|| misuse("the completion is null"))?;
        // SAFETY: the caller's pointers, by the rules above.
        let (options, runtime, jpeg, out) = unsafe {
            let options = options.as_ref().ok_or_else(|| misuse("the options are null"))?;
            let out = out.as_mut().ok_or_else(|| misuse("the out pointer is null"))?;
            (options, text(runtime, runtime_len)?, text(jpeg, jpeg_len)?, out)
        };
        if options.abi_version != ABI_VERSION {
            return Err(misuse("the library and its caller are of different versions"));
        }
        *out = Box::into_raw(Box::new(Engine::open(options, Path::new(runtime), Path::new(jpeg), completion)?));
        Ok(Status::Ok as i32)
    })
}

/// Cancels all inferences, joins every thread and frees the engine. Blocks until the last flow step has ended or its replica is taken out.
/// A thread that hangs is left behind and calls no completion any more.
///
/// # Safety
/// `handle` comes from `tendon_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_close(handle: *mut Engine) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointer.
        unsafe { engine(handle) }?.close();
        // SAFETY: made by Box::into_raw in `tendon_open`, given back once; no call is under way.
        drop(unsafe { Box::from_raw(handle) });
        Ok(Status::Ok as i32)
    })
}

/// Starts to load a model from a load plan (JSON, `model::plan::LoadPlan`). Returns its ticket. The completion comes when every replica has
/// proved the model. A failure is `Status::Load`, or `OutOfMemory`, `DeviceLost` or `BadBundle` if that is the known reason.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_load(handle: *const Engine, plan: *const u8, plan_len: u32) -> f64 {
    // SAFETY: the caller's pointers.
    ticketed(|| unsafe { engine(handle)?.load(text(plan, plan_len)?.into()) })
}

/// Writes where the model runs (JSON, `model::Placement`) to `to`. Returns the length, or the length needed if it is more than `to_len`.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable for `to_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_placement(handle: *const Engine, model: f64, to: *mut u8, to_len: u32) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        let json = unsafe { engine(handle) }?.placement(Ticket::from_wire(model))?;
        // SAFETY: as above.
        Ok(unsafe { written(&json, to, to_len) })
    })
}

/// Prompt tokens of an observation: image, text and state tokens. Only `model`, `slot` and the state of the request are read. Without a
/// state (`state_len` 0) it is the most that any state needs; with `NO_SLOT` it is that of a first observation. Returns the count, or
/// `Status::TooLong`.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_measure(
    handle: *const Engine,
    request: *const ObserveRequest,
    instruction: *const u8,
    instruction_len: u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        unsafe {
            let request = request.as_ref().ok_or_else(|| Failure::new(Status::Misuse, "the request is null"))?;
            Ok(engine(handle)?.measure(request, text(instruction, instruction_len)?)? as i32)
        }
    })
}

calls! {
    /// Unloads a model: queued inferences are cancelled, running ones are stopped. The ticket is invalid at once. The completion comes
    /// when the model's memory is free.
    fn tendon_unload(engine, model: f64) { done(engine.unload(Ticket::from_wire(model))) }

    /// Bytes of UTF-8 of the longest instruction that `tendon_measure` and `tendon_observe` read. They refuse a longer one.
    fn tendon_instruction_max(engine, model: f64) {
        Ok(engine.instruction_bytes_max(Ticket::from_wire(model))?.min(i32::MAX as usize) as i32)
    }

    /// Empties the memory slot of an ended episode. `Misuse` on a model without episode memory, and while an inference has the slot that
    /// is neither committed nor aborted.
    fn tendon_session_drop(engine, model: f64, slot: u32) { done(engine.session_drop(Ticket::from_wire(model), slot)) }
}

/// Address of result slot `index`, fixed until `tendon_close`; null if there is no such slot. It may be read from the inference's
/// completion to `tendon_slot_free`.
///
/// # Safety
/// Pointers as the module's rules say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_result(handle: *const Engine, index: u32) -> *const ChunkResult {
    // SAFETY: the caller's pointers.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe { engine(handle) }.ok()?.result(index)));
    result.ok().flatten().unwrap_or(std::ptr::null())
}

/// Copies the text of the failure that a completion reported to `to`, cut at `to_len` bytes. `model` matters for the ticket of a frame.
/// Returns the length, 0 without a text.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable for `to_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_error_text(
    handle: *const Engine,
    model: f64,
    ticket: f64,
    to: *mut u8,
    to_len: u32,
) -> i32 {
    answer(|| {
        if to.is_null() {
            return Err(Failure::new(Status::Misuse, "the buffer is null"));
        }
        // SAFETY: the caller's pointers; `to` is writable for `to_len` bytes.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to, to_len as usize);
            Ok(engine(handle)?.error_text(Ticket::from_wire(model), Ticket::from_wire(ticket), to) as i32)
        }
    })
}

/// Copies the text of this thread's last refused call to `to`, cut at `to_len` bytes; returns its length.
///
/// # Safety
/// `to` is writable for `to_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_last_error(to: *mut u8, to_len: u32) -> i32 {
    LAST_ERROR.with_borrow(|text| {
        let bytes = text.as_bytes();
        let len = bytes.len().min(to_len as usize);
        if !to.is_null() {
            // SAFETY: `to` is writable for `to_len` bytes, and `len` is no more.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len) };
        }
        len as i32
    })
}

/// Writes the counters to `to`.
///
/// # Safety
/// Pointers as the module's rules say; `to` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_stats(handle: *const Engine, to: *mut Stats) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointers.
        unsafe {
            let to = to.as_mut().ok_or_else(|| Failure::new(Status::Misuse, "the buffer is null"))?;
            *to = engine(handle)?.stats();
        }
        Ok(Status::Ok as i32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn ignore(_ticket: f64, _status: i32) {}

    fn stats(handle: usize) -> i32 {
        // SAFETY: an open engine, and plain integers that the call writes.
        unsafe {
            let mut to = std::mem::zeroed::<Stats>();
            tendon_stats(handle as *const Engine, &mut to)
        }
    }

    /// A second caller at the same time is refused, whatever it calls, and changes nothing.
    #[test]
    fn a_call_while_another_thread_is_in_one_is_misuse() {
        let packaged = "../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
        let jpeg = Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged);
        let options = OpenOptions { abi_version: ABI_VERSION, decode_threads: 1, chunks_max: 1, frames_max: 1 };
        let opened = Engine::open(&options, Path::new("/nonexistent"), &jpeg, ignore).expect("an engine");
        let handle = Box::into_raw(Box::new(opened));
        let address = handle as usize;
        // SAFETY: the engine that was just made.
        let call = unsafe { engine(handle) }.expect("the first caller");
        let other = std::thread::spawn(move || stats(address)).join().expect("an answer");
        assert_eq!(other, Status::Misuse as i32);
        // SAFETY: it is refused as well, so the engine stays open.
        assert_eq!(unsafe { tendon_close(handle) }, Status::Misuse as i32);
        drop(call);
        assert_eq!(std::thread::spawn(move || stats(address)).join().expect("an answer"), Status::Ok as i32);
        // SAFETY: the last call.
        assert_eq!(unsafe { tendon_close(handle) }, Status::Ok as i32);
    }
}
