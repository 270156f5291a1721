//! Frames that a device decodes, against those of libjpeg-turbo: with the nvJPEG that the CPU plays (`cuda/nvjpeg_host.cpp`), whose pixels
//! are the same, and the driver and kernels that it plays.

use super::stage::{Count, Stage};
use super::{Of, Test};
use libloading::Library as Shared;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tendon::bundle::manifest::Place;
use tendon::bundle::manifest::{Image, Picture, Resize};
use tendon::core::memory::Block;
use tendon::gpu::CudaError;
use tendon::gpu::context::Context;
use tendon::gpu::device::FAT_BINARY;
use tendon::gpu::nvjpeg::{NAMES, NvjpegError, Status};
use tendon::image::frame::{FrameSpec, OnDevice, Refusal, Worker};
use tendon::image::jpeg::{Decoder, Header, Library, inspect};
use tendon::image::resize::{Resizer, SLACK};

pub const TESTS: &[Test] = &[
    ("nvjpeg::a_library_that_is_absent_or_another_one_is_told", Of::Host, absent),
    ("nvjpeg::every_tensor_equals_that_of_libjpeg_turbo", Of::Host, equal),
    ("nvjpeg::a_frame_that_is_refused_leaves_its_decoder_as_it_was", Of::Host, refused),
    ("nvjpeg::the_weights_of_eight_sizes_are_kept", Of::Host, kept),
    ("nvjpeg::threads_share_the_decoders_and_no_more_frames_than_these_are_taken", Of::Host, shared),
    ("nvjpeg::a_device_that_is_lost_decodes_no_more", Of::Host, lost),
    ("nvjpeg::tensors_are_those_that_the_engine_makes_of_its_pixels", Of::Kernels, own_pixels),
];

/// `Setting` and `Count` of nvjpeg_host.cpp.
const REFUSED_WIDTH: usize = 1;
const DECODE_US: usize = 2;
const OTHER_WIDTH: usize = 4;
const COUNTS: [usize; 2] = [0, 1];
const FAULTS: usize = 4;

struct Played {
    path: PathBuf,
    library: Shared,
}

impl Played {
    fn set(&self, setting: usize, value: u64) {
        // SAFETY: the signature of played_set.
        unsafe {
            (*self.library.get::<unsafe extern "C" fn(usize, u64)>("played_set").expect("a setting"))(setting, value)
        };
    }

    fn count(&self, count: usize) -> u64 {
        // SAFETY: the signature of played_count.
        unsafe { (*self.library.get::<unsafe extern "C" fn(usize) -> u64>("played_count").expect("the counts"))(count) }
    }
}

fn native() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn turbojpeg() -> PathBuf {
    native().join("../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0")
}

/// Compiled once, on the played driver.
fn played(stage: &Stage) -> &'static Played {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    PLAYED.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libnvjpeg-cpu.so");
        let flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"];
        let source = native().join("cuda/nvjpeg_host.cpp");
        let run = Command::new("c++").args(flags).arg(source).arg("-o").arg(&path).output().expect("a C++ compiler");
        assert!(run.status.success(), "c++: {}", String::from_utf8_lossy(&run.stderr));
        // SAFETY: compiled just now from this repository.
        let library = unsafe { Shared::new(&path) }.expect("nvJPEG on the CPU");
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).expect("a path");
        let (turbo, driver) = (text(&turbojpeg()), text(&stage.path));
        type Begin = unsafe extern "C" fn(*const std::ffi::c_char, *const std::ffi::c_char) -> i32;
        // SAFETY: the signature of played_begin, and paths that live through the call.
        let begun =
            unsafe { (*library.get::<Begin>("played_begin").expect("a call"))(turbo.as_ptr(), driver.as_ptr()) };
        assert_eq!(begun, 0, "libjpeg-turbo and the driver");
        Played { path, library }
    })
}

fn worker() -> Worker {
    let library = Library::open(&turbojpeg()).expect("libturbojpeg");
    Worker::new(Decoder::new(&library).expect("a decoder")).expect("a worker")
}

fn jpeg(file: &str) -> Vec<u8> {
    std::fs::read(native().join("../test/vectors/jpeg").join(file)).expect(file)
}

