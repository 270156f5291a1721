//! The batch that a replica computes now. Other threads can stop it, and take the replica out if it does not end.

use crate::core::sync::{Mutex, lock};
use crate::core::ticket::Ticket;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Stops an inference from another thread.
pub trait Stop {
    /// Ends the current inference, or the next one.
    fn set(&self);
    fn unset(&self);
}

struct Inner {
    batch: Vec<Ticket>,
    /// Inferences that the replica has taken and not ended.
    owed: Vec<Ticket>,
    since: Option<Instant>,
    lost: Option<Arc<str>>,
}

pub struct Running<S> {
    inner: Mutex<Inner>,
    /// None on `echo`.
    stop: Option<Arc<S>>,
}

impl<S: Stop> Running<S> {
    /// A replica without a batch; a batch has at most `most` inferences.
    pub fn new(most: usize, stop: Option<Arc<S>>) -> Running<S> {
        let (batch, owed) = (Vec::with_capacity(most), Vec::with_capacity(most));
        Running { inner: Mutex::new(Inner { batch, owed, since: None, lost: None }), stop }
    }

    /// The handle that stops its inferences; None on `echo`.
    pub fn stopper(&self) -> Option<&Arc<S>> {
        self.stop.as_ref()
    }

    /// Begins a batch with the inferences of `taken` that are not cancelled; the others go to `gone`. False if none is left. Once the
    /// replica is out all go to `gone`, because no watchdog would end them.
    ///
    /// It is one step under the lock. So a cancel comes before it and puts the inference among `gone`, or comes after it and stops the
    /// batch.
    pub fn begin(&self, taken: &mut Vec<Ticket>, gone: &mut Vec<Ticket>, cancelled: impl Fn(Ticket) -> bool) -> bool {
        gone.clear();
        let mut inner = lock(&self.inner);
        let out = inner.lost.is_some();
        taken.retain(|&ticket| {
            let live = !out && !cancelled(ticket);
            if !live {
                gone.push(ticket);
            }
            live
        });
        inner.batch.extend_from_slice(taken);
        inner.owed.extend_from_slice(taken);
        inner.since = (!taken.is_empty()).then(Instant::now);
        !taken.is_empty()
    }

    /// Ends the computation of the batch: a later cancel cannot stop the next batch. False once the replica is out: others have ended the
    /// inferences then.
    pub fn computed(&self) -> bool {
        let mut inner = lock(&self.inner);
        inner.batch.clear();
        if let Some(stop) = &self.stop {
            stop.unset();
        }
        inner.lost.is_none()
    }

    /// Ends the batch. False once the replica is out, perhaps since the batch was encoded: the replica must not take another batch.
    pub fn ended(&self) -> bool {
        let mut inner = lock(&self.inner);
        inner.owed.clear();
        inner.since = None;
        inner.lost.is_none()
    }

    /// Moves the begin of the batch by `paused`, a time in which the process did not run, but not beyond `now`.
    pub fn excuse(&self, paused: Duration, now: Instant) {
        let mut inner = lock(&self.inner);
        inner.since = inner.since.map(|since| since.max((since + paused).min(now)));
    }

    /// Stops the batch if this inference is in it and all its inferences are cancelled.
    pub fn stop_if_all(&self, ticket: Ticket, cancelled: impl Fn(Ticket) -> bool) {
        let inner = lock(&self.inner);
        if inner.batch.contains(&ticket)
            && inner.batch.iter().all(|&other| cancelled(other))
            && let Some(stop) = &self.stop
        {
            stop.set();
        }
    }

    pub fn stop(&self) {
        let inner = lock(&self.inner);
        if let (false, Some(stop)) = (inner.batch.is_empty(), &self.stop) {
            stop.set();
        }
    }

    /// Takes the replica out if its batch began more than `most` before `now`; returns the inferences that have not ended.
    pub fn lose_overdue(&self, now: Instant, most: Duration) -> Option<Vec<Ticket>> {
        let mut inner = lock(&self.inner);
        let ran = now.saturating_duration_since(inner.since?);
        if ran <= most {
            return None;
        }
        let reason = format!("an inference had not ended after {} ms", ran.as_millis());
        inner.lose(reason)
    }

    /// Takes the replica out; returns the inferences that have not ended, or None if it was out.
    pub fn lose(&self, reason: String) -> Option<Vec<Ticket>> {
        lock(&self.inner).lose(reason)
    }

