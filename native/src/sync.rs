//! Locks that survive a caught panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a holder has panicked.
///
/// A panic in a native thread is caught, told to the caller as `Status::Panic` and ends the process there; until then the
/// other threads must get their locks, or that message would never come.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
