//! One pass over JSON text checks its form and bounds, and moves long strings out.
//!
//! The result is a skeleton and a table. The skeleton is the same JSON without blanks, with placeholders for all long strings; the table
//! has those strings. A placeholder is a string of DEL and the index in the table. A string of the client that begins with DEL goes into
//! the table too, so no string is mistaken for a placeholder. The skeleton is short and has few escapes: the number of values bounds the
//! time to read it.

use super::text::{self, Extent};
use super::{base64, number};
use crate::core::layout::BodyText;

const TAG: u8 = 0x7F;
const JPEG_URL: &[u8] = b"data:image/jpeg;base64,";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not JSON, or not UTF-8.
    Syntax,
    Depth,
    Values,
}

/// Bounds of a body, and the wanted forms of its strings.
#[derive(Clone, Copy)]
pub struct Rules {
    pub depth_max: usize,
    /// Arrays, objects and scalars; keys do not count.
    pub values_max: usize,
    /// A longer string goes into the table.
    pub string_bytes_max: usize,
    /// The same for a string with an escape that it needs: a parser takes ten times as long for escapes.
    pub escaped_bytes_max: usize,
    /// Bytes of a JPEG that is decoded from its data URL.
    pub image_bytes_max: usize,
    /// All strings of the table are unescaped, and no image is decoded.
    pub texts: bool,
}

#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The text as it is in the body, with escapes: `start` and `len` in the body.
    Raw = 0,
    /// `start` and `len` in the bytes of `narrow`, one a unit.
    Narrow = 1,
    /// `start` and `len`, in units, in `wide`.
    Wide = 2,
    /// The data URL of a JPEG that is too large to be decoded, as `Raw` has it.
    Jpeg = 3,
    /// A `Raw` text whose file is at `image` and `image_len` in the images.
    JpegBytes = 4,
    /// A `Raw` text; the rest of the URL is not base64.
    JpegDamaged = 5,
}

impl Form {
    pub const NAMES: &[(&str, Form)] = &[
        ("raw", Form::Raw),
        ("narrow", Form::Narrow),
        ("wide", Form::Wide),
        ("jpeg", Form::Jpeg),
        ("jpegBytes", Form::JpegBytes),
        ("jpegDamaged", Form::JpegDamaged),
    ];
}

/// The result of a scan. It is kept from body to body, and allocates only while it grows.
#[derive(Default)]
pub struct ScanResult {
    /// JSON in UTF-8.
    pub skeleton: Vec<u8>,
    pub table: Vec<BodyText>,
    /// Texts of units up to 0xFF.
    pub narrow: Vec<u8>,
    pub wide: Vec<u16>,
    pub images: Vec<u8>,
    pub keys: bool,
}

impl ScanResult {
    /// Empty, with the memory of `keep` bytes at most in each part.
    pub fn clear(&mut self, keep: usize) {
        self.skeleton.clear();
        self.table.clear();
        self.narrow.clear();
        self.wide.clear();
        self.images.clear();
        self.skeleton.shrink_to(keep);
        self.table.shrink_to(keep / size_of::<BodyText>());
        self.narrow.shrink_to(keep);
        self.wide.shrink_to(keep / 2);
        self.images.shrink_to(keep);
        self.keys = false;
    }
}

