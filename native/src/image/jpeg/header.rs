//! Reads a JPEG's markers, so that size, depth and completeness are known before pixels are allocated.
//!
//! One walk over all segments and scans (ITU-T T.81 annex B) refuses what the decoder would refuse late: sizes out of bounds, CMYK,
//! 12-bit, arithmetic and lossless coding, and files without an end-of-image marker. EXIF is skipped: a frame is used as the
//! camera sent it, without its orientation tag.

use crate::core::layout::JPEG_EDGE_MAX;

/// Scans of one file at most: a progressive JPEG of a camera or encoder has about ten, an attack hundreds.
pub const SCANS_MAX: u32 = 64;

/// A decoder keeps a progressive file, or one of several scans, whole in memory until the last scan. It takes 8 ns a pixel, and 0.4 ns more
/// for each scan however few its bytes are (tests/worst_jpeg.rs). So a pixel costs as much as `BUFFERED_SCANS` and its scans.
const BUFFERED_SCANS: u64 = 20;

/// Pixels × scans of such a file at most: some 100 ms on one core, ten scans of 3840 × 2160. The largest file of one sequential scan takes
/// 70 ms.
const SCANNED_PIXELS_MAX: u64 = 250_000_000;

/// The facts that the decoder needs before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Pixels, 1 to `JPEG_EDGE_MAX`.
    pub width: u32,
    /// Pixels, 1 to `JPEG_EDGE_MAX`.
    pub height: u32,
}

const START: u8 = 0xD8;
const END: u8 = 0xD9;
const SCAN: u8 = 0xDA;

/// The header of a whole JPEG, or why it is refused: a sentence part such as `it ends before its end-of-image marker`.
pub fn inspect(jpeg: &[u8]) -> Result<Header, String> {
    if jpeg.len() < 4 || jpeg[..2] != [0xFF, START] {
        return Err("it does not begin with a JPEG start-of-image marker".into());
    }
    let mut header: Option<Header> = None;
    let mut scans = 0;
    let mut progressive = false;
    let mut at = 2;
    loop {
        let marker = next_marker(jpeg, &mut at).ok_or_else(truncated)?;
        if marker == END {
            break;
        }
        if stands_alone(marker) {
            continue;
        }
        let segment = segment(jpeg, &mut at)?;
        match marker {
            0xC0..=0xC2 => {
                if header.is_some() {
                    return Err("it has two frame headers".into());
                }
                header = Some(frame_header(segment)?);
                progressive = marker == 0xC2;
            }
            0xC3 | 0xC5..=0xC7 | 0xCB | 0xCD..=0xCF => {
                return Err("it uses lossless or hierarchical coding, which is not supported".into());
            }
            0xC9 | 0xCA => return Err("it uses arithmetic coding, which is not supported".into()),
            SCAN => {
                if header.is_none() {
                    return Err("a scan comes before the frame header".into());
                }
                scans += 1;
                if scans > SCANS_MAX {
                    return Err(format!("it has more than {SCANS_MAX} scans"));
                }
                skip_entropy_data(jpeg, &mut at)?;
            }
            _ => {}
        }
    }
    let header = header.ok_or("it has no frame header")?;
    if scans == 0 {
        return Err("it has no scan".into());
    }
    let Header { width, height } = header;
    let cost = u64::from(width) * u64::from(height) * (BUFFERED_SCANS + u64::from(scans));
    if (progressive || scans > 1) && cost > SCANNED_PIXELS_MAX {
        let kind = if progressive { "progressive" } else { "sequential" };
        return Err(format!(
            "it is {kind} with {scans} scans, too many for {width}x{height} pixels; send a baseline file"
        ));
    }
    Ok(header)
}

fn truncated() -> String {
    "it is truncated: it ends before its end-of-image marker".into()
}

/// The next marker byte; `at` moves past it. Other bytes between segments are skipped, as decoders do.
fn next_marker(jpeg: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        *at += jpeg.get(*at..)?.iter().position(|&byte| byte == 0xFF)? + 1;
        while *jpeg.get(*at)? == 0xFF {
            *at += 1;
        }
        let marker = jpeg[*at];
        *at += 1;
        if marker != 0 {
            return Some(marker);
        }
    }
}

/// TEM, RSTn and SOI carry no length.
fn stands_alone(marker: u8) -> bool {
    matches!(marker, 0x01 | 0xD0..=0xD8)
}

/// The payload of the segment at `at`; `at` moves past it.
fn segment<'a>(jpeg: &'a [u8], at: &mut usize) -> Result<&'a [u8], String> {
    let length = jpeg.get(*at..*at + 2).ok_or_else(truncated)?;
    let length = u16::from_be_bytes([length[0], length[1]]) as usize;
    if length < 2 {
        return Err("a segment has an impossible length".into());
    }
    let payload = jpeg.get(*at + 2..*at + length).ok_or_else(truncated)?;
    *at += length;
    Ok(payload)
}

