//! Strict base64 (RFC 4648 section 4, padded, no white space, no stray bits), decoded in place.
//!
//! There are two passes, which the compiler turns into vector code: characters to six-bit values with one flag for all bad ones, then eight
//! values to six bytes.

/// Characters per block of the first pass.
const BLOCK: usize = 64;

/// Decodes all of `text` into its own beginning; returns the number of bytes, or None if it is not base64. The text is overwritten either
/// way.
pub fn decode_in_place(text: &mut [u8]) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&byte| byte == b'=').count();
    let data_len = text.len() - padding;
    if !to_sextets(&mut text[..data_len]) {
        return None;
    }
    text[data_len..].fill(0);
    let stray = match padding {
        0 => 0,
        1 => text[data_len - 1] & 0b11,
        _ => text[data_len - 1] & 0b1111,
    };
    if stray != 0 {
        return None;
    }
    pack(text);
    Some(text.len() / 4 * 3 - padding)
}

/// Characters to their values; false if one of them has none.
fn to_sextets(text: &mut [u8]) -> bool {
    let mut blocks = text.chunks_exact_mut(BLOCK);
    for block in &mut blocks {
        let mut all = 0;
        for byte in block.iter_mut() {
            *byte = sextet(*byte);
            all |= *byte;
        }
        if all > 63 {
            return false;
        }
    }
    blocks.into_remainder().iter_mut().fold(0, |all, byte| {
        *byte = sextet(*byte);
        all | *byte
    }) <= 63
}

/// It has no branches, so that a block becomes comparisons and masks of whole vectors.
#[inline(always)]
fn sextet(byte: u8) -> u8 {
    let pick = |first: u8, last: u8, value: u8| {
        let inside = byte.wrapping_sub(first) <= last - first;
        if inside { value } else { 0 }
    };
    let known = pick(b'A', b'Z', 0xFF)
        | pick(b'a', b'z', 0xFF)
        | pick(b'0', b'9', 0xFF)
        | pick(b'+', b'+', 0xFF)
        | pick(b'/', b'/', 0xFF);
    let offset = pick(b'A', b'Z', 0u8.wrapping_sub(b'A'))
        | pick(b'a', b'z', 26u8.wrapping_sub(b'a'))
        | pick(b'0', b'9', 52u8.wrapping_sub(b'0'))
        | pick(b'+', b'+', 62 - b'+')
        | pick(b'/', b'/', 63 - b'/');
    byte.wrapping_add(offset) | !known
}

/// Values, a multiple of four, to bytes.
fn pack(values: &mut [u8]) {
    let (mut from, mut to) = (0, 0);
    while from + 8 <= values.len() {
        let mut eight = [0; 8];
        eight.copy_from_slice(&values[from..from + 8]);
        let value = u64::from_le_bytes(eight);
        let pairs = (value & 0x00FF_00FF_00FF_00FF) << 6 | (value >> 8) & 0x00FF_00FF_00FF_00FF;
        let fours = (pairs & 0x0000_FFFF_0000_FFFF) << 12 | (pairs >> 16) & 0x0000_FFFF_0000_FFFF;
        // The first group of four is in the low half, and its bytes come first.
        let bytes = ((fours & 0xFFFF_FFFF) << 40 | (fours >> 32) << 16).to_be_bytes();
        values[to..to + 6].copy_from_slice(&bytes[..6]);
        from += 8;
        to += 6;
    }
    if from < values.len() {
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| u32::from(values[from + at]));
        let bytes = (a << 26 | b << 20 | c << 14 | d << 8).to_be_bytes();
        values[to..to + 3].copy_from_slice(&bytes[..3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for group in bytes.chunks(3) {
            let [a, b, c] = [0, 1, 2].map(|at| u32::from(*group.get(at).unwrap_or(&0)));
            let bits = a << 16 | b << 8 | c;
            for place in 0..4 {
                let shown = place <= group.len();
                text.push(if shown { ALPHABET[(bits >> (18 - 6 * place)) as usize & 63] } else { b'=' });
            }
        }
        text
    }

    #[test]
    fn every_length_comes_back() {
        let bytes: Vec<u8> = (0..700u32).map(|at| (at * 151 + at / 7) as u8).collect();
        for length in 0..bytes.len() {
            let mut text = encoded(&bytes[..length]);
            let count = decode_in_place(&mut text);
            assert_eq!(count, Some(length));
            assert_eq!(&text[..length], &bytes[..length]);
        }
    }

    #[test]
    fn every_byte_that_is_no_character_is_refused_wherever_it_stands() {
        let whole = encoded(&[7; 192]);
        for byte in 0..=255u8 {
            for at in [0, 63, 64, 130, 255] {
                let mut text = whole.clone();
                text[at] = byte;
                let padded = byte == b'=' && at == 255;
                let good = ALPHABET.contains(&byte) || padded;
                let good =
                    good && !(padded && ALPHABET.iter().position(|one| *one == whole[254]).unwrap_or(0) & 3 != 0);
                assert_eq!(decode_in_place(&mut text).is_some(), good, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn wrong_lengths_padding_and_stray_bits_are_refused() {
        for text in ["A", "AA", "AAA", "AAAAA", "=", "====", "A===", "AA=A", "AB==", "AAB=", "AA==AAAA", "AAAA\n"] {
            assert_eq!(decode_in_place(&mut text.as_bytes().to_vec()), None, "{text}");
        }
        for text in ["", "AA==", "AAA=", "AQ==", "AAE="] {
            assert!(decode_in_place(&mut text.as_bytes().to_vec()).is_some(), "{text}");
        }
    }
}
