//! Result codes and error texts, without allocation.

use crate::core::layout::ERROR_TEXT_BYTES;
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
    /// The replica of the inference is out: it hung, its thread ended or its device failed. Nothing of the inference is kept.
    Lost = -9,
    /// A completion of a model's ticket, for each replica that goes out; no call returns it.
    ReplicaOut = -10,
    /// The body is not JSON in UTF-8.
    Syntax = -11,
    /// The body is nested too deep.
    Depth = -12,
    /// The body has too many values.
    Values = -13,
    /// The decoder of a frame panicked: our own bug.
    Decoder = -14,
    /// The device, or the host, has no memory left for the model or the inference.
    OutOfMemory = -15,
    /// The device has failed: nothing runs on it any more.
    DeviceLost = -16,
    /// The bundle is wrong on every device.
    BadBundle = -17,
    /// The frame has another size than the one that the model takes.
    Size = -18,
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
        ("lost", Status::Lost),
        ("replicaOut", Status::ReplicaOut),
        ("syntax", Status::Syntax),
        ("depth", Status::Depth),
        ("values", Status::Values),
        ("decoder", Status::Decoder),
        ("outOfMemory", Status::OutOfMemory),
        ("deviceLost", Status::DeviceLost),
        ("badBundle", Status::BadBundle),
        ("size", Status::Size),
    ];
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

/// The text of a slot's last failure, in its own buffer.
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

    /// A copy of the text.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(self.as_bytes()).into_owned()
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
    fn an_error_text_is_cut_at_a_character() {
        let mut text = ErrorText::new();
        text.set(format_args!("{}", "é".repeat(ERROR_TEXT_BYTES)));
        assert!(std::str::from_utf8(text.as_bytes()).is_ok());
        assert!(text.as_bytes().len() >= ERROR_TEXT_BYTES - 3);
        text.set(format_args!("short {}", 1));
        assert_eq!(text.as_bytes(), b"short 1");
    }
}
