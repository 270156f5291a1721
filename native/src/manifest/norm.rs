//! Norm statistics of state and action columns, from `norm.json`.

use super::Norm;
use serde::Deserialize;

/// `norm.json`.
#[derive(Deserialize)]
#[allow(missing_docs)]
pub struct NormStats {
    pub state: ColumnStats,
    pub action: ColumnStats,
}

/// Statistics per column; an array that no column uses may be absent.
#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(missing_docs)]
pub struct ColumnStats {
    pub q01: Vec<f64>,
    pub q99: Vec<f64>,
    pub mean: Vec<f64>,
    pub std: Vec<f64>,
}

impl ColumnStats {
    /// Column `index` as `robot = model · scale + offset`, or None when its statistics are missing.
    ///
    /// Quantile: x = (model + 1) / 2 · (q99 − q01 + 1e-6) + q01. Mean and deviation: x = model · (std + 1e-6) + mean.
    pub fn affine(&self, norm: Norm, index: usize) -> Option<(f64, f64)> {
        match norm {
            Norm::None => Some((1.0, 0.0)),
            Norm::Quantile => {
                let (low, high) = (*self.q01.get(index)?, *self.q99.get(index)?);
                let scale = (high - low + 1e-6) / 2.0;
                Some((scale, low + scale))
            }
            Norm::MeanStd => Some((*self.std.get(index)? + 1e-6, *self.mean.get(index)?)),
        }
    }
}
