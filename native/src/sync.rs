//! Locks that survive a caught panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a holder has panicked.
///
/// A panic in a native thread is caught and reported as `Status::Panic`, upon which the caller ends the process. Until then the
/// other threads must get their locks, or the report would be blocked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
