//! Strings of JSON text: their ends, their lengths in JavaScript, and their units.

/// The class of a byte inside a string. Bytes above 0x7F are plain: the text is known to be UTF-8.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Plain,
    Quote,
    Escape,
    Control,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    let mut byte = 0;
    while byte < 0x20 {
        classes[byte] = Class::Control;
        byte += 1;
    }
    classes[b'"' as usize] = Class::Quote;
    classes[b'\\' as usize] = Class::Escape;
    classes
};

/// Bytes that are checked together.
const BLOCK: usize = 32;
/// Plain bytes in a row after which whole blocks are checked.
const PLAIN_RUN: usize = 16;

/// The end of a string, and the bytes that its escapes save.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub end: usize,
    /// Bytes of its escapes less their UTF-16 units.
    pub saved: usize,
}

/// The extent of the string whose first byte behind the quote is at `start`; None if it is malformed or has no end.
pub fn extent(text: &[u8], start: usize) -> Option<Extent> {
    let (mut at, mut run, mut saved) = (start, 0, 0);
    loop {
        match CLASSES[*text.get(at)? as usize] {
            Class::Plain => {
                at += 1;
                run += 1;
                if run >= PLAIN_RUN {
                    at += plain_blocks(&text[at..]);
                    run = 0;
                }
            }
            Class::Quote => return Some(Extent { end: at, saved }),
            Class::Escape => {
                let length = escape_length(&text[at..])?;
                at += length;
                saved += length - 1;
                run = 0;
            }
            Class::Control => return None,
        }
    }
}

/// Bytes of the leading blocks in which every byte is plain.
fn plain_blocks(text: &[u8]) -> usize {
    let special =
        |block: &&[u8]| block.iter().fold(false, |any, &byte| any | (byte < 0x20) | (byte == b'"') | (byte == b'\\'));
    text.chunks_exact(BLOCK).take_while(|block| !special(block)).count() * BLOCK
}

/// Bytes of the escape that `text` begins with.
fn escape_length(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => text.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// Length in JavaScript of a well-formed string whose escapes save `saved`.
pub fn units(raw: &[u8], saved: usize) -> usize {
    if raw.is_ascii() {
        return raw.len() - saved;
    }
    // A character of four bytes is two units, every other one is one.
    let count = |bytes: &[u8]| {
        bytes.iter().fold(0u32, |sum, &byte| sum + u32::from(byte & 0xC0 != 0x80) + u32::from(byte >= 0xF0))
    };
    raw.chunks(1 << 16).map(|part| count(part) as usize).sum::<usize>() - saved
}

/// The unit of an escape and its bytes; the escape is well-formed.
fn unescaped(text: &[u8]) -> (u16, usize) {
    let unit = match text[1] {
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'u' => {
            let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u16;
            return (text[2..6].iter().fold(0, |unit, &byte| unit << 4 | digit(byte)), 6);
        }
        other => u16::from(other),
    };
    (unit, 2)
}

/// Gives the UTF-16 units of a well-formed string one by one until `take` is false; returns whether it took all.
pub fn each_unit(raw: &str, mut take: impl FnMut(u16) -> bool) -> bool {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            let (unit, length) = unescaped(&bytes[at..]);
            if !take(unit) {
                return false;
            }
            at += length;
            continue;
        }
        let plain = bytes[at..].iter().position(|&byte| byte == b'\\').map_or(bytes.len(), |length| at + length);
        if !raw[at..plain].encode_utf16().all(&mut take) {
            return false;
        }
        at = plain;
    }
    true
}

pub fn is_blank(raw: &str) -> bool {
    each_unit(
        raw,
        |unit| matches!(unit, 9..=13 | 0x20 | 0xA0 | 0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 | 0xFEFF),
    )
}

/// Appends the string to `to`, one byte a unit. False, and `to` is unchanged, if a unit does not fit.
pub fn append_latin1(raw: &str, to: &mut Vec<u8>) -> bool {
    let before = to.len();
    if raw.is_ascii() && !raw.as_bytes().contains(&b'\\') {
        to.extend_from_slice(raw.as_bytes());
        return true;
    }
    let fits = each_unit(raw, |unit| {
        let narrow = u8::try_from(unit);
        if let Ok(byte) = narrow {
            to.push(byte);
        }
        narrow.is_ok()
    });
    if !fits {
        to.truncate(before);
    }
    fits
}

/// Appends a string without its escapes, in at most `bytes_max` bytes of UTF-8. False if a character needs its escape; the caller then cuts
/// off what was appended.
pub fn append_plain(raw: &[u8], bytes_max: usize, to: &mut Vec<u8>) -> bool {
    if raw.len() > 6 * bytes_max {
        return false;
    }
    let end = to.len() + bytes_max;
    let mut high = None;
    let text = str::from_utf8(raw).unwrap_or("");
    let plain = each_unit(text, |unit| {
        let pair = [high.take().unwrap_or(0), unit];
        if matches!(unit, 0xD800..=0xDBFF) && pair[0] == 0 {
            high = Some(unit);
            return true;
        }
        let units = if pair[0] == 0 { &pair[1..] } else { &pair[..] };
        let Some(Ok(character)) = char::decode_utf16(units.iter().copied()).next() else { return false };
        to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        !matches!(character, '\0'..='\x1F' | '"' | '\\') && to.len() <= end
    });
    plain && high.is_none()
}

