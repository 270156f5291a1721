//! Launches frame to tensor (`native/cuda/frame.cu`): pictures in the device's memory → one tensor of all of them.

use super::device::{Device, Function, Memory, Module};
use super::{Address, CudaError, Number, Shape, blocks, params};
use crate::image::resize::{self, Mode, Weights};
use std::sync::Arc;

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Version {
    /// A thread per pixel of the target.
    V1,
    /// The horizontal pass to scratch, then a thread per pixel.
    V2,
    /// A block per tile, the horizontal pass in shared memory.
    V3,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 3] = [Version::V1, Version::V2, Version::V3];
}

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Normalised values.
    Normalised(Number),
    /// 8-bit values, as resized.
    Pixel,
}

impl Value {
    /// All of them.
    pub const ALL: [Value; 4] = {
        let [a, b, c] = Number::ALL;
        [Value::Normalised(a), Value::Normalised(b), Value::Normalised(c), Value::Pixel]
    };

    /// In the names of kernels.
    pub fn name(self) -> &'static str {
        match self {
            Value::Normalised(number) => number.name(),
            Value::Pixel => "u8",
        }
    }

    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Value::Normalised(number) => number.bytes(),
            Value::Pixel => 1,
        }
    }
}

/// The order of a tensor's dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub enum Layout {
    /// `[frames, 3, height, width]`.
    Chw = 0,
    /// `[frames, height, width, 3]`.
    Hwc = 1,
}

/// `Axis` of frame.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Axis {
    first: Address,
    taps: Address,
    weights: Address,
    stride: u32,
    count: u32,
    offset: u32,
    unused: u32,
}

/// `Frame` of frame.cu: one picture and its way into the target.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    rgb: Address,
    scratch: Address,
    across: Axis,
    down: Axis,
    width: u32,
    height: u32,
}

const _: () = assert!(size_of::<Axis>() == 40 && size_of::<Frame>() == 104, "as frame.cu has them");

/// How pictures of one size come into a target of one size: the weights, on the device.
pub struct Way {
    across: Axis,
    down: Axis,
    source: (usize, usize),
    /// Source rows from the first to the last that the target needs.
    rows: usize,
    /// Source columns, likewise.
    columns: usize,
    table_bytes: usize,
    _tables: [Memory; 6],
}

impl Way {
    /// Computes and copies the weights; sizes are width, height.
    pub fn new(
        device: &Arc<Device>,
        mode: Mode,
        source: (usize, usize),
        target: (usize, usize),
    ) -> Result<Way, CudaError> {
        let (across, down) = resize::axes(mode, source, target);
        let (across, columns, [a, b, c]) = axis(device, across)?;
        let (down, rows, [d, e, f]) = axis(device, down)?;
        let tables = [a, b, c, d, e, f];
        let table_bytes = tables.iter().map(Memory::bytes).sum();
        Ok(Way { across, down, source, rows, columns, table_bytes, _tables: tables })
    }

    /// Bytes of scratch that version 2 needs for a picture.
    pub fn scratch_bytes(&self) -> usize {
        self.rows * self.across.count as usize * 3
    }

    /// A picture on this way. `rgb`: `[height, width, 3]` in the device's memory; `scratch`: `scratch_bytes` there, or 0.
    pub fn frame(&self, rgb: Address, scratch: Address) -> Frame {
        let (width, height) = (self.source.0 as u32, self.source.1 as u32);
        Frame { rgb, scratch, across: self.across, down: self.down, width, height }
    }

    /// Bytes that a picture's way moves at least: the part of it that the target shows, and the weights. The tensor comes on top.
    pub fn bytes(&self) -> u64 {
        (self.rows * self.columns * 3 + self.table_bytes) as u64
    }
}

/// Weights of one axis on the device, and how many source pixels they reach.
fn axis(device: &Arc<Device>, axis: resize::Axis) -> Result<(Axis, usize, [Memory; 3]), CudaError> {
    let mut weights = Weights::default();
    weights.compute(axis);
    let Weights { first, taps, values, stride } = &weights;
    let last = axis.count - 1;
    let reach = (first[last] + taps[last] - first[0]) as usize;
    let tables = [device.copy_of(first)?, device.copy_of(taps)?, device.copy_of(values)?];
    let [first, taps, weights] = [0, 1, 2].map(|table: usize| tables[table].address());
    let (stride, count, offset) = (*stride as u32, axis.count as u32, axis.offset as u32);
    Ok((Axis { first, taps, weights, stride, count, offset, unused: 0 }, reach, tables))
}

/// The kernel that writes a tensor of one type.
pub struct Kernel {
    version: Version,
    /// Version 2's first pass.
    across: Option<Function>,
    pixels: Function,
}

/// What a launch writes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As `layout` says.
    pub tensor: Address,
    /// Normalised values, `[3, 256]` f32, on the device; of pixels 0.
    pub normal: Address,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// The order of its dimensions.
    pub layout: Layout,
}

/// Threads of a block, over width and height. Version 3 has its own.
pub const BLOCK: [u32; 2] = [32, 8];
/// `TILE_WIDTH` and `TILE_HEIGHT` of frame.cu.
const TILE: [u32; 2] = [32, 8];

impl Kernel {
    /// Finds it.
    pub fn find(module: &Arc<Module>, version: Version, value: Value) -> Result<Kernel, CudaError> {
        let name = |version: &str| format!("frame_{version}_{}", value.name());
        let (across, pixels) = match version {
            Version::V1 => (None, name("v1")),
            Version::V2 => (Some(module.function("frame_v2_across")?), name("v2")),
            Version::V3 => (None, name("v3")),
        };
        Ok(Kernel { version, across, pixels: module.function(&pixels)? })
    }

    /// The same in another stream of the device.
    pub fn on(&self, device: &Arc<Device>) -> Kernel {
        let across = self.across.as_ref().map(|across| across.on(device));
        Kernel { version: self.version, across, pixels: self.pixels.on(device) }
    }

    /// Puts the launch for the pictures on `ways` into the stream, in blocks of `block` threads. `frames`: their `Frame`s on the device,
    /// in the same order.
    ///
    /// # Safety
    /// The addresses are of this device, of memory as large as ways and target say, and live until the stream is through with them.
    pub unsafe fn launch(
        &self,
        frames: Address,
        ways: &[&Way],
        target: &Target,
        block: [u32; 2],
    ) -> Result<(), CudaError> {
        let Target { tensor, normal, width, height, layout } = *target;
        let (layout, count) = (layout as u32, ways.len() as u32);
        let [x, y] = if self.version == Version::V3 { TILE } else { block };
        let over = |width: usize, height: usize| Shape {
            grid: [blocks(width, x as usize), blocks(height, y as usize), count],
            block: [x, y, 1],
        };
        if let Some(across) = &self.across {
            let most = |of: fn(&Way) -> usize| ways.iter().map(|way| of(way)).max().unwrap_or(0);
            let shape = over(most(|way| way.across.count as usize), most(|way| way.rows));
            // SAFETY: the parameter of frame_v2_across; the caller vouches for the addresses.
            unsafe { across.launch(shape, params![frames]) }?;
        }
        let shape = over(width as usize, height as usize);
        // SAFETY: the parameters of frame.cu, in its order; the caller vouches for the addresses.
        unsafe { self.pixels.launch(shape, params![frames, normal, tensor, width, height, layout]) }
    }
}
