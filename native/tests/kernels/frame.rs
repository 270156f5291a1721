//! Frame to tensor against `FrameSpec::fill`, which is equal to Pillow (`tests/golden.rs`).

use super::halves::{assert_holds, round};
use super::random::Random;
use super::stage::Stage;
use super::{Of, Test};
use serde::Deserialize;
use std::path::Path;
use tendon::bundle::manifest::Place;
use tendon::bundle::manifest::{Image, Resize};
use tendon::gpu::Number;
use tendon::gpu::device::Memory;
use tendon::gpu::frame::{BLOCK, Kernel, Layout, Target, Value, Version, Way};
use tendon::image::frame::{FrameSpec, Worker};
use tendon::image::jpeg::{Decoder, Library};
use tendon::image::resize::{Mode, Resizer, SLACK, axes};

pub const TESTS: &[Test] = &[
    ("frame::the_reference_equals_the_engine", Of::Host, reference),
    ("frame::every_version_equals_the_engine", Of::Kernels, versions),
    ("frame::pictures_of_several_sizes_are_one_launch", Of::Kernels, several),
    ("frame::real_pictures_equal_the_engine", Of::Kernels, real),
    ("frame::every_f32_is_rounded_to_the_nearest", Of::Kernels, stores),
    ("frame::a_picture_moves_what_the_target_shows", Of::Host, moved),
];

type Size = (usize, usize);

const MODES: [Mode; 5] =
    [Mode::Pad(Place::Centre), Mode::Pad(Place::TopLeft), Mode::Pad(Place::BottomRight), Mode::Stretch, Mode::Crop];

/// Source and target, width and height: down and up, thin, one pixel, as large as frames get.
const SIZES: [(Size, Size); 12] = [
    ((640, 360), (224, 224)),
    ((320, 240), (56, 40)),
    ((100, 75), (112, 112)),
    ((61, 47), (61, 47)),
    ((47, 61), (33, 9)),
    ((1, 1), (5, 3)),
    ((200, 1), (16, 16)),
    ((1, 200), (16, 16)),
    ((2, 3), (40, 40)),
    ((4096, 5), (20, 30)),
    ((3, 4096), (30, 20)),
    ((129, 65), (64, 32)),
];

fn spec(mode: Mode, target: Size) -> FrameSpec {
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let (resize, place) = match mode {
        Mode::Pad(place) => (Resize::Pad, Some(place)),
        Mode::Stretch => (Resize::Stretch, None),
        Mode::Crop => (Resize::Crop, None),
    };
    FrameSpec::new(&Image { width: target.0, height: target.1, resize, place, mean, std, tokens: 1 })
}

/// Random pixels, with hard edges among them.
fn picture(size: Size, random: &mut Random) -> Vec<u8> {
    let mut rgb = random.bytes(size.0 * size.1 * 3);
    for pixel in rgb.chunks_exact_mut(3).step_by(5) {
        pixel.fill(if random.below(2) == 0 { 0 } else { 255 });
    }
    rgb
}

/// What the engine makes of pixels: `[3, height, width]`.
fn engine(mode: Mode, rgb: &[u8], source: Size, target: Size) -> Vec<f32> {
    let spec = spec(mode, target);
    let mut tensor = vec![f32::NAN; spec.values()];
    spec.fill(&mut Resizer::new(), &[rgb, &[0; SLACK]].concat(), source, &mut tensor);
    tensor
}

/// `[3, pixels]` to `[pixels, 3]`.
fn turned(tensor: &[f32]) -> Vec<f32> {
    let plane = tensor.len() / 3;
    (0..tensor.len()).map(|at| tensor[at % 3 * plane + at / 3]).collect()
}

fn reference(stage: &Stage) {
    type Pair = [u32; 2];
    type Reference = unsafe extern "C" fn(
        *const u8,
        *const Pair,
        *const Pair,
        *const Pair,
        *const Pair,
        *const Pair,
        *const Pair,
        *const f32,
        *mut f32,
    );
    // SAFETY: the signature of frame_reference.
    let reference = unsafe { stage.library.get::<Reference>("frame_reference") }.expect("the reference");
    let mut random = Random::new(3);
    for (source, target) in SIZES {
        let rgb = picture(source, &mut random);
        for mode in MODES {
            let (across, down) = axes(mode, source, target);
            let pair = |of: [usize; 2]| of.map(|value| value as u32);
            let (whole, cut) = (pair([across.resized, down.resized]), pair([across.from, down.from]));
            let (place, shown) = (pair([across.offset, down.offset]), pair([across.count, down.count]));
            let (from, to) = (pair([source.0, source.1]), pair([target.0, target.1]));
            let normal = spec(mode, target).normal().as_flattened().to_vec();
            let mut tensor = vec![f32::NAN; target.0 * target.1 * 3];
            // SAFETY: sizes, pixels, table and tensor belong together.
            unsafe {
                let (rgb, normal, tensor) = (rgb.as_ptr(), normal.as_ptr(), tensor.as_mut_ptr());
                reference(rgb, &from, &whole, &cut, &place, &shown, &to, normal, tensor);
            }
            let what = format!("{mode:?} {source:?} to {target:?}");
            assert!(tensor == engine(mode, &rgb, source, target), "{what} differs");
        }
    }
}

