//! Frames that an NVIDIA GPU decodes: nvJPEG makes RGB in its memory, our kernel the tensor of that, and a copy brings the tensor to the
//! slot, whose memory the driver knows. From there on nothing differs from a frame that libjpeg-turbo has decoded: the run copies it to the
//! device as before. To keep the tensor there would save these two copies, of 150 to 600 kB each.
//!
//! Whatever goes wrong with a frame here, libjpeg-turbo decodes it. **No GPU has run this yet.**

use super::FrameSpec;
use crate::bundle::manifest::Picture;
use crate::core::memory::Block;
use crate::core::sync::lock;
use crate::gpu::context::Context;
use crate::gpu::device::{Device, Memory, Module};
use crate::gpu::frame::{BLOCK, Kernel, Layout, Target, Value, Version, Way};
use crate::gpu::nvjpeg::{NvJpeg, NvjpegError, State};
use crate::gpu::stream::Stream;
use crate::gpu::{CudaError, Number};
use crate::image::jpeg::Header;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of RGB that a decoder keeps at most, of 2.7 million pixels: a picture of 1920 × 1080 fits. Larger ones are libjpeg-turbo's.
const RGB_BYTES_MAX: usize = 8 << 20;
/// Sizes of pictures whose weights a decoder keeps: a robot sends one or two.
const WAYS_MAX: usize = 8;
/// Failures of the driver in a row after which it is asked no more.
const FAILURES_MAX: u32 = 16;

/// Why a frame was not decoded here.
#[derive(Debug)]
pub enum Refusal {
    /// Its pixels take more memory than a decoder may.
    Large(Header),
    /// It is no file as cameras send it.
    Unusual,
    /// nvJPEG, or the driver.
    Failed(NvjpegError),
}

impl Refusal {
    /// It is a file that nvJPEG is never given.
    pub fn is_by_rule(&self) -> bool {
        !matches!(self, Refusal::Failed(_))
    }
}

impl<E: Into<NvjpegError>> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal::Failed(error.into())
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Large(Header { width, height, .. }) => {
                write!(to, "{width}x{height} pixels take more than {RGB_BYTES_MAX} bytes")
            }
            Refusal::Unusual => to.write_str("it is not baseline in one scan, or not YCbCr"),
            Refusal::Failed(error) => error.fmt(to),
        }
    }
}

/// How the tensor of one kind of picture is made.
struct Kind {
    spec: usize,
    /// Normalised values; none where the graph normalises.
    normal: Option<Memory>,
}

/// The decoders of a model on one device, for the decode threads.
pub struct OnDevice {
    context: Arc<Context>,
    /// By camera: cameras whose pictures are made in the same way share it.
    kinds: Vec<usize>,
    made: Vec<Kind>,
    specs: Vec<FrameSpec>,
    free: Mutex<Vec<Decoder>>,
    count: usize,
    version: String,
    /// The driver registers the memory of slots.
    registers: AtomicBool,
    /// The device is of no use any more. Whichever run meets that next tells the other models.
    lost: AtomicBool,
    /// Failures of the driver since a frame was decoded.
    failures: AtomicU32,
}

/// What one frame at a time needs.
struct Decoder {
    /// A stream of its own.
    device: Arc<Device>,
    kernel: Kernel,
    state: State,
    /// As much as the largest frame so far took.
    rgb: Option<Memory>,
    tensor: Memory,
    /// The last used one is the last.
    ways: Vec<Known>,
}

/// The way of pictures of one size.
struct Known {
    kind: usize,
    source: (usize, usize),
    way: Way,
    /// The kernel's `Frame`: it has the address of `rgb`.
    frame: Memory,
}

impl OnDevice {
    /// `count` decoders for pictures of `specs`, by camera, with the nvJPEG that opens first of `places` and our kernels in `image`.
    pub fn new(
        context: &Arc<Context>,
        places: &[PathBuf],
        image: &[u8],
        specs: Vec<FrameSpec>,
        count: usize,
    ) -> Result<OnDevice, NvjpegError> {
        let nvjpeg = NvJpeg::open(places, context)?;
        let device = Device::on(Stream::new(context)?);
        let module = Module::load(&device, image)?;
        let value = match specs.iter().all(|spec| spec.picture == Picture::Normalised) {
            true => Value::Normalised(Number::F32),
            false => Value::Pixel,
        };
        let kernel = context.within(|_| Kernel::find(&module, Version::V3, value))?;
        let mut made: Vec<Kind> = Vec::new();
        let mut kinds = Vec::with_capacity(specs.len());
        for (at, spec) in specs.iter().enumerate() {
            let known = made.iter().position(|kind| specs[kind.spec] == *spec);
            kinds.push(known.unwrap_or(made.len()));
            if known.is_none() {
                let table = || device.copy_of(spec.normal.as_flattened());
                let normal = if value == Value::Pixel { None } else { Some(table()?) };
                made.push(Kind { spec: at, normal });
            }
        }
        let largest = specs.iter().map(FrameSpec::bytes).max().unwrap_or(1);
        let decoders = (0..count).map(|_| -> Result<Decoder, NvjpegError> {
            let device = Device::on(Stream::new(context)?);
            let (kernel, state, tensor) = (kernel.on(&device), State::new(&nvjpeg)?, device.memory(largest)?);
            Ok(Decoder { device, kernel, state, rgb: None, tensor, ways: Vec::with_capacity(WAYS_MAX) })
        });
        let free = Mutex::new(decoders.collect::<Result<_, _>>()?);
        let (registers, lost) = (AtomicBool::new(true), AtomicBool::new(false));
        let failures = AtomicU32::new(0);
        let version = nvjpeg.version();
        Ok(OnDevice { context: context.clone(), kinds, made, specs, free, count, version, registers, lost, failures })
    }