fn spec(width: usize, height: usize, (resize, place): (Resize, Option<Place>), picture: Picture) -> FrameSpec {
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    FrameSpec::new(&Image { width, height, resize, place, mean, std, tokens: 1 }).taken_as(picture)
}

fn open(stage: &Stage, specs: Vec<FrameSpec>, count: usize) -> Result<OnDevice, NvjpegError> {
    let context = Context::open(&stage.driver, 0).expect("device 0");
    OnDevice::new(&context, &[played(stage).path.clone()], &FAT_BINARY, specs, count)
}

/// What the driver and nvJPEG have now, and what was done wrong so far.
fn held(stage: &Stage) -> [u64; 7] {
    let [handles, states] = COUNTS.map(|count| played(stage).count(count));
    let driver = [Count::Streams, Count::Registered, Count::Memories, Count::Faults].map(|count| stage.count(count));
    [handles, states, driver[0], driver[1], driver[2], driver[3], played(stage).count(FAULTS)]
}

fn tensor() -> Block<u8> {
    let mut tensor = Block::locked(64 * 64 * 3 * 4).expect("memory");
    tensor.fill(0x5A);
    tensor
}

fn absent(stage: &Stage) {
    let context = Context::open(&stage.driver, 0).expect("device 0");
    let specs = || vec![spec(8, 8, (Resize::Stretch, None), Picture::Planes)];
    let fault = |places: &[PathBuf]| match OnDevice::new(&context, places, &FAT_BINARY, specs(), 1) {
        Err(NvjpegError::Absent(words)) => words,
        other => panic!("{:?}", other.err()),
    };
    let words = fault(&["libnvjpeg-nowhere.so.13".into(), "libm.so.6".into()]);
    assert!(words.contains("libnvjpeg-nowhere.so.13") && words.contains("nvjpegGetProperty"), "{words}");
    // The second opens.
    let places = ["libnvjpeg-nowhere.so.13".into(), played(stage).path.clone()];
    let before = held(stage);
    let device = OnDevice::new(&context, &places, &FAT_BINARY, specs(), 3).expect("decoders");
    assert_eq!((device.version(), device.count()), ("13.0.4", 3));
    drop(device);
    assert_eq!(held(stage), before);
    let kernels = OnDevice::new(&context, &places, b"no kernels", specs(), 1).err();
    assert!(matches!(kernels, Some(NvjpegError::Driver(CudaError::BadModule(_)))));
    assert_eq!(held(stage), before);
}

fn equal(stage: &Stage) {
    let before = held(stage);
    let mut worker = worker();
    let ways = [Place::Centre, Place::TopLeft, Place::BottomRight].map(|place| (Resize::Pad, Some(place)));
    let ways = [&ways[..], &[(Resize::Stretch, None), (Resize::Crop, None)]].concat();
    for picture in [Picture::Normalised, Picture::Planes, Picture::Interleaved] {
        let sizes = [(56, 40), (33, 64)];
        let specs = || sizes.iter().flat_map(|&(w, h)| ways.iter().map(move |&way| spec(w, h, way, picture))).collect();
        let device = open(stage, specs(), 1).expect("decoders");
        for (camera, spec) in specs().iter().enumerate() {
            // Twice the same, smaller and larger: memory grows and stays.
            for file in ["420.jpg", "422-mid.jpg", "420.jpg", "420-frame.jpg", "444-mid.jpg"] {
                let (jpeg, mut own, mut other) = (jpeg(file), tensor(), tensor());
                worker.frame(spec, &jpeg, &mut own).expect("a good frame");
                let header = inspect(&jpeg).expect("a good frame");
                device.decode(camera, &jpeg, header, &mut other).expect("a free decoder").expect("a good frame");
                assert!(own[..] == other[..], "{file} of camera {camera} differs");
                worker.pixels(&jpeg).expect("a good frame");
                let pixels = device.pixels(&jpeg, header).expect("a free decoder").expect("a good frame");
                assert!(pixels == worker.rgb()[..pixels.len()], "{file}");
            }
        }
    }
    assert_eq!(held(stage), before);
}

