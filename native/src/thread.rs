//! Starts the native threads, each at a priority that lets the event loop come first.

use std::thread::JoinHandle;

/// Runs `work` on a new thread of this name.
///
/// The thread is a batch thread (sched(7)): it gets its fair share of the cores, but its waking up takes the core from
/// nobody. On a machine with few cores a decode thread would otherwise push the event loop aside in the middle of the
/// very call that woke it, and a call of 5 µs takes milliseconds.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let start = move || {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: sets the policy of the calling thread from a live struct. It needs no privilege; where it is refused
        // all the same, the thread keeps the ordinary policy and works.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters) };
        work();
    };
    std::thread::Builder::new().name(name.into()).spawn(start).map_err(|error| format!("no thread {name}: {error}"))
}
