//! The scan of JSON bodies: it accepts the JSON within its bounds that `serde_json` accepts, its skeleton is JSON with as many values, and
//! every range that it names exists.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use tendon_fuzzed::http::body::scan::{Fault, Form, Rules, ScanResult, scan};

/// The depth of `serde_json`, which must not be the first to refuse.
const DEPTH_MAX: usize = 32;
const VALUES_MAX: usize = 200;
/// Longer than any string here.
const LONG: usize = 1 << 20;
const MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, body)) = input.split_first() else { return };
    let rules = Rules {
        depth_max: DEPTH_MAX,
        values_max: VALUES_MAX,
        string_bytes_max: [0, 3, 24, 256][usize::from(choice % 4)],
        escaped_bytes_max: [0, 2, 16, 64][usize::from(choice / 4 % 4)],
        image_bytes_max: [0, 8, 4096][usize::from(choice / 16 % 3)],
        texts: choice >= 128,
    };
    let mut found = ScanResult::default();
    let outcome = scan(body, rules, &mut found);
    let text = body.strip_prefix(MARK).unwrap_or(body);
    let is_json = std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    match outcome {
        Ok(()) => assert!(is_json, "it takes what is no JSON"),
        Err(Fault::Syntax) => assert!(!is_json, "it refuses what is JSON"),
        Err(Fault::Depth | Fault::Values) => return,
    }
    if outcome.is_err() {
        return;
    }
    assert!(
        serde_json::from_slice::<IgnoredAny>(&found.skeleton).is_ok() && std::str::from_utf8(&found.skeleton).is_ok(),
        "the skeleton is no JSON"
    );
    // The scan of a skeleton gives the same skeleton if nothing is too long: only placeholders are strings of the table then.
    let mut again = ScanResult::default();
    let wide = Rules { string_bytes_max: LONG, escaped_bytes_max: LONG, texts: true, ..rules };
    assert_eq!(scan(&found.skeleton, wide, &mut again), Ok(()), "the skeleton has other bounds");
    for text in &found.table {
        let (start, len, image, image_len) = (text.start, text.len, text.image, text.image_len);
        let within = |whole: usize| start as usize + len as usize <= whole;
        if text.form == Form::Narrow as u32 {
            assert!(within(found.narrow.len()));
        } else if text.form == Form::Wide as u32 {
            assert!(within(found.wide.len()));
        } else {
            assert!(within(body.len()), "a text outside of the body");
            assert_eq!((body[start as usize - 1], body[(start + len) as usize]), (b'"', b'"'), "a text is a string");
            assert!(text.units <= len, "no byte is more than one unit");
        }
        if text.form == Form::JpegBytes as u32 {
            assert!(image as usize + image_len as usize <= found.images.len(), "an image outside of the images");
            assert!(
                image_len as usize <= rules.image_bytes_max && image_len == text.jpeg_len,
                "an image of its length"
            );
        }
    }
});
