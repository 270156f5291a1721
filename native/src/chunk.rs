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

/// How a model's latent becomes rows.
pub struct Encoder {
    columns: Vec<Column>,
    rows: usize,
    width: usize,
    clamp: bool,
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
        Ok(Encoder { columns, rows: action.rows, width: action.width, clamp })
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
            for (column, (&x, value)) in self.columns.iter().zip(from.iter().zip(to)) {
                let base = column.relative_to.map_or(0.0, |index| f64::from(state[index]));
                let robot = (f64::from(x) * column.scale + column.offset + base) as f32;
                if !robot.is_finite() {
                    return Err(format!("row {row}, {} is not a finite number", column.name));
                }
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
        Encoder { columns, rows: 2, width: 3, clamp }
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
            let encoder = Encoder { columns: vec![column], rows: 1, width: 1, clamp: true };
            assert_eq!(encoder.encode(&[bad], &[], &mut [0.0]).unwrap_err(), "row 0, x is not a finite number");
        }
    }
}
