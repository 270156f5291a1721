//! The position of a padded picture, against plain loops: Pillow's triangle filter of its `Resample.c` (`precompute_coeffs`,
//! `normalize_coeffs_8bpc`) and the published arithmetic of the bars, both rewritten here.
//!
//! - `centre`: openpi `openpi_client/image_tools.py`, `resize_with_pad`: size int(edge / ratio), offset int((target − size) / 2).
//! - `bottom_right`: LeRobot `policies/smolvla/modeling_smolvla.py`, `resize_with_pad`: the same size, all of the bars left and above.

use std::path::Path;
use tendon::bundle::manifest::Alignment;
use tendon::bundle::manifest::{Filter, Image, Resize};
use tendon::core::memory::Block;
use tendon::image::frame::{FrameSpec, Worker};
use tendon::image::jpeg::{Decoder, Library};
use tendon::image::resize::{Mode, Resizer, Row, SLACK};

type Size = (usize, usize);

/// Row-major RGB rows of `size.0` pixels.
struct Picture {
    size: Size,
    rgb: Vec<u8>,
}

impl Picture {
    fn at(&self, x: usize, y: usize, channel: usize) -> u8 {
        self.rgb[(y * self.size.0 + x) * 3 + channel]
    }

    /// Each value by its place.
    fn drawn(size: Size, mut value: impl FnMut(usize, usize, usize) -> u8) -> Picture {
        let rgb = (0..size.0 * size.1 * 3).map(|at| value(at / 3 % size.0, at / 3 / size.0, at % 3)).collect();
        Picture { size, rgb }
    }
}

/// The first source pixel of a target pixel, and the weights from there on in 22 fractional bits.
fn taps(target: usize, source_len: usize, target_len: usize) -> (usize, Vec<i64>) {
    let scale = source_len as f64 / target_len as f64;
    let support = scale.max(1.0);
    let centre = (target as f64 + 0.5) * scale;
    let first = ((centre - support + 0.5).trunc().max(0.0)) as usize;
    let end = ((centre + support + 0.5).trunc() as usize).min(source_len);
    let raw: Vec<f64> =
        (first..end).map(|pixel| (1.0 - ((pixel as f64 - centre + 0.5) / support).abs()).max(0.0)).collect();
    let sum: f64 = raw.iter().sum();
    (first, raw.iter().map(|weight| (weight / sum * f64::from(1 << 22) + 0.5) as i64).collect())
}

fn summed(pixels: impl Iterator<Item = u8>, weights: &[i64]) -> u8 {
    let sum: i64 = pixels.zip(weights).map(|(pixel, weight)| i64::from(pixel) * weight).sum();
    ((sum + (1 << 21)) >> 22).clamp(0, 255) as u8
}

fn resized(from: &Picture, size: Size) -> Picture {
    let wide = Picture::drawn((size.0, from.size.1), |x, y, channel| {
        let (first, weights) = taps(x, from.size.0, size.0);
        summed((first..).take(weights.len()).map(|pixel| from.at(pixel, y, channel)), &weights)
    });
    Picture::drawn(size, |x, y, channel| {
        let (first, weights) = taps(y, from.size.1, size.1);
        summed((first..).take(weights.len()).map(|pixel| wide.at(x, pixel, channel)), &weights)
    })
}

fn padded(from: &Picture, target: Size, place: Alignment) -> Picture {
    let ratio = (from.size.0 as f64 / target.0 as f64).max(from.size.1 as f64 / target.1 as f64);
    let small = resized(from, ((from.size.0 as f64 / ratio) as usize, (from.size.1 as f64 / ratio) as usize));
    let bars = (target.0 - small.size.0, target.1 - small.size.1);
    let (left, above) = match place {
        Alignment::Centre => (bars.0 / 2, bars.1 / 2),
        Alignment::BottomRight => bars,
    };
    Picture::drawn(target, |x, y, channel| {
        if x < left || y < above || x >= left + small.size.0 || y >= above + small.size.1 {
            return 0;
        }
        small.at(x - left, y - above, channel)
    })
}

const PLACES: [Alignment; 2] = [Alignment::Centre, Alignment::BottomRight];

#[test]
fn a_padded_picture_stands_where_the_reference_puts_it_at_every_size() {
    let mut resizer = Resizer::new();
    // Wide, high, square, up, down, no bars, and bars of odd widths.
    let cases: [(Size, Size); 8] = [
        ((64, 36), (28, 28)),
        ((36, 64), (28, 28)),
        ((61, 47), (112, 112)),
        ((47, 61), (33, 20)),
        ((100, 33), (40, 56)),
        ((17, 90), (56, 31)),
        ((50, 50), (25, 25)),
        ((640, 360), (224, 224)),
    ];
    for (source, target) in cases {
        let picture = Picture::drawn(source, |x, y, channel| ((x * 7 + y * 13 + channel * 85) ^ (x * y / 3)) as u8);
        let rgb = [&picture.rgb[..], &[0; SLACK]].concat();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for place in PLACES {
            let mut ours = vec![0; target.0 * target.1 * 3];
            resizer.run((Mode::Pad(place), Filter::default()), &rgb, source, target, |x, y, row| {
                let Row::Levels(row) = row else { panic!("levels") };
                let start = (y * target.0 + x) * 3;
                ours[start..start + row.len()].copy_from_slice(row);
            });
            assert!(ours == padded(&picture, target, place).rgb, "{source:?} to {target:?}, {place:?}");
            seen.push(ours);
        }
        let square = source.0 * target.1 == source.1 * target.0;
        assert_eq!(seen[0] == seen[1], square, "{source:?} to {target:?}");
    }
}

#[test]
fn the_bars_of_a_frame_are_black_whatever_stood_in_its_slot() {
    let packaged = "../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = Library::open(&root.join(packaged)).expect("libturbojpeg");
    let mut worker = Worker::new(Decoder::new(&library).expect("a decoder")).expect("a worker");
    let jpeg = std::fs::read(root.join("../test/vectors/jpeg/420.jpg")).expect("a picture");
    let header = worker.pixels(&jpeg).expect("a good picture");
    let size = (header.width as usize, header.height as usize);
    let picture = Picture { size, rgb: worker.rgb()[..size.0 * size.1 * 3].to_vec() };
    for (width, height) in [(56, 56), (31, 64), (90, 40)] {
        for place in [None, Some(Alignment::Centre), Some(Alignment::BottomRight)] {
            let image = Image {
                width,
                height,
                resize: Resize::Pad,
                place,
                filter: Filter::default(),
                mean: [0.5; 3],
                std: [0.25; 3],
                tokens: 1,
            };
            let mut tensor = Block::lazy(4 * 3 * width * height).expect("memory");
            tensor.fill(9);
            worker.frame(&FrameSpec::new(&image), &jpeg, &mut tensor).expect("a good picture");
            let expected = padded(&picture, (width, height), place.unwrap_or(Alignment::Centre));
            for (at, &value) in tensor.floats_mut().iter().enumerate() {
                let (channel, pixel) = (at / (width * height), at % (width * height));
                let level = f64::from(expected.at(pixel % width, pixel / width, channel));
                assert_eq!(value, ((level / 255.0 - 0.5) / 0.25) as f32, "{width}x{height}, {place:?}, value {at}");
            }
        }
    }
}
