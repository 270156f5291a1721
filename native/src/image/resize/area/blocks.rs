//! Both edges shrink by whole numbers: the mean of a block (`ResizeAreaFast_Invoker`).

use super::Axis;

#[derive(Default)]
pub struct Blocks {
    /// Pixels of a block: columns, rows.
    size: (usize, usize),
    /// The first target pixel of the row, and the first target row.
    from: (usize, usize),
    rows: usize,
    sums: Vec<i32>,
    line: Vec<u8>,
}

impl Blocks {
    pub fn prepare(&mut self, (across, wide): (Axis, usize), (down, high): (Axis, usize)) {
        self.size = (wide, high);
        self.from = (across.from, down.from);
        self.rows = down.count;
        self.sums.resize(across.count * 3, 0);
    }

    pub fn run(&mut self, rgb: &[u8], pitch: usize, mut emit: impl FnMut(usize, &[u8])) {
        let Blocks { size: (wide, high), from, rows, ref mut sums, ref mut line } = *self;
        let pixels = wide * high;
        let share = 1.0 / pixels as f32;
        for row in 0..rows {
            sums.fill(0);
            for y in 0..high {
                let source = &rgb[((from.1 + row) * high + y) * pitch..][..pitch];
                let blocks = source[from.0 * wide * 3..].chunks_exact(wide * 3);
                for (sums, block) in sums.as_chunks_mut::<3>().0.iter_mut().zip(blocks) {
                    for pixel in block.as_chunks::<3>().0 {
                        sums.iter_mut().zip(pixel).for_each(|(sum, &level)| *sum += i32::from(level));
                    }
                }
            }
            line.clear();
            // Two by two are rounded half up, all others half to even.
            let level = |&sum: &i32| match (wide, high) {
                (2, 2) => ((sum + 2) >> 2) as u8,
                _ => (sum as f32 * share).round_ties_even() as u8,
            };
            line.extend(sums.iter().map(level));
            emit(row, line);
        }
    }
}
