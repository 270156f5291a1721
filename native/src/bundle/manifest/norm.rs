//! The normalisation of columns, and their statistics from `norm.json`.

use serde::Deserialize;

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    Quantile,
    MinMax,
    MeanStd,
    None,
}

#[derive(Deserialize, Clone, Copy)]
pub struct Normalisation {
    pub norm: Norm,
    /// A number that is added to the divisor; None: `EPSILON`.
    pub epsilon: Option<f64>,
    /// The normalised value is kept inside.
    pub clip: Option<Clip>,
}

#[derive(Deserialize, Clone, Copy)]
pub struct Clip {
    pub min: f64,
    pub max: f64,
}

/// The epsilon of a column that declares none: openpi's, `src/openpi/transforms.py`.
const EPSILON: f64 = 1e-6;

/// `norm.json`.
#[derive(Deserialize)]
pub struct NormStats {
    pub state: ColumnStats,
    pub action: ColumnStats,
}

/// Statistics; one that no column uses may be absent.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ColumnStats {
    pub q01: Statistic,
    pub q99: Statistic,
    pub min: Statistic,
    pub max: Statistic,
    pub mean: Statistic,
    pub std: Statistic,
}

/// One value per column, or a list of them for each row of a chunk.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Statistic {
    Columns(Vec<f64>),
    Rows(Vec<Vec<f64>>),
}

impl Default for Statistic {
    fn default() -> Statistic {
        Statistic::Columns(Vec::new())
    }
}

/// The two forms of a value: `robot = model · factor + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub(crate) factor: f64,
    pub(crate) offset: f64,
    /// Ends of the model's form; infinite where none are declared.
    pub(crate) clip: (f64, f64),
}

impl Scale {
    /// Above 0, as `ColumnStats` checks.
    pub(crate) fn new(factor: f64, offset: f64, clip: (f64, f64)) -> Scale {
        Scale { factor, offset, clip }
    }

    /// Robot units to the model's, clipped.
    pub fn model(&self, robot: f32) -> f64 {
        self.model_of(f64::from(robot))
    }

    /// The same for a value that is not rounded to 32 bits.
    pub fn model_of(&self, robot: f64) -> f64 {
        ((robot - self.offset) / self.factor).clamp(self.clip.0, self.clip.1)
    }

    /// The model's units, clipped, to the robot's.
    pub fn robot(&self, model: f32) -> f64 {
        f64::from(model).clamp(self.clip.0, self.clip.1) * self.factor + self.offset
    }
}

impl ColumnStats {
    /// The scale of state column `index`. The error is a sentence, also about missing or useless statistics.
    ///
    /// Quantile and min-max: robot = (model + 1) / 2 · (high − low + epsilon) + low. Mean and deviation: robot =
    /// model · (std + epsilon) + mean. With epsilon 1e-6 these are openpi's (`transforms.py`, Unnormalize), with 0 GR00T's (`gr00t/data/utils.py`, which clips
    /// to −1 and 1) and LeRobot's (`processor/normalize_processor.py`).
    pub fn state(&self, how: Normalisation, index: usize) -> Result<Scale, String> {
        self.scale(how, index, |statistic| match statistic {
            Statistic::Columns(values) => values.get(index).copied(),
            Statistic::Rows(_) => None,
        })
    }

    /// The scale of action column `index` in row `row` of `rows`.
    pub fn action(&self, how: Normalisation, index: usize, row: usize, rows: usize) -> Result<Scale, String> {
        self.scale(how, index, |statistic| match statistic {
            Statistic::Columns(values) => values.get(index).copied(),
            Statistic::Rows(table) if table.len() == rows => table[row].get(index).copied(),
            Statistic::Rows(_) => None,
        })
    }

    fn scale(
        &self,
        Normalisation { norm, epsilon, clip }: Normalisation,
        index: usize,
        of: impl Fn(&Statistic) -> Option<f64>,
    ) -> Result<Scale, String> {
        let epsilon = epsilon.unwrap_or(EPSILON);
        let found = |statistic: &Statistic, name: &str| {
            of(statistic)
                .ok_or_else(|| format!("norm.json lacks {name} of column {index}, or has another number of rows"))
        };
        let between = |low: f64, high: f64| {
            let factor = (high - low + epsilon) / 2.0;
            (factor, low + factor)
        };
        let (factor, offset) = match norm {
            Norm::None => (1.0, 0.0),
            Norm::Quantile => between(found(&self.q01, "q01")?, found(&self.q99, "q99")?),
            Norm::MinMax => between(found(&self.min, "min")?, found(&self.max, "max")?),
            Norm::MeanStd => (found(&self.std, "std")? + epsilon, found(&self.mean, "mean")?),
        };
        if !(factor.is_finite() && factor > 0.0 && offset.is_finite()) {
            return Err(format!("norm.json scales column {index} by {factor} from {offset}, expected more than 0"));
        }
        let clip = clip.map_or((f64::NEG_INFINITY, f64::INFINITY), |clip| (clip.min, clip.max));
        if clip.0.is_nan() || clip.1.is_nan() || clip.0 >= clip.1 {
            return Err(format!("the clip of column {index} is {} to {}, expected a range", clip.0, clip.1));
        }
        Ok(Scale::new(factor, offset, clip))
    }
}
