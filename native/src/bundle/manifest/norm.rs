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
    /// None: `EPSILON`.
    pub epsilon: Option<f64>,
    #[serde(default)]
    pub epsilon_rule: EpsilonRule,
    /// The normalised value is kept inside.
    pub clip: Option<Clip>,
}

/// What the epsilon does to a range or a deviation, and the precision in which the publishers that do so compute.
#[derive(Deserialize, Clone, Copy, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum EpsilonRule {
    /// It is added, in both directions, in f64: openpi's `transforms.py`.
    #[default]
    Added,
    /// It replaces a range of exactly 0, and is added to a deviation on the way to the model alone, in f32: LeRobot's
    /// `normalize_processor.py`.
    ZeroRange,
    /// A range or deviation is at least so large on the way to the model, in f32. A range whose `min` is its `max` gives the model 0. Nothing is
    /// changed on the way back: MolmoAct2's `_FeatureNormalizer`, and with epsilon 0 GR00T's `_min_max_norm`.
    AtLeast,
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

/// The two forms of a value: `model = (robot − offset) / divisor − shift` and `robot = (model + shift) · factor + offset`.
///
/// Ranges are halved in it, which changes no bit: a publisher multiplies by two what it divides by the whole range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub(crate) factor: f64,
    pub(crate) divisor: f64,
    pub(crate) offset: f64,
    /// 1 for a range, which the model has as −1 to 1; 0 for a deviation.
    pub(crate) shift: f64,
    /// Ends of the model's form; infinite where none are declared.
    pub(crate) clip: (f64, f64),
    /// Each operation is rounded to f32.
    pub(crate) single: bool,
    /// The model's form is 0 whatever the robot's is.
    pub(crate) flat: bool,
}

impl Scale {
    /// In f64, without a shift. `factor`: above 0, as `ColumnStats` checks.
    pub(crate) fn new(factor: f64, offset: f64, clip: (f64, f64)) -> Scale {
        Scale { factor, divisor: factor, offset, shift: 0.0, clip, single: false, flat: false }
    }

    /// The result of one operation in the precision of the scale. In f64, an operation on f32 values is exact enough to be rounded once more.
    pub fn rounded(&self, value: f64) -> f64 {
        if self.single { f64::from(value as f32) } else { value }
    }

    /// Robot units to the model's, clipped.
    pub fn model(&self, robot: f32) -> f64 {
        self.model_of(f64::from(robot))
    }

    /// The same for a value that is not rounded to 32 bits.
    pub fn model_of(&self, robot: f64) -> f64 {
        if self.flat {
            return 0.0;
        }
        let above = self.rounded(self.rounded(robot) - self.offset);
        self.rounded(self.rounded(above / self.divisor) - self.shift).clamp(self.clip.0, self.clip.1)
    }

    /// The model's units, clipped, to the robot's.
    pub fn robot(&self, model: f32) -> f64 {
        // The model's form is f32, and so is this sum wherever it is computed: NumPy keeps the type of an array to which a number is added.
        let shifted = (f64::from(model).clamp(self.clip.0, self.clip.1) + self.shift) as f32;
        self.rounded(self.rounded(f64::from(shifted) * self.factor) + self.offset)
    }
}

impl ColumnStats {
    /// The scale of state column `index`. The error is a sentence, also about missing or useless statistics.
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
        Normalisation { norm, epsilon, epsilon_rule: rule, clip }: Normalisation,
        index: usize,
        of: impl Fn(&Statistic) -> Option<f64>,
    ) -> Result<Scale, String> {
        let clip = clip.map_or((f64::NEG_INFINITY, f64::INFINITY), |clip| (clip.min, clip.max));
        if clip.0.is_nan() || clip.1.is_nan() || clip.0 >= clip.1 {
            return Err(format!("the clip of column {index} is {} to {}, expected a range", clip.0, clip.1));
        }
        let found = |statistic: &Statistic, name: &str| {
            of(statistic)
                .ok_or_else(|| format!("norm.json lacks {name} of column {index}, or has another number of rows"))
        };
        let (offset, end) = match norm {
            Norm::None => return Ok(Scale::new(1.0, 0.0, clip)),
            Norm::Quantile => (found(&self.q01, "q01")?, found(&self.q99, "q99")?),
            Norm::MinMax => (found(&self.min, "min")?, found(&self.max, "max")?),
            Norm::MeanStd => (found(&self.mean, "mean")?, found(&self.std, "std")?),
        };
        let mut scale = Scale::new(1.0, offset, clip);
        scale.single = rule != EpsilonRule::Added;
        let rounded = |value: f64| scale.rounded(value);
        let (offset, epsilon) = (rounded(offset), rounded(epsilon.unwrap_or(EPSILON)));
        let is_range = norm != Norm::MeanStd;
        let span = if is_range { rounded(rounded(end) - offset) } else { rounded(end) };
        let (divisor, factor) = match rule {
            EpsilonRule::Added => (span + epsilon, span + epsilon),
            EpsilonRule::ZeroRange if !is_range => (rounded(span + epsilon), span),
            EpsilonRule::ZeroRange if span == 0.0 => (epsilon, epsilon),
            EpsilonRule::ZeroRange => (span, span),
            EpsilonRule::AtLeast => (span.max(epsilon), span),
        };
        let same = |low: Option<f64>, high: Option<f64>| low.is_some_and(|low| Some(low) == high);
        scale.flat = rule == EpsilonRule::AtLeast && is_range && same(of(&self.min), of(&self.max));
        let is_good = factor >= 0.0 && (divisor > 0.0 || scale.flat);
        if !(divisor.is_finite() && factor.is_finite() && offset.is_finite() && is_good) {
            return Err(format!("norm.json scales column {index} by {divisor} from {offset}, expected more than 0"));
        }
        let (half, shift) = if is_range { (2.0, 1.0) } else { (1.0, 0.0) };
        Ok(Scale { factor: factor / half, divisor: divisor / half, offset, shift, ..scale })
    }
}
