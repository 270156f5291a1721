//! Both edges shrink: the mean of a cell, with parts of the pixels at its borders (`computeResizeAreaTab`, `ResizeArea_Invoker`).

use super::{Axis, scale};

/// One source pixel of a cell, and its share of the mean.
struct Piece {
    target: usize,
    source: usize,
    share: f32,
}

#[derive(Default)]
pub struct Cells {
    across: Vec<Piece>,
    down: Vec<Piece>,
    rows: usize,
    /// A source row, each cell of it summed up.
    buffer: Vec<f32>,
    sums: Vec<f32>,
    line: Vec<u8>,
}

impl Cells {
    pub fn prepare(&mut self, across: Axis, down: Axis) {
        pieces(&mut self.across, across);
        pieces(&mut self.down, down);
        self.rows = down.count;
        self.buffer.resize(across.count * 3, 0.0);
        self.sums.resize(across.count * 3, 0.0);
    }

    pub fn run(&mut self, rgb: &[u8], pitch: usize, mut emit: impl FnMut(usize, &[u8])) {
        let Cells { across, down, rows, buffer, sums, line } = self;
        let mut buffered = None;
        for (row, pieces) in down.chunk_by(|one, next| one.target == next.target).enumerate().take(*rows) {
            for (index, piece) in pieces.iter().enumerate() {
                if buffered.replace(piece.source) != Some(piece.source) {
                    summed(&rgb[piece.source * pitch..][..pitch], across, buffer);
                }
                let products = buffer.iter().map(|value| value * piece.share);
                match index {
                    0 => sums.iter_mut().zip(products).for_each(|(sum, product)| *sum = product),
                    _ => sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product),
                }
            }
            line.clear();
            line.extend(sums.iter().map(|sum| sum.round_ties_even() as u8));
            emit(row, line);
        }
    }
}

fn summed(source: &[u8], across: &[Piece], buffer: &mut [f32]) {
    buffer.fill(0.0);
    let (pixels, sums) = (source.as_chunks::<3>().0, buffer.as_chunks_mut::<3>().0);
    for piece in across {
        let levels = pixels[piece.source];
        sums[piece.target].iter_mut().zip(levels).for_each(|(sum, level)| *sum += f32::from(level) * piece.share);
    }
}

/// A border that takes less of a pixel than this is left out.
const PART_MIN: f64 = 1e-3;

fn pieces(pieces: &mut Vec<Piece>, axis: Axis) {
    let scale = scale(axis);
    pieces.clear();
    for target in 0..axis.count {
        let begin = (axis.from + target) as f64 * scale;
        let end = begin + scale;
        let width = scale.min(axis.source as f64 - begin);
        let last = (end.floor() as usize).min(axis.source - 1);
        let first = (begin.ceil() as usize).min(last);
        let mut piece = |source, share| pieces.push(Piece { target, source, share });
        if first as f64 - begin > PART_MIN {
            piece(first - 1, ((first as f64 - begin) / width) as f32);
        }
        for source in first..last {
            piece(source, (1.0 / width) as f32);
        }
        if end - last as f64 > PART_MIN {
            piece(last, ((end - last as f64).min(1.0).min(width) / width) as f32);
        }
    }
}
