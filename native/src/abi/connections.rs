//! The calls about connections and listening sockets. They need no engine; the rules of `abi.rs` apply.

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

/// Starts to watch the connections that are accepted on `port`: `*out` becomes the handle for `tendon_watch_read` and `tendon_watch_close`.
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

/// Moves at most `max` notes of changes to `to`, the oldest first; returns how many. The first note of a connection has the bytes that it
/// has received.
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

/// Writes the bytes that the connection has received so far to `to`. Returns 1, or 0 if the connection is gone.
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

/// Ends the connection with this descriptor and cookie, on the thread that closes connections. Returns 1, or 0 if the connection is gone.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_connection_end(fd: u32, cookie_low: u32, cookie_high: u32) -> i32 {
    let cookie = u64::from(cookie_high) << 32 | u64::from(cookie_low);
    answer(|| Ok(i32::from(connections::end(fd as i32, cookie))))
}

/// Allows (`on` 1) or forbids (0) other sockets of this user to listen on the port. Returns how many sockets of this process listen there.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_listener_share(port: u32, on: u32) -> i32 {
    answer(|| Ok(connections::share(port_of(port)?, on != 0) as i32))
}

/// Bounds the unread bytes of connections that are accepted on the port from now on. Returns how many sockets listen.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_listener_receive(port: u32, bytes: u32) -> i32 {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    answer(|| Ok(connections::receive_at_most(port_of(port)?, bytes) as i32))
}

/// Gives new connections to the listening socket of this process that joined last. Returns 1, or 0 if the kernel refuses.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_listener_prefer_last(port: u32) -> i32 {
    answer(|| Ok(i32::from(connections::prefer_last(port_of(port)?))))
}
