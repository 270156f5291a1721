//! Pillow's antialiased filters, to the bit.
//!
//! A filter on 8-bit values, horizontal then vertical, rounded to 8 bits between the two passes, with weights of 22 fractional bits
//! (Pillow, `src/libImaging/Resample.c`, `precompute_coeffs` and `normalize_coeffs_8bpc`). The horizontal pass is AVX2: a weight k is
//! split into k = 2048·h + l, so that each half fits 16 bits and `pmaddwd` gives exact 32-bit sums of both.

mod weights;

pub use self::weights::Kernel;

use self::weights::{StepWeights, Weights};
use super::SLACK;
use super::fit::Axis;
use std::arch::x86_64::*;

#[cfg(not(target_feature = "avx2"))]
compile_error!("build with -C target-cpu=x86-64-v3 (native/.cargo/config.toml): the resizer is AVX2");

/// Fractional bits of a weight: 32 − 8 − 2.
const WEIGHT_BITS: u32 = 22;
const HALF: i32 = 1 << (WEIGHT_BITS - 1);
/// A weight is `2^SPLIT_BITS · high + low`.
const SPLIT_BITS: i32 = 11;
/// Source pixels that one AVX2 step reads.
const STEP: usize = 4;

/// The weights of the last size, and the rows between the passes.
#[derive(Default)]
pub struct Pillow {
    horizontal: Weights,
    steps: Vec<StepWeights>,
    vertical: Weights,
    /// Source rows after the horizontal pass, `count × 3` bytes each.
    rows: Vec<u8>,
    sums: Vec<i32>,
    line: Vec<u8>,
}

impl Pillow {
    pub fn prepare(&mut self, kernel: Kernel, across: Axis, down: Axis) {
        self.horizontal.compute(kernel, across);
        self.steps.clear();
        self.steps.extend(self.horizontal.values.chunks_exact(STEP).map(StepWeights::new));
        self.vertical.compute(kernel, down);
    }

    /// Hands each target row to `emit`, from `rgb` with `pitch` bytes a row.
    pub fn run(&mut self, rgb: &[u8], pitch: usize, mut emit: impl FnMut(usize, &[u8])) {
        let width = self.horizontal.first.len() * 3;
        let count = self.vertical.first.len();
        let first_row = self.vertical.first[0] as usize;
        let end_row = (self.vertical.first[count - 1] + self.vertical.taps[count - 1]) as usize;
        self.rows.resize((end_row - first_row) * width + SLACK, 0);
        for row in first_row..end_row {
            let from = &rgb[row * pitch..];
            let to = &mut self.rows[(row - first_row) * width..];
            horizontal(from, to, &self.horizontal, &self.steps);
        }
        self.line.resize(width, 0);
        for row in 0..count {
            let first = self.vertical.first[row] as usize - first_row;
            let taps = self.vertical.taps[row] as usize;
            let weights = &self.vertical.values[row * self.vertical.stride..][..taps];
            vertical(&self.rows[first * width..], width, weights, &mut self.sums, &mut self.line);
            emit(row, &self.line);
        }
    }
}

/// One row: each target pixel is the weighted sum of its source pixels.
fn horizontal(from: &[u8], to: &mut [u8], weights: &Weights, steps: &[StepWeights]) {
    let per_pixel = weights.stride / STEP;
    let count = weights.first.len();
    assert!(to.len() > count * 3, "a target row has one byte of slack");
    assert!(steps.len() == count * per_pixel);
    // The last byte read: the last pixel's first tap, all its steps, and the 16 bytes of the last load.
    let furthest =
        weights.first.iter().zip(&weights.taps).map(|(first, taps)| (first + taps) as usize).max().unwrap_or(0);
    assert!(from.len() >= furthest * 3 + STEP * 3 + 4, "a source row has its slack");
    // SAFETY: the library is built for x86-64-v3, so AVX2 is there; the caller refuses other
    // processors before it opens the library.
    // Reads: steps entirely after a pixel's taps are skipped below, so each load begins before
    // `first + taps` and ends at most STEP·3 + 4 bytes after it, which the assertion covers. Writes: 4 bytes at
    // pixel·3, covered by the assertion on `to`.
    unsafe {
        // Bytes of two pixels to (r0 r1)(g0 g1)(b0 b1)(0 0) in 16-bit lanes; the high half takes pixels 2 and 3.
        let pairs = _mm256_setr_epi8(
            0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
            6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
        );
        let half = _mm_set1_epi32(HALF);
        for pixel in 0..count {
            let mut source = from.as_ptr().add(weights.first[pixel] as usize * 3);
            let step_count = (weights.taps[pixel] as usize).div_ceil(STEP);
            let mut high = _mm256_setzero_si256();
            let mut low = _mm256_setzero_si256();
            for step in steps.get_unchecked(pixel * per_pixel..pixel * per_pixel + step_count) {
                let four = _mm256_broadcastsi128_si256(_mm_loadu_si128(source.cast()));
                let values = _mm256_shuffle_epi8(four, pairs);
                high = _mm256_add_epi32(high, _mm256_madd_epi16(values, _mm256_load_si256(step.high.as_ptr().cast())));
                low = _mm256_add_epi32(low, _mm256_madd_epi16(values, _mm256_load_si256(step.low.as_ptr().cast())));
                source = source.add(STEP * 3);
            }
            let sum = _mm256_add_epi32(_mm256_slli_epi32::<SPLIT_BITS>(high), low);
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
            let sum = _mm_srai_epi32::<{ WEIGHT_BITS as i32 }>(_mm_add_epi32(sum, half));
            let halves = _mm_packs_epi32(sum, sum);
            let bytes = _mm_cvtsi128_si32(_mm_packus_epi16(halves, halves));
            to.as_mut_ptr().add(pixel * 3).cast::<i32>().write_unaligned(bytes);
        }
    }
}

/// One target row out of `weights.len()` rows of `width` bytes.
fn vertical(rows: &[u8], width: usize, weights: &[i32], sums: &mut Vec<i32>, line: &mut [u8]) {
    sums.clear();
    sums.resize(width, HALF);
    for (row, &weight) in rows.chunks_exact(width).zip(weights) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += i32::from(value) * weight;
        }
    }
    for (byte, &sum) in line.iter_mut().zip(sums.iter()) {
        *byte = (sum >> WEIGHT_BITS).clamp(0, 255) as u8;
    }
}
