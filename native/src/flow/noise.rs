//! Counter-based noise: the same bundle, seed and step give the same latent on every machine.
//!
//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"), then Box-Muller in
//! 64-bit floats. The key is the bundle's, the counter is `[block, step, seed low, seed high]`.

use std::f64::consts::TAU;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// Philox4x32-10: four random words for a counter under a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [p0, p1] =
            [u64::from(counter[0]) * u64::from(MULTIPLIERS[0]), u64::from(counter[2]) * u64::from(MULTIPLIERS[1])];
        counter =
            [(p1 >> 32) as u32 ^ counter[1] ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ counter[3] ^ key[1], p0 as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The key of a bundle: the first eight bytes of its export id, as two little-endian words.
pub fn key(export_id: &str) -> Option<[u32; 2]> {
    let bytes = u64::from_str_radix(export_id.get(..16)?, 16).ok()?.to_be_bytes();
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Some([word(0), word(4)])
}

/// Fills `latent` with draws of N(0, 1): those of the stream from number `start` on.
pub fn fill(latent: &mut [f32], start: usize, key: [u32; 2], step: u32, seed: u64) {
    let mut at = start;
    let mut rest = latent;
    while !rest.is_empty() {
        let words = philox([(at / 4) as u32, step, seed as u32, (seed >> 32) as u32], key);
        let normal = [pair(words[0], words[1]), pair(words[2], words[3])];
        let draws = &normal.as_flattened()[at % 4..];
        let count = draws.len().min(rest.len());
        let (values, later) = rest.split_at_mut(count);
        for (value, draw) in values.iter_mut().zip(draws) {
            *value = *draw as f32;
        }
        at += count;
        rest = later;
    }
}

/// Box-Muller: two words to two independent draws.
fn pair(first: u32, second: u32) -> [f64; 2] {
    let unit = (f64::from(first) + 1.0) / 4_294_967_296.0;
    let radius = (-2.0 * unit.ln()).sqrt();
    let (sin, cos) = (TAU * (f64::from(second) / 4_294_967_296.0)).sin_cos();
    [radius * cos, radius * sin]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_known_answers_of_random123() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn the_latent_is_standard_normal_and_depends_on_key_seed_and_step() {
        let draw = |key, step, seed| {
            let mut latent = vec![0.0; 100_000];
            fill(&mut latent, 0, key, step, seed);
            latent
        };
        let base = draw([1, 2], 0, 7);
        let mean = base.iter().sum::<f32>() / base.len() as f32;
        let variance = base.iter().map(|x| x * x).sum::<f32>() / base.len() as f32;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "mean {mean}, variance {variance}");
        assert_eq!(base, draw([1, 2], 0, 7));
        for other in [draw([1, 3], 0, 7), draw([1, 2], 1, 7), draw([1, 2], 0, 8), draw([1, 2], 0, 7 + (1 << 40))] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn a_stream_may_be_drawn_in_parts() {
        let mut whole = vec![0.0; 103];
        fill(&mut whole, 0, [1, 2], 3, 4);
        for cut in [0, 1, 4, 50, 102] {
            let mut parts = vec![0.0; 103];
            let (first, second) = parts.split_at_mut(cut);
            fill(first, 0, [1, 2], 3, 4);
            fill(second, cut, [1, 2], 3, 4);
            assert_eq!(parts, whole, "cut at {cut}");
        }
    }

    #[test]
    fn the_key_is_little_endian_words_of_the_export_id() {
        assert_eq!(key("0100000002000000ffff"), Some([1, 2]));
        assert_eq!(key("xyz"), None);
    }
}
