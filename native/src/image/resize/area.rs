//! OpenCV's INTER_AREA, to the bit.
//!
//! `modules/imgproc/src/resize.cpp` has three ways, chosen by the scales: whole blocks of pixels, cells with parts of pixels, and, where
//! an edge grows, its fixed-point bilinear filter with the offsets of areas.

mod blocks;
mod cells;
mod growth;

use super::fit::Axis;

/// Source pixels for a target pixel, as OpenCV computes it of its inverse.
fn scale(axis: Axis) -> f64 {
    1.0 / inverse(axis)
}

fn inverse(axis: Axis) -> f64 {
    axis.resized as f64 / axis.source as f64
}

/// The scale as a whole number, where OpenCV takes it for one.
fn whole(axis: Axis) -> Option<usize> {
    let scale = scale(axis);
    ((scale - scale.round()).abs() < f64::EPSILON).then_some(scale.round() as usize)
}

#[derive(Default)]
pub struct Area {
    way: Way,
    blocks: blocks::Blocks,
    cells: cells::Cells,
    growth: growth::Growth,
}

#[derive(Clone, Copy, Default)]
enum Way {
    #[default]
    Blocks,
    Cells,
    Growth,
}

impl Area {
    pub fn prepare(&mut self, across: Axis, down: Axis) {
        self.way = if scale(across) < 1.0 || scale(down) < 1.0 {
            self.growth.prepare(across, down);
            Way::Growth
        } else if let (Some(wide), Some(high)) = (whole(across), whole(down)) {
            self.blocks.prepare((across, wide), (down, high));
            Way::Blocks
        } else {
            self.cells.prepare(across, down);
            Way::Cells
        };
    }

    /// Hands each target row to `emit`, from `rgb` with `pitch` bytes a row.
    pub fn run(&mut self, rgb: &[u8], pitch: usize, emit: impl FnMut(usize, &[u8])) {
        match self.way {
            Way::Blocks => self.blocks.run(rgb, pitch, emit),
            Way::Cells => self.cells.run(rgb, pitch, emit),
            Way::Growth => self.growth.run(rgb, pitch, emit),
        }
    }
}
