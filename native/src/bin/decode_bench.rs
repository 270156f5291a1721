//! Times one frame's way to its tensor against the bare decode, on one thread: `decode_bench LIBTURBOJPEG FILE...`.
//!
//! For each file, after a warm-up, rounds alternate between libjpeg-turbo alone and decode + resize + normalise; prints
//! one JSON line per file with the medians in microseconds. File reading is outside the window.

use std::path::Path;
use std::time::Instant;
use tendon::frame::{FrameSpec, Worker};
use tendon::jpeg::{Decoder, Library};
use tendon::manifest::{Image, Resize};

const ROUNDS: usize = 301;

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let library = Library::open(Path::new(&arguments.next().ok_or("usage: decode_bench LIBTURBOJPEG FILE...")?))?;
    let mut worker = Worker::new(Decoder::new(&library)?)?;
    let image = Image { width: 224, height: 224, resize: Resize::Pad, mean: [0.5; 3], std: [0.5; 3], tokens: 256 };
    let spec = FrameSpec::new(&image);
    let mut tensor = vec![0.0; spec.values()];
    for file in arguments {
        let jpeg = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
        let mut bare = Vec::with_capacity(ROUNDS);
        let mut whole = Vec::with_capacity(ROUNDS);
        let mut header = worker.pixels(&jpeg)?;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            header = worker.pixels(&jpeg)?;
            bare.push(start.elapsed().as_nanos() as u64);
            let start = Instant::now();
            worker.tensor(&spec, &jpeg, &mut tensor)?;
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
