//! The place of a source in its target, along both axes.

use super::{Alignment, Mode};

/// One axis: the wanted part of the resized image, and its start in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Pixels of the source along this axis.
    pub source: usize,
    /// Pixels of the whole resized image.
    pub resized: usize,
    /// The first wanted pixel of it.
    pub from: usize,
    /// Pixels wanted.
    pub count: usize,
    pub offset: usize,
}

impl Axis {
    /// Nothing is resized along it.
    pub fn keeps(&self) -> bool {
        self.source == self.resized
    }
}

/// Source and target sizes to the two axes.
pub fn axes(mode: Mode, source: (usize, usize), target: (usize, usize)) -> (Axis, Axis) {
    let offset = |bars: usize| match mode {
        Mode::Pad(Alignment::BottomRight) => bars,
        Mode::Pad(Alignment::Centre) | Mode::Stretch | Mode::Crop | Mode::Exact => bars / 2,
    };
    let axis = |source: usize, target: usize, resized: usize| {
        if resized <= target {
            Axis { source, resized, from: 0, count: resized, offset: offset(target - resized) }
        } else {
            Axis { source, resized, from: (resized - target) / 2, count: target, offset: 0 }
        }
    };
    let ratios = (source.0 as f64 / target.0 as f64, source.1 as f64 / target.1 as f64);
    let (width, height) = match mode {
        Mode::Stretch | Mode::Exact => target,
        Mode::Pad(_) => {
            let ratio = ratios.0.max(ratios.1);
            // A very thin image has at least one pixel.
            (((source.0 as f64 / ratio) as usize).max(1), ((source.1 as f64 / ratio) as usize).max(1))
        }
        Mode::Crop => {
            let ratio = ratios.0.min(ratios.1);
            let fill =
                |source: usize, target: usize| (source as f64 / ratio).round_ties_even().max(target as f64) as usize;
            (fill(source.0, target.0), fill(source.1, target.1))
        }
    };
    (axis(source.0, target.0, width), axis(source.1, target.1, height))
}
