//! Calls the caller's completion until the engine is closed. A thread that hung until then must not call code that is gone.

use crate::core::status::Status;
use crate::core::sync::{Mutex, lock};
use crate::core::ticket::Ticket;
use std::sync::atomic::{AtomicU64, Ordering};

/// A function that any native thread calls with a ticket and a status. The caller keeps it valid until `tendon_close` returns.
pub type Completion = extern "C" fn(ticket: f64, status: i32);

pub struct Completions(Mutex<Option<Completion>>);

impl Completions {
    pub fn new(completion: Completion) -> Completions {
        Completions(Mutex::new(Some(completion)))
    }

    /// Calls the completion; does nothing once closed.
    pub fn tell(&self, ticket: Ticket, status: Status) {
        let completion = lock(&self.0);
        if let Some(completion) = *completion {
            completion(ticket.to_wire(), status as i32);
        }
    }

    /// Ends the calls: none is in progress when this returns.
    pub fn close(&self) {
        *lock(&self.0) = None;
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts a panic that was caught and has failed a request.
pub fn count_panic() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

/// Panics that were caught in this process.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}