    /// Decoders that there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Decodes nothing from here on: its device was drained.
    pub fn retire(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Of nvJPEG.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Decodes a camera's JPEG, whose header is known, to the tensor that the graphs take. None if no decoder is free, or the device is lost.
    pub fn decode(
        &self,
        camera: usize,
        jpeg: &[u8],
        header: Header,
        tensor: &mut Block<u8>,
    ) -> Option<Result<(), Refusal>> {
        self.with_decoder(|decoder| {
            if self.registers.load(Ordering::Relaxed) && self.context.register_block(tensor).is_err() {
                // The driver copies through a buffer of its own then, and is not asked again.
                self.registers.store(false, Ordering::Relaxed);
            }
            decoder.tensor(self, self.kinds[camera], jpeg, header, tensor)
        })
    }

    /// RGB of a JPEG, whose header is known. None as of `decode`.
    pub fn pixels(&self, jpeg: &[u8], header: Header) -> Option<Result<Vec<u8>, Refusal>> {
        self.with_decoder(|decoder| {
            decoder.pixels(jpeg, header)?;
            let rgb = decoder.rgb.as_ref().expect("the pixels of a frame");
            Ok(rgb.read(header.width as usize * header.height as usize * 3)?)
        })
    }

    /// With the context of the device on this thread, which is left as it was.
    fn with_decoder<T>(&self, work: impl FnOnce(&mut Decoder) -> Result<T, Refusal>) -> Option<Result<T, Refusal>> {
        if self.lost.load(Ordering::Acquire) {
            return None;
        }
        let mut decoder = lock(&self.free).pop()?;
        let done = self.context.within(|_| {
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut decoder)));
            if !matches!(done, Ok(Ok(_))) {
                // Nothing of this frame is under way when its memory is another one's.
                decoder.device.wait()?;
            }
            Ok(done)
        });
        lock(&self.free).push(decoder);
        let done = match done {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => Err(error.into()),
        };
        match &done {
            Err(Refusal::Failed(NvjpegError::Driver(CudaError::DeviceLost(_)))) => self.retire(),
            Err(Refusal::Failed(NvjpegError::Driver(_))) => {
                if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
                    self.retire();
                }
            }
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            Err(_) => {}
        }
        Some(done)
    }
}

impl Decoder {
    /// Puts the decode to RGB into the stream.
    fn pixels(&mut self, jpeg: &[u8], header: Header) -> Result<(), Refusal> {
        let Header { width, height, usual } = header;
        if !usual {
            return Err(Refusal::Unusual);
        }
        let bytes = width as usize * height as usize * 3;
        if bytes > RGB_BYTES_MAX {
            return Err(Refusal::Large(header));
        }
        if self.rgb.as_ref().is_none_or(|rgb| rgb.bytes() < bytes) {
            // Their frames have the address of what is freed here.
            self.ways.clear();
            self.rgb = None;
            self.rgb = Some(self.device.memory(bytes)?);
        }
        let to = self.rgb.as_ref().expect("it was made above").address();
        // SAFETY: as many bytes as the picture has; both are kept until the stream was waited for.
        Ok(unsafe { self.state.decode(jpeg, [width, height], to, self.device.stream()) }?)
    }

    /// JPEG to the tensor in host memory: returns when it is there.
    fn tensor(
        &mut self,
        of: &OnDevice,
        kind: usize,
        jpeg: &[u8],
        header: Header,
        tensor: &mut Block<u8>,
    ) -> Result<(), Refusal> {
        self.pixels(jpeg, header)?;
        let Kind { spec, normal } = &of.made[kind];
        let spec = &of.specs[*spec];
        self.make_way(spec, kind, (header.width as usize, header.height as usize))?;
        let Known { way, frame, .. } = self.ways.last().expect("it was made above");
        let target = Target {
            tensor: self.tensor.address(),
            normal: normal.as_ref().map_or(0, Memory::address),
            width: spec.width as u32,
            height: spec.height as u32,
            layout: if spec.picture == Picture::Interleaved { Layout::Hwc } else { Layout::Chw },
        };
        let (bytes, to) = (spec.bytes(), &mut tensor[..spec.bytes()]);
        // SAFETY: pixels, weights and tensor are as large as the way and the spec say, and kept until the stream was waited for, below or
        // by whoever is told of the failure; nobody else has `tensor` meanwhile.
        unsafe {
            self.kernel.launch(frame.address(), &[way], &target, BLOCK)?;
            self.device.stream().copy_out(to.as_mut_ptr().cast(), self.tensor.address(), bytes)?;
        }
        Ok(self.device.wait()?)
    }

    /// Makes the way of pictures of a size at the first of them, and then the last of `ways` each time.
    fn make_way(&mut self, spec: &FrameSpec, kind: usize, source: (usize, usize)) -> Result<(), CudaError> {
        match self.ways.iter().position(|known| known.kind == kind && known.source == source) {
            // The last one is the last used: the first is the one to go.
            Some(at) => self.ways[at..].rotate_left(1),
            None => {
                if self.ways.len() == WAYS_MAX {
                    // The kernel of the last picture of that size has ended: whoever decodes waits for it.
                    self.ways.remove(0);
                }
                let way = Way::new(&self.device, spec.mode, source, (spec.width, spec.height))?;
                let rgb = self.rgb.as_ref().expect("the pixels of a frame").address();
                let frame = self.device.copy_of(&[way.frame(rgb, 0)])?;
                self.ways.push(Known { kind, source, way, frame });
            }
        }
        Ok(())
    }
}
