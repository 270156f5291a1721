//! Rotations of end effectors: on the wire a rotation6d, the first two columns of a rotation matrix; inside a policy that or another form.
//!
//! In f64, with divisions and square roots alone, and in the order that `native/cuda/rotation.h` has too: the bits are the same.

use serde::Deserialize;

/// How a policy has a rotation that the wire has as a rotation6d.
#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum Form {
    /// As the wire.
    #[serde(skip)]
    Columns = 0,
    /// The first two rows of the matrix (PyTorch3D's `matrix_to_rotation_6d`, UMI's `mat_to_rot6d`).
    Rotation6dRows = 1,
    /// The scalar first (PyTorch3D, MuJoCo).
    QuaternionWxyz = 2,
    /// The scalar last (SciPy, ROS).
    QuaternionXyzw = 3,
}

type Vector = [f64; 3];

/// The three columns of a rotation matrix.
pub type Matrix = [Vector; 3];

/// Shortest column of a rotation6d, and shortest quaternion, that still has a direction.
const LENGTH_MIN: f64 = 1e-6;
/// Sine of the smallest angle between two columns that still span a plane.
const SINE_MIN: f64 = 1e-4;

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Gram-Schmidt (Zhou et al. 2019, arXiv 1812.07035): b1 = a1 / |a1|, b2 = (a2 − (b1 · a2) b1) / |…|, b3 = b1 × b2. None when the two
/// span no plane, and when a value is no finite number.
pub fn matrix(six: &[f32]) -> Option<Matrix> {
    let column = |at: usize| [0, 1, 2].map(|axis| f64::from(six[at + axis]));
    let (a1, a2) = (column(0), column(3));
    let (len1, len2) = (dot(a1, a1).sqrt(), dot(a2, a2).sqrt());
    // Written so that what is no number fails.
    if !(len1 >= LENGTH_MIN && len2 >= LENGTH_MIN && len1 + len2 < f64::INFINITY) {
        return None;
    }
    let b1 = a1.map(|x| x / len1);
    let along = dot(b1, a2);
    let across = [0, 1, 2].map(|axis| a2[axis] - along * b1[axis]);
    let height = dot(across, across).sqrt();
    if height < SINE_MIN * len2 {
        return None;
    }
    let b2 = across.map(|x| x / height);
    let b3 = [b1[1] * b2[2] - b1[2] * b2[1], b1[2] * b2[0] - b1[0] * b2[2], b1[0] * b2[1] - b1[1] * b2[0]];
    Some([b1, b2, b3])
}

/// Rounds the first two columns to a rotation6d.
fn write(columns: [Vector; 2], six: &mut [f32]) {
    for axis in 0..3 {
        six[axis] = columns[0][axis] as f32;
        six[axis + 3] = columns[1][axis] as f32;
    }
}

/// The first two columns of the matrix of a quaternion w, x, y, z of any length, which both of its signs give. None when it has no
/// direction, and when a value is no finite number.
fn of_quaternion([w, x, y, z]: [f64; 4]) -> Option<[Vector; 2]> {
    let square = w * w + x * x + y * y + z * z;
    if !(LENGTH_MIN * LENGTH_MIN..f64::INFINITY).contains(&square) {
        return None;
    }
    let s = 2.0 / square;
    let first = [1.0 - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)];
    let second = [s * (x * y - w * z), 1.0 - s * (x * x + z * z), s * (y * z + w * x)];
    Some([first, second])
}

/// The quaternion w, x, y, z of length 1 of a matrix, of either sign (Shepperd 1978: by the largest of the four).
fn quaternion([[m00, m10, m20], [m01, m11, m21], [m02, m12, m22]]: Matrix) -> [f64; 4] {
    let (wx, wy, wz) = (m21 - m12, m02 - m20, m10 - m01);
    let (xy, xz, yz) = (m10 + m01, m20 + m02, m21 + m12);
    // Four times the square of each.
    let squares = [1.0 + m00 + m11 + m22, 1.0 + m00 - m11 - m22, 1.0 - m00 + m11 - m22, 1.0 - m00 - m11 + m22];
    let mut largest = 0;
    for at in 1..4 {
        if squares[at] > squares[largest] {
            largest = at;
        }
    }
    let twice = squares[largest].sqrt();
    let part = |product: f64| product / (2.0 * twice);
    match largest {
        0 => [twice / 2.0, part(wx), part(wy), part(wz)],
        1 => [part(wx), twice / 2.0, part(xy), part(xz)],
        2 => [part(wy), part(xy), twice / 2.0, part(yz)],
        _ => [part(wz), part(xz), part(yz), twice / 2.0],
    }
}

