//! PyTorch's bilinear filter without antialias, to the bit.
//!
//! Two taps between half-pixel centres along each edge, in f32 (`torch.nn.functional.interpolate(mode="bilinear", align_corners=False)`,
//! ATen's `native/cpu/UpSampleKernel.cpp`, `upsample_generic_Nd_kernel_impl`, as built for AVX2 and AVX-512). PyTorch does not always
//! take this way: with one thread, with a resized picture whose edges make 128 or less, without fused products and on a GPU its
//! values differ in the last bit.

use super::Row;
use super::fit::Axis;

/// The two source pixels of a target pixel, and their weights.
#[derive(Clone, Copy)]
struct Taps {
    near: usize,
    far: usize,
    near_weight: f32,
    far_weight: f32,
}

#[derive(Default)]
pub struct Torch {
    across: Vec<Taps>,
    down: Vec<Taps>,
    sums: Vec<f32>,
    line: Vec<u8>,
}

/// The f32 number of each level.
type Numbers = [f32; 256];

const fn numbers(full: f32) -> Numbers {
    let mut table = [0.0; 256];
    let mut level = 0;
    while level < 256 {
        table[level] = level as f32 / full;
        level += 1;
    }
    table
}

static LEVELS: Numbers = numbers(1.0);
static SHARES: Numbers = numbers(255.0);

impl Torch {
    pub fn prepare(&mut self, across: Axis, down: Axis) {
        taps(&mut self.across, across);
        taps(&mut self.down, down);
    }

    /// Hands each target row to `emit`, from `rgb` with `pitch` bytes a row: levels if `rounded`, half to even, else shares.
    pub fn run(&mut self, rgb: &[u8], pitch: usize, rounded: bool, mut emit: impl FnMut(usize, Row<'_>)) {
        let Torch { across, down, sums, line } = self;
        let table = if rounded { &LEVELS } else { &SHARES };
        sums.resize(across.len() * 3, 0.0);
        for (row, taps) in down.iter().enumerate() {
            let (near, far) = (&rgb[taps.near * pitch..][..pitch], &rgb[taps.far * pitch..][..pitch]);
            blend(near, far, *taps, across, table, sums);
            if rounded {
                line.clear();
                line.extend(sums.iter().map(|sum| sum.round_ties_even() as u8));
                emit(row, Row::Levels(line));
            } else {
                emit(row, Row::Shares(sums));
            }
        }
    }
}

/// One target row out of two source rows.
fn blend(near: &[u8], far: &[u8], down: Taps, across: &[Taps], table: &Numbers, sums: &mut [f32]) {
    let (near, far) = (near.as_chunks::<3>().0, far.as_chunks::<3>().0);
    for (taps, pixel) in across.iter().zip(sums.as_chunks_mut::<3>().0) {
        let pixels = [near[taps.near], near[taps.far], far[taps.near], far[taps.far]];
        for (channel, sum) in pixel.iter_mut().enumerate() {
            let [a, b, c, d] = pixels.map(|pixel| table[usize::from(pixel[channel])]);
            let upper = a.mul_add(taps.near_weight, b * taps.far_weight);
            let lower = c.mul_add(taps.near_weight, d * taps.far_weight);
            *sum = upper.mul_add(down.near_weight, lower * down.far_weight);
        }
    }
}

fn taps(taps: &mut Vec<Taps>, Axis { source, resized, from, count, .. }: Axis) {
    let scale = source as f32 / resized as f32;
    taps.clear();
    taps.extend((from..from + count).map(|target| {
        if source == resized {
            return Taps { near: target, far: target, near_weight: 1.0, far_weight: 0.0 };
        }
        let at = scale.mul_add(target as f32 + 0.5, -0.5).max(0.0);
        let near = (at as usize).min(source - 1);
        let far_weight = (at - near as f32).clamp(0.0, 1.0);
        Taps { near, far: (near + 1).min(source - 1), near_weight: 1.0 - far_weight, far_weight }
    }));
}
