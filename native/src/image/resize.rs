//! Resize: each filter to the bit of its library. All work on 8-bit RGB.

mod area;
mod fit;
mod pillow;
mod torch;

pub use self::fit::{Axis, axes};

use self::area::Area;
use self::pillow::{Kernel, Pillow};
use self::torch::Torch;
use crate::bundle::manifest::{Alignment, Filter};

/// Bytes that a step may read behind the last pixel; pixel buffers are this much longer.
pub const SLACK: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Stretch,
    /// The whole image on black, aligned.
    Pad(Alignment),
    /// The image fills the target; the rest is cut off evenly on both sides.
    Crop,
    /// The image has the size of the target.
    Exact,
}

/// RGB of the pixels of a target row.
pub enum Row<'a> {
    Levels(&'a [u8]),
    /// Unrounded shares of the full level, 0 to 1.
    Shares(&'a [f32]),
}

impl Row<'_> {
    pub fn pixels(&self) -> usize {
        match self {
            Row::Levels(row) => row.len() / 3,
            Row::Shares(row) => row.len() / 3,
        }
    }
}

type Size = (usize, usize);

/// A resizer for one thread, with the weights of the last size of a filter.
#[derive(Default)]
pub struct Resizer {
    key: Option<(Mode, Filter, Size, Size)>,
    pillow: Pillow,
    torch: Torch,
    area: Area,
}

impl Resizer {
    /// A resizer without a size.
    pub fn new() -> Resizer {
        Resizer::default()
    }

    /// Resizes `rgb` (`source` = width, height; `width × 3` bytes a row; `SLACK` readable bytes behind the last row) and
    /// hands each target row that is not padding to `emit(x, y, row)`. `row` holds pixels from column `x` on. Where nothing is resized
    /// these are the levels of the source, with every filter.
    pub fn run(
        &mut self,
        (mode, filter): (Mode, Filter),
        rgb: &[u8],
        source: Size,
        target: Size,
        mut emit: impl FnMut(usize, usize, Row<'_>),
    ) {
        assert!(rgb.len() >= source.0 * source.1 * 3 + SLACK, "the pixel buffer has its slack");
        let (across, down) = axes(mode, source, target);
        let pitch = source.0 * 3;
        if across.keeps() && down.keeps() {
            for row in 0..down.count {
                let pixels = &rgb[(down.from + row) * pitch + across.from * 3..][..across.count * 3];
                emit(across.offset, down.offset + row, Row::Levels(pixels));
            }
            return;
        }
        if self.key.replace((mode, filter, source, target)) != Some((mode, filter, source, target)) {
            match filter {
                Filter::PillowBilinear => self.pillow.prepare(Kernel::Triangle, across, down),
                Filter::PillowBicubic => self.pillow.prepare(Kernel::Cubic, across, down),
                Filter::TorchBilinear | Filter::TorchBilinearU8 => self.torch.prepare(across, down),
                Filter::Area => self.area.prepare(across, down),
            }
        }
        let mut levels = |row: usize, line: &[u8]| emit(across.offset, down.offset + row, Row::Levels(line));
        match filter {
            Filter::PillowBilinear | Filter::PillowBicubic => self.pillow.run(rgb, pitch, levels),
            Filter::Area => self.area.run(rgb, pitch, &mut levels),
            Filter::TorchBilinear | Filter::TorchBilinearU8 => {
                let rounded = filter == Filter::TorchBilinearU8;
                self.torch.run(rgb, pitch, rounded, |row, line| emit(across.offset, down.offset + row, line));
            }
        }
    }
}
