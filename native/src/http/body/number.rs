//! Numbers of JSON text.

/// A longer number is rewritten, since reading hundreds of digits takes long.
const BYTES_MAX: usize = 32;

/// Index behind the number that begins at `start`; None if it is malformed.
pub fn end(text: &[u8], start: usize) -> Option<usize> {
    let digits = |at: usize| {
        let count = text.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(at + count)
    };
    let mut at = start;
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if text.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = matches!(text.get(at + 1), Some(b'+' | b'-'));
        at = digits(at + 1 + usize::from(sign))?;
    }
    Some(at)
}

/// Appends a well-formed number. A long one becomes the shortest text of the same double.
pub fn append(text: &[u8], to: &mut Vec<u8>) {
    if text.len() <= BYTES_MAX {
        return to.extend_from_slice(text);
    }
    let value: f64 = str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
    debug_assert!(!value.is_nan(), "what JSON calls a number is one in Rust");
    let shown =
        if value.is_infinite() { format!("{}1e999", if value < 0.0 { "-" } else { "" }) } else { format!("{value:e}") };
    to.extend_from_slice(shown.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_json() {
        for good in ["0", "-0", "10", "1.5", "0.01", "1e5", "1E+5", "-1.25e-7"] {
            assert_eq!(end(good.as_bytes(), 0), Some(good.len()), "{good}");
        }
        for bad in ["", "-", "1.", ".5", "1e", "1e+", "+1", "-x"] {
            assert_eq!(end(bad.as_bytes(), 0), None, "{bad}");
        }
        assert_eq!(end(b"012", 0), Some(1));
    }

    #[test]
    fn a_long_number_keeps_its_double() {
        let long = |text: &str| {
            let mut to = Vec::new();
            append(text.as_bytes(), &mut to);
            (to.len(), String::from_utf8(to).unwrap().parse::<f64>().unwrap())
        };
        for text in [format!("0.{}1", "0".repeat(200)), "123456789".repeat(30), format!("-1{}e-3000", "0".repeat(3000))]
        {
            let (length, value) = long(&text);
            assert_eq!((length < 32, value), (true, text.parse().unwrap()), "{text}");
        }
        assert_eq!(long(&"9".repeat(400)).1, f64::INFINITY);
        assert_eq!(long(&format!("-{}", "9".repeat(400))).1, f64::NEG_INFINITY);
    }
}
