//! Model values → robot units: unnormalised, absolute, with orthonormal rotations, finite, and inside their ranges. A row may be no further
//! from the state or from the row before than the bundle allows.

mod prefix;

use crate::bundle::manifest::{COLUMNS_MAX, ColumnStats, Manifest, OutOfRange, Scale};
use crate::core::rotation::settle;
use crate::gpu::chunk as cuda;

struct Column {
    name: String,
    relative_to: Option<usize>,
    min: f32,
    max: f32,
    /// The state value that row 0 is compared with, and the largest difference.
    jump: Option<(usize, f64)>,
    max_step: Option<f64>,
}

/// Turns a model's latent into rows.
pub struct Encoder {
    columns: Vec<Column>,
    /// The scales, `rows × columns`: a column may have other statistics in each row.
    scales: Vec<Scale>,
    rows: usize,
    width: usize,
    /// Rows that a chunk may continue.
    prefix_rows: usize,
    clamp: bool,
    /// First columns of rotations, six each.
    rotations: Vec<usize>,
}

impl Encoder {
    /// Makes the encoder of a manifest and its statistics; the error is a sentence.
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
        let (rows, width, prefix_rows) = (action.rows, action.width, action.prefix);
        Ok(Encoder { columns, scales, rows, width, prefix_rows, clamp, rotations })
    }

    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.columns.len())
    }

    pub fn facts(&self) -> cuda::Facts {
        let place = |index: Option<usize>| index.map_or(-1, |index| index as i32);
        let count = self.columns.len();
        let alike = self.scales.chunks_exact(count).all(|row| row == &self.scales[..count]);
        let scales = if alike { &self.scales[..count] } else { &self.scales };
        let columns = (self.columns.iter())
            .map(|column| cuda::Column {
                jump_max: column.jump.map_or(f64::INFINITY, |(_, limit)| limit),
                step_max: column.max_step.unwrap_or(f64::INFINITY),
                min: column.min,
                max: column.max,
                relative_to: place(column.relative_to),
                jump_from: place(column.jump.map(|(state, _)| state)),
            })
            .collect();
        cuda::Facts {
            scales: scales.iter().map(cuda::Scale::from).collect(),
            columns,
            rotations: self.rotations.iter().map(|&start| start as u32).collect(),
            rows: self.rows as u32,
            width: self.width as u32,
            prefix_rows: self.prefix_rows as u32,
            clamp: self.clamp,
        }
    }

    /// Writes the `rows × columns` values of `latent` (`rows × width`) to `values`; returns how many were clamped. The rows of `prefix`,
    /// which the chunk continues, stand at its begin unchanged, and only the others are checked.
    pub fn encode(&self, prefix: &[f32], latent: &[f32], state: &[f32], values: &mut [f32]) -> Result<u32, String> {
        let (clamped, outside) = self.convert(prefix, latent, state, values)?;
        match outside {
            Some(text) if !self.clamp => Err(text),
            _ => self.plausible(prefix, state, values).map(|()| clamped),
        }
    }

    /// Encodes without refusals: values that are out of range or implausible are clamped. It serves a comparison.
    pub fn rows(&self, latent: &[f32], state: &[f32], values: &mut [f32]) -> Result<(), String> {
        self.convert(&[], latent, state, values).map(|_| ())
    }

    /// Encodes without ranges and rotations, which a publisher's rows know nothing about. A row that is not finite becomes NaN.
    pub fn plain_rows(&self, latent: &[f32], state: &[f32], values: &mut [f32]) {
        let count = self.columns.len();
        let scaled = latent.chunks_exact(self.width).zip(self.scales.chunks_exact(count));
        for ((from, scales), to) in scaled.zip(values.chunks_exact_mut(count)) {
            if self.numbers(from, scales, state, to).is_err() {
                to.fill(f32::NAN);
            }
        }
    }

    /// Makes finite, clamped values: how many were clamped, and for a bundle that refuses such values a sentence about the first one.
    fn convert(
        &self,
        prefix: &[f32],
        latent: &[f32],
        state: &[f32],
        values: &mut [f32],
    ) -> Result<(u32, Option<String>), String> {
        let (mut clamped, mut outside) = (0, None);
        let count = self.columns.len();
        values[..prefix.len()].copy_from_slice(prefix);
        let scaled = latent.chunks_exact(self.width).zip(self.scales.chunks_exact(count));
        let rows = scaled.zip(values.chunks_exact_mut(count));
        for (row, ((from, scales), to)) in rows.enumerate().skip(prefix.len() / count) {
            self.numbers(from, scales, state, to)
                .map_err(|column| format!("row {row}, {} is not a finite number", column.name))?;
            for &start in &self.rotations {
                if !settle(&mut to[start..start + 6]) {
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

    /// Writes the numbers of one row, unnormalised and absolute, with the model's rotations. The error is the column without a number.
    fn numbers<'a>(&'a self, from: &[f32], scales: &[Scale], state: &[f32], to: &mut [f32]) -> Result<(), &'a Column> {
        for (((column, scale), value), &x) in self.columns.iter().zip(scales).zip(to).zip(from) {
            let base = column.relative_to.map_or(0.0, |index| f64::from(state[index]));
            *value = (scale.robot(x) + base) as f32;
            // The model's value is checked too: a clip would hide an infinite one.
            if !(x.is_finite() && value.is_finite()) {
                return Err(column);
            }
        }
        Ok(())
    }

    /// Compares row 0 with the state, and each row with the one before. The first row behind a prefix is compared with the prefix alone.
    fn plausible(&self, prefix: &[f32], state: &[f32], values: &[f32]) -> Result<(), String> {
        let rows = || values.chunks_exact(self.columns.len()).take(self.rows);
        let continued = prefix.len() / self.columns.len();
        let mut start = [0.0; COLUMNS_MAX];
        for (column, start) in self.columns.iter().zip(&mut start) {
            *start = column.jump.map_or(0.0, |(index, _)| state[index]);
        }
        for &first in &self.rotations {
            // The rotations of the rows are orthonormal, those of the state may not be. A state that spans no plane is refused before the
            // inference.
            if self.columns[first..first + 6].iter().all(|column| column.jump.is_some()) {
                settle(&mut start[first..first + 6]);
            }
        }
        if let Some(last) = prefix.chunks_exact(self.columns.len()).last() {
            start[..last.len()].copy_from_slice(last);
        }
        for ((column, &value), from) in self.columns.iter().zip(rows().nth(continued).unwrap_or(&[])).zip(start) {
            let jump = (f64::from(value) - f64::from(from)).abs();
            if let Some((_, max_jump)) = column.jump
                && (jump.is_nan() || jump > max_jump)
            {
                let seen = format!("the state's {from}");
                let from = if continued == 0 { seen } else { format!("the {from} of the row that it continues") };
                return Err(format!(
                    "row {continued}, {} is {value}, {jump:.3} from {from}, max_jump is {max_jump}",
                    column.name
                ));
            }
        }
        for (index, (from, to)) in rows().zip(rows().skip(1)).enumerate().skip(continued.saturating_sub(1)) {
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

#[cfg(test)]
mod tests;
