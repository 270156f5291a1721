//! Weights of Pillow's filters along one axis of a resize.

use super::super::fit::Axis;
use super::{SPLIT_BITS, STEP, WEIGHT_BITS};

/// A filter of Pillow's `Resample.c`, by its value at a distance in pixels of the smaller picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// `bilinear_filter`.
    Triangle,
    /// `bicubic_filter`, a = −0.5.
    Cubic,
}

impl Kernel {
    fn support(self) -> f64 {
        if self == Kernel::Triangle { 1.0 } else { 2.0 }
    }

    fn at(self, distance: f64) -> f64 {
        let x = distance.abs();
        match self {
            Kernel::Triangle => (1.0 - x).max(0.0),
            Kernel::Cubic if x < 1.0 => ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0,
            Kernel::Cubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC,
            Kernel::Cubic => 0.0,
        }
    }
}

const CUBIC: f64 = -0.5;

/// The source pixels of each target pixel and their weights.
#[derive(Default)]
pub struct Weights {
    /// First source pixel per target pixel.
    pub first: Vec<u32>,
    /// Number of source pixels per target pixel.
    pub taps: Vec<u32>,
    /// `stride` weights per target pixel, zero behind its taps; 2^22 is one.
    pub values: Vec<i32>,
    /// Weights per target pixel, a multiple of four.
    pub stride: usize,
}

impl Weights {
    /// Computes the weights of one axis. It allocates only for the longest axis so far.
    pub fn compute(&mut self, kernel: Kernel, axis: Axis) {
        let scale = axis.source as f64 / axis.resized as f64;
        let filter_scale = scale.max(1.0);
        let support = kernel.support() * filter_scale;
        let inverse = 1.0 / filter_scale;
        self.stride = (support.ceil() as usize * 2 + 1).next_multiple_of(STEP);
        self.first.clear();
        self.taps.clear();
        self.values.clear();
        for target in axis.from..axis.from + axis.count {
            let centre = (target as f64 + 0.5) * scale;
            let first = ((centre - support + 0.5) as i64).max(0) as usize;
            let last = ((centre + support + 0.5) as usize).min(axis.source);
            let weight = |tap: usize| kernel.at(((first + tap) as f64 - centre + 0.5) * inverse);
            let taps = last - first;
            debug_assert!(taps > 0 && taps <= self.stride);
            let sum: f64 = (0..taps).map(weight).sum();
            self.first.push(first as u32);
            self.taps.push(taps as u32);
            let start = self.values.len();
            self.values.resize(start + self.stride, 0);
            for tap in 0..taps {
                let scaled = weight(tap) / sum * f64::from(1 << WEIGHT_BITS);
                self.values[start + tap] = (scaled + 0.5_f64.copysign(scaled)) as i32;
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
