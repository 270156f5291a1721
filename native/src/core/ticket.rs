//! Tickets name slots for the caller. Each slot keeps its ticket and its state in one word.

use crate::core::sync::AtomicU64;
use std::sync::atomic::Ordering;

#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A frame slot of a model.
    Frame = 0,
    Chunk = 1,
    Model = 2,
}

impl Kind {
    pub const NAMES: &[(&str, Kind)] = &[("frame", Kind::Frame), ("chunk", Kind::Chunk), ("model", Kind::Model)];
}

/// The index of a slot and its generation, so that a stale ticket cannot reach the slot's next user.
///
/// `kind:2 | generation:35 | index:16`, 53 bits: a double holds each of them exactly, and JavaScript reads a double without an
/// allocation. Generations count per slot and never wrap: a slot that has used its last one is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Slots that a ticket can address.
    pub const INDEX_COUNT: u64 = 1 << 16;
    /// The smallest ticket of kind k is k times this.
    pub const KIND_STEP: u64 = 1 << Self::KIND_SHIFT;
    /// The last generation of a slot.
    pub const GENERATION_MAX: u64 = (1 << 35) - 1;
    const GENERATION_SHIFT: u32 = 16;
    const KIND_SHIFT: u32 = 51;

    /// Generation 0 is that of a slot that was never used. No ticket has it, so that none is 0.
    pub fn new(kind: Kind, generation: u64, index: usize) -> Ticket {
        debug_assert!((index as u64) < Self::INDEX_COUNT && generation <= Self::GENERATION_MAX);
        Ticket((kind as u64) << Self::KIND_SHIFT | generation << Self::GENERATION_SHIFT | index as u64)
    }

    /// The index, if the ticket is of this kind.
    pub fn index(self, kind: Kind) -> Option<usize> {
        (self.0 >> Self::KIND_SHIFT == kind as u64).then_some((self.0 % Self::INDEX_COUNT) as usize)
    }

    pub fn generation(self) -> u64 {
        self.0 >> Self::GENERATION_SHIFT & Self::GENERATION_MAX
    }

    pub fn to_wire(self) -> f64 {
        self.0 as f64
    }

    /// The ticket that the caller sent. A number that cannot be a ticket becomes a ticket of no slot.
    pub fn from_wire(value: f64) -> Ticket {
        let whole = value as u64;
        if whole as f64 == value { Ticket(whole) } else { Ticket(u64::MAX) }
    }
}

pub const FREE: u8 = 0;

/// Ticket and state of a slot in one word. A change of state names the ticket, so that a stale caller or a late thread changes nothing of
/// the slot's next user.
pub struct Word(AtomicU64);

const STATE_BITS: u32 = 3;

impl Word {
    /// A free slot whose first ticket has the generation after `generation`.
    pub fn new(kind: Kind, generation: u64, index: usize) -> Word {
        Word(AtomicU64::new(word(Ticket::new(kind, generation, index), FREE)))
    }

    /// The ticket of its user, or of the last one.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.0.load(Ordering::Acquire) >> STATE_BITS)
    }

    /// The ticket of the next user of a free slot; None once all are used. Only the thread that took the slot from the free list calls it.
    pub fn next(&self) -> Option<Ticket> {
        let Ticket(last) = self.ticket();
        let next = Ticket(last + Ticket::INDEX_COUNT);
        (Ticket(last).generation() < Ticket::GENERATION_MAX).then_some(next)
    }

    /// Gives the slot to its next user. Only the thread that took the slot from the free list calls it.
    pub fn open(&self, ticket: Ticket, state: u8) {
        self.0.store(word(ticket, state), Ordering::Release);
    }

    /// The state, if the ticket is that of the slot's user.
    pub fn state(&self, ticket: Ticket) -> Option<u8> {
        let now = self.0.load(Ordering::Acquire);
        let state = (now & ((1 << STATE_BITS) - 1)) as u8;
        (now >> STATE_BITS == ticket.0 && state != FREE).then_some(state)
    }

    /// Changes the state. False, and nothing changes, for a stale ticket or another state.
    pub fn turn(&self, ticket: Ticket, from: u8, to: u8) -> bool {
        self.0.compare_exchange(word(ticket, from), word(ticket, to), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

fn word(ticket: Ticket, state: u8) -> u64 {
    ticket.0 << STATE_BITS | u64::from(state)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LIVE: u8 = 1;

    #[test]
    fn a_ticket_gives_its_index_only_for_its_kind() {
        for generation in [1, 4095, 4096, 1 << 20, Ticket::GENERATION_MAX] {
            let ticket = Ticket::new(Kind::Chunk, generation, 65_535);
            assert_eq!((ticket.index(Kind::Chunk), ticket.index(Kind::Frame)), (Some(65_535), None));
            assert_eq!(ticket.generation(), generation);
        }
    }

    #[test]
    fn every_ticket_crosses_the_abi_unchanged_and_is_neither_0_nor_a_status() {
        for kind in [Kind::Frame, Kind::Chunk, Kind::Model] {
            for (generation, index) in [(1, 0), (1 << 12, 7), (Ticket::GENERATION_MAX, 65_535)] {
                let ticket = Ticket::new(kind, generation, index);
                assert!(ticket.to_wire() > 0.0 && ticket.0 < 1 << 53);
                assert_eq!(Ticket::from_wire(ticket.to_wire()), ticket);
            }
        }
        for wrong in [0.5, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let Ticket(value) = Ticket::from_wire(wrong);
            assert!(value == u64::MAX, "{wrong} is no ticket, not {value}");
        }
    }

    /// With generations of 12 bits the ticket of 4,095 uses ago became valid again.
    #[test]
    fn a_stale_ticket_is_refused_after_2_to_the_12_and_2_to_the_20_reuses() {
        let slot = Word::new(Kind::Chunk, 0, 3);
        let stale = slot.next().unwrap();
        slot.open(stale, LIVE);
        for reuse in 1..=1_u64 << 20 {
            assert!(slot.turn(slot.ticket(), LIVE, FREE));
            slot.open(slot.next().unwrap(), LIVE);
            if reuse.is_power_of_two() || (reuse + 1).is_power_of_two() {
                assert_eq!(slot.state(stale), None, "after {reuse} reuses");
                assert!(!slot.turn(stale, LIVE, FREE), "after {reuse} reuses");
            }
        }
    }

    #[test]
    fn a_slot_that_has_used_its_last_generation_has_no_next_ticket() {
        let slot = Word::new(Kind::Chunk, Ticket::GENERATION_MAX - 1, 0);
        let last = slot.next().unwrap();
        slot.open(last, LIVE);
        assert!(slot.turn(last, LIVE, FREE));
        assert_eq!((slot.next(), slot.state(last)), (None, None));
    }
}
