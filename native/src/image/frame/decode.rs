//! Decodes a pending frame: JPEG → RGB → resized, normalised tensor in the frame's slot.

use super::{FrameData, FrameSlots, FrameSpec, Listener};
use crate::core::layout::JPEG_EDGE_MAX;
use crate::core::memory::Block;
use crate::core::status::{Failure, Status};
use crate::core::sync::lock;
use crate::core::ticket::Ticket;
use crate::image::jpeg::{self, Decoder, Header};
use crate::image::resize::{Resizer, SLACK};
use std::time::Instant;

pub struct Worker {
    decoder: Decoder,
    resizer: Resizer,
    /// Address space for the largest image; only written pages use memory.
    rgb: Block,
}

/// Bytes of pixel memory that a thread keeps between frames; the rest goes back to the system after a large image.
const RGB_KEEP_BYTES: usize = 8 << 20;

impl Worker {
    /// A worker with its scratch memory.
    pub fn new(decoder: Decoder) -> Result<Worker, String> {
        let edge = JPEG_EDGE_MAX as usize;
        Ok(Worker { decoder, resizer: Resizer::new(), rgb: Block::lazy(edge * edge * 3 + SLACK)? })
    }

    /// Decodes the pending frame of `ticket`, unless it was dropped. Returns its status, and who hears of it.
    pub fn decode(&mut self, slots: &FrameSlots, ticket: Ticket) -> (Status, Listener) {
        let pending = slots.slot(ticket).filter(|slot| slot.state.is_pending(ticket));
        let Some(slot) = pending else { return (Status::Cancelled, slots.give_up(ticket)) };
        let mut data = lock(&slot.data);
        let FrameData { jpeg, jpeg_len, tensor, done, .. } = &mut *data;
        let begun = Instant::now();
        let decoded = self.frame(&slots.spec, &jpeg[..*jpeg_len], tensor);
        let status = match decoded {
            Ok(()) => Status::Ok,
            Err(Failure { status, text }) => {
                lock(&slot.error).set(format_args!("{text}"));
                status
            }
        };
        *done = Instant::now();
        let spent_us = done.duration_since(begun).as_micros() as u32;
        drop(data);
        (status, slots.ended(ticket, status, spent_us))
    }

    /// JPEG → RGB → resized, as the graphs take it: `spec.bytes()`. The failure's text is a sentence part.
    pub fn frame(&mut self, spec: &FrameSpec, jpeg: &[u8], tensor: &mut Block) -> Result<(), Failure> {
        let bad = |text: String| Failure::new(Status::Image, text);
        let header = jpeg::inspect(jpeg).map_err(bad)?;
        if let Some(text) = spec.refusal(header) {
            return Err(Failure::new(Status::Size, text));
        }
        self.decoder.decode(jpeg, header, &mut self.rgb).map_err(bad)?;
        let Header { width, height } = header;
        let source = (width as usize, height as usize);
        let rgb = &self.rgb[..source.0 * source.1 * 3 + SLACK];
        spec.write(&mut self.resizer, rgb, source, tensor);
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

    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}
