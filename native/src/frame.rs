//! Frame slots: each decodes one JPEG to a normalised tensor in page-locked memory.
//!
//! A slot is free → pending (queued or decoding) → ready or failed → free. A drop while it is pending takes effect when
//! the decode thread takes it from the queue. Each put gets exactly one completion.

mod decode;

pub use decode::{Decoded, Worker};

use crate::layout::{FRAMES_MAX, JPEG_BYTES_MAX, MODELS_MAX};
use crate::manifest::{Image, Resize};
use crate::memory::Block;
use crate::resize::Mode;
use crate::status::ErrorText;
use crate::sync::lock;
use crate::ticket::{FREE, Kind, Ticket, Word};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

const PENDING: u8 = 1;
const READY: u8 = 2;
const FAILED: u8 = 3;
const DROPPED: u8 = 4;
/// Taken over by a run.
const CLAIMED: u8 = 5;

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
    word: Word,
    data: Mutex<FrameData>,
    error: Mutex<ErrorText>,
    /// The frame that was decoded last, and what that took, microseconds.
    spent: Mutex<(Ticket, u32)>,
}

/// The highest generation of a frame so far, for each place of a model: a ticket of an unloaded model is not valid for the next
/// model in its place.
static GENERATIONS: [AtomicU64; MODELS_MAX] = [const { AtomicU64::new(0) }; MODELS_MAX];

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
        let base = model * FRAMES_MAX;
        let generation = GENERATIONS[model].load(Ordering::Acquire);
        let slots = (0..count)
            .map(|index| {
                Ok(Slot {
                    word: Word::new(Kind::Frame, generation, base + index),
                    data: Mutex::new(FrameData {
                        jpeg: Vec::with_capacity(JPEG_BYTES_MAX),
                        tensor: Block::locked(spec.values())?,
                        put: now,
                        done: now,
                    }),
                    error: Mutex::new(ErrorText::new()),
                    spent: Mutex::new((Ticket(0), 0)),
                })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let free = Mutex::new((0..count as u16).rev().collect());
        Ok(FrameSlots { slots, free, base, spec })
    }

    /// Copies a JPEG into a free slot, which is pending from here on. None when all are taken.
    pub fn put(&self, jpeg: &[u8]) -> Option<Ticket> {
        assert!(jpeg.len() <= JPEG_BYTES_MAX, "the caller has checked the length");
        let index = lock(&self.free).pop()? as usize;
        let slot = &self.slots[index];
        let ticket = slot.word.next()?;
        GENERATIONS[self.base / FRAMES_MAX].fetch_max(ticket.generation(), Ordering::AcqRel);
        let mut data = lock(&slot.data);
        data.jpeg.clear();
        data.jpeg.extend_from_slice(jpeg);
        data.put = Instant::now();
        slot.word.open(ticket, PENDING);
        Some(ticket)
    }

    /// The slot that the ticket addresses, whoever uses it now.
    fn slot(&self, ticket: Ticket) -> Option<&Slot> {
        self.slots.get(ticket.index(Kind::Frame)?.checked_sub(self.base)?)
    }

    /// Changes the state of a frame; a slot that becomes free can be taken again. False for a stale ticket or another state.
    fn turn(&self, ticket: Ticket, from: u8, to: u8) -> bool {
        let turned = self.slot(ticket).is_some_and(|slot| slot.word.turn(ticket, from, to));
        if turned && to == FREE {
            let index = ticket.index(Kind::Frame).expect("a frame's ticket") - self.base;
            lock(&self.free).push(index as u16);
        }
        turned
    }

    /// Frees the slot, now or when its decode ends. False for a stale ticket and for a frame that belongs to a run.
    pub fn drop_frame(&self, ticket: Ticket) -> bool {
        // A decode that ends meanwhile makes the frame ready or failed, once.
        self.turn(ticket, PENDING, DROPPED) || self.turn(ticket, READY, FREE) || self.turn(ticket, FAILED, FREE)
    }

    /// Frees a frame that is not decoded: the queue was full, the engine closes, or the decode panicked.
    pub fn refuse(&self, ticket: Ticket) {
        let _ = self.turn(ticket, PENDING, FREE) || self.turn(ticket, DROPPED, FREE);
    }

    /// Takes a ready frame for a run. False for any other.
    pub fn claim(&self, ticket: Ticket) -> bool {
        self.turn(ticket, READY, CLAIMED)
    }

    /// Undoes the claims of a refused run.
    pub fn unclaim(&self, tickets: &[Ticket]) {
        for &ticket in tickets {
            self.turn(ticket, CLAIMED, READY);
        }
    }

    /// The data of a claimed frame.
    pub fn claimed(&self, ticket: Ticket) -> Option<MutexGuard<'_, FrameData>> {
        let slot = self.slot(ticket)?;
        let data = lock(&slot.data);
        (slot.word.state(ticket) == Some(CLAIMED)).then_some(data)
    }

    /// Frees a claimed frame after the run has read it; a second call does nothing.
    pub fn finish(&self, ticket: Ticket) {
        self.turn(ticket, CLAIMED, FREE);
    }

    /// The text of a failed frame.
    pub fn error(&self, ticket: Ticket) -> Option<MutexGuard<'_, ErrorText>> {
        let slot = self.slot(ticket)?;
        slot.word.state(ticket).map(|_| lock(&slot.error))
    }

    /// Microseconds that the decode of a frame took, also of one that was dropped meanwhile; 0 if it was not decoded, and once
    /// its slot has decoded another one.
    pub fn spent_us(&self, ticket: Ticket) -> i32 {
        let spent = self.slot(ticket).map(|slot| *lock(&slot.spent));
        spent.filter(|(decoded, _)| *decoded == ticket).map_or(0, |(_, us)| us.min(i32::MAX as u32) as i32)
    }

    /// Free slots now.
    pub fn free(&self) -> usize {
        lock(&self.free).len()
    }
}