/// Scans `body`.
pub fn scan(body: &[u8], rules: Rules, found: &mut ScanResult) -> Result<(), Fault> {
    // One byte order mark is skipped, as a UTF-8 decoder does.
    let at = if body.starts_with(&[0xEF, 0xBB, 0xBF]) { 3 } else { 0 };
    match str::from_utf8(body) {
        Ok(text) => Scan { text, body, at, values: 0, rules, found }.run(),
        // Bounds are checked first, as far as possible.
        Err(_) => {
            let text = &*String::from_utf8_lossy(body);
            Err(Scan { text, body: text.as_bytes(), at, values: 0, rules, found }.run().err().unwrap_or(Fault::Syntax))
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    body: &'a [u8],
    at: usize,
    values: usize,
    rules: Rules,
    found: &'a mut ScanResult,
}

impl Scan<'_> {
    fn run(mut self) -> Result<(), Fault> {
        let mut open: Vec<bool> = Vec::with_capacity(self.rules.depth_max);
        loop {
            let byte = self.next()?;
            self.values += 1;
            if self.values > self.rules.values_max {
                return Err(Fault::Values);
            }
            match byte {
                b'{' | b'[' => {
                    if open.len() == self.rules.depth_max {
                        return Err(Fault::Depth);
                    }
                    let object = byte == b'{';
                    self.put(byte);
                    let close = if object { b'}' } else { b']' };
                    if self.next()? != close {
                        open.push(object);
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                    self.put(close);
                }
                b'"' => self.string(false)?,
                b'-' | b'0'..=b'9' => {
                    let end = number::end(self.body, self.at).ok_or(Fault::Syntax)?;
                    number::append(&self.body[self.at..end], &mut self.found.skeleton);
                    self.at = end;
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => return Err(Fault::Syntax),
            }
            // After a value its array or object goes on, or ends.
            loop {
                let Some(&object) = open.last() else {
                    self.blanks();
                    return if self.at == self.body.len() { Ok(()) } else { Err(Fault::Syntax) };
                };
                let byte = self.next()?;
                self.put(byte);
                if byte == b',' {
                    if object {
                        self.key()?;
                    }
                    break;
                }
                if byte != if object { b'}' } else { b']' } {
                    return Err(Fault::Syntax);
                }
                open.pop();
            }
        }
    }

    fn blanks(&mut self) {
        while matches!(self.body.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next byte that is no blank.
    fn next(&mut self) -> Result<u8, Fault> {
        self.blanks();
        self.body.get(self.at).copied().ok_or(Fault::Syntax)
    }

    fn put(&mut self, byte: u8) {
        self.found.skeleton.push(byte);
        self.at += 1;
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.body[self.at..].starts_with(word) {
            return Err(Fault::Syntax);
        }
        self.found.skeleton.extend_from_slice(word);
        self.at += word.len();
        Ok(())
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.next()? != b'"' {
            return Err(Fault::Syntax);
        }
        self.string(true)?;
        if self.next()? != b':' {
            return Err(Fault::Syntax);
        }
        self.put(b':');
        Ok(())
    }

    /// The string whose quote is next.
    fn string(&mut self, key: bool) -> Result<(), Fault> {
        let start = self.at + 1;
        let extent = text::extent(self.body, start).ok_or(Fault::Syntax)?;
        let Extent { end, saved } = extent;
        self.at = end + 1;
        let raw = &self.body[start..end];
        let skeleton = &mut self.found.skeleton;
        if saved > 0 {
            // A client may escape a name without need.
            let before = skeleton.len();
            skeleton.push(b'"');
            let plain = text::append_plain(raw, self.rules.string_bytes_max, skeleton);
            if plain && skeleton.get(before + 1) != Some(&TAG) {
                skeleton.push(b'"');
                return Ok(());
            }
            skeleton.truncate(before);
        }
        // DEL can also be written as an escape.
        let like_placeholder = raw.first() == Some(&TAG) || raw.starts_with(b"\\u");
        let bytes_max = if saved > 0 { self.rules.escaped_bytes_max } else { self.rules.string_bytes_max };
        if raw.len() <= bytes_max && !like_placeholder {
            skeleton.extend_from_slice(&self.body[start - 1..=end]);
            return Ok(());
        }
        let entry = self.entry(start, extent);
        let skeleton = &mut self.found.skeleton;
        skeleton.extend_from_slice(&[b'"', TAG]);
        skeleton.extend_from_slice(self.found.table.len().to_string().as_bytes());
        skeleton.push(b'"');
        self.found.table.push(entry);
        self.found.keys |= key;
        Ok(())
    }

    fn entry(&mut self, start: usize, Extent { end, saved }: Extent) -> BodyText {
        let raw = &self.text[start..end];
        let units = text::units(raw.as_bytes(), saved);
        let place = |form: Form, start: usize, len: usize| BodyText {
            form: form as u32,
            start: start as u32,
            len: len as u32,
            units: units as u32,
            blank: 0,
            jpeg_len: 0,
            image: 0,
            image_len: 0,
        };
        let stands = place(Form::Raw, start, end - start);
        let ScanResult { narrow, wide, .. } = &mut *self.found;
        if !self.rules.texts {
            if text::begins_with(raw.as_bytes(), JPEG_URL) {
                return self.jpeg(raw, saved > 0, stands);
            }
            return BodyText { blank: u32::from(text::is_blank(raw)), ..stands };
        }
        let from = narrow.len();
        if text::append_latin1(raw, narrow) {
            return place(Form::Narrow, from, units);
        }
        let from = wide.len();
        text::each_unit(raw, |unit| {
            wide.push(unit);
            true
        });
        place(Form::Wide, from, units)
    }

    /// The entry of a string that begins as the data URL of a JPEG. The image is decoded if it may be.
    fn jpeg(&mut self, raw: &str, escaped: bool, stands: BodyText) -> BodyText {
        let jpeg_len = (stands.units as usize - JPEG_URL.len() - text::padding(raw, escaped)) * 3 / 4;
        let form = |form: Form| BodyText { form: form as u32, jpeg_len: jpeg_len as u32, ..stands };
        if jpeg_len > self.rules.image_bytes_max {
            return form(Form::Jpeg);
        }
        let images = &mut self.found.images;
        let from = images.len();
        let decoded = if escaped {
            text::append_ascii(raw, JPEG_URL.len(), images)
        } else {
            images.extend_from_slice(&raw.as_bytes()[JPEG_URL.len()..]);
            true
        };
        let length = if decoded { base64::decode_in_place(&mut images[from..]) } else { None };
        images.truncate(from + length.unwrap_or(0));
        match length {
            Some(length) => BodyText { image: from as u32, image_len: length as u32, ..form(Form::JpegBytes) },
            None => form(Form::JpegDamaged),
        }
    }
}

#[cfg(test)]
mod tests;
