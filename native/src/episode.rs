//! Episode memory of one replica. Each session has a slot, addressed by its index.
//!
//! A place has the committed and the staged rows of every cache of the graphs, bound once: in the memory of the replica's device, on a CPU
//! in host memory. An inference reads the committed rows of its slot and writes its new block to the staged rows; `settle` keeps or
//! discards the block. A kept block is copied when the slot is used next, so that no caller waits for the copy. An inference that fails, is
//! cancelled or is discarded changes nothing.
//!
//! There may be more slots than places. An inference whose slot has no place takes a free one, or the place of the slot that was unused for
//! the longest. The rows of that slot are parked in host memory, and come back to any place when their session's next inference begins. The
//! replica's thread does all of this between two inferences: no other thread waits for a copy, and no inference meets rows that move.

mod accounting;
mod device;
#[cfg(test)]
mod device_tests;
#[cfg(any(test, feature = "rehearsal"))]
mod digest;
mod finite;
mod finite_check;
mod host;
mod layout;
#[cfg(test)]
mod parking_tests;
mod proof_slot;
mod rows;
mod seats;
mod storage;
#[cfg(test)]
mod tests;
mod usage;

pub use device::DeviceRows;
pub use proof_slot::ProofSlot;
pub use storage::Address;
pub use usage::{Moves, Usage};

use self::accounting::MemoryAccount;
use self::layout::{Layout, Write};
use self::rows::Rows;
use self::seats::{BLOCKS_BESIDE, Home, Seats};
use crate::bundle::manifest::{Manifest, MemoryFacts};
use crate::core::memory::Block;
use crate::core::room::{self, fit};
use crate::core::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// Places at most if the configuration names none: each has its own bindings.
const PLACES_MAX: usize = 64;
const SLOTS_MOST: usize = 1 << 16;
/// Bytes of all places at most; more is a mistake in the configuration.
const MEMORY_BYTES_MOST: usize = 1 << 40;

#[derive(Clone, Copy)]
pub struct SessionLimits {
    /// Places; None: as many as fit.
    pub places: Option<usize>,
    /// Bytes of host memory for parked sessions; None: as many as the places have, if they fit into an eighth of the available memory.
    pub parked_bytes_max: Option<u64>,
}