/// Launches for pictures of given sizes and reads the tensor.
struct Launch<'a> {
    stage: &'a Stage,
    version: Version,
    value: Value,
    layout: Layout,
    block: [u32; 2],
}

impl Launch<'_> {
    fn run(&self, mode: Mode, normal: &[f32], pictures: &[(Vec<u8>, Size)], target: Size) -> Vec<u8> {
        let device = &self.stage.device;
        let ways: Vec<Way> =
            pictures.iter().map(|(_, size)| Way::new(device, mode, *size, target).expect("the weights")).collect();
        let rgb: Vec<Memory> = pictures.iter().map(|(rgb, _)| device.copy_of(rgb).expect("memory")).collect();
        let scratch: Vec<Memory> = ways.iter().map(|way| device.memory(way.scratch_bytes()).expect("memory")).collect();
        let parts = ways.iter().zip(&rgb).zip(&scratch);
        let frames: Vec<_> = parts.map(|((way, rgb), scratch)| way.frame(rgb.address(), scratch.address())).collect();
        let frames = device.copy_of(&frames).expect("memory");
        let normal = device.copy_of(normal).expect("memory");
        let bytes = pictures.len() * target.0 * target.1 * 3 * self.value.bytes();
        let tensor = device.memory(bytes).expect("memory");
        let (width, height) = (target.0 as u32, target.1 as u32);
        let target = Target { tensor: tensor.address(), normal: normal.address(), width, height, layout: self.layout };
        let kernel = Kernel::find(&self.stage.module, self.version, self.value).expect("the kernel");
        let ways: Vec<&Way> = ways.iter().collect();
        // SAFETY: the memory is as large as ways and target say, and lives to the end of this function, which waits.
        unsafe { kernel.launch(frames.address(), &ways, &target, self.block) }.expect("a launch");
        tensor.read(bytes).expect("the tensor")
    }
}

impl Launch<'_> {
    /// That a tensor has what the engine's f32 says: of pixels the values whose normalised ones those are.
    fn assert_holds(&self, tensor: &[u8], expected: &[f32], (normal, plane): (&[f32], usize), what: &str) {
        let Value::Normalised(number) = self.value else {
            for (at, (&pixel, &value)) in tensor.iter().zip(expected).enumerate() {
                let channel = if self.layout == Layout::Hwc { at % 3 } else { at / plane % 3 };
                assert!(normal[channel * 256 + usize::from(pixel)] == value, "{what}: {at} differs");
            }
            return assert_eq!(tensor.len(), expected.len(), "{what}");
        };
        assert_holds(number, tensor, expected, what);
    }
}

/// Each version with each type, layout and block.
fn launches(stage: &Stage) -> Vec<Launch<'_>> {
    let mut all = Vec::new();
    for version in Version::ALL {
        let blocks: &[[u32; 2]] = if version == Version::V3 { &[BLOCK] } else { &[BLOCK, [16, 16], [7, 3]] };
        for value in Value::ALL {
            for layout in [Layout::Chw, Layout::Hwc] {
                all.extend(blocks.iter().map(|&block| Launch { stage, version, value, layout, block }));
            }
        }
    }
    all
}

fn versions(stage: &Stage) {
    let mut random = Random::new(4);
    let all = launches(stage);
    for (at, (source, target)) in SIZES.into_iter().enumerate() {
        let pictures = [(picture(source, &mut random), source)];
        for mode in MODES {
            let expected = engine(mode, &pictures[0].0, source, target);
            let flat = turned(&expected);
            let normal = spec(mode, target).normal().as_flattened().to_vec();
            // The largest with a part of the launches, which differ in nothing that its size could matter to.
            for launch in all.iter().step_by(if at == 0 { 5 } else { 1 }) {
                stage.in_both_orders(|| {
                    let tensor = launch.run(mode, &normal, &pictures, target);
                    let expected = if launch.layout == Layout::Chw { &expected } else { &flat };
                    let (version, block) = (launch.version, launch.block);
                    let what = format!("{version:?} {block:?} {:?}, {mode:?} {source:?} to {target:?}", launch.layout);
                    launch.assert_holds(&tensor, expected, (&normal, target.0 * target.1), &what);
                });
            }
        }
    }
}

