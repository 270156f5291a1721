//! Frame slots: each decodes one JPEG to a normalised tensor in page-locked memory.
//!
//! A slot is free → pending (queued or decoding) → ready or failed → free. A drop while it is pending takes effect when
//! the decode thread takes it from the queue. Each put gets exactly one completion.

mod decode;

pub use decode::{Decoded, Worker};

use crate::layout::{FRAMES_MAX, JPEG_BYTES_MAX};
use crate::manifest::{Image, Resize};
use crate::memory::Block;
use crate::resize::Mode;
use crate::status::{ErrorText, Kind, Ticket};
use crate::sync::lock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

const FREE: u32 = 0;
const PENDING: u32 = 1;
const READY: u32 = 2;
const FAILED: u32 = 3;
const DROPPED: u32 = 4;
/// Taken over by a run.
const CLAIMED: u32 = 5;

/// How an image becomes the model's tensor.
pub struct FrameSpec {
    width: usize,
    height: usize,
    mode: Mode,
    /// Normalised value of each 8-bit value, per channel: (value / 255 − mean) / std.
    normal: [[f32; 256]; 3],
}

impl FrameSpec {
    /// From the manifest.
    pub fn new(image: &Image) -> FrameSpec {
        let mode = match image.resize {
            Resize::Pad => Mode::Pad,
            Resize::Stretch => Mode::Stretch,
            Resize::Crop => Mode::Crop,
        };
        let table = |channel: usize| {
            std::array::from_fn(|value| ((value as f64 / 255.0 - image.mean[channel]) / image.std[channel]) as f32)
        };
        FrameSpec { width: image.width, height: image.height, mode, normal: [table(0), table(1), table(2)] }
    }

    /// f32 values of one tensor, `[3, height, width]`.
    pub fn values(&self) -> usize {
        3 * self.width * self.height
    }
}

/// Content of a slot. Only the slot's owner, as its state says, takes the lock, so nobody waits for it.
pub struct FrameData {
    jpeg: Vec<u8>,
    /// `[3, height, width]`.
    pub tensor: Block<f32>,
    /// When the frame was put.
    pub put: Instant,
    /// When its decode ended.
    pub done: Instant,
}

struct Slot {
    state: AtomicU32,
    ticket: AtomicU32,
    data: Mutex<FrameData>,
    error: Mutex<ErrorText>,
}

/// Shared by all models, so that a ticket of an unloaded model is not valid for the next model in its place.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The frame slots of one model.
pub struct FrameSlots {
    slots: Vec<Slot>,
    free: Mutex<Vec<u16>>,
    /// Index of slot 0 in a ticket: a ticket means one slot of one model.
    base: usize,
    spec: FrameSpec,
}

impl FrameSlots {
    /// `count` slots of the model at place `model`, all memory allocated now.
    pub fn new(spec: FrameSpec, model: usize, count: usize) -> Result<FrameSlots, String> {
        assert!(count <= FRAMES_MAX, "a ticket can address the slots");
        let now = Instant::now();
        let slots = (0..count)
            .map(|_| {
                Ok(Slot {
                    state: AtomicU32::new(FREE),
                    ticket: AtomicU32::new(0),
                    data: Mutex::new(FrameData {
                        jpeg: Vec::with_capacity(JPEG_BYTES_MAX),
                        tensor: Block::locked(spec.values())?,
                        put: now,
                        done: now,
                    }),
                    error: Mutex::new(ErrorText::new()),
                })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let free = Mutex::new((0..count as u16).rev().collect());
        Ok(FrameSlots { slots, free, base: model * FRAMES_MAX, spec })
    }

    /// Copies a JPEG into a free slot, which is pending from here on. None when all are taken.
    pub fn put(&self, jpeg: &[u8]) -> Option<Ticket> {
        assert!(jpeg.len() <= JPEG_BYTES_MAX, "the caller has checked the length");
        let index = lock(&self.free).pop()? as usize;
        let ticket = Ticket::new(Kind::Frame, GENERATION.fetch_add(1, Ordering::Relaxed), self.base + index);
        let slot = &self.slots[index];
        let mut data = lock(&slot.data);
        data.jpeg.clear();
        data.jpeg.extend_from_slice(jpeg);
        data.put = Instant::now();
        slot.ticket.store(ticket.0, Ordering::Relaxed);
        slot.state.store(PENDING, Ordering::Release);
        Some(ticket)
    }

    fn slot(&self, ticket: Ticket) -> Option<(usize, &Slot)> {
        let index = ticket.index(Kind::Frame)?.checked_sub(self.base)?;
        let slot = self.slots.get(index)?;
        (slot.ticket.load(Ordering::Relaxed) == ticket.0).then_some((index, slot))
    }

    /// Frees the slot, now or when its decode ends. False for a stale ticket and for a frame that belongs to a run.
    pub fn drop_frame(&self, ticket: Ticket) -> bool {
        let Some((index, slot)) = self.slot(ticket) else { return false };
        loop {
            let state = slot.state.load(Ordering::Acquire);
            let next = match state {
                PENDING => DROPPED,
                READY | FAILED => FREE,
                _ => return false,
            };
            if slot.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                if next == FREE {
                    self.release(index);
                }
                return true;
            }
        }
    }

    /// Frees a frame that is not decoded: the queue was full, the engine closes, or the decode panicked.
    pub fn refuse(&self, ticket: Ticket) {
        if let Some((index, slot)) = self.slot(ticket) {
            slot.state.store(FREE, Ordering::Release);
            self.release(index);
        }
    }

    /// Takes a ready frame for a run. False for any other.
    pub fn claim(&self, ticket: Ticket) -> bool {
        self.slot(ticket).is_some_and(|(_, slot)| {
            slot.state.compare_exchange(READY, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
        })
    }

    /// Undoes the claims of a refused run.
    pub fn unclaim(&self, tickets: &[u32]) {
        for &ticket in tickets {
            if let Some((_, slot)) = self.slot(Ticket(ticket)) {
                slot.state.store(READY, Ordering::Release);
            }
        }
    }

    /// The data of a claimed frame.
    pub fn claimed(&self, ticket: Ticket) -> Option<MutexGuard<'_, FrameData>> {
        let (_, slot) = self.slot(ticket)?;
        (slot.state.load(Ordering::Acquire) == CLAIMED).then(|| lock(&slot.data))
    }

    /// Frees a claimed frame after the run has read it.
    pub fn finish(&self, ticket: Ticket) {
        if let Some((index, slot)) = self.slot(ticket) {
            slot.state.store(FREE, Ordering::Release);
            self.release(index);
        }
    }

    fn release(&self, index: usize) {
        self.slots[index].ticket.store(0, Ordering::Relaxed);
        lock(&self.free).push(index as u16);
    }

    /// The text of a failed frame.
    pub fn error(&self, ticket: Ticket) -> Option<MutexGuard<'_, ErrorText>> {
        let (_, slot) = self.slot(ticket)?;
        Some(lock(&slot.error))
    }

    /// Free slots now.
    pub fn free(&self) -> usize {
        lock(&self.free).len()
    }
}
