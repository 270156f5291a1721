//! Model values → robot units: unnormalised, absolute, finite, inside their ranges.

use crate::manifest::{ColumnStats, Manifest, OutOfRange};

struct Column {
    name: String,
    scale: f64,
    offset: f64,
    relative_to: Option<usize>,
    min: f32,
    max: f32,
}

/// Turns a model's latent into rows.
pub struct Encoder {
    columns: Vec<Column>,
    rows: usize,
    width: usize,
    clamp: bool,
    /// First columns of rotations: six columns each, the first two columns of a rotation matrix.
    rotations: Vec<usize>,
}

impl Encoder {
    /// From the manifest and its statistics; the error is a sentence.
    pub fn new(manifest: &Manifest, stats: &ColumnStats) -> Result<Encoder, String> {
        let action = &manifest.action;
        let columns = (action.columns.iter().enumerate())
            .map(|(index, column)| {
                let (scale, offset) = stats
                    .affine(column.norm, index)
                    .ok_or_else(|| format!("norm.json lacks statistics for action column {}", column.name))?;
                let (min, max) = (column.min as f32, column.max as f32);
                if min > max {
                    return Err(format!("the range of action column {} is empty", column.name));
                }
                Ok(Column { name: column.name.clone(), scale, offset, relative_to: column.relative_to, min, max })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let clamp = action.out_of_range == OutOfRange::Clamp;
        let rotations = action.rotation6d.clone();
        Ok(Encoder { columns, rows: action.rows, width: action.width, clamp, rotations })
    }

    /// Rows and values per row.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.columns.len())
    }

    /// Writes `rows × columns` values of `latent` (`rows × width`) to `values`; returns how many were clamped.
    pub fn encode(&self, latent: &[f32], state: &[f32], values: &mut [f32]) -> Result<u32, String> {
        let mut clamped = 0;
        for (row, (from, to)) in
            latent.chunks_exact(self.width).zip(values.chunks_exact_mut(self.columns.len())).take(self.rows).enumerate()
        {
            for (column, (&x, value)) in self.columns.iter().zip(from.iter().zip(to.iter_mut())) {
                let base = column.relative_to.map_or(0.0, |index| f64::from(state[index]));
                *value = (f64::from(x) * column.scale + column.offset + base) as f32;
                if !value.is_finite() {
                    return Err(format!("row {row}, {} is not a finite number", column.name));
                }
            }
            for &start in &self.rotations {
                if !orthonormalise(&mut to[start..start + 6]) {
                    return Err(format!("row {row}, {} begins no rotation", self.columns[start].name));
                }
            }
            for (column, value) in self.columns.iter().zip(to) {
                let robot = *value;
                *value = robot.clamp(column.min, column.max);
                if *value != robot {
                    if !self.clamp {
                        return Err(format!(
                            "row {row}, {} is {robot}, outside {} to {}",
                            column.name, column.min, column.max
                        ));
                    }
                    clamped += 1;
                }
            }
        }
        Ok(clamped)
    }
}

/// Shortest column of a rotation6d that still has a direction.
const COLUMN_LENGTH_MIN: f64 = 1e-6;
/// Sine of the smallest angle between two columns that still span a plane.
const COLUMN_SINE_MIN: f64 = 1e-4;

/// Gram-Schmidt on a rotation6d, the first two columns of a rotation matrix (Zhou et al. 2019, arXiv 1812.07035):
/// b1 = a1 / |a1|, b2 = (a2 − (b1 · a2) b1) / |…|. False when the columns span no plane.
fn orthonormalise(six: &mut [f32]) -> bool {
    let column = |at: usize| [0, 1, 2].map(|axis| f64::from(six[at + axis]));
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let (a1, a2) = (column(0), column(3));
    let (len1, len2) = (dot(a1, a1).sqrt(), dot(a2, a2).sqrt());
    if len1 < COLUMN_LENGTH_MIN || len2 < COLUMN_LENGTH_MIN {
        return false;
    }
    let b1 = a1.map(|x| x / len1);
    let along = dot(b1, a2);
    let across = [0, 1, 2].map(|axis| a2[axis] - along * b1[axis]);
    let height = dot(across, across).sqrt();
    if height < COLUMN_SINE_MIN * len2 {
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

    fn encoder(clamp: bool) -> Encoder {
        let column = |name: &str, scale, offset, relative_to| Column {
            name: name.into(),
            scale,
            offset,
            relative_to,
            min: -2.0,
            max: 2.0,
        };
        let columns = vec![column("joint", 0.5, 0.25, None), column("delta", 1.0, 0.0, Some(1))];
        Encoder { columns, rows: 2, width: 3, clamp, rotations: Vec::new() }
    }

    #[test]
    fn values_are_unnormalised_made_absolute_and_their_padding_cut() {
        let mut values = [0.0; 4];
        let clamped = encoder(true).encode(&[1.0, 0.5, 9.0, -1.0, 0.0, 9.0], &[7.0, 0.125], &mut values);
        assert_eq!((clamped, values), (Ok(0), [0.75, 0.625, -0.25, 0.125]));
    }

    #[test]
    fn a_value_out_of_its_range_is_clamped_and_counted_or_refused() {
        let latent = [100.0, 0.0, 0.0, -100.0, 0.0, 0.0];
        let mut values = [0.0; 4];
        assert_eq!(encoder(true).encode(&latent, &[0.0, 0.0], &mut values), Ok(2));
        assert_eq!(values, [2.0, 0.0, -2.0, 0.0]);
        let refusal = encoder(false).encode(&latent, &[0.0, 0.0], &mut values).unwrap_err();
        assert_eq!(refusal, "row 0, joint is 50.25, outside -2 to 2");
    }

    #[test]
    fn a_non_finite_value_is_never_clamped() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let column = Column { name: "x".into(), scale: 10.0, offset: 0.0, relative_to: None, min: -1.0, max: 1.0 };
            let encoder = Encoder { columns: vec![column], rows: 1, width: 1, clamp: true, rotations: Vec::new() };
            assert_eq!(encoder.encode(&[bad], &[], &mut [0.0]).unwrap_err(), "row 0, x is not a finite number");
        }
    }

    #[test]
    fn a_rotation_is_made_orthonormal_and_one_that_spans_no_plane_is_refused() {
        let mut six = [2.0, 0.0, 0.0, 1.0, 0.5, 0.0];
        assert!(orthonormalise(&mut six));
        assert_eq!(six, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        for mut bad in [[0.0; 6], [1.0, 0.0, 0.0, 2.0, 1e-4, 0.0], [1.0, 0.0, 0.0, 0.0, 1e-7, 0.0]] {
            assert!(!orthonormalise(&mut bad), "{bad:?}");
        }
    }
}
