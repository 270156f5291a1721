//! An edge grows: the bilinear filter of OpenCV in fixed point, with the offsets of areas (`HResizeLinear`, `VResizeLinear`).

use super::{Axis, inverse, scale};

/// One as a weight: 11 fractional bits (`INTER_RESIZE_COEF_SCALE`).
const ONE: f32 = 2048.0;

/// The two source pixels of a target pixel, and their weights in fixed point.
#[derive(Clone, Copy)]
struct Taps {
    near: usize,
    far: usize,
    weights: [i32; 2],
}

#[derive(Default)]
pub struct Growth {
    across: Vec<Taps>,
    down: Vec<Taps>,
    /// Two source rows after the horizontal pass, the later one behind.
    rows: [Vec<i32>; 2],
    line: Vec<u8>,
}

impl Growth {
    pub fn prepare(&mut self, across: Axis, down: Axis) {
        taps(&mut self.across, across);
        taps(&mut self.down, down);
        self.rows.iter_mut().for_each(|row| row.resize(across.count * 3, 0));
    }

    pub fn run(&mut self, rgb: &[u8], pitch: usize, mut emit: impl FnMut(usize, &[u8])) {
        let Growth { across, down, rows, line } = self;
        let mut held = [None; 2];
        for (row, taps) in down.iter().enumerate() {
            if held[1] == Some(taps.near) {
                rows.swap(0, 1);
                held.swap(0, 1);
            }
            for (index, source) in [taps.near, taps.far].into_iter().enumerate() {
                if held[index].replace(source) != Some(source) {
                    horizontal(&rgb[source * pitch..][..pitch], across, &mut rows[index]);
                }
            }
            line.clear();
            let part = |weight: i32, sum: i32| (weight * (sum >> 4)) >> 16;
            let level = |(near, far): (&i32, &i32)| {
                ((part(taps.weights[0], *near) + part(taps.weights[1], *far) + 2) >> 2).clamp(0, 255) as u8
            };
            line.extend(rows[0].iter().zip(&rows[1]).map(level));
            emit(row, line);
        }
    }
}

fn horizontal(source: &[u8], across: &[Taps], sums: &mut [i32]) {
    let pixels = source.as_chunks::<3>().0;
    for (taps, sums) in across.iter().zip(sums.as_chunks_mut::<3>().0) {
        let (near, far) = (pixels[taps.near], pixels[taps.far]);
        for (channel, sum) in sums.iter_mut().enumerate() {
            *sum = i32::from(near[channel]) * taps.weights[0] + i32::from(far[channel]) * taps.weights[1];
        }
    }
}

fn taps(taps: &mut Vec<Taps>, axis: Axis) {
    let (scale, inverse, end) = (scale(axis), inverse(axis), axis.source - 1);
    taps.clear();
    taps.extend((axis.from..axis.from + axis.count).map(|target| {
        let near = (target as f64 * scale).floor();
        let offset = ((target + 1) as f64 - (near + 1.0) * inverse) as f32;
        let far_weight = if offset <= 0.0 { 0.0 } else { offset - offset.floor() };
        let near = near as usize;
        let fixed = |weight: f32| (weight * ONE).round_ties_even() as i32;
        Taps { near: near.min(end), far: (near + 1).min(end), weights: [fixed(1.0 - far_weight), fixed(far_weight)] }
    }));
}
