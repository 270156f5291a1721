//! Each test is run once per interleaving of its threads.

use crate::core::active_batch::{Running, Stop};
use crate::core::queue::Queue;
use crate::core::ticket::{FREE, Kind, Ticket, Word};
use crate::frame::{DropOutcome, Listener, State};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc as Plain;

const LIVE: u8 = 1;
const DONE: u8 = 2;

fn slot() -> (loom::sync::Arc<Word>, Ticket) {
    let word = loom::sync::Arc::new(Word::new(Kind::Chunk, 0, 0));
    let ticket = word.next().expect("the first ticket");
    word.open(ticket, LIVE);
    (word, ticket)
}

/// Result slots: the replica and the watchdog both end an inference. One of them does, so it has one completion.
#[test]
fn a_run_is_ended_by_exactly_one_of_two_threads() {
    loom::model(|| {
        let (word, ticket) = slot();
        let other = word.clone();
        let watchdog = thread::spawn(move || other.turn(ticket, LIVE, DONE));
        let replica = word.turn(ticket, LIVE, DONE);
        assert!(watchdog.join().expect("no panic") != replica);
        assert_eq!(word.state(ticket), Some(DONE));
    });
}

/// Tickets: a thread with an old ticket wakes up while the slot gets its next user, and never changes it.
#[test]
fn a_late_thread_never_reaches_the_slots_next_user() {
    loom::model(|| {
        let (word, ticket) = slot();
        let late = word.clone();
        let hung = thread::spawn(move || late.turn(ticket, LIVE, DONE));
        let ended = word.turn(ticket, LIVE, FREE);
        if ended {
            let next = word.next().expect("a second ticket");
            word.open(next, LIVE);
            assert!(!hung.join().expect("no panic"));
            assert_eq!((word.state(next), word.state(ticket)), (Some(LIVE), None));
        } else {
            assert!(hung.join().expect("no panic"));
        }
    });
}

/// An inference is written to under its lock while it is live: its result is whole afterwards, and nothing is written later.
#[test]
fn nothing_is_written_to_a_run_after_its_end() {
    loom::model(|| {
        let (word, ticket) = slot();
        let job = loom::sync::Arc::new(crate::core::sync::Mutex::new(0));
        let (late, result) = (word.clone(), job.clone());
        let replica = thread::spawn(move || {
            let mut result = crate::core::sync::lock(&result);
            if late.state(ticket) == Some(LIVE) {
                *result += 1;
            }
        });
        let seen = {
            let result = crate::core::sync::lock(&job);
            assert!(word.turn(ticket, LIVE, DONE));
            *result
        };
        replica.join().expect("no panic");
        assert_eq!(*crate::core::sync::lock(&job), seen);
    });
}

/// Queue: closed at any moment, every item that was accepted is consumed once, and the consumer ends.
#[test]
fn a_closed_queue_gives_every_item_that_it_accepted() {
    loom::model(|| {
        let queue = loom::sync::Arc::new(Queue::new(2));
        let (producer, closer) = (queue.clone(), queue.clone());
        let pushed = thread::spawn(move || usize::from(producer.push(1, 7).is_ok()));
        let closing = thread::spawn(move || closer.close());
        let mut taken = Vec::with_capacity(2);
        let mut count = 0;
        while queue.take(&mut taken, 2, || false) {
            count += taken.len();
        }
        closing.join().expect("no panic");
        // A closed queue accepts nothing, so no item comes after the consumer's last check.
        assert_eq!(pushed.join().expect("no panic"), count);
    });
}

/// Queue: a consumer that leaves at any time leaves no item behind that another one would have taken.
#[test]
fn what_a_leaving_consumer_was_woken_for_is_taken_by_another() {
    let mut model = loom::model::Builder::new();
    // Three threads: all schedules would take hours, and a missed wake-up needs fewer.
    model.preemption_bound = Some(2);
    model.check(|| {
        let queue = loom::sync::Arc::new(Queue::new(2));
        let leaves = loom::sync::Arc::new(AtomicBool::new(false));
        let (own, leaves_now) = (queue.clone(), leaves.clone());
        let leaving = thread::spawn(move || {
            let mut taken = Vec::with_capacity(2);
            let had = own.take(&mut taken, 1, || leaves_now.load(Ordering::SeqCst));
            if had { taken.len() } else { 0 }
        });
        let stays = queue.clone();
        let staying = thread::spawn(move || {
            let mut taken = Vec::with_capacity(2);
            let mut count = 0;
            while stays.take(&mut taken, 1, || false) {
                count += taken.len();
            }
            count
        });
        queue.push(1, 7).expect("room");
        leaves.store(true, Ordering::SeqCst);
        queue.wake();
        let first = leaving.join().expect("it has left");
        queue.close();
        assert_eq!(first + staying.join().expect("no panic"), 1);
    });
}

/// Queue: an item that is taken back is not taken by the consumer, and one that is taken is not taken back.
#[test]
fn an_item_is_taken_or_taken_back() {
    loom::model(|| {
        let queue = loom::sync::Arc::new(Queue::new(2));
        queue.push(1, 7).expect("room");
        queue.close();
        let caller = queue.clone();
        let back = thread::spawn(move || caller.remove(|&item| item == 7).is_some());
        let taken = queue.pop().is_some();
        assert!(back.join().expect("no panic") != taken);
    });
}

