//! Decoder and resizer against Pillow: `test/vectors/jpeg/` (its README says how the files were made).

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use tendon::bundle::manifest::{Alignment, Filter};
use tendon::image::frame::Worker;
use tendon::image::jpeg::{Decoder, Header, Library};
use tendon::image::resize::{Mode, Resizer, Row, SLACK};

#[derive(Deserialize)]
struct Index {
    decode: Vec<Decode>,
    refuse: Vec<Refuse>,
    resize: Vec<Resize>,
}

#[derive(Deserialize)]
struct Decode {
    file: String,
    width: usize,
    height: usize,
    rgb_sha256: String,
}

#[derive(Deserialize)]
struct Refuse {
    file: String,
    reason: String,
}

#[derive(Deserialize)]
struct Resize {
    file: String,
    mode: String,
    width: usize,
    height: usize,
    rgb_file: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../test/vectors/jpeg")
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn index() -> Index {
    serde_json::from_slice(&read("index.json")).expect("index.json")
}

fn worker() -> Worker {
    Worker::new(decoder()).expect("a worker")
}

#[test]
fn decode_is_bit_identical_to_pillow() {
    let mut worker = worker();
    let index = index();
    assert!(index.decode.len() >= 10);
    for picture in index.decode {
        let header = worker.pixels(&read(&picture.file)).unwrap_or_else(|reason| panic!("{}: {reason}", picture.file));
        assert_eq!(
            (header.width as usize, header.height as usize),
            (picture.width, picture.height),
            "{}",
            picture.file
        );
        let digest = Sha256::digest(&worker.rgb()[..picture.width * picture.height * 3]);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, picture.rgb_sha256, "{} differs from Pillow", picture.file);
    }
}

#[test]
fn what_is_no_whole_8_bit_jpeg_is_refused_with_its_reason() {
    let mut worker = worker();
    let index = index();
    assert!(index.refuse.len() >= 10);
    for bad in index.refuse {
        let expected: &[&str] = match bad.reason.as_str() {
            "cmyk" => &["CMYK"],
            "twelve_bit" => &["bits per sample"],
            "truncated" => &["truncated", "start-of-image", "impossible length"],
            "zero_size" => &["expected at least 1x1"],
            "too_large" => &["expected at most 4096"],
            "not_jpeg" => &["start-of-image"],
            "corrupt" => {
                &["damaged", "no scan", "no frame header", "too short", "impossible", "truncated", "scan comes"]
            }
            other => panic!("unknown reason {other}"),
        };
        let refusal = worker.pixels(&read(&bad.file)).expect_err(&bad.file);
        assert!(expected.iter().any(|word| refusal.contains(word)), "{}: {refusal}, expected {}", bad.file, bad.reason);
    }
}

#[test]
fn resize_is_bit_identical_to_pillow() {
    let mut worker = worker();
    let mut resizer = Resizer::new();
    let index = index();
    assert!(index.resize.len() >= 10);
    for case in index.resize {
        let header = worker.pixels(&read(&case.file)).expect("a good picture");
        let source = (header.width as usize, header.height as usize);
        let target = (case.width, case.height);
        let mode = match case.mode.as_str() {
            "stretch" => Mode::Stretch,
            "pad" => Mode::Pad(Alignment::Centre),
            "crop" => Mode::Crop,
            other => panic!("unknown mode {other}"),
        };
        let mut ours = vec![0; target.0 * target.1 * 3];
        let rgb = &worker.rgb()[..source.0 * source.1 * 3 + SLACK];
        resizer.run((mode, Filter::default()), rgb, source, target, |x, y, row| {
            let Row::Levels(row) = row else { panic!("levels") };
            let start = (y * target.0 + x) * 3;
            ours[start..start + row.len()].copy_from_slice(row);
        });
        let theirs = read(&case.rgb_file);
        let worst = ours.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).max();
        assert_eq!((ours.len(), worst), (theirs.len(), Some(0)), "{} differs from Pillow", case.rgb_file);
    }
}

