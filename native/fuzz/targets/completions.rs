//! The completions that an engine has called.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A ticket as it crosses the ABI.
pub type Wire = f64;

/// The wait after which a completion is lost.
const LOST: Duration = Duration::from_secs(30);
/// `Status::ReplicaOut`, which no call awaits: a fault has taken a replica out.
const REPLICA_OUT: i32 = -10;

static DONE: Mutex<Vec<(Wire, i32)>> = Mutex::new(Vec::new());
static CAME: Condvar = Condvar::new();

pub extern "C" fn done(ticket: Wire, status: i32) {
    if status != REPLICA_OUT {
        DONE.lock().expect("no panic").push((ticket, status));
        CAME.notify_all();
    }
}

/// Forgets all completions, before an engine is opened.
pub fn forget() {
    DONE.lock().expect("no panic").clear();
}

/// Waits until `count` completions have come.
pub fn wait(count: usize) {
    let mut done = DONE.lock().expect("no panic");
    while done.len() < count {
        let (next, timeout) = CAME.wait_timeout(done, LOST).expect("no panic");
        assert!(!timeout.timed_out(), "a completion is lost: {count} are owed, and these came: {next:?}");
        done = next;
    }
}

/// Statuses of a ticket's completions so far.
pub fn of(ticket: Wire) -> Vec<i32> {
    let done = DONE.lock().expect("no panic");
    done.iter().filter(|(other, _)| *other == ticket).map(|(_, status)| *status).collect()
}

/// Completions so far, by the bits of their tickets.
pub fn counted() -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for (ticket, _) in DONE.lock().expect("no panic").iter() {
        *counts.entry(ticket.to_bits()).or_default() += 1;
    }
    counts
}
