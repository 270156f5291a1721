//! The home of each session's memory: a place that the graphs are bound to, a parked block of host memory, or nowhere while it is empty.
//! This module touches no rows.
//!
//! Only the replica's thread moves rows, between two inferences. It marks a moving slot, so that a session that is dropped meanwhile frees
//! its place and block when the copy is done.

use super::layout::{ParkedFrames, Write};

#[derive(Clone, Copy, Default)]
pub(super) enum Home {
    #[default]
    Nowhere,
    Place(usize),
    Parked {
        block: usize,
        kept: ParkedFrames,
    },
}

#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    pub(super) frames: usize,
    /// An inference has the slot until it is settled.
    pub(super) taken: bool,
    /// The block of this inference, if it is kept.
    pub(super) staged: Option<Write>,
    /// A kept block that is not copied yet.
    pub(super) pending: Option<Write>,
    pub(super) home: Home,
    /// The replica's thread copies its rows.
    pub(super) moving: bool,
    dropped: bool,
    last_use: u64,
}

/// A slot that leaves its place, and what must be copied.
pub(super) struct Departure {
    pub(super) slot: usize,
    pub(super) place: usize,
    pub(super) block: usize,
    pub(super) kept: ParkedFrames,
    pub(super) pending: Option<Write>,
}

pub(super) struct Seats {
    pub(super) slots: Vec<Slot>,
    owners: Vec<Option<usize>>,
    free: Vec<usize>,
    /// Free blocks with pages, and those whose pages the system has back.
    warm: Vec<usize>,
    cold: Vec<usize>,
    events: u64,
    pub(super) parked: usize,
}

/// Blocks beyond the parked ones: one for the exchange of two sessions, one that the watchdog frees.
pub(super) const BLOCKS_BESIDE: usize = 2;

impl Seats {
    /// Empty slots, one for each place.
    pub(super) fn new(places: usize) -> Seats {
        let mut seats = Seats {
            slots: Vec::new(),
            owners: Vec::new(),
            free: Vec::new(),
            warm: Vec::new(),
            cold: Vec::new(),
            events: 0,
            parked: 0,
        };
        seats.lay_out(places, 0);
        seats
    }

    /// Lays out the places and the parked sessions. All slots are empty.
    pub(super) fn lay_out(&mut self, places: usize, parked: usize) {
        assert!(self.owners.iter().all(Option::is_none), "slots are laid out while they are empty");
        self.slots = vec![Slot::default(); places + parked];
        self.owners = vec![None; places];
        self.free = (0..places).rev().collect();
        let blocks = if parked > 0 { parked + BLOCKS_BESIDE } else { 0 };
        self.cold = (0..blocks).rev().collect();
        // It never grows, which would allocate.
        self.warm = Vec::with_capacity(blocks);
    }

    /// Notes that an inference began or was settled.
    pub(super) fn touch(&mut self, slot: usize) {
        self.events += 1;
        self.slots[slot].last_use = self.events;
    }

    pub(super) fn free_place(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Picks the slot that makes room: the one that was unused for the longest, but one without an inference before all others. No
    /// inference is computed now, because the replica's thread is here.
    pub(super) fn leave(&mut self) -> Departure {
        let owners = self.owners.iter().enumerate().filter_map(|(place, slot)| slot.map(|slot| (place, slot)));
        let longest = owners.min_by_key(|&(_, slot)| (self.slots[slot].taken, self.slots[slot].last_use));
        let (place, slot) = longest.expect("no place is free, so that each has a slot");
        let block = self.warm.pop().or_else(|| self.cold.pop()).expect("there are blocks for all that can be parked");
        let state = &mut self.slots[slot];
        state.moving = true;
        let kept = ParkedFrames { committed: state.frames, staged: state.staged.map_or(0, |write| write.frames) };
        Departure { slot, place, block, kept, pending: state.pending.take() }
    }

    /// The rows of the slot are in the block; the place is the caller's.
    pub(super) fn left(&mut self, Departure { slot, place, block, kept, .. }: Departure) {
        self.owners[place] = None;
        if self.arrive(slot, Home::Parked { block, kept }) {
            self.warm.push(block);
        } else {
            self.parked += 1;
        }
    }

    /// The rows could not be copied. The slot keeps its place, unless it was emptied meanwhile. `pending` is the block that is still not
    /// copied.
    pub(super) fn stayed(&mut self, Departure { slot, place, block, .. }: Departure, pending: Option<Write>) {
        self.warm.push(block);
        if self.arrive(slot, Home::Place(place)) {
            self.owners[place] = None;
            self.free.push(place);
        } else if pending.is_some() {
            // Otherwise its inference may have been settled meanwhile, with another block.
            self.slots[slot].pending = pending;
        }
    }

    /// The rows of a slot could not be brought to a place. They stay where they are, unless the slot was emptied meanwhile.
    pub(super) fn turned_back(&mut self, slot: usize, place: usize) {
        let home = self.slots[slot].home;
        self.free.push(place);
        if let (true, Home::Parked { block, .. }) = (self.arrive(slot, home), home) {
            self.warm.push(block);
            self.parked -= 1;
        }
    }

    /// Begins to bring the rows of a slot to a place. Returns the parked rows, if there are any.
    pub(super) fn enter(&mut self, slot: usize) -> Option<(usize, ParkedFrames)> {
        self.slots[slot].moving = true;
        if let Home::Parked { block, kept } = self.slots[slot].home { Some((block, kept)) } else { None }
    }

    /// Ends that. False if others ended the inference and emptied the slot meanwhile: the place is free again.
    pub(super) fn entered(&mut self, slot: usize, place: usize) -> bool {
        if let Home::Parked { block, .. } = self.slots[slot].home {
            self.warm.push(block);
            self.parked -= 1;
        }
        let gone = self.arrive(slot, Home::Place(place));
        if gone {
            self.free.push(place);
        } else {
            self.owners[place] = Some(slot);
        }
        !gone
    }

    /// Ends a move. True if the slot was emptied during it, and so has no home.
    fn arrive(&mut self, slot: usize, home: Home) -> bool {
        let state = &mut self.slots[slot];
        let gone = state.dropped;
        state.home = if gone { Home::Nowhere } else { home };
        (state.moving, state.dropped) = (false, false);
        gone
    }

    /// Empties a slot that no inference has.
    pub(super) fn forget(&mut self, slot: usize) {
        let Slot { home, moving, .. } = self.slots[slot];
        if moving {
            self.slots[slot] = Slot { home, moving, dropped: true, ..Slot::default() };
            return;
        }
        match home {
            Home::Nowhere => {}
            Home::Place(place) => {
                self.owners[place] = None;
                self.free.push(place);
            }
            Home::Parked { block, .. } => {
                self.warm.push(block);
                self.parked -= 1;
            }
        }
        self.slots[slot] = Slot::default();
    }

    /// A free block whose pages can go back to the system. One block stays while sessions are parked, because the next exchange needs it.
    pub(super) fn cool(&mut self) -> Option<usize> {
        let spare = usize::from(self.parked > 0);
        if self.warm.len() > spare { self.warm.pop() } else { None }
    }

    pub(super) fn cooled(&mut self, block: usize) {
        self.cold.push(block);
    }
}