#[test]
fn stray_bytes_are_taken_before_the_end_and_nowhere_else() {
    let mut worker = worker();
    let whole = read("420-mid.jpg");
    let pixels = |worker: &Worker, header: tendon::image::jpeg::Header| {
        worker.rgb()[..header.width as usize * header.height as usize * 3].to_vec()
    };
    let header = worker.pixels(&whole).expect("a good picture");
    let good = pixels(&worker, header);
    // Another picture in between: what it leaves behind must not pass for this one.
    worker.pixels(&read("444-mid.jpg")).expect("a good picture");
    let with = |at: usize, bytes: &[u8]| [&whole[..at], bytes, &whole[at..]].concat();
    worker.pixels(&with(whole.len() - 2, &[0, 0])).expect("two stray bytes before the end");
    assert_eq!(pixels(&worker, header), good);
    worker.pixels(&with(2, &[0, 0])).expect_err("stray bytes behind the start");
    worker.pixels(&with(whole.len() - 2, &[0x55; 2000])).expect_err("data out of step");
    let half = whole.len() * 2 / 3;
    let cut = [&whole[..half], &whole[whole.len() - 2..]].concat();
    worker.pixels(&cut).expect_err("half of the data is missing");
}

#[test]
fn garbage_never_brings_the_decoder_down() {
    let mut worker = worker();
    let whole = read("420-mid.jpg");
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut refused = 0;
    for _ in 0..2_000 {
        let mut file = whole.clone();
        for _ in 0..1 + random() % 8 {
            let at = 2 + random() % (file.len() - 2);
            file[at] = random() as u8;
        }
        file.truncate(file.len() - random() % 64);
        refused += usize::from(worker.pixels(&file).is_err());
    }
    assert!(refused > 1_000, "only {refused} of 2,000 damaged files were refused");
    assert!(worker.pixels(&whole).is_ok(), "the decoder is still good after them");
}

fn decoder() -> Decoder {
    let packaged = "../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
    let library = Library::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged)).expect("libturbojpeg");
    Decoder::new(&library).expect("a decoder")
}

#[test]
fn a_size_that_differs_from_the_decoders_is_refused_before_a_pixel_is_written() {
    let (jpeg, mut decoder) = (read("420.jpg"), decoder());
    // Large enough for either size, so that a decoder that writes its own would do no harm here.
    let mut rgb = vec![7; 128 * 128 * 3];
    for (width, height) in [(60, 47), (61, 46), (47, 61), (128, 128), (1, 1)] {
        let refusal = decoder.decode(&jpeg, Header { width, height }, &mut rgb).unwrap_err();
        assert_eq!(refusal, format!("its header says {width}x{height} pixels, but its decoder found 61x47"));
    }
    assert!(rgb.iter().all(|&byte| byte == 7));
    assert_eq!(decoder.decode(&jpeg, Header { width: 61, height: 47 }, &mut rgb), Ok(()));
}

#[test]
fn a_file_that_names_two_sizes_is_refused_wherever_the_second_one_stands() {
    let jpeg = read("420.jpg");
    let find = |code: u8| jpeg.windows(2).position(|pair| pair == [0xFF, code]).expect("the marker");
    let (frame, scan) = (find(0xC0), find(0xDA));
    let length = usize::from(u16::from_be_bytes([jpeg[frame + 2], jpeg[frame + 3]]));
    let mut larger = jpeg[frame..frame + 2 + length].to_vec();
    larger[5..9].copy_from_slice(&[0x10, 0, 0x10, 0]);
    let with = |at: usize, bytes: &[u8]| [&jpeg[..at], bytes, &jpeg[at..]].concat();
    let mut worker = worker();
    for at in [frame, scan, jpeg.len() - 2] {
        assert!(worker.pixels(&with(at, &larger)).is_err(), "a second frame header at {at} passed");
    }
    // A second picture's start with its own header inside the first one.
    let whole = [&[0xFF, 0xD8][..], &larger].concat();
    assert!(worker.pixels(&with(frame, &whole)).is_err());
    // A segment whose length reaches over the frame header hides it from one reader and not from another.
    let hidden = with(frame, &[0xFF, 0xE5, 0x00, 0x02 + 19]);
    assert!(worker.pixels(&hidden).is_err());
}
