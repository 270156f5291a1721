//! f16 and bf16 by the book: all values of the type in a row, and the nearest one looked up. Not the way in which kernels do it.

use std::sync::LazyLock;
use tendon::gpu::Number;

/// The finite values from 0 up, by their bits.
fn values(number: Number) -> &'static [f64] {
    static F16: LazyLock<Vec<f64>> = LazyLock::new(|| (0..0x7C00).map(|bits| positive(bits, 10, 15)).collect());
    static BF16: LazyLock<Vec<f64>> = LazyLock::new(|| (0..0x7F80).map(|bits| positive(bits, 7, 127)).collect());
    match number {
        Number::F16 => &F16,
        Number::Bf16 => &BF16,
        Number::F32 => panic!("f32 is no half"),
    }
}

fn positive(bits: u32, fraction_bits: i32, bias: i32) -> f64 {
    let one = 1 << fraction_bits;
    let (exponent, fraction) = ((bits >> fraction_bits) as i32, f64::from(bits & (one - 1)) / f64::from(one));
    if exponent == 0 { fraction * 2_f64.powi(1 - bias) } else { (1.0 + fraction) * 2_f64.powi(exponent - bias) }
}

/// The value of 16 bits; infinite and no number as they are.
pub fn widen(number: Number, bits: u16) -> f32 {
    let (size, sign) = (usize::from(bits & 0x7FFF), if bits & 0x8000 == 0 { 1.0 } else { -1.0 });
    let all = values(number);
    match size.checked_sub(all.len()) {
        None => sign * all[size] as f32,
        Some(0) => sign * f32::INFINITY,
        Some(_) => f32::NAN,
    }
}

/// The bits of the nearest value, of two the even one. A value that is no number has many bits: None.
pub fn round(number: Number, value: f32) -> Option<u16> {
    if value.is_nan() {
        return None;
    }
    let (all, size) = (values(number), f64::from(value.abs()));
    let above = all.partition_point(|&one| one < size);
    // One behind the last is infinity, as far away as the next value would be.
    let at = |index: usize| all.get(index).copied().unwrap_or(2.0 * all[all.len() - 1] - all[all.len() - 2]);
    let nearest = match above {
        0 => 0,
        above => {
            let (down, up) = (size - at(above - 1), at(above) - size);
            let even = if above % 2 == 0 { above } else { above - 1 };
            if down < up {
                above - 1
            } else if up < down {
                above
            } else {
                even
            }
        }
    };
    Some(nearest as u16 | if value.is_sign_negative() { 0x8000 } else { 0 })
}

/// Values as a tensor of that type holds them, and what it then holds.
pub fn tensor(number: Number, values: &[f32]) -> (Vec<u8>, Vec<f32>) {
    if number == Number::F32 {
        return (values.iter().flat_map(|value| value.to_le_bytes()).collect(), values.to_vec());
    }
    let bits: Vec<u16> = values.iter().map(|&value| round(number, value).unwrap_or(0x7FFF)).collect();
    (bits.iter().flat_map(|bits| bits.to_le_bytes()).collect(), bits.iter().map(|&bits| widen(number, bits)).collect())
}

/// Asserts that a tensor holds `expected`, rounded once.
pub fn assert_holds(number: Number, bytes: &[u8], expected: &[f32], what: &str) {
    assert_eq!(bytes.len(), expected.len() * number.bytes(), "{what}");
    for (at, (bytes, &value)) in bytes.chunks_exact(number.bytes()).zip(expected).enumerate() {
        let (held, bits) = match bytes {
            [a, b] => {
                let bits = u16::from_le_bytes([*a, *b]);
                (widen(number, bits), round(number, value).map_or(0, u32::from) == u32::from(bits))
            }
            [a, b, c, d] => {
                let bits = u32::from_le_bytes([*a, *b, *c, *d]);
                (f32::from_bits(bits), bits == value.to_bits())
            }
            _ => unreachable!("two bytes or four"),
        };
        assert!(bits || (value.is_nan() && held.is_nan()), "{what}: value {at} is {held:e}, expected {value:e}");
    }
}
