//! Each resize filter against its library: `test/vectors/resize.json`, which `resize.py` beside it makes.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use tendon::bundle::manifest::{Alignment, Filter, Image, Picture, Resize};
use tendon::core::memory::Block;
use tendon::image::frame::{FrameSpec, Worker};
use tendon::image::jpeg::{Decoder, Library};

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    filter: Filter,
    resize: Resize,
    place: Option<Alignment>,
    file: String,
    width: usize,
    height: usize,
    sha256: String,
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../test/vectors")
}

fn jpeg(file: &str) -> Vec<u8> {
    std::fs::read(vectors().join("jpeg").join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn worker() -> Worker {
    let packaged = "../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
    let library = Library::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged)).expect("libturbojpeg");
    Worker::new(Decoder::new(&library).expect("a decoder")).expect("a worker")
}

/// A picture of mean and deviation 0.5, as the filter's graphs read it.
fn spec(filter: Filter, resize: Resize, place: Option<Alignment>, (width, height): (usize, usize)) -> FrameSpec {
    let image = Image { width, height, resize, place, filter, mean: [0.5; 3], std: [0.5; 3], tokens: 1 };
    FrameSpec::new(&image).taken_as(match filter {
        Filter::TorchBilinear => Picture::Normalised,
        _ => Picture::Pixels,
    })
}

/// Planes as pixels with their channels side by side.
fn interleaved(planes: &[u8]) -> Vec<u8> {
    let plane = planes.len() / 3;
    (0..planes.len()).map(|at| planes[at % 3 * plane + at / 3]).collect()
}

/// The unrounded values of PyTorch are planes, the pixels of the other libraries are not.
fn as_its_library(filter: Filter, tensor: &[u8]) -> Vec<u8> {
    if filter == Filter::TorchBilinear { tensor.to_vec() } else { interleaved(tensor) }
}

#[test]
fn each_filter_is_bit_identical_to_its_library() {
    let text = std::fs::read(vectors().join("resize.json")).expect("resize.json");
    let Vectors { cases } = serde_json::from_slice(&text).expect("vectors");
    // One worker for all: what one size or filter leaves must not show in the next.
    let mut worker = worker();
    let mut seen: Vec<Filter> = Vec::new();
    let mut wrong = Vec::new();
    for Case { filter, resize, place, file, width, height, sha256 } in cases {
        let spec = spec(filter, resize, place, (width, height));
        let mut tensor = Block::lazy(spec.bytes()).expect("memory");
        worker.frame(&spec, &jpeg(&file), &mut tensor).expect("a good picture");
        let digest = Sha256::digest(as_its_library(filter, &tensor[..spec.bytes()]));
        if digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() != sha256 {
            wrong.push(format!("{filter:?} of {file} to {width} x {height}, place {place:?}"));
        }
        seen.push(filter);
    }
    assert_eq!(wrong, Vec::<String>::new());
    for filter in [Filter::TorchBilinear, Filter::TorchBilinearU8, Filter::PillowBicubic, Filter::Area] {
        assert!(seen.iter().filter(|one| **one == filter).count() >= 12, "{filter:?}");
    }
}

#[test]
fn an_exact_frame_is_taken_as_it_is_and_another_size_is_refused_with_both() {
    let mut worker = worker();
    let file = jpeg("420.jpg");
    let exact = spec(Filter::default(), Resize::Exact, None, (61, 47));
    let mut tensor = Block::lazy(exact.bytes()).expect("memory");
    worker.frame(&exact, &file, &mut tensor).expect("a frame of the size");
    assert!(interleaved(&tensor[..exact.bytes()]) == worker.rgb()[..61 * 47 * 3]);
    let other = spec(Filter::default(), Resize::Exact, None, (47, 61));
    let refusal = worker.frame(&other, &file, &mut tensor).expect_err("another size");
    let expected = "it has 61 x 47 pixels, and the model takes 47 x 61 alone";
    assert_eq!(refusal.text, expected);
}