    /// Inferences of the batch that have not ended.
    pub fn owed(&self) -> usize {
        lock(&self.inner).owed.len()
    }

    pub fn lost(&self) -> Option<Arc<str>> {
        lock(&self.inner).lost.clone()
    }
}

impl Inner {
    fn lose(&mut self, reason: String) -> Option<Vec<Ticket>> {
        if self.lost.is_some() {
            return None;
        }
        self.lost = Some(reason.into());
        self.batch.clear();
        self.since = None;
        Some(std::mem::take(&mut self.owed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::core::ticket::Kind;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Stop for Flag {
        fn set(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
        fn unset(&self) {
            self.0.store(false, Ordering::SeqCst);
        }
    }

    fn replica() -> (Running<Flag>, Arc<Flag>, Vec<Ticket>) {
        let flag = Arc::new(Flag::default());
        let tickets = (0..3).map(|index| Ticket::new(Kind::Chunk, 1, index)).collect();
        (Running::new(4, Some(flag.clone())), flag, tickets)
    }

    /// A cancel between the take and the begin of a batch prevents the prefill.
    #[test]
    fn a_run_that_is_cancelled_after_it_was_taken_does_not_begin() {
        let (running, flag, tickets) = replica();
        let (mut taken, mut gone) = (tickets.clone(), Vec::with_capacity(4));
        let cancelled = |ticket: Ticket| ticket == tickets[1];
        running.stop_if_all(tickets[1], cancelled);
        assert!(running.begin(&mut taken, &mut gone, cancelled));
        assert_eq!((taken, gone), (vec![tickets[0], tickets[2]], vec![tickets[1]]));
        assert!(!flag.0.load(Ordering::SeqCst));
        running.stop_if_all(tickets[0], |_| true);
        assert!(flag.0.load(Ordering::SeqCst), "a batch that has begun is stopped");
        assert!(running.computed() && !flag.0.load(Ordering::SeqCst), "and the next one is not");
    }

    #[test]
    fn a_replica_is_out_when_its_batch_is_overdue_and_owes_what_has_not_ended() {
        let (running, _, tickets) = replica();
        let most = Duration::from_secs(15);
        let later = || Instant::now() + most + Duration::from_secs(1);
        assert_eq!(running.lose_overdue(later(), most), None, "it runs nothing");
        let mut taken = tickets.clone();
        assert!(running.begin(&mut taken, &mut Vec::new(), |_| false));
        assert_eq!(running.lose_overdue(Instant::now(), most), None, "it has just begun");
        assert_eq!(running.lose_overdue(later(), most), Some(tickets));
        assert!(running.lost().is_some_and(|reason| reason.starts_with("an inference had not ended after 1")));
        assert_eq!((running.lose("again".into()), running.computed()), (None, false));
    }

    #[test]
    fn time_in_which_the_process_did_not_run_is_not_held_against_a_batch() {
        let (running, _, mut tickets) = replica();
        let (most, paused) = (Duration::from_secs(15), Duration::from_secs(16));
        assert!(running.begin(&mut tickets, &mut Vec::new(), |_| false));
        let resumed = Instant::now() + paused;
        running.excuse(paused, resumed);
        assert_eq!(running.lose_overdue(resumed, most), None);
        // A batch that began after the pause is not moved beyond now.
        running.excuse(paused, resumed);
        assert_eq!(running.lose_overdue(resumed + most, most), None);
        assert!(running.lose_overdue(resumed + most + Duration::from_millis(1), most).is_some());
    }

    #[test]
    fn a_replica_that_goes_out_while_it_encodes_begins_no_other_batch() {
        let (running, _, tickets) = replica();
        assert!(running.begin(&mut tickets.clone(), &mut Vec::new(), |_| false));
        assert!(running.computed());
        assert_eq!(running.lose("it hung".into()), Some(tickets.clone()));
        assert!(!running.ended());
        let (mut taken, mut gone) = (tickets.clone(), Vec::new());
        assert!(!running.begin(&mut taken, &mut gone, |_| false));
        assert_eq!((taken, gone), (Vec::new(), tickets));
    }

    #[test]
    fn what_has_ended_is_not_owed() {
        let (running, _, mut tickets) = replica();
        assert!(running.begin(&mut tickets, &mut Vec::new(), |_| false));
        assert!(running.computed());
        assert!(running.ended());
        assert_eq!(running.lose("its thread ended".into()), Some(Vec::new()));
    }
}
