//! loom's primitives in place of the engine's `sync`: every interleaving is run.

pub use loom::sync::atomic::AtomicU64;
pub use loom::sync::{Condvar, Mutex, MutexGuard};

/// Locks like the engine's; a panic ends the model.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