impl Form {
    /// Numbers of a rotation in this form.
    pub fn values(self) -> usize {
        if self == Form::QuaternionWxyz || self == Form::QuaternionXyzw { 4 } else { 6 }
    }

    /// The policy's rotation, at the beginning of `six`, to an orthonormal rotation6d in its place. False when it is no rotation; `six` is
    /// then as it was.
    pub fn settle(self, six: &mut [f32]) -> bool {
        let four = |at: [usize; 4]| of_quaternion(at.map(|at| f64::from(six[at])));
        let columns = match self {
            Form::Columns => matrix(six).map(|[b1, b2, _]| [b1, b2]),
            Form::Rotation6dRows => matrix(six).map(|[r1, r2, r3]| [[r1[0], r2[0], r3[0]], [r1[1], r2[1], r3[1]]]),
            Form::QuaternionWxyz => four([0, 1, 2, 3]),
            Form::QuaternionXyzw => four([3, 0, 1, 2]),
        };
        columns.is_some_and(|columns| {
            write(columns, six);
            true
        })
    }

    /// A rotation6d of the wire as the policy has it: `values()` numbers, then zeros. A quaternion has length 1 and of its two signs the one
    /// nearer to `near`, which is in the policy's order. None when it is no rotation.
    pub fn read(self, six: &[f32], near: [f64; 4]) -> Option<[f32; 6]> {
        let columns = matrix(six)?;
        let [b1, b2, _] = columns;
        let mut read = [0.0; 6];
        let ordered = match self {
            Form::Columns => {
                write([b1, b2], &mut read);
                return Some(read);
            }
            Form::Rotation6dRows => {
                write([0, 1].map(|row| [0, 1, 2].map(|at: usize| columns[at][row])), &mut read);
                return Some(read);
            }
            Form::QuaternionWxyz => quaternion(columns),
            Form::QuaternionXyzw => {
                let [w, x, y, z] = quaternion(columns);
                [x, y, z, w]
            }
        };
        let towards: f64 = ordered.iter().zip(near).map(|(one, other)| one * other).sum();
        // At a right angle to `near` the first number that is not zero decides.
        let first = ordered.iter().copied().find(|&value| value != 0.0).unwrap_or(1.0);
        let negative = if towards == 0.0 { first < 0.0 } else { towards < 0.0 };
        for (to, value) in read.iter_mut().zip(ordered) {
            *to = (if negative { -value } else { value }) as f32;
        }
        Some(read)
    }

    /// What a quaternion is near to where a bundle does not say: the scalar is not negative.
    pub fn usual_near(self) -> [f64; 4] {
        if self == Form::QuaternionXyzw { [0.0, 0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0, 0.0] }
    }
}

/// A pose that is relative to `at`, turned by `turn`, to an absolute one, in place: p ← at + R p, R' ← R R'. `position` has three values,
/// `rotation` six. False when a value of it is no finite number.
pub fn compose(turn: Matrix, at: [f32; 3], position: &mut [f32], rotation: &mut [f32]) -> bool {
    let turned = |vector: &[f32]| -> Vector {
        let [x, y, z] = [0, 1, 2].map(|at| f64::from(vector[at]));
        [0, 1, 2].map(|axis| turn[0][axis] * x + turn[1][axis] * y + turn[2][axis] * z)
    };
    let moved = turned(position);
    for axis in 0..3 {
        position[axis] = (moved[axis] + f64::from(at[axis])) as f32;
    }
    let columns = [turned(&rotation[..3]), turned(&rotation[3..])];
    write(columns, rotation);
    position.iter().chain(&*rotation).all(|value| value.is_finite())
}

