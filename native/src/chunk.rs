//! Model values → robot units: unnormalised, absolute, finite, inside their ranges, and no further from the state and from one
//! another than the bundle allows.

use crate::cuda::chunk as cuda;
use crate::manifest::{COLUMNS_MAX, ColumnStats, Manifest, OutOfRange, Scale};

struct Column {
    name: String,
    relative_to: Option<usize>,
    min: f32,
    max: f32,
    /// The state value that row 0 may differ from by `max_jump` at most.
    jump: Option<(usize, f64)>,
    /// The most between two rows.
    max_step: Option<f64>,
}

/// Turns a model's latent into rows.
pub struct Encoder {
    columns: Vec<Column>,
    /// `rows × columns`: a column may have statistics of its own in each row.
    scales: Vec<Scale>,
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
        let scales = (0..action.rows)
            .flat_map(|row| action.columns.iter().enumerate().map(move |(index, column)| (row, index, column)))
            .map(|(row, index, column)| {
                let scale = stats.action(column.normalisation, index, row, action.rows);
                scale.map_err(|error| format!("action column {}: {error}", column.name))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let columns = (action.columns.iter())
            .map(|column| {
                let (min, max) = (column.min as f32, column.max as f32);
                if min > max {
                    return Err(format!("the range of action column {} is empty", column.name));
                }
                let bad = |limit: &f64| !(limit.is_finite() && *limit > 0.0);
                if column.max_jump.as_ref().is_some_and(bad) || column.max_step.as_ref().is_some_and(bad) {
                    return Err(format!("a limit of action column {} is not above 0", column.name));
                }
                let state = || manifest.state.columns.iter().position(|state| state.name == column.name);
                let jump = match (column.max_jump, column.relative_to.or_else(state)) {
                    (None, _) => None,
                    (Some(limit), Some(state)) => Some((state, limit)),
                    (Some(_), None) => {
                        return Err(format!("action column {} has max_jump, but no state column", column.name));
                    }
                };
                let (name, relative_to, max_step) = (column.name.clone(), column.relative_to, column.max_step);
                Ok(Column { name, relative_to, min, max, jump, max_step })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let clamp = action.out_of_range == OutOfRange::Clamp;
        let rotations = action.rotation6d.clone();
        Ok(Encoder { columns, scales, rows: action.rows, width: action.width, clamp, rotations })
    }

    /// Rows and values per row.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.columns.len())
    }

    /// What it is made of, for a device. The error is a sentence about what the kernel does not know.
    pub fn facts(&self) -> Result<cuda::Facts, String> {
        let place = |index: Option<usize>| index.map_or(-1, |index| index as i32);
        let width = self.columns.len();
        if self.scales.chunks_exact(width).any(|row| row != &self.scales[..width]) {
            return Err("statistics of an action differ from row to row".into());
        }
        let scales = self.scales[..width].iter().map(Scale::unclipped).collect::<Option<Vec<_>>>();
        let scales = scales.ok_or("an action column is clipped")?;
        let columns = (self.columns.iter().zip(scales))
            .map(|(column, (scale, offset))| cuda::Column {
                scale,
                offset,
                jump_max: column.jump.map_or(f64::INFINITY, |(_, limit)| limit),
                step_max: column.max_step.unwrap_or(f64::INFINITY),
                min: column.min,
                max: column.max,
                relative_to: place(column.relative_to),
                jump_from: place(column.jump.map(|(state, _)| state)),
            })
            .collect();
        let rotations = self.rotations.iter().map(|&start| start as u32).collect();
        let (rows, width) = (self.rows as u32, self.width as u32);
        Ok(cuda::Facts { columns, rotations, rows, width, clamp: self.clamp })
    }

    /// Writes `rows × columns` values of `latent` (`rows × width`) to `values`; returns how many were clamped.
    pub fn encode(&self, latent: &[f32], state: &[f32], values: &mut [f32]) -> Result<u32, String> {
        let (clamped, outside) = self.convert(latent, state, values)?;
        match outside {
            Some(text) if !self.clamp => Err(text),
            _ => self.plausible(state, values).map(|()| clamped),
        }
    }

    /// As `encode`, whatever the bundle says of values that are out of range or implausible: they are clamped. For a comparison.
    pub fn rows(&self, latent: &[f32], state: &[f32], values: &mut [f32]) -> Result<(), String> {
        self.convert(latent, state, values).map(|_| ())
    }

    /// Finite values, clamped: how many of them, and on a bundle that refuses such a value the first one, in words.
    fn convert(&self, latent: &[f32], state: &[f32], values: &mut [f32]) -> Result<(u32, Option<String>), String> {
        let (mut clamped, mut outside) = (0, None);
        let count = self.columns.len();
        let scaled = latent.chunks_exact(self.width).zip(self.scales.chunks_exact(count));
        for (row, ((from, scales), to)) in scaled.zip(values.chunks_exact_mut(count)).enumerate() {
            for (((column, scale), &x), value) in self.columns.iter().zip(scales).zip(from).zip(to.iter_mut()) {
                let base = column.relative_to.map_or(0.0, |index| f64::from(state[index]));
                *value = (scale.robot(x) + base) as f32;
                // The model's value as well: a clip would hide an infinite one.
                if !(x.is_finite() && value.is_finite()) {
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
                    if !self.clamp && outside.is_none() {
                        outside = Some(format!(
                            "row {row}, {} is {robot}, outside {} to {}",
                            column.name, column.min, column.max
                        ));
                    }
                    clamped += 1;
                }
            }
        }
        Ok((clamped, outside))
    }

    /// Row 0 against the state that it was computed for, and each row against the one before it.
    fn plausible(&self, state: &[f32], values: &[f32]) -> Result<(), String> {
        let rows = || values.chunks_exact(self.columns.len()).take(self.rows);
        let mut start = [0.0; COLUMNS_MAX];
        for (column, start) in self.columns.iter().zip(&mut start) {
            *start = column.jump.map_or(0.0, |(index, _)| state[index]);
        }
        for &first in &self.rotations {
            // The rows' rotations are orthonormal; the state's need not be. One that spans no plane is refused before a run.
            if self.columns[first..first + 6].iter().all(|column| column.jump.is_some()) {
                orthonormalise(&mut start[first..first + 6]);
            }
        }
        for ((column, &value), from) in self.columns.iter().zip(rows().next().unwrap_or(&[])).zip(start) {
            let jump = (f64::from(value) - f64::from(from)).abs();
            if let Some((_, max_jump)) = column.jump
                && (jump.is_nan() || jump > max_jump)
            {
                return Err(format!(
                    "row 0, {} is {value}, {jump:.3} from the state's {from}, max_jump is {max_jump}",
                    column.name
                ));
            }
        }
        for (index, (from, to)) in rows().zip(rows().skip(1)).enumerate() {
            for ((column, from), to) in self.columns.iter().zip(from).zip(to) {
                let step = (f64::from(*to) - f64::from(*from)).abs();
                if let Some(max_step) = column.max_step
                    && step > max_step
                {
                    return Err(format!(
                        "row {}, {} is {to}, {step:.3} from {from} in the row before, max_step is {max_step}",
                        index + 1,
                        column.name
                    ));
                }
            }
        }
        Ok(())
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

    fn scale(factor: f64, offset: f64) -> Scale {
        Scale::new(factor, offset, (f64::NEG_INFINITY, f64::INFINITY))
    }

    fn encoder(clamp: bool) -> Encoder {
        let column = |name: &str, relative_to| Column {
            name: name.into(),
            relative_to,
            min: -2.0,
            max: 2.0,
            jump: None,
            max_step: None,
        };
        let columns = vec![column("joint", None), column("delta", Some(1))];
        let scales = [scale(0.5, 0.25), scale(1.0, 0.0)].repeat(2);
        Encoder { columns, scales, rows: 2, width: 3, clamp, rotations: Vec::new() }
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
            let mut encoder = encoder(true);
            encoder.columns.truncate(1);
            (encoder.rows, encoder.width, encoder.scales) = (1, 1, vec![scale(10.0, 0.0)]);
            assert_eq!(encoder.encode(&[bad], &[], &mut [0.0]).unwrap_err(), "row 0, joint is not a finite number");
        }
    }

    #[test]
    fn an_infinite_value_is_refused_although_its_clip_would_make_it_finite() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut encoder = encoder(true);
            encoder.scales = vec![Scale::new(1.0, 0.0, (-1.0, 1.0)); 4];
            let refusal = encoder.encode(&[0.0, 0.0, 9.0, 0.0, bad, 9.0], &[0.0, 0.0], &mut [0.0; 4]).unwrap_err();
            assert_eq!(refusal, "row 1, delta is not a finite number");
        }
    }

