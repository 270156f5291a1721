//! Result codes, tickets and error texts, without allocation.

use crate::layout::ERROR_TEXT_BYTES;
use std::fmt::{self, Write};

/// Result code of a call or of a completion. Negative; 0 is success and a positive number is a ticket.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The caller broke the rules of the ABI: stale ticket, wrong count, null pointer.
    Misuse = -1,
    /// No free slot, or the queue is at its bound.
    Busy = -2,
    /// The JPEG cannot be decoded.
    Image = -3,
    /// The instruction does not fit into the model's prompt.
    TooLong = -4,
    /// Stopped by `tendon_cancel` or by closing.
    Cancelled = -5,
    /// The model failed: an error of the runtime, a non-finite value, a value out of its range.
    Model = -6,
    /// The model or a library could not be loaded.
    Load = -7,
    /// A panic was caught: our own bug.
    Panic = -8,
}

impl Status {
    /// Names for the generated file.
    pub const NAMES: &[(&str, Status)] = &[
        ("ok", Status::Ok),
        ("misuse", Status::Misuse),
        ("busy", Status::Busy),
        ("image", Status::Image),
        ("tooLong", Status::TooLong),
        ("cancelled", Status::Cancelled),
        ("model", Status::Model),
        ("load", Status::Load),
        ("panic", Status::Panic),
    ];
}

/// What a ticket addresses.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A frame slot of a model.
    Frame = 0,
    /// A result slot.
    Chunk = 1,
    /// A loaded model.
    Model = 2,
}

impl Kind {
    /// Names for the generated file.
    pub const NAMES: &[(&str, Kind)] = &[("frame", Kind::Frame), ("chunk", Kind::Chunk), ("model", Kind::Model)];
}

/// A slot and its generation, so that a stale ticket is refused and cannot reach the slot's next user.
///
/// `kind:2 | generation:12 | index:16`, always positive as an `i32` and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Bits below the kind.
    pub const KIND_SHIFT: u32 = 28;
    /// The index bits.
    pub const INDEX_MASK: u32 = 0xFFFF;
    const GENERATION_SHIFT: u32 = 16;
    const GENERATION_MASK: u32 = 0xFFF;

    /// `generation` wraps; 0 is skipped so that no ticket is 0.
    pub fn new(kind: Kind, generation: u32, index: usize) -> Ticket {
        debug_assert!(index <= Self::INDEX_MASK as usize);
        let generation = (generation % Self::GENERATION_MASK) + 1;
        Ticket((kind as u32) << Self::KIND_SHIFT | generation << Self::GENERATION_SHIFT | index as u32)
    }

    /// The index, if the ticket is of this kind.
    pub fn index(self, kind: Kind) -> Option<usize> {
        (self.0 >> Self::KIND_SHIFT == kind as u32).then_some((self.0 & Self::INDEX_MASK) as usize)
    }
}

/// A failure with its text; it may allocate, since it is rare.
#[derive(Debug)]
pub struct Failure {
    /// The code that crosses the ABI.
    pub status: Status,
    /// One sentence for people.
    pub text: String,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }
}

/// The text of a slot's last failure, in a buffer of its own.
pub struct ErrorText {
    bytes: [u8; ERROR_TEXT_BYTES],
    len: usize,
}

impl ErrorText {
    /// Empty.
    pub const fn new() -> ErrorText {
        ErrorText { bytes: [0; ERROR_TEXT_BYTES], len: 0 }
    }

    /// Replaces the text; it is truncated at a character if it is too long.
    pub fn set(&mut self, message: fmt::Arguments<'_>) {
        self.len = 0;
        // Cannot fail: the writer below truncates.
        let _ = self.write_fmt(message);
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for ErrorText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = ERROR_TEXT_BYTES - 1 - self.len;
        let mut take = text.len().min(room);
        while !text.is_char_boundary(take) {
            take -= 1;
        }
        self.bytes[self.len..self.len + take].copy_from_slice(&text.as_bytes()[..take]);
        self.len += take;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_gives_its_index_only_for_its_kind() {
        for generation in [0, 1, 4094, 4095, u32::MAX] {
            let ticket = Ticket::new(Kind::Chunk, generation, 65_535);
            assert_eq!(ticket.index(Kind::Chunk), Some(65_535));
            assert_eq!(ticket.index(Kind::Frame), None);
            assert!(ticket.0 as i32 > 0);
        }
        assert_ne!(Ticket::new(Kind::Frame, 0, 0).0, 0);
    }

    #[test]
    fn an_error_text_is_cut_at_a_character() {
        let mut text = ErrorText::new();
        text.set(format_args!("{}", "é".repeat(ERROR_TEXT_BYTES)));
        assert!(std::str::from_utf8(text.as_bytes()).is_ok());
        assert!(text.as_bytes().len() >= ERROR_TEXT_BYTES - 3);
        text.set(format_args!("short {}", 1));
        assert_eq!(text.as_bytes(), b"short 1");
    }
}
