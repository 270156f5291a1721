//! Frame slots: each decodes one JPEG to a normalised tensor in page-locked memory. `state.rs` has their states.

mod decode;
mod spec;
mod state;

pub use decode::Worker;
pub use spec::FrameSpec;
pub use state::DropOutcome;

use crate::core::layout::{FRAMES_MAX, JPEG_BYTES_MAX, MODELS_MAX};
use crate::core::memory::Block;
use crate::core::status::{ErrorText, Status};
use crate::core::sync::lock;
use crate::core::ticket::{Kind, Ticket};
use state::State;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

pub type Listener = state::Listener<Status>;

/// The content of a slot. Only the slot's owner takes the lock, so no thread waits for it.
pub struct FrameData {
    /// The first `jpeg_len` bytes are the file.
    jpeg: Block,
    jpeg_len: usize,
    /// The frame as the graphs take it.
    tensor: Block,
    pub put: Instant,
    pub done: Instant,
}

impl FrameData {
    /// The frame as the graphs take it.
    pub fn tensor(&self) -> &[u8] {
        &self.tensor
    }
}

struct Slot {
    state: State<Status>,
    data: Mutex<FrameData>,
    error: Mutex<ErrorText>,
}

/// The highest generation of a frame so far, for each model slot: a ticket of an unloaded model is not valid for the next model in the
/// slot.
static GENERATIONS: [AtomicU64; MODELS_MAX] = [const { AtomicU64::new(0) }; MODELS_MAX];

/// The frame slots of one model.
pub struct FrameSlots {
    slots: Vec<Slot>,
    free: Mutex<Vec<u16>>,
    /// The index of slot 0 in a ticket, which addresses one slot of one model.
    base: usize,
    spec: FrameSpec,
    /// Whether the engine's counters include these frames and their inferences.
    pub counted: bool,
}

impl FrameSlots {
    /// `count` slots of the model in slot `model`, with all memory allocated; it is page-locked if they are `counted`.
    pub fn new(spec: FrameSpec, model: usize, count: usize, counted: bool) -> Result<FrameSlots, String> {
        assert!(count <= FRAMES_MAX, "a ticket can address the slots");
        let now = Instant::now();
        let base = model * FRAMES_MAX;
        let generation = GENERATIONS[model].load(Ordering::Acquire);
        let jpegs = Block::several(JPEG_BYTES_MAX, count, false)?;
        let tensors = Block::several(spec.bytes(), count, counted)?;
        let slots = (jpegs.into_iter().zip(tensors).enumerate())
            .map(|(index, (jpeg, tensor))| Slot {
                state: State::new(generation, base + index),
                data: Mutex::new(FrameData { jpeg, jpeg_len: 0, tensor, put: now, done: now }),
                error: Mutex::new(ErrorText::new()),
            })
            .collect();
        let free = Mutex::new((0..count as u16).rev().collect());
        Ok(FrameSlots { slots, free, base, spec, counted })
    }

    /// Copies a JPEG into a free slot, which is pending then. None when all are taken.
    pub fn put(&self, jpeg: &[u8]) -> Option<Ticket> {
        assert!(jpeg.len() <= JPEG_BYTES_MAX, "the caller has checked the length");
        let index = lock(&self.free).pop()? as usize;
        let slot = &self.slots[index];
        let ticket = slot.state.next()?;
        GENERATIONS[self.base / FRAMES_MAX].fetch_max(ticket.generation(), Ordering::AcqRel);
        let mut data = lock(&slot.data);
        data.jpeg[..jpeg.len()].copy_from_slice(jpeg);
        data.jpeg_len = jpeg.len();
        data.put = Instant::now();
        slot.state.open(ticket);
        Some(ticket)
    }

    /// The slot that the ticket addresses, also for a stale ticket.
    fn slot(&self, ticket: Ticket) -> Option<&Slot> {
        self.slots.get(ticket.index(Kind::Frame)?.checked_sub(self.base)?)
    }