/// A turn that makes no pose: of a state that is no rotation.
pub const NO_TURN: Matrix = [[f64::NAN; 3]; 3];

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form; 4] = [Form::Columns, Form::Rotation6dRows, Form::QuaternionWxyz, Form::QuaternionXyzw];

    #[test]
    fn a_rotation_is_made_orthonormal_and_one_that_spans_no_plane_is_refused() {
        let mut six = [2.0, 0.0, 0.0, 1.0, 0.5, 0.0];
        assert!(Form::Columns.settle(&mut six));
        assert_eq!(six, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        for form in [Form::Columns, Form::Rotation6dRows] {
            for bad in [[0.0; 6], [1.0, 0.0, 0.0, 2.0, 1e-4, 0.0], [1.0, 0.0, 0.0, 0.0, 1e-7, 0.0]] {
                let mut six = bad;
                assert!(!form.settle(&mut six), "{bad:?}");
                assert_eq!(six, bad);
            }
        }
    }

    #[test]
    fn a_quaternion_without_length_is_refused_and_any_other_length_is_one_rotation() {
        for form in [Form::QuaternionWxyz, Form::QuaternionXyzw] {
            for bad in [[0.0; 4], [1e-7, 0.0, 0.0, 0.0]] {
                assert!(!form.settle(&mut [bad[0], bad[1], bad[2], bad[3], 0.0, 0.0]));
            }
            let settled = |scale: f32| {
                let mut six = [0.5, -0.5, 0.5, 0.5, 9.0, 9.0].map(|value| value * scale);
                assert!(form.settle(&mut six));
                six
            };
            assert_eq!(settled(1.0), settled(-1.0), "both signs are one rotation, to the bit");
            assert_eq!(settled(1.0), settled(2.0_f32.powi(60)));
        }
    }

    #[test]
    fn what_is_no_number_is_no_rotation() {
        for form in FORMS {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                for at in 0..form.values() {
                    let mut six = [0.9, 0.1, -0.2, 0.3, 0.8, 0.1];
                    six[at] = bad;
                    assert!(!form.settle(&mut six), "{form:?}, {bad} at {at}");
                    assert_eq!(form.read(&six, form.usual_near()).is_some(), at >= 6);
                }
            }
        }
    }

    #[test]
    fn a_quaternion_of_the_state_has_the_sign_that_is_nearer() {
        // Half a turn about x, a little less and a little more: w is near 0 and its sign changes.
        let turned = |angle: f64| [1.0, 0.0, 0.0, 0.0, angle.cos() as f32, angle.sin() as f32];
        let (less, more) = (turned(std::f64::consts::PI - 0.01), turned(std::f64::consts::PI + 0.01));
        let read = |six: &[f32], near| Form::QuaternionWxyz.read(six, near).expect("a rotation");
        let usual = Form::QuaternionWxyz.usual_near();
        assert!(read(&less, usual)[1] > 0.99 && read(&more, usual)[1] < -0.99, "w stays positive, x jumps");
        let near = [0.0, 1.0, 0.0, 0.0];
        let (one, other) = (read(&less, near), read(&more, near));
        assert!((0..4).all(|at| (one[at] - other[at]).abs() < 0.011), "{one:?} {other:?}");
    }

    #[test]
    fn forms_read_back_what_they_settle() {
        for form in FORMS {
            for six in
                [[0.6, 0.8, 0.0, -0.8, 0.6, 0.0], [-1.0, 0.0, 0.0, 0.0, -1.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]]
            {
                let mut back = form.read(&six, form.usual_near()).expect("a rotation");
                assert!(form.settle(&mut back));
                assert!(
                    back.iter().zip(six).all(|(one, other)| (one - other).abs() < 1e-6),
                    "{form:?}: {back:?}, {six:?}"
                );
            }
        }
    }

    #[test]
    fn a_pose_beyond_all_numbers_is_told() {
        let turn = matrix(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]).expect("a rotation");
        let mut rotation = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert!(compose(turn, [1.0, 2.0, 3.0], &mut [1.0; 3], &mut rotation));
        assert!(!compose(turn, [f32::MAX; 3], &mut [f32::MAX; 3], &mut rotation));
        assert!(!compose(NO_TURN, [0.0; 3], &mut [0.0; 3], &mut rotation));
    }
}
