//! Rotations of end effectors: a rotation6d, the first two columns of a rotation matrix.
//!
//! The sums are in f64, with divisions and square roots alone, in the same order as in `native/cuda/rotation.h`: the bits are the same.

type Vector = [f64; 3];

/// Shortest column that still has a direction.
const LENGTH_MIN: f64 = 1e-6;
/// Sine of the smallest angle between two columns that still span a plane.
const SINE_MIN: f64 = 1e-4;

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Makes a rotation6d orthonormal in place by Gram-Schmidt (Zhou et al. 2019, arXiv 1812.07035): b1 = a1 / |a1|, b2 = (a2 − (b1 · a2) b1) /
/// |…|. False, and `six` is unchanged, if the two columns span no plane or a value is not finite.
pub fn settle(six: &mut [f32]) -> bool {
    let column = |at: usize| [0, 1, 2].map(|axis| f64::from(six[at + axis]));
    let (a1, a2) = (column(0), column(3));
    let (len1, len2) = (dot(a1, a1).sqrt(), dot(a2, a2).sqrt());
    // NaN fails this condition too.
    if !(len1 >= LENGTH_MIN && len2 >= LENGTH_MIN && len1 + len2 < f64::INFINITY) {
        return false;
    }
    let b1 = a1.map(|x| x / len1);
    let along = dot(b1, a2);
    let across = [0, 1, 2].map(|axis| a2[axis] - along * b1[axis]);
    let height = dot(across, across).sqrt();
    if height < SINE_MIN * len2 {
        return false;
    }
    for axis in 0..3 {
        six[axis] = b1[axis] as f32;
        six[axis + 3] = (across[axis] / height) as f32;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_is_made_orthonormal_and_one_that_spans_no_plane_is_refused() {
        let mut six = [2.0, 0.0, 0.0, 1.0, 0.5, 0.0];
        assert!(settle(&mut six));
        assert_eq!(six, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        for bad in [[0.0; 6], [1.0, 0.0, 0.0, 2.0, 1e-4, 0.0], [1.0, 0.0, 0.0, 0.0, 1e-7, 0.0]] {
            let mut six = bad;
            assert!(!settle(&mut six), "{bad:?}");
            assert_eq!(six, bad);
        }
    }

    #[test]
    fn what_is_no_number_is_no_rotation() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in 0..6 {
                let mut six = [0.9, 0.1, -0.2, 0.3, 0.8, 0.1];
                six[at] = bad;
                assert!(!settle(&mut six), "{bad} at {at}");
            }
        }
    }
}
