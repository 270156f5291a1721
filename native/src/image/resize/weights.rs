//! Weights of the triangle filter, as Pillow computes them, for both axes of a resize.

use super::{Alignment, Mode, SPLIT_BITS, STEP, WEIGHT_BITS};

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

/// Source and target sizes to the two axes.
pub fn axes(mode: Mode, source: (usize, usize), target: (usize, usize)) -> (Axis, Axis) {
    let offset = |bars: usize| match mode {
        Mode::Pad(Alignment::TopLeft) => 0,
        Mode::Pad(Alignment::BottomRight) => bars,
        Mode::Pad(Alignment::Centre) | Mode::Stretch | Mode::Crop => bars / 2,
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
        Mode::Stretch => target,
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

/// The source pixels of each target pixel and their weights.
#[derive(Default)]
pub struct Weights {
    /// First source pixel per target pixel.
    pub first: Vec<u32>,
    /// Number of source pixels per target pixel.
    pub taps: Vec<u32>,
    /// `stride` weights per target pixel, zero behind its taps; 0 to 2^22.
    pub values: Vec<i32>,
    /// Weights per target pixel, a multiple of four.
    pub stride: usize,
}

impl Weights {
    /// Computes the weights of one axis. It allocates only for the longest axis so far.
    pub fn compute(&mut self, axis: Axis) {
        let scale = axis.source as f64 / axis.resized as f64;
        let filter_scale = scale.max(1.0);
        let support = filter_scale;
        let inverse = 1.0 / filter_scale;
        self.stride = (support.ceil() as usize * 2 + 1).next_multiple_of(STEP);
        self.first.clear();
        self.taps.clear();
        self.values.clear();
        for target in axis.from..axis.from + axis.count {
            let centre = (target as f64 + 0.5) * scale;
            let first = ((centre - support + 0.5) as i64).max(0) as usize;
            let last = ((centre + support + 0.5) as usize).min(axis.source);
            let weight = |tap: usize| (1.0 - (((first + tap) as f64 - centre + 0.5) * inverse).abs()).max(0.0);
            let taps = last - first;
            debug_assert!(taps > 0 && taps <= self.stride);
            let sum: f64 = (0..taps).map(weight).sum();
            self.first.push(first as u32);
            self.taps.push(taps as u32);
            let start = self.values.len();
            self.values.resize(start + self.stride, 0);
            for tap in 0..taps {
                self.values[start + tap] = (weight(tap) / sum * f64::from(1 << WEIGHT_BITS) + 0.5) as i32;
            }
        }
    }
}

/// The weights of the horizontal pass in the order that AVX2 needs: per step of four source pixels two vectors of 16-bit halves,
/// `[k0 k1 k0 k1 k0 k1 0 0 | k2 k3 k2 k3 k2 k3 0 0]`.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub(super) struct StepWeights {
    pub(super) high: [i16; 16],
    pub(super) low: [i16; 16],
}

impl StepWeights {
    pub(super) fn new(weights: &[i32]) -> StepWeights {
        let spread = |half: fn(i32) -> i16| {
            let k = |index: usize| half(weights[index]);
            [k(0), k(1), k(0), k(1), k(0), k(1), 0, 0, k(2), k(3), k(2), k(3), k(2), k(3), 0, 0]
        };
        StepWeights {
            high: spread(|k| (k >> SPLIT_BITS) as i16),
            low: spread(|k| (k & ((1 << SPLIT_BITS) - 1)) as i16),
        }
    }
}
