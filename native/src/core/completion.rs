//! The way of completions to the caller, which ends with the engine: a thread that hung until then must not call into what is gone.

use crate::core::status::Status;
use crate::core::sync::{Mutex, lock};
use crate::core::ticket::Ticket;
use std::sync::atomic::{AtomicU64, Ordering};

/// Called from any native thread with a ticket and a result code. The caller keeps it valid until `tendon_close` returns.
pub type Completion = extern "C" fn(ticket: f64, status: i32);

pub struct Completions(Mutex<Option<Completion>>);

impl Completions {
    pub fn new(completion: Completion) -> Completions {
        Completions(Mutex::new(Some(completion)))
    }

    /// Tells the caller; does nothing once closed.
    pub fn tell(&self, ticket: Ticket, status: Status) {
        let completion = lock(&self.0);
        if let Some(completion) = *completion {
            completion(ticket.to_wire(), status as i32);
        }
    }

    /// Nothing is told from here on, and no call is under way when this returns.
    pub fn close(&self) {
        *lock(&self.0) = None;
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts a panic that was caught and has cost a request.
pub fn count_panic() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

/// Panics that were caught in this process.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}
