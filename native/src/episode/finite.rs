//! Only finite rows are staged and committed. The masks of a graph hide rows by a weight of 0, and 0 times a value that is not finite is
//! NaN. One hidden row would spoil every row that is computed beside it. Rows on a device are checked there (`finite_check.rs`).

use super::layout::Write;
use super::seats::Home;
use super::{Episodes, Pass};
use crate::core::dtype::Dtype;
use crate::core::sync::lock;

/// Values that are checked together.
const STRIDE: usize = 4096;

impl Episodes {
    /// Why the staged rows of an inference must not be kept, None if they may. The error is a sentence: the device cannot tell. The
    /// replica's thread calls it as part of the inference, and may wait for the device. Others may end the inference meanwhile, but no
    /// other thread moves rows.
    pub fn unfit(&self, place: usize, pass: Pass) -> Result<Option<String>, String> {
        self.rows.unfit(place, pass.written)
    }

    /// Notes the staged rows of the slot's inference, which may be kept.
    pub fn stage(&self, slot: usize, pass: Pass) {
        let home = lock(&self.seats).slots[slot].home;
        if let Home::Place(place) = home {
            self.count_written(place, 0);
        }
        lock(&self.seats).slots[slot].staged = Some(Write { from: pass.kept, frames: pass.written });
    }
}

/// Whether all values of the bytes are finite; integers always are.
pub(super) fn is_finite(bytes: &[u8], dtype: Dtype) -> bool {
    match dtype {
        Dtype::F32 => all(bytes, |value: [u8; 4]| u32::from_ne_bytes(value) & 0x7f80_0000 != 0x7f80_0000),
        Dtype::F16 => all(bytes, |value: [u8; 2]| u16::from_ne_bytes(value) & 0x7c00 != 0x7c00),
        Dtype::Bf16 => all(bytes, |value: [u8; 2]| u16::from_ne_bytes(value) & 0x7f80 != 0x7f80),
        Dtype::I32 | Dtype::I64 | Dtype::U8 | Dtype::Bool => true,
    }
}

/// Whether `is` holds for all values. There is no branch for each, so that the compiler checks many at once.
fn all<const N: usize>(bytes: &[u8], is: impl Fn([u8; N]) -> bool) -> bool {
    let (values, rest) = bytes.as_chunks::<N>();
    debug_assert!(rest.is_empty(), "rows are whole values");
    values.chunks(STRIDE).all(|part| part.iter().fold(true, |so_far, value| so_far & is(*value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(values: &[[u8; N]]) -> Vec<u8> {
        values.concat()
    }

    /// One bad value at the begin, at the end and in the middle of more values than one check takes.
    fn finds<const N: usize>(dtype: Dtype, good: [u8; N], bad: [u8; N]) -> bool {
        let len = 2 * STRIDE + 3;
        is_finite(&bytes(&vec![good; len]), dtype)
            && [0, STRIDE, len - 1].into_iter().all(|at| {
                let mut values = vec![good; len];
                values[at] = bad;
                !is_finite(&bytes(&values), dtype)
            })
    }

    #[test]
    fn a_value_that_is_not_finite_is_found_wherever_it_stands() {
        for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            for good in [0.0, -f32::MAX, f32::MIN_POSITIVE / 2.0] {
                assert!(finds(Dtype::F32, good.to_ne_bytes(), bad.to_ne_bytes()), "{good} {bad}");
            }
        }
        // The bad values are infinity, -infinity and two NaNs; the good ones are 0, the largest and the smallest value.
        for (dtype, bad, good) in [
            (Dtype::F16, [0x7c00_u16, 0xfc00, 0x7e00, 0xfc01], [0_u16, 0x7bff, 0x0001]),
            (Dtype::Bf16, [0x7f80, 0xff80, 0x7fc0, 0xff81], [0, 0x7f7f, 0x0001]),
        ] {
            for (bad, good) in bad.into_iter().flat_map(|bad| good.into_iter().map(move |good| (bad, good))) {
                assert!(finds(dtype, good.to_ne_bytes(), bad.to_ne_bytes()), "{dtype:?} {good:x} {bad:x}");
            }
        }
        assert!(is_finite(&[0xff; 16], Dtype::I32) && is_finite(&[], Dtype::F16));
    }
}
