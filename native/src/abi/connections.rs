//! The calls of the watch over connections. They need no engine; the rules of `abi.rs` apply.

use super::answer;
use crate::core::layout::ConnectionNote;
use crate::core::status::{Failure, Status};
use crate::http::connections::{self, Watch};

fn misuse(text: &str) -> Failure {
    Failure::new(Status::Misuse, text)
}

fn port_of(port: u32) -> Result<u16, Failure> {
    u16::try_from(port).map_err(|_| misuse("there is no such port"))
}

/// Starts to watch the connections accepted on `port`: `*out` becomes the handle for `tendon_watch_read` and `tendon_watch_close`.
///
/// # Safety
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_watch_open(port: u32, out: *mut *mut Watch) -> i32 {
    answer(|| {
        // SAFETY: the caller's pointer.
        let out = unsafe { out.as_mut() }.ok_or_else(|| misuse("the out pointer is null"))?;
        let watch = Watch::open(port_of(port)?).map_err(|text| Failure::new(Status::Load, &text))?;
        *out = Box::into_raw(Box::new(watch));
        Ok(Status::Ok as i32)
    })
}

/// Takes notes of what changed since the last call, at most `max`; returns how many. A connection that is new is noted with what it has sent.
///
/// # Safety
/// `handle` comes from `tendon_watch_open`; `to` is writable for `max` notes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_watch_read(handle: *const Watch, to: *mut ConnectionNote, max: u32) -> i32 {
    answer(|| {
        if to.is_null() {
            return Err(misuse("the buffer is null"));
        }
        // SAFETY: the caller's pointers.
        let (watch, to) = unsafe { (handle.as_ref(), std::slice::from_raw_parts_mut(to, max as usize)) };
        Ok(watch.ok_or_else(|| misuse("the watch is null"))?.read(to) as i32)
    })
}

/// Ends the watch and joins its thread.
///
/// # Safety
/// `handle` comes from `tendon_watch_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_watch_close(handle: *mut Watch) -> i32 {
    answer(|| {
        if handle.is_null() {
            return Err(misuse("the watch is null"));
        }
        // SAFETY: made by Box::into_raw in `tendon_watch_open`, given back once.
        unsafe { Box::from_raw(handle) }.close();
        Ok(Status::Ok as i32)
    })
}

/// Writes the bytes that the connection has received up to now to `to`. Returns 1, or 0 if it has gone.
///
/// # Safety
/// `to` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tendon_connection_received(fd: u32, cookie_low: u32, cookie_high: u32, to: *mut u64) -> i32 {
    let cookie = u64::from(cookie_high) << 32 | u64::from(cookie_low);
    answer(|| {
        // SAFETY: the caller's pointer.
        let to = unsafe { to.as_mut() }.ok_or_else(|| misuse("the buffer is null"))?;
        Ok(connections::received(fd as i32, cookie).map_or(0, |bytes| {
            *to = bytes;
            1
        }))
    })
}

/// Ends the connection with this descriptor and cookie. Returns 1, or 0 if it has gone. To be called on the thread that closes connections.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_connection_end(fd: u32, cookie_low: u32, cookie_high: u32) -> i32 {
    let cookie = u64::from(cookie_high) << 32 | u64::from(cookie_low);
    answer(|| Ok(i32::from(connections::end(fd as i32, cookie))))
}

/// With `on` 1: other sockets of this user may listen on the port beside this process'; 0: no longer. Returns how many listen.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_listener_share(port: u32, on: u32) -> i32 {
    answer(|| Ok(connections::share(port_of(port)?, on != 0) as i32))
}

/// Connections of the port that are accepted from here on keep about so many bytes that were not read. Returns how many sockets listen.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_listener_receive(port: u32, bytes: u32) -> i32 {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    answer(|| Ok(connections::receive_at_most(port_of(port)?, bytes) as i32))
}

/// New connections go to the one of this process' listening sockets that joined last. Returns 1, or 0 where the kernel refuses.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_listener_prefer_last(port: u32) -> i32 {
    answer(|| Ok(i32::from(connections::prefer_last(port_of(port)?))))
}