fn several(stage: &Stage) {
    let mut random = Random::new(5);
    let (target, sizes) = ((64, 48), [(61, 47), (320, 10), (10, 320), (64, 48)]);
    let pictures = sizes.map(|size| (picture(size, &mut random), size));
    for mode in MODES {
        let normal = spec(mode, target).normal().as_flattened().to_vec();
        let expected: Vec<f32> = pictures.iter().flat_map(|(rgb, size)| engine(mode, rgb, *size, target)).collect();
        for launch in launches(stage).iter().filter(|launch| launch.layout == Layout::Chw) {
            let tensor = launch.run(mode, &normal, &pictures, target);
            let what = format!("{:?} {mode:?}", launch.version);
            launch.assert_holds(&tensor, &expected, (&normal, target.0 * target.1), &what);
        }
    }
}

#[derive(Deserialize)]
struct Index {
    resize: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    mode: String,
    width: usize,
    height: usize,
}

fn real(stage: &Stage) {
    let native = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = native.join("../test/vectors/jpeg");
    let packaged = "../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
    let library = Library::open(&native.join(packaged)).expect("libturbojpeg");
    let mut worker = Worker::new(Decoder::new(&library).expect("a decoder")).expect("a worker");
    let index: Index =
        serde_json::from_slice(&std::fs::read(folder.join("index.json")).expect("the list")).expect("JSON");
    assert!(index.resize.len() >= 10);
    for case in index.resize {
        let jpeg = std::fs::read(folder.join(&case.file)).expect("a picture");
        let mode = match case.mode.as_str() {
            "pad" => Mode::Pad(Place::Centre),
            "stretch" => Mode::Stretch,
            "crop" => Mode::Crop,
            other => panic!("unknown mode {other}"),
        };
        let target = (case.width, case.height);
        let spec = spec(mode, target);
        let mut expected = vec![0.0; spec.values()];
        worker.tensor(&spec, &jpeg, &mut expected).expect("a good picture");
        let header = worker.pixels(&jpeg).expect("a good picture");
        let size = (header.width as usize, header.height as usize);
        let pictures = [(worker.rgb()[..size.0 * size.1 * 3].to_vec(), size)];
        for version in Version::ALL {
            let launch =
                Launch { stage, version, value: Value::Normalised(Number::F32), layout: Layout::Chw, block: BLOCK };
            let tensor = launch.run(mode, spec.normal().as_flattened(), &pictures, target);
            assert_holds(Number::F32, &tensor, &expected, &format!("{version:?} {}", case.file));
        }
    }
}

/// A picture of all bytes, as it is: its tensor is the table of normalised values, here of any bits.
fn stores(stage: &Stage) {
    let mut random = Random::new(6);
    let rgb: Vec<u8> = (0..=255).flat_map(|byte| [byte; 3]).collect();
    for number in [Number::F16, Number::Bf16] {
        for turn in 0..200 {
            let normal: Vec<f32> = (0..768)
                .map(|at| match (turn, at % 3) {
                    // Halfway between two, and next to it.
                    (0, 0) => f32::from_bits(0x3F80_1000 + at * 0x2000),
                    (0, 1) => f32::from_bits(0x3F80_8000 + at * 0x1_0000),
                    (0, _) => f32::from_bits(0x3F80_0FFF + at * 0x1000),
                    // The ends: about the largest, about the smallest.
                    (1, 0) => 65_504.0 + at as f32,
                    (1, 1) => at as f32 * 2_f32.powi(-26),
                    (1, _) => f32::MAX - at as f32 * 2_f32.powi(115),
                    (2, 0) => [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0][at as usize / 3 % 4],
                    (2, _) => f32::from_bits(at),
                    // What f16 has a value near of, and any.
                    (3..100, _) => (random.unit() * 2_f64.powi(random.below(40) as i32 - 26)) as f32,
                    _ => f32::from_bits(random.bits() as u32),
                })
                .collect();
            let (version, layout) = (Version::V1, Layout::Chw);
            let launch = Launch { stage, version, value: Value::Normalised(number), layout, block: BLOCK };
            let tensor = launch.run(Mode::Stretch, &normal, &[(rgb.clone(), (256, 1))], (256, 1));
            assert_holds(number, &tensor, &normal, &format!("{number:?} turn {turn}"));
        }
    }
    // The rounding that this is compared with.
    assert_eq!(
        [65_519.0, 65_520.0, 1.0, -2.0].map(|value| round(Number::F16, value)),
        [Some(0x7BFF), Some(0x7C00), Some(0x3C00), Some(0xC000)]
    );
}

fn moved(stage: &Stage) {
    let way = |mode, source, target| Way::new(&stage.device, mode, source, target).expect("the weights");
    // Per pixel of an edge: its first source pixel, how many, and eight weights.
    let whole = way(Mode::Stretch, (640, 360), (224, 224));
    let tables = 2 * 224 * (2 + 8) * 4;
    assert_eq!(whole.bytes(), 640 * 360 * 3 + tables);
    assert_eq!(whole.scratch_bytes(), 360 * 224 * 3);
    // A crop to a square leaves the sides out.
    assert!(way(Mode::Crop, (640, 360), (224, 224)).bytes() < 380 * 360 * 3 + tables);
}