pub fn begins_with(raw: &[u8], text: &[u8]) -> bool {
    let mut at = 0;
    text.iter().all(|&expected| {
        let (unit, length) = match raw.get(at) {
            Some(b'\\') => unescaped(&raw[at..]),
            Some(&byte) => (u16::from(byte), 1),
            None => return false,
        };
        at += length;
        unit == u16::from(expected)
    })
}

/// How many of the last two units are padding of base64.
pub fn padding(raw: &str, escaped: bool) -> usize {
    const PADDING: u16 = b'=' as u16;
    let mut last = [0; 2];
    if escaped {
        each_unit(raw, |unit| {
            last = [last[1], unit];
            true
        });
    } else if let [.., before, end] = *raw.as_bytes() {
        last = [before, end].map(u16::from);
    }
    match last {
        [PADDING, PADDING] => 2,
        [_, PADDING] => 1,
        _ => 0,
    }
}

/// Appends the string without its first `from` units to `to`; false if one of them is not ASCII.
pub fn append_ascii(raw: &str, from: usize, to: &mut Vec<u8>) -> bool {
    let mut at = 0;
    each_unit(raw, |unit| {
        let byte = u8::try_from(unit).ok().filter(u8::is_ascii);
        if at >= from
            && let Some(byte) = byte
        {
            to.push(byte);
        }
        at += 1;
        byte.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_quote_wherever_that_stands() {
        for length in 0..130 {
            let text = format!("{}\"tail", "é".repeat(length));
            assert_eq!(extent(text.as_bytes(), 0), Some(Extent { end: 2 * length, saved: 0 }));
            let escaped = format!("{}\\\"\\u00e9\"", "x".repeat(length));
            assert_eq!(extent(escaped.as_bytes(), 0), Some(Extent { end: length + 8, saved: 6 }));
            for bad in ["\u{1f}\"", "\\x\"", "\\u12g4\"", "\\", "\\u123", ""] {
                assert_eq!(extent(format!("{}{bad}", "x".repeat(length)).as_bytes(), 0), None, "{length} {bad:?}");
            }
        }
    }

    #[test]
    fn units_are_those_of_javascript() {
        for raw in ["", "abc", "é", "€", "😀", "a\\n\\u20acé😀\\\\", "\\ud800"] {
            let mut said = Vec::new();
            each_unit(raw, |unit| {
                said.push(unit);
                true
            });
            let text = format!("{raw}\"");
            let saved = extent(text.as_bytes(), 0).unwrap().saved;
            assert_eq!(units(raw.as_bytes(), saved), said.len(), "{raw}");
        }
    }

    #[test]
    fn blanks_are_those_of_trim() {
        for raw in ["", " \\n\\t\\r", "\u{a0}\u{feff}\u{3000}", "\\u2028\\ufeff"] {
            assert!(is_blank(raw), "{raw:?}");
        }
        for raw in ["x", "  x", "\\u200b", "\u{85}", "\\\\"] {
            assert!(!is_blank(raw), "{raw:?}");
        }
    }

    #[test]
    fn a_string_of_wide_units_leaves_the_narrow_ones_as_they_were() {
        let mut to = b"kept".to_vec();
        assert!(append_latin1("a\\u00ffé", &mut to));
        assert!(!append_latin1("abc\\u0100", &mut to));
        assert_eq!(to, b"kepta\xff\xe9");
    }

    #[test]
    fn escapes_that_need_not_be_go() {
        let plain = |raw: &str| {
            let mut to = Vec::new();
            append_plain(raw.as_bytes(), 12, &mut to).then(|| String::from_utf8(to).unwrap())
        };
        for (raw, said) in [("\\u006dodel", "model"), ("a\\/b", "a/b"), ("\\ud83d\\ude00é", "😀é"), ("\\u007f", "\x7f")]
        {
            assert_eq!(plain(raw).as_deref(), Some(said), "{raw}");
        }
        for raw in
            ["\\n", "\\u0022", "\\\\", "\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\ud83d\\ude00", "\\/234567890123"]
        {
            assert_eq!(plain(raw), None, "{raw}");
        }
    }

    #[test]
    fn ascii_is_unescaped_behind_its_start() {
        let mut to = b"kept".to_vec();
        assert!(append_ascii(r"data:image\/jpeg;base64,\u002F9j\/", 23, &mut to));
        assert_eq!(to, b"kept/9j/");
        assert!(!append_ascii("\\u00e9", 0, &mut to));
    }
}
