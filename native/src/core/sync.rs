//! Locks that survive a caught panic. The crate `interleavings` compiles some modules of this crate with another `sync`.

pub use std::sync::atomic::AtomicU64;
pub use std::sync::{Condvar, Mutex, MutexGuard};

/// Locks, also after a holder has panicked.
///
/// A panic in a native thread is caught and ends one request only. The other threads must get their locks, and what the
/// panicking thread held is given back by what caught it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
