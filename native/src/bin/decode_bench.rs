//! Times one frame's way to its tensor against the bare decode, on one thread: `decode_bench LIBTURBOJPEG FILE...`.
//!
//! For each file, after a warm-up, rounds alternate between `tj3Decompress8` alone, on a decompressor that is kept, and
//! all that the engine does: header walk, decompressor, decode, resize, normalise. Prints one JSON line per file with the
//! medians in microseconds. File reading is outside the window.

use libloading::Library as Shared;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::time::Instant;
use tendon::bundle::manifest::{Filter, Image, Resize};
use tendon::core::memory::Block;
use tendon::image::frame::{FrameSpec, Worker};
use tendon::image::jpeg::{Decoder, Library};

const ROUNDS: usize = 301;

type Init = unsafe extern "C" fn(c_int) -> *mut c_void;
type Decompress = unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut u8, c_int, c_int) -> c_int;

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: decode_bench LIBTURBOJPEG FILE...")?;
    let library = Library::open(Path::new(&path))?;
    let mut worker = Worker::new(Decoder::new(&library)?)?;
    // SAFETY: libturbojpeg 3; the two symbols have these signatures (turbojpeg.h), 1 asks for a decompressor.
    let shared = unsafe { Shared::new(&path) }.map_err(|error| error.to_string())?;
    let (init, decompress) = unsafe {
        let init = *shared.get::<Init>("tj3Init").map_err(|error| error.to_string())?;
        (init, *shared.get::<Decompress>("tj3Decompress8").map_err(|error| error.to_string())?)
    };
    let handle = unsafe { init(1) };
    let image = Image {
        width: 224,
        height: 224,
        resize: Resize::Pad,
        place: None,
        filter: Filter::default(),
        mean: [0.5; 3],
        std: [0.5; 3],
        tokens: 256,
    };
    let spec = FrameSpec::new(&image);
    let mut tensor = Block::lazy(spec.bytes())?;
    for file in arguments {
        let jpeg = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
        let header = worker.pixels(&jpeg)?;
        let pitch = header.width as usize * 3;
        let mut rgb = vec![0; pitch * header.height as usize];
        let (mut bare, mut whole) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
        for _ in 0..ROUNDS {
            let start = Instant::now();
            // SAFETY: a live handle, a readable file and a buffer of height × pitch bytes.
            let status = unsafe { decompress(handle, jpeg.as_ptr(), jpeg.len(), rgb.as_mut_ptr(), pitch as c_int, 0) };
            bare.push(start.elapsed().as_nanos() as u64);
            assert!(status == 0, "libjpeg-turbo decodes the file");
            let start = Instant::now();
            worker.frame(&spec, &jpeg, &mut tensor).map_err(|failure| failure.text)?;
            whole.push(start.elapsed().as_nanos() as u64);
        }
        let median = |times: &mut Vec<u64>| {
            times.sort_unstable();
            times[times.len() / 2] as f64 / 1000.0
        };
        println!(
            "{}",
            serde_json::json!({
                "file": Path::new(&file).file_name().and_then(|name| name.to_str()),
                "width": header.width,
                "height": header.height,
                "bytes": jpeg.len(),
                "decode_us": median(&mut bare),
                "tensor_us": median(&mut whole),
                "rounds": ROUNDS,
            })
        );
    }
    Ok(())
}