fn refused(stage: &Stage) {
    let before = held(stage);
    let played = played(stage);
    let spec = || spec(56, 40, (Resize::Crop, None), Picture::Planes);
    let device = open(stage, vec![spec()], 1).expect("decoders");
    let (mut worker, mut own, mut other) = (worker(), tensor(), tensor());
    let good = jpeg("420-mid.jpg");
    let header = inspect(&good).expect("a good frame");
    worker.frame(&spec(), &good, &mut own).expect("a good frame");
    let mut decode = |jpeg: &[u8], header: Header| {
        let done = device.decode(0, jpeg, header, &mut other).expect("a free decoder");
        (done.err(), other[..] == own[..])
    };
    let mut check = |jpeg: &[u8], header: Header, expected: &str| {
        let (refusal, _) = decode(jpeg, header);
        let words = refusal.as_ref().map(Refusal::to_string).unwrap_or_default();
        assert!(words.contains(expected), "{words} does not say {expected}");
        assert!(matches!(decode(&good, inspect(&good).expect("a good frame")), (None, true)), "behind {expected}");
    };
    let unusual = jpeg("progressive-420.jpg");
    check(&unusual, inspect(&unusual).expect("a frame"), "not baseline");
    check(&good, Header { width: 4096, height: 4096, ..header }, "4096x4096 pixels take more than 8388608 bytes");
    // The file says otherwise than the header that it came with.
    check(&good, Header { width: 161, ..header }, "nvJPEG found 160x120 pixels");
    played.set(OTHER_WIDTH, 160);
    let (refusal, _) = decode(&good, header);
    assert!(matches!(refusal, Some(Refusal::Failed(NvjpegError::Size([161, 120])))), "{refusal:?}");
    played.set(OTHER_WIDTH, 0);
    played.set(REFUSED_WIDTH, 160);
    let (refusal, _) = decode(&good, header);
    let call = NvjpegError::Call("nvjpegDecode", Status::JpegNotSupported);
    assert!(matches!(refusal, Some(Refusal::Failed(error)) if error == call));
    played.set(REFUSED_WIDTH, 0);
    let damaged = jpeg("bad-random-scan.jpg");
    let (refusal, _) = decode(&damaged, Header { usual: true, ..inspect(&damaged).expect("a header") });
    assert!(matches!(refusal, Some(Refusal::Failed(NvjpegError::Call(_, Status::BadJpeg)))), "{refusal:?}");
    // No room for a larger frame: the smaller ones go on.
    let large = jpeg("420-frame.jpg");
    stage.set("cpu_memory_left", 100_000);
    let (refusal, _) = decode(&large, inspect(&large).expect("a frame"));
    assert!(matches!(refusal, Some(Refusal::Failed(NvjpegError::Driver(CudaError::OutOfMemory(691_200))))));
    assert!(matches!(decode(&good, header), (None, true)));
    stage.set("cpu_memory_left", usize::MAX);
    drop(device);
    drop((own, other));
    assert_eq!(held(stage), before);
}

fn kept(stage: &Stage) {
    let before = held(stage);
    let specs = || (1..=3).map(|camera| spec(16 * camera, 8, (Resize::Stretch, None), Picture::Normalised)).collect();
    let device = open(stage, specs(), 1).expect("decoders");
    let mut worker = worker();
    let files = ["420-frame.jpg", "420.jpg", "422-mid.jpg"].map(jpeg);
    let mut memories = Vec::new();
    for round in 0..3 {
        let specs: Vec<FrameSpec> = specs();
        for (camera, spec) in specs.iter().enumerate() {
            for jpeg in &files {
                let (mut own, mut other) = (tensor(), tensor());
                worker.frame(spec, jpeg, &mut own).expect("a good frame");
                let header = inspect(jpeg).expect("a good frame");
                device.decode(camera, jpeg, header, &mut other).expect("a free decoder").expect("a good frame");
                assert!(own[..] == other[..], "round {round}, camera {camera}");
                memories.push(stage.count(Count::Memories) - before[4]);
            }
        }
    }
    // Six tables and the kernel's `Frame` for each; the first picture is the largest.
    assert_eq!(memories[1] - memories[0], 7);
    assert_eq!(memories[7] - memories[0], 7 * 7);
    assert!(memories[8..].iter().all(|&count| count == memories[7]), "{memories:?}");
    drop(device);
    assert_eq!(held(stage), before);
}