    /// Adds the slot to the free list.
    fn freed(&self, ticket: Ticket) {
        let index = ticket.index(Kind::Frame).expect("a frame's ticket") - self.base;
        lock(&self.free).push(index as u16);
    }

    /// Frees the slot, now or when its decode ends. None for a stale ticket, and for a frame that was dropped or belongs to an inference.
    pub fn drop_frame(&self, ticket: Ticket) -> Option<DropOutcome> {
        let dropped = self.slot(ticket)?.state.drop_frame(ticket)?;
        if dropped == DropOutcome::Free {
            self.freed(ticket);
        }
        Some(dropped)
    }

    pub fn watch(&self, ticket: Ticket) -> Option<Option<Status>> {
        self.slot(ticket)?.state.watch(ticket)
    }

    /// Frees a pending frame whose decode was not queued.
    pub fn refuse(&self, ticket: Ticket) {
        if self.slot(ticket).is_some_and(|slot| slot.state.refuse(ticket)) {
            self.freed(ticket);
        }
    }

    pub fn is_claimable(&self, ticket: Ticket) -> bool {
        self.slot(ticket).is_some_and(|slot| slot.state.is_claimable(ticket))
    }

    pub fn claim(&self, ticket: Ticket, run: Ticket, index: usize) -> bool {
        self.slot(ticket).expect("a claimable frame").state.claim(ticket, run, index)
    }

    /// The inference that awaits a frame.
    pub fn awaited_by(&self, ticket: Ticket) -> Option<Ticket> {
        self.slot(ticket)?.state.awaited_by(ticket)
    }

    /// Ends a frame that is not decoded: the engine closes, or its inference was cancelled.
    pub fn give_up(&self, ticket: Ticket) -> Listener {
        self.ended(ticket, Status::Cancelled, 0)
    }

    /// The decode of a frame panicked.
    pub fn panicked(&self, ticket: Ticket) -> Listener {
        if let Some(slot) = self.slot(ticket) {
            lock(&slot.error).set(format_args!("the native decoder panicked"));
        }
        self.ended(ticket, Status::Decoder, 0)
    }

    fn ended(&self, ticket: Ticket, status: Status, spent_us: u32) -> Listener {
        let Some(slot) = self.slot(ticket) else { return Listener::Nobody };
        let listener = slot.state.ended(ticket, status == Status::Ok, status, spent_us);
        if listener == Listener::Dropped {
            self.freed(ticket);
        }
        listener
    }

    /// The decode of an inference's frame: the frame's index in the inference, its status and its microseconds.
    pub fn of_inference(&self, ticket: Ticket) -> Option<(usize, Status, u32)> {
        let state = &self.slot(ticket)?.state;
        state.last(ticket).map(|last| (state.index(), last.status, last.spent_us))
    }

    /// The data of a claimed frame.
    pub fn claimed(&self, ticket: Ticket) -> Option<MutexGuard<'_, FrameData>> {
        let slot = self.slot(ticket)?;
        let data = lock(&slot.data);
        slot.state.is_claimed(ticket).then_some(data)
    }

    /// Frees a claimed frame after the inference has read it; a second call does nothing.
    pub fn finish(&self, ticket: Ticket) {
        if self.slot(ticket).is_some_and(|slot| slot.state.finish(ticket)) {
            self.freed(ticket);
        }
    }

    /// The text of a failed frame.
    pub fn error(&self, ticket: Ticket) -> Option<MutexGuard<'_, ErrorText>> {
        let slot = self.slot(ticket)?;
        slot.state.is_of(ticket).then(|| lock(&slot.error))
    }

    /// Microseconds that the decode of a frame took, also if it was dropped meanwhile. 0 if it was not decoded, and once its slot has
    /// decoded another frame.
    pub fn spent_us(&self, ticket: Ticket) -> i32 {
        let last = self.slot(ticket).and_then(|slot| slot.state.last(ticket));
        last.map_or(0, |last| last.spent_us.min(i32::MAX as u32) as i32)
    }

    pub fn free(&self) -> usize {
        lock(&self.free).len()
    }
}