    #[test]
    fn row_0_may_not_jump_from_the_state_nor_a_row_from_the_one_before() {
        let mut limited = encoder(true);
        limited.columns[0].jump = Some((0, 0.5));
        limited.columns[1].max_step = Some(0.5);
        let run = |latent: &[f32], state: &[f32]| limited.encode(latent, state, &mut [0.0; 4]);
        // 0.5 · 0.5 + 0.25 = 0.5, and 0.5 later.
        let good = [0.5, 0.0, 0.0, 0.5, 0.5, 0.0];
        assert_eq!(run(&good, &[0.0, 0.0]), Ok(0));
        assert_eq!(run(&good, &[1.0, 0.0]), Ok(0));
        for (state, size) in [(1.25, "0.750"), (-0.25, "0.750")] {
            assert_eq!(
                run(&good, &[state, 0.0]).unwrap_err(),
                format!("row 0, joint is 0.5, {size} from the state's {state}, max_jump is 0.5")
            );
        }
        assert_eq!(
            run(&[0.5, 0.0, 0.0, 0.5, -0.75, 0.0], &[0.5, 0.0]).unwrap_err(),
            "row 1, delta is -0.75, 0.750 from 0 in the row before, max_step is 0.5"
        );
        // What is clamped is judged as it would be sent.
        assert_eq!(run(&[100.0, 0.0, 0.0, 100.0, 0.0, 0.0], &[1.75, 0.0]), Ok(2));
        assert!(run(&[0.5, 0.0, 0.0, 0.5, 0.0, 0.0], &[f32::NAN, 0.0]).is_err());
    }

    #[test]
    fn a_rotation_is_compared_with_the_states_as_directions() {
        let column = |index: usize| Column {
            name: format!("r{index}"),
            relative_to: None,
            min: -1.0,
            max: 1.0,
            jump: Some((index, 0.01)),
            max_step: None,
        };
        let columns = (0..6).map(column).collect();
        let scales = vec![scale(1.0, 0.0); 6];
        let encoder = Encoder { columns, scales, rows: 1, width: 6, clamp: true, rotations: vec![0] };
        let latent = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!(encoder.encode(&latent, &[3.0, 0.0, 0.0, 1.0, 0.5, 0.0], &mut [0.0; 6]), Ok(0));
        assert!(encoder.encode(&latent, &[0.0, 3.0, 0.0, 0.5, 0.0, 0.0], &mut [0.0; 6]).is_err());
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
