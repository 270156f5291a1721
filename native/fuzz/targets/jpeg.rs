//! JPEGs as a camera or a stranger sends them: no crash, no pixel outside the picture, and what is decoded is decoded alike again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::path::Path;
use tendon_fuzzed::image::jpeg::{Decoder, Library, inspect};

/// Larger pictures only take longer.
const PIXELS_MAX: usize = 512 * 512;
/// Behind the picture, to see what is written there: the decoder itself is not built with a sanitizer.
const FENCE_BYTES: usize = 1 << 16;
const FENCE: u8 = 0xA5;

const PACKAGED: &str = "../../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";

thread_local! {
    static DECODER: RefCell<(Decoder, Vec<u8>)> = RefCell::new({
        let library = Library::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(PACKAGED)).expect("libturbojpeg");
        (Decoder::new(&library).expect("a decoder"), Vec::new())
    });
}

fuzz_target!(|jpeg: &[u8]| {
    let Ok(header) = inspect(jpeg) else { return };
    assert!((1..=4096).contains(&header.width) && (1..=4096).contains(&header.height), "{header:?}");
    for length in [0, jpeg.len() / 2] {
        if let Ok(other) = inspect(&jpeg[..length]) {
            assert_eq!(other, header, "a prefix that is whole has the same picture");
        }
    }
    let bytes = header.width as usize * header.height as usize * 3;
    if bytes > PIXELS_MAX * 3 {
        return;
    }
    DECODER.with_borrow_mut(|(decoder, rgb)| {
        let mut decode = |fill: u8| {
            rgb.clear();
            rgb.resize(bytes, fill);
            rgb.resize(bytes + FENCE_BYTES, FENCE);
            let outcome = decoder.decode(jpeg, header, rgb);
            assert!(rgb[bytes..].iter().all(|&byte| byte == FENCE), "written behind a picture of {header:?}");
            outcome.map(|()| rgb[..bytes].to_vec())
        };
        // A pixel that is left as it was would be one of another robot's frame.
        let (first, again) = (decode(0), decode(0xFF));
        assert!(first == again, "the same file gives the same picture, whatever the memory held before");
    });
});
