//! Frame slots: one JPEG each, on its way to a normalised tensor in page-locked memory.
//!
//! A slot is free → pending (queued or decoding) → ready or failed → free. A drop while it is pending takes effect when
//! the decode thread comes to it. Each put gets exactly one completion.

use crate::jpeg::{self, Decoder, Header};
use crate::layout::{FRAMES_MAX, JPEG_BYTES_MAX, JPEG_EDGE_MAX};
use crate::manifest::{Image, Resize};
use crate::memory::Block;
use crate::resize::{Mode, Resizer, SLACK};
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

/// How a picture becomes the model's tensor.
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

/// What a slot holds; locked by whoever the state names as its owner, so the lock is never waited for.
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

/// Over all models and loads: a ticket of a model that is gone must not be one of the next in its place.
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
    /// `count` slots of the model at place `model`, all memory taken now.
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

    /// Gives the slot back, now or when its decode ends. False for a stale ticket and for a frame that belongs to a run.
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

    /// Takes a frame back that is not decoded: its queue was full, the engine closes, or its decode panicked.
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

    /// Takes claims back after a refused run.
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

    /// Gives a claimed frame back after the run has read it.
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

/// How one decode ended.
#[derive(Clone, Copy, PartialEq)]
pub enum Decoded {
    /// The tensor is ready.
    Ready,
    /// The slot's error text says why not.
    Refused,
    /// It was dropped meanwhile; the slot is free again.
    Dropped,
}

/// What a decode thread owns.
pub struct Worker {
    decoder: Decoder,
    resizer: Resizer,
    /// Room for the largest picture; takes memory only where it is touched.
    rgb: Block<u8>,
}

/// Pixel memory that a thread keeps between frames; more is given back after a large picture.
const RGB_KEEP_BYTES: usize = 8 << 20;

impl Worker {
    /// A worker with its scratch memory.
    pub fn new(decoder: Decoder) -> Result<Worker, String> {
        let edge = JPEG_EDGE_MAX as usize;
        Ok(Worker { decoder, resizer: Resizer::new(), rgb: Block::lazy(edge * edge * 3 + SLACK)? })
    }

    /// Decodes the pending frame of `ticket`.
    pub fn decode(&mut self, slots: &FrameSlots, ticket: Ticket) -> Decoded {
        let Some((index, slot)) = slots.slot(ticket) else { return Decoded::Dropped };
        let mut decoded = Decoded::Dropped;
        if slot.state.load(Ordering::Acquire) == PENDING {
            let mut data = lock(&slot.data);
            let FrameData { jpeg, tensor, done, .. } = &mut *data;
            decoded = match self.tensor(&slots.spec, jpeg, tensor) {
                Ok(()) => Decoded::Ready,
                Err(reason) => {
                    lock(&slot.error).set(format_args!("{reason}"));
                    Decoded::Refused
                }
            };
            *done = Instant::now();
        }
        let next = if decoded == Decoded::Ready { READY } else { FAILED };
        match slot.state.compare_exchange(PENDING, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => decoded,
            Err(_) => {
                slot.state.store(FREE, Ordering::Release);
                slots.release(index);
                Decoded::Dropped
            }
        }
    }

    /// JPEG → RGB → resized, normalised `[3, height, width]`. The error is a sentence part.
    pub fn tensor(&mut self, spec: &FrameSpec, jpeg: &[u8], tensor: &mut [f32]) -> Result<(), String> {
        let Header { width, height, .. } = self.pixels(jpeg)?;
        let (source, target) = ((width as usize, height as usize), (spec.width, spec.height));
        let rgb = &self.rgb[..source.0 * source.1 * 3 + SLACK];
        let plane = target.0 * target.1;
        if spec.mode == Mode::Pad {
            // Black bars; the picture is written over the middle.
            for (channel, normal) in tensor.chunks_exact_mut(plane).zip(&spec.normal) {
                channel.fill(normal[0]);
            }
        }
        let (red, rest) = tensor.split_at_mut(plane);
        let (green, blue) = rest.split_at_mut(plane);
        self.resizer.run(spec.mode, rgb, source, target, |x, y, row| {
            let (from, to) = (y * target.0 + x, y * target.0 + x + row.len() / 3);
            let pixels = row.chunks_exact(3);
            let planes = red[from..to].iter_mut().zip(&mut green[from..to]).zip(&mut blue[from..to]);
            for (((red, green), blue), pixel) in planes.zip(pixels) {
                *red = spec.normal[0][pixel[0] as usize];
                *green = spec.normal[1][pixel[1] as usize];
                *blue = spec.normal[2][pixel[2] as usize];
            }
        });
        if source.0 * source.1 * 3 > RGB_KEEP_BYTES {
            self.rgb.release_beyond(RGB_KEEP_BYTES);
        }
        Ok(())
    }

    /// Decodes only, for benches: the pixels are `rgb()[..width × height × 3]`.
    pub fn pixels(&mut self, jpeg: &[u8]) -> Result<Header, String> {
        let header = jpeg::inspect(jpeg)?;
        self.decoder.decode(jpeg, header, &mut self.rgb)?;
        Ok(header)
    }

    /// The pixel memory.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}