/// How many sessions a replica takes; decided after its first inferences.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seating {
    /// Sessions whose memory lies where the graphs read it.
    pub places: usize,
    /// More sessions, which can be parked.
    pub parked: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pass {
    /// The graph that reads the frames.
    pub entry: Entry,
    /// Latent frames that the inference reads.
    pub kept: usize,
    pub written: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Entry {
    First,
    Later,
    /// Prefill reads the last frames; its block replaces the memory.
    Reset,
}

pub struct Episodes {
    rows: Rows,
    limits: SessionLimits,
    /// Why its rows lie on the host although its replica computes on a device.
    refusal: Mutex<Option<String>>,
    seats: Mutex<Seats>,
    count: AtomicUsize,
    /// Host memory for parked rows; its pages are used only where they were written.
    blocks: OnceLock<Vec<Block>>,
    /// Bytes of this machine that are promised to sessions.
    account: MemoryAccount,
    pub moves: Moves,
}

impl Episodes {
    /// Places for sessions; `seat` decides how many are used. No memory is used yet. The error is a sentence.
    pub fn new(manifest: &Manifest, facts: MemoryFacts, limits: SessionLimits) -> Result<Episodes, String> {
        let layout = Layout::of(manifest, facts)?;
        let slot_bytes = layout.slot_bytes();
        let mapped = limits.places.unwrap_or_else(|| fit(room::host().bytes(), slot_bytes, PLACES_MAX));
        if mapped == 0 || mapped.checked_mul(slot_bytes).is_none_or(|bytes| bytes > MEMORY_BYTES_MOST) {
            return Err(format!(
                "{mapped} slots of {slot_bytes} bytes each are asked for; name at least 1, in 1 TiB at most"
            ));
        }
        Ok(Episodes::over(Rows::new(layout, mapped), limits))
    }

    fn over(rows: Rows, limits: SessionLimits) -> Episodes {
        let mapped = rows.places();
        Episodes {
            rows,
            limits,
            refusal: Mutex::new(None),
            seats: Mutex::new(Seats::new(mapped)),
            count: AtomicUsize::new(mapped),
            blocks: OnceLock::new(),
            account: MemoryAccount::new(mapped, &room::PROMISED),
            moves: Moves::default(),
        }
    }

    /// Decides how many sessions the replica takes, once, while all slots are empty. `bytes` is the memory for sessions where it lies;
    /// `host_bytes` is that for parked sessions if the configuration names none.
    pub fn seat(&self, bytes: u64, host_bytes: u64) -> Result<Seating, String> {
        let slot_bytes = self.slot_bytes();
        let places = self.limits.places.unwrap_or_else(|| fit(bytes, slot_bytes, self.places()));
        let parked = match self.limits.parked_bytes_max {
            Some(most) => usize::try_from(most / slot_bytes as u64).unwrap_or(usize::MAX),
            None => usize::try_from(host_bytes / slot_bytes as u64).unwrap_or(usize::MAX).min(places),
        };
        let parked = parked.min(SLOTS_MOST.saturating_sub(places)).min(MEMORY_BYTES_MOST / slot_bytes);
        if parked > 0 {
            let blocks = Block::several(slot_bytes, parked + BLOCKS_BESIDE, false)?;
            if self.blocks.set(blocks).is_err() {
                return Err("its sessions have their seats already".into());
            }
        }
        lock(&self.seats).lay_out(places, parked);
        self.count.store(places + parked, Ordering::Release);
        let on_host = if self.is_on_device() { parked } else { places + parked };
        self.account.promise(on_host * slot_bytes, self.blocks.get().map_or(0, Vec::len));
        Ok(Seating { places, parked })
    }

    /// Bytes of one session at most: all its rows, and a block that is not settled.
    pub fn slot_bytes(&self) -> usize {
        self.rows.layout.slot_bytes()
    }

    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// How the next inference of the slot reads and writes; None for a slot that does not exist.
    pub fn plan(&self, slot: usize) -> Option<Pass> {
        let MemoryFacts { window, first, later, .. } = self.rows.layout.facts;
        let kept = lock(&self.seats).slots.get(slot)?.frames;
        Some(if kept == 0 {
            Pass { entry: Entry::First, kept, written: first }
        } else if kept + later <= window {
            Pass { entry: Entry::Later, kept, written: later }
        } else {
            Pass { entry: Entry::Reset, kept: 0, written: first }
        })
    }

    /// Gives the slot to an inference. False while another one has it.
    pub fn take(&self, slot: usize) -> bool {
        !std::mem::replace(&mut lock(&self.seats).slots[slot].taken, true)
    }

    /// Brings the rows of the slot, with a kept block, to a place and returns the place. Only the replica's thread calls it, before an
    /// inference of the slot reads them.
    pub fn begin(&self, slot: usize) -> Result<usize, String> {
        let mut seats = lock(&self.seats);
        seats.touch(slot);
        let Home::Place(place) = seats.slots[slot].home else {
            drop(seats);
            return self.enter(slot);
        };
        let pending = seats.slots[slot].pending.take();
        drop(seats);
        self.apply_write(slot, place, pending)?;
        Ok(place)
    }

    /// Copies the kept block of a slot that an inference has. A block that cannot be copied stays pending.
    fn apply_write(&self, slot: usize, place: usize, pending: Option<Write>) -> Result<(), String> {
        let Some(write) = pending else { return Ok(()) };
        self.append_block(place, write).inspect_err(|_| {
            let mut seats = lock(&self.seats);
            // Others may have ended its inference and emptied it.
            if matches!(seats.slots[slot].home, Home::Place(own) if own == place) && seats.slots[slot].frames > 0 {
                seats.slots[slot].pending = Some(write);
            }
        })
    }

    fn enter(&self, slot: usize) -> Result<usize, String> {
        let begun = Instant::now();
        let mut moved = false;
        let free = lock(&self.seats).free_place();
        let place = match free {
            Some(place) => place,
            None => {
                moved = true;
                self.park()?
            }
        };
        let parked = lock(&self.seats).enter(slot);
        let renewed = if parked.is_none_or(|(_, kept)| kept.committed == 0) { self.rows.renew(place) } else { Ok(()) };
        let brought = renewed
            .and_then(|()| parked.map_or(Ok(()), |(block, kept)| self.rows.bring_back(place, kept, self.block(block))));
        if let Err(text) = brought {
            lock(&self.seats).turned_back(slot, place);
            return Err(text);
        }
        if let Some((_, kept)) = parked {
            self.count_written(place, kept.committed);
            self.moves.brought_back.fetch_add(1, Ordering::Relaxed);
            moved = true;
        }
        let mut seats = lock(&self.seats);
        if !seats.entered(slot, place) {
            return Err("the memory slot was emptied".into());
        }
        let pending = seats.slots[slot].pending.take();
        drop(seats);
        self.apply_write(slot, place, pending)?;
        if moved {
            self.moves.us.fetch_add(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        Ok(place)
    }

    /// Parks the slot that was unused for the longest and returns its place.
    fn park(&self) -> Result<usize, String> {
        let leaving = lock(&self.seats).leave();
        let (place, mut pending) = (leaving.place, leaving.pending);
        let copied = pending.map_or(Ok(()), |write| self.append_block(place, write)).and_then(|()| {
            pending = None;
            self.rows.park(place, leaving.kept, self.block(leaving.block))
        });
        let mut seats = lock(&self.seats);
        if let Err(text) = copied {
            seats.stayed(leaving, pending);
            return Err(text);
        }
        self.account.block(leaving.block, self.rows.parked_bytes(leaving.kept));
        seats.left(leaving);
        drop(seats);
        self.moves.parked.fetch_add(1, Ordering::Relaxed);
        Ok(place)
    }

    fn block(&self, index: usize) -> &Block {
        &self.blocks.get().expect("what is parked has blocks")[index]
    }

    /// Gives the memory of unused parked blocks back to the system. Only one thread calls it, beside all others.
    pub fn give_back(&self) {
        loop {
            let Some(index) = lock(&self.seats).cool() else { return };
            // SAFETY: the block is in no list and no slot has it until `cooled`.
            unsafe { self.block(index).release() };
            self.account.released(index);
            lock(&self.seats).cooled(index);
        }
    }

    /// Ends the inference of the slot: its staged block is kept or discarded.
    pub fn settle(&self, slot: usize, keep: bool) {
        let mut seats = lock(&self.seats);
        seats.touch(slot);
        let state = &mut seats.slots[slot];
        let staged = state.staged.take();
        if let (true, Some(write)) = (keep, staged) {
            // Nothing was pending, because the inference has begun.
            state.pending = Some(write);
            state.frames = write.from + write.frames;
        }
        state.taken = false;
    }

    /// Empties the slot and frees its place or its parked block. False while an inference has it.
    pub fn forget(&self, slot: usize) -> bool {
        let mut seats = lock(&self.seats);
        let free = !seats.slots[slot].taken;
        if free {
            seats.forget(slot);
        }
        free
    }

    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for slot in &lock(&self.seats).slots {
            usage.slots += usize::from(slot.frames > 0);
            usage.bytes += self.rows.layout.bytes(slot.frames);
            if let Home::Parked { kept, .. } = slot.home {
                usage.parked += 1;
                usage.parked_bytes += self.rows.parked_bytes(kept);
            }
        }
        usage
    }
}
