//! Starts the native threads with a scheduling policy that prefers the event loop.

use std::thread::JoinHandle;

/// Runs `work` on a new thread of this name.
///
/// The policy is SCHED_BATCH (sched(7)): the thread gets its fair share of the cores, but does not preempt another thread when it wakes.
/// With few cores a decode thread would otherwise preempt the event loop during the call that woke it, and a call of 5 µs would take
/// milliseconds.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    spawn_prompt(name, move || {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: sets the policy of the calling thread from a live struct. It needs no privilege; if it is
        // refused, the thread works with the ordinary policy.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters) };
        work();
    })
}

/// Runs `work` on a new thread with the ordinary policy: it is shorter than the wait for a core.
pub fn spawn_prompt(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(|error| format!("no thread {name}: {error}"))
}
