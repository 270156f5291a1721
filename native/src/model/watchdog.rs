//! The watchdog of a model: a thread that takes a replica out when its batch does not end. A replica whose thread ends, or whose device
//! fails, takes itself out in the same way.
//!
//! A replica that is out takes no more work. Its inferences end with `Status::Lost`, also those that wait for its memory. A thread that
//! still hangs is left behind, and finds its inferences ended if it ever goes on.

use crate::core::status::Status;
use crate::core::sync::{Condvar, Mutex, lock};
use crate::core::ticket::Ticket;
use crate::model::Model;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The threads of a model's replicas that have not ended.
pub struct Crew {
    working: Mutex<Vec<bool>>,
    changed: Condvar,
}

impl Crew {
    pub fn new(replicas: usize) -> Crew {
        Crew { working: Mutex::new(vec![false; replicas]), changed: Condvar::new() }
    }

    pub fn started(&self, replica: usize) {
        lock(&self.working)[replica] = true;
    }

    pub fn ended(&self, replica: usize) {
        lock(&self.working)[replica] = false;
        self.changed.notify_all();
    }
}

/// A replica's thread holds it, so that every end of the thread is noticed.
pub struct Presence {
    pub model: Arc<Model>,
    pub replica: usize,
    /// The replica serves, and must not end before the model is closed.
    pub ready: bool,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.ready && !self.model.closing.load(Ordering::Acquire) {
            self.model.lose(self.replica, self.model.end_reason(self.replica));
        }
        self.model.crew.ended(self.replica);
    }
}

impl Model {
    /// Takes a replica out, unless it is.
    pub fn lose(&self, replica: usize, reason: String) {
        if let Some(owed) = self.running[replica].lose(reason) {
            self.clear_out(replica, owed);
        }
    }

    /// Ends the inferences that a replica that went out would have computed.
    fn clear_out(&self, replica: usize, owed: Vec<Ticket>) {
        // The caller hears this first, so that it knows why the inferences fail.
        self.completions.tell(self.ticket, Status::ReplicaOut);
        let lost = || Err((Status::Lost, "the replica of the inference is out"));
        for ticket in owed {
            self.end(ticket, lost());
        }
        // The other replicas serve a shared queue. This one must take nothing more, even if it waits there while another inference found
        // its device lost.
        self.leave_queue(replica);
        if !self.episodes.is_empty() || self.is_lost() {
            let queue = self.queue(replica);
            queue.close();
            while let Some(ticket) = queue.pop() {
                self.end(ticket, lost());
            }
        }
        // A waiting thread holds the lock from its check to its wait, so it does not miss this.
        drop(lock(&self.crew.working));
        self.crew.changed.notify_all();
    }

    pub fn is_lost(&self) -> bool {
        self.running.iter().all(|running| running.lost().is_some())
    }

    /// The work of the watchdog's thread until every replica's thread has ended or is out. It also gives the memory of parked sessions
    /// back, which may take its time.
    pub fn watch(&self) {
        let tick = (self.inference_max / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
        let mut last = Instant::now();
        while self.wait(Some(tick)) {
            let now = Instant::now();
            // The time is from tick to tick, so that a pause shows wherever this thread was.
            let late = lateness(last, tick, now);
            last = now;
            self.episodes.iter().for_each(|episodes| episodes.give_back());
            for (replica, running) in self.running.iter().enumerate() {
                running.excuse(late, now);
                if let Some(owed) = running.lose_overdue(now, self.inference_max) {
                    self.clear_out(replica, owed);
                }
            }
        }
    }

    /// Waits until every replica's thread has ended or is out.
    pub fn wait_for_replicas(&self) {
        while self.wait(None) {}
    }

    /// Waits for a change or the tick; false once no replica's thread is awaited.
    fn wait(&self, tick: Option<Duration>) -> bool {
        let working = lock(&self.crew.working);
        let waits =
            working.iter().zip(&self.running).any(|(&is_working, running)| is_working && running.lost().is_none());
        match (waits, tick) {
            (true, Some(tick)) => {
                drop(self.crew.changed.wait_timeout(working, tick).unwrap_or_else(PoisonError::into_inner));
            }
            (true, None) => drop(self.crew.changed.wait(working).unwrap_or_else(PoisonError::into_inner)),
            (false, _) => {}
        }
        waits
    }
}

/// The time between two ticks beyond a tick. The process was stopped then, or its container paused: its replicas did not run either and do
/// not hang. Some milliseconds of a busy machine count too.
fn lateness(last: Instant, tick: Duration, now: Instant) -> Duration {
    now.saturating_duration_since(last).saturating_sub(tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_late_by_what_it_took_beyond_its_time() {
        let (last, tick) = (Instant::now(), Duration::from_millis(250));
        assert_eq!(lateness(last, tick, last + Duration::from_secs(16)), Duration::from_millis(15_750));
        for early in [Duration::ZERO, Duration::from_millis(3), tick] {
            assert_eq!(lateness(last, tick, last + early), Duration::ZERO);
        }
        assert_eq!(lateness(last + tick, tick, last), Duration::ZERO);
    }
}