fn frame_header(segment: &[u8]) -> Result<Header, String> {
    let [depth, h1, h0, w1, w0, components, ..] = *segment else {
        return Err("its frame header is too short".into());
    };
    let (width, height) = (u16::from_be_bytes([w1, w0]) as u32, u16::from_be_bytes([h1, h0]) as u32);
    if depth != 8 {
        return Err(format!("it has {depth} bits per sample, expected 8"));
    }
    if width == 0 || height == 0 {
        return Err(format!("its size is {width}x{height} pixels, expected at least 1x1"));
    }
    if width > JPEG_EDGE_MAX || height > JPEG_EDGE_MAX {
        return Err(format!("its size is {width}x{height} pixels, expected at most {JPEG_EDGE_MAX} on each edge"));
    }
    match components {
        1 | 3 => Ok(Header { width, height }),
        4 => Err("it has four colour components (CMYK), expected grayscale or YCbCr".into()),
        other => Err(format!("it has {other} colour components, expected 1 or 3")),
    }
}

/// Skips a scan's entropy-coded data: up to the next marker that is neither a stuffed zero nor a restart.
fn skip_entropy_data(jpeg: &[u8], at: &mut usize) -> Result<(), String> {
    loop {
        let rest = jpeg.get(*at..).ok_or_else(truncated)?;
        *at += rest.iter().position(|&byte| byte == 0xFF).ok_or_else(truncated)?;
        match jpeg.get(*at + 1) {
            None => return Err(truncated()),
            Some(0 | 0xD0..=0xD7) => *at += 2,
            Some(0xFF) => *at += 1,
            Some(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start, frame header, scan header, two bytes of data, end.
    fn tiny(depth: u8, height: u16, width: u16, components: u8) -> Vec<u8> {
        let mut bytes = vec![0xFF, 0xD8, 0xFF, 0xC0, 0, 8 + 3 * components, depth];
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes.push(components);
        bytes.extend(std::iter::repeat_n([1, 0x11, 0], components as usize).flatten());
        bytes.extend([0xFF, 0xDA, 0, 3, 0, 0x12, 0xFF, 0x00, 0x34, 0xFF, 0xD0, 0x56, 0xFF, 0xD9]);
        bytes
    }

    #[test]
    fn a_whole_file_gives_its_size() {
        assert_eq!(inspect(&tiny(8, 360, 640, 3)), Ok(Header { width: 640, height: 360 }));
    }

    #[test]
    fn every_prefix_of_a_file_is_refused() {
        let whole = tiny(8, 360, 640, 3);
        for length in 0..whole.len() {
            assert!(inspect(&whole[..length]).is_err(), "a prefix of {length} bytes passed");
        }
    }

    #[test]
    fn what_the_decoder_must_not_see_is_refused_with_its_reason() {
        for (file, reason) in [
            (tiny(12, 8, 8, 3), "12 bits"),
            (tiny(8, 0, 8, 3), "8x0"),
            (tiny(8, 65000, 65000, 3), "65000x65000"),
            (tiny(8, 8, 4097, 1), "4097x8"),
            (tiny(8, 8, 8, 4), "CMYK"),
            (tiny(8, 8, 8, 2), "2 colour components"),
            (vec![0x89, 0x50, 0x4E, 0x47], "start-of-image"),
        ] {
            let refusal = inspect(&file).unwrap_err();
            assert!(refusal.contains(reason), "{refusal} does not say {reason}");
        }
    }

    #[test]
    fn a_large_picture_may_have_few_scans_and_a_small_one_many() {
        let with_scans = |size: u16, scans: usize| {
            let whole = tiny(8, size, size, 3);
            let (head, scan) = whole[..whole.len() - 2].split_at(whole.len() - 14);
            [head, &scan.repeat(scans), &[0xFF, 0xD9]].concat()
        };
        assert!(inspect(&with_scans(4096, 1)).is_ok());
        assert!(inspect(&with_scans(4096, 2)).unwrap_err().contains("sequential with 2 scans"));
        assert!(inspect(&with_scans(2886, 10)).is_ok());
        assert!(inspect(&with_scans(2887, 10)).unwrap_err().contains("10 scans"));
        assert!(inspect(&with_scans(512, SCANS_MAX as usize)).is_ok());
        assert!(inspect(&with_scans(512, SCANS_MAX as usize + 1)).unwrap_err().contains("more than 64 scans"));
    }

    #[test]
    fn bytes_behind_the_end_marker_are_ignored() {
        let mut file = tiny(8, 2, 2, 1);
        file.extend([1, 2, 3]);
        assert!(inspect(&file).is_ok());
    }
}