struct Flag(AtomicBool);

impl Stop for Flag {
    fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
    fn unset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A cancel between the take and the begin of a batch prevents the prefill: the inference does not begin, or it is stopped.
#[test]
fn a_cancel_while_a_batch_begins_is_never_missed() {
    loom::model(|| {
        let stop = Plain::new(Flag(AtomicBool::new(false)));
        let running = loom::sync::Arc::new(Running::new(1, Some(stop.clone())));
        let cancelled = loom::sync::Arc::new(AtomicBool::new(false));
        let ticket = Ticket::new(Kind::Chunk, 1, 0);
        let (batch, flag) = (running.clone(), cancelled.clone());
        let replica = thread::spawn(move || {
            let (mut taken, mut gone) = (vec![ticket], Vec::with_capacity(1));
            batch.begin(&mut taken, &mut gone, |_| flag.load(Ordering::SeqCst))
        });
        cancelled.store(true, Ordering::SeqCst);
        running.stop_if_all(ticket, |_| cancelled.load(Ordering::SeqCst));
        let begun = replica.join().expect("no panic");
        assert!(!begun || stop.0.load(Ordering::SeqCst));
    });
}

/// The watchdog and the end of a computation: either the replica or the watchdog ends each inference.
#[test]
fn a_batch_is_ended_by_the_replica_or_by_the_watchdog() {
    loom::model(|| {
        let running = loom::sync::Arc::new(Running::<Flag>::new(1, None));
        let ticket = Ticket::new(Kind::Chunk, 1, 0);
        assert!(running.begin(&mut vec![ticket], &mut Vec::new(), |_| false));
        let owned = loom::sync::Arc::new(AtomicUsize::new(0));
        let (other, count) = (running.clone(), owned.clone());
        let watchdog = thread::spawn(move || {
            if let Some(owed) = other.lose("it hung".into()) {
                count.fetch_add(owed.len(), Ordering::SeqCst);
            }
        });
        let computed = running.computed();
        watchdog.join().expect("no panic");
        // A replica that went out before leaves the inference to the watchdog. One that goes out later may try too, and the slot's word
        // decides.
        assert!(computed || owned.load(Ordering::SeqCst) == 1);
    });
}

/// A replica that goes out between two batches, or while it encodes the first, begins a second one only if the watchdog ends it.
#[test]
fn a_replica_that_is_out_begins_no_batch_that_nobody_ends() {
    loom::model(|| {
        let running = loom::sync::Arc::new(Running::<Flag>::new(1, None));
        let [first, second] = [0, 1].map(|index| Ticket::new(Kind::Chunk, 1, index));
        assert!(running.begin(&mut vec![first], &mut Vec::new(), |_| false));
        let other = running.clone();
        let watchdog = thread::spawn(move || other.lose("it hung".into()));
        let goes_on = running.computed() && running.ended();
        let (mut taken, mut gone) = (vec![second], Vec::new());
        let begun = goes_on && running.begin(&mut taken, &mut gone, |_| false);
        let owed = watchdog.join().expect("no panic").expect("it was not out");
        assert!(!begun || owed.contains(&second));
        assert!(begun || !goes_on || gone == [second]);
    });
}

fn frame() -> (loom::sync::Arc<State<u8>>, Ticket) {
    let state = loom::sync::Arc::new(State::new(0, 0));
    let ticket = state.next().expect("the first ticket");
    state.open(ticket);
    (state, ticket)
}

/// Frames: an inference claims a frame while its decode ends. The inference or the decoder counts it, once.
#[test]
fn a_run_learns_of_each_of_its_frames_exactly_once() {
    loom::model(|| {
        let (state, ticket) = frame();
        let run = Ticket::new(Kind::Chunk, 1, 3);
        let other = state.clone();
        let decoder = thread::spawn(move || other.ended(ticket, true, 1, 2));
        let awaited = state.claim(ticket, run, 5);
        let listener = decoder.join().expect("no panic");
        assert_eq!(listener, if awaited { Listener::Run(run) } else { Listener::Nobody });
        assert!(state.is_claimed(ticket) && state.index() == 5);
        assert_eq!(state.last(ticket).map(|last| (last.status, last.spent_us)), Some((1, 2)));
    });
}

/// Frames: a frame that is watched and dropped while its decode ends has the announced completions, and its slot is free once.
#[test]
fn a_frame_that_is_watched_and_dropped_has_one_completion() {
    loom::model(|| {
        let (state, ticket) = frame();
        let other = state.clone();
        let decoder = thread::spawn(move || other.ended(ticket, false, 7, 0));
        let watched = state.watch(ticket).expect("its user");
        let dropped = state.drop_frame(ticket).expect("its user");
        let listener = decoder.join().expect("no panic");
        match (watched, dropped) {
            (Some(7), DropOutcome::Free) => assert_eq!(listener, Listener::Nobody),
            (None, DropOutcome::Free) => assert_eq!(listener, Listener::Caller(7)),
            (None, DropOutcome::Later) => assert_eq!(listener, Listener::Dropped),
            other => panic!("{other:?} cannot be"),
        }
        assert!(!state.is_of(ticket));
    });
}
