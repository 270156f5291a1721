//! The state of a frame slot. Its caller, a decode thread and an inference change it side by side.
//!
//! A frame is free → pending (queued or decoding) → ready or failed → free. An inference may claim a pending frame: the decoder then
//! reports to the inference. A drop of a pending frame takes effect when its decode ends. Only a frame that was watched, or dropped while
//! pending, has its own completion, so that a chunk wakes its caller once and not once per frame.

use crate::core::sync::{Mutex, lock};
use crate::core::ticket::{FREE, Kind, Ticket, Word};

const PENDING: u8 = 1;
const READY: u8 = 2;
const FAILED: u8 = 3;
/// Dropped before the end of its decode.
const DROPPED: u8 = 4;
/// Claimed by an inference, and decoded.
const CLAIMED: u8 = 5;
/// Pending, and its completion was asked for.
const WATCHED: u8 = 6;
/// Pending, and claimed by an inference.
const AWAITED: u8 = 7;

/// Who hears that a decode has ended, and its result.
#[derive(Debug, PartialEq)]
pub enum Listener<S> {
    Nobody,
    /// The caller, by the frame's completion.
    Caller(S),
    Run(Ticket),
    /// The caller: the frame was dropped meanwhile, and its slot is free now.
    Dropped,
}

#[derive(Debug, PartialEq)]
pub enum DropOutcome {
    Free,
    Later,
}

#[derive(Clone, Copy)]
pub struct DecodeOutcome<S> {
    frame: Ticket,
    pub status: S,
    /// Microseconds of the decode.
    pub spent_us: u32,
}

pub struct State<S> {
    word: Word,
    last: Mutex<Option<DecodeOutcome<S>>>,
    /// The inference that claims the frame, and the frame's index there. It is written before the frame is awaited.
    run: Mutex<(Ticket, usize)>,
}

impl<S: Copy> State<S> {
    /// A free slot whose first ticket has the generation after `generation`.
    pub fn new(generation: u64, index: usize) -> State<S> {
        State {
            word: Word::new(Kind::Frame, generation, index),
            last: Mutex::new(None),
            run: Mutex::new((Ticket(0), 0)),
        }
    }

    /// The next user's ticket; None once all are used. Only the thread that took the slot from the free list calls it.
    pub fn next(&self) -> Option<Ticket> {
        self.word.next()
    }

    /// Makes it pending. Only the thread that took the slot from the free list calls it.
    pub fn open(&self, ticket: Ticket) {
        self.word.open(ticket, PENDING);
    }

    pub fn is_of(&self, ticket: Ticket) -> bool {
        self.word.state(ticket).is_some()
    }

    /// Whether the frame is wanted and not decoded.
    pub fn is_pending(&self, ticket: Ticket) -> bool {
        matches!(self.word.state(ticket), Some(PENDING | WATCHED | AWAITED))
    }

    pub fn is_claimed(&self, ticket: Ticket) -> bool {
        self.word.state(ticket) == Some(CLAIMED)
    }

    /// Whether an inference may claim it: it is not stale, dropped, watched or claimed. That does not change until the caller's next call.
    pub fn is_claimable(&self, ticket: Ticket) -> bool {
        matches!(self.word.state(ticket), Some(PENDING | READY | FAILED))
    }

    /// Frees it. None for a stale ticket, and for a frame that was dropped or belongs to an inference.
    pub fn drop_frame(&self, ticket: Ticket) -> Option<DropOutcome> {
        if self.turn(ticket, PENDING, DROPPED) || self.turn(ticket, WATCHED, DROPPED) {
            return Some(DropOutcome::Later);
        }
        (self.turn(ticket, READY, FREE) || self.turn(ticket, FAILED, FREE)).then_some(DropOutcome::Free)
    }

    /// Asks for its completion. Returns the result if its decode has ended, and None inside if the completion comes. None for a stale
    /// ticket, and for a frame that was dropped or claimed.
    pub fn watch(&self, ticket: Ticket) -> Option<Option<S>> {
        if self.turn(ticket, PENDING, WATCHED) {
            return Some(None);
        }
        match self.word.state(ticket)? {
            READY | FAILED => Some(self.last(ticket).map(|last| last.status)),
            WATCHED => Some(None),
            _ => None,
        }
    }

    /// Claims a claimable frame for an inference, as its frame number `index`. True if it is awaited; false if its decode has ended.
    pub fn claim(&self, ticket: Ticket, run: Ticket, index: usize) -> bool {
        *lock(&self.run) = (run, index);
        if self.turn(ticket, PENDING, AWAITED) {
            return true;
        }
        let ended = self.turn(ticket, READY, CLAIMED) || self.turn(ticket, FAILED, CLAIMED);
        assert!(ended, "the decode of a claimable frame ends once");
        false
    }

    pub fn awaited_by(&self, ticket: Ticket) -> Option<Ticket> {
        (self.word.state(ticket) == Some(AWAITED)).then(|| lock(&self.run).0)
    }

    /// Ends its decode, `well` or not, or one that does not begin. Returns who hears of it.
    pub fn ended(&self, ticket: Ticket, well: bool, status: S, spent_us: u32) -> Listener<S> {
        *lock(&self.last) = Some(DecodeOutcome { frame: ticket, status, spent_us });
        let next = if well { READY } else { FAILED };
        // The tries have the order in which the caller can change the state.
        if self.turn(ticket, PENDING, next) {
            return Listener::Nobody;
        }
        if self.turn(ticket, WATCHED, next) {
            return Listener::Caller(status);
        }
        if self.turn(ticket, AWAITED, CLAIMED) {
            return Listener::Run(lock(&self.run).0);
        }
        if self.turn(ticket, DROPPED, FREE) { Listener::Dropped } else { Listener::Nobody }
    }

    /// Frees a pending frame whose decode was not queued.
    pub fn refuse(&self, ticket: Ticket) -> bool {
        self.turn(ticket, PENDING, FREE)
    }

    /// Frees a claimed frame. False if it is not.
    pub fn finish(&self, ticket: Ticket) -> bool {
        self.turn(ticket, CLAIMED, FREE)
    }

    /// The frame's index in its inference.
    pub fn index(&self) -> usize {
        lock(&self.run).1
    }

    /// The decode of this frame; None if the slot has not decoded it, or has decoded another since.
    pub fn last(&self, ticket: Ticket) -> Option<DecodeOutcome<S>> {
        (*lock(&self.last)).filter(|last| last.frame == ticket)
    }

    fn turn(&self, ticket: Ticket, from: u8, to: u8) -> bool {
        self.word.turn(ticket, from, to)
    }
}