fn shared(stage: &Stage) {
    let before = held(stage);
    let spec = || spec(56, 40, (Resize::Stretch, None), Picture::Interleaved);
    let device = open(stage, vec![spec()], 2).expect("decoders");
    let (good, mut own) = (jpeg("420-mid.jpg"), tensor());
    let header = inspect(&good).expect("a good frame");
    worker().frame(&spec(), &good, &mut own).expect("a good frame");
    played(stage).set(DECODE_US, 3000);
    let (taken, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut other = tensor();
                for _ in 0..10 {
                    other.fill(0x5A);
                    match device.decode(0, &good, header, &mut other) {
                        Some(done) => {
                            done.expect("a good frame");
                            assert!(own[..] == other[..]);
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                        None => {
                            busy.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(std::time::Duration::from_millis(1));
                        }
                    }
                }
            });
        }
    });
    played(stage).set(DECODE_US, 0);
    let (taken, busy) = (taken.into_inner(), busy.into_inner());
    assert_eq!(taken + busy, 40);
    assert!(taken >= 4 && busy >= 4, "{taken} taken, {busy} not");
    drop(device);
    assert_eq!(held(stage), before);
}

fn lost(stage: &Stage) {
    let before = held(stage);
    let device = open(stage, vec![spec(8, 8, (Resize::Stretch, None), Picture::Planes)], 2).expect("decoders");
    let (good, mut other) = (jpeg("420.jpg"), tensor());
    let header = inspect(&good).expect("a good frame");
    assert!(matches!(device.decode(0, &good, header, &mut other), Some(Ok(()))));
    stage.set("cpu_lose", 1);
    let refusal = device.decode(0, &good, header, &mut other).expect("a free decoder").expect_err("no device");
    assert!(matches!(refusal, Refusal::Failed(NvjpegError::Driver(CudaError::DeviceLost(_)))), "{refusal:?}");
    assert!(device.decode(0, &good, header, &mut other).is_none());
    stage.set("cpu_lose", 0);
    assert!(device.decode(0, &good, header, &mut other).is_none(), "what was lost does not come back");
    drop((device, other));
    assert_eq!(held(stage), before);
}

/// Whatever the library makes of a file: on a GPU its pixels are not those of libjpeg-turbo, and how far they are off is printed.
fn own_pixels(stage: &Stage) {
    let places = if stage.on_gpu { NAMES.map(PathBuf::from).to_vec() } else { vec![played(stage).path.clone()] };
    let context = Context::open(&stage.driver, 0).expect("device 0");
    let ways = [(Resize::Pad, Some(Place::Centre)), (Resize::Stretch, None), (Resize::Crop, None)];
    let specs = || ways.iter().map(|&way| spec(64, 48, way, Picture::Normalised)).collect::<Vec<FrameSpec>>();
    let device = match OnDevice::new(&context, &places, &stage.image, specs(), 1) {
        // A GPU's host need not have it: the engine decodes with libjpeg-turbo then.
        Err(NvjpegError::Absent(reason)) if stage.on_gpu => return println!("no nvJPEG here: {reason}"),
        made => made.expect("decoders"),
    };
    let mut worker = worker();
    for file in ["420-frame.jpg", "420.jpg", "422-mid.jpg", "444-mid.jpg", "420-q20.jpg", "restart.jpg"] {
        let jpeg = jpeg(file);
        let header = worker.pixels(&jpeg).expect("a good frame");
        let rgb = device.pixels(&jpeg, header).expect("a free decoder").expect("a good frame");
        let sizes = rgb.iter().zip(worker.rgb()).map(|(one, other)| one.abs_diff(*other));
        let (largest, sum) = sizes.fold((0, 0_u64), |(most, sum), size| (most.max(size), sum + u64::from(size)));
        let mean = sum as f64 / rgb.len() as f64;
        println!("nvJPEG {}: {file} differs by {largest} levels at most, {mean:.3} in the mean", device.version());
        // Another picture, or another order of the channels, is further off.
        assert!(mean < 8.0, "{file}: {mean}");
        for (camera, spec) in specs().iter().enumerate() {
            let (mut own, mut other) = (vec![f32::NAN; spec.values()], tensor());
            let source = (header.width as usize, header.height as usize);
            spec.fill(&mut Resizer::new(), &[&rgb[..], &[0; SLACK]].concat(), source, &mut own);
            device.decode(camera, &jpeg, header, &mut other).expect("a free decoder").expect("a good frame");
            assert!(other.floats_mut()[..own.len()] == own[..], "{file} of camera {camera} differs");
        }
    }
}
