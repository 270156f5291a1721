//! The part of a bundle's manifest that the engine needs. `src/bundle/manifest.ts` has the full format and has checked the file. This
//! module and `flow.rs` check again what memory safety and correctness depend on.

mod flow;
mod graphs;
mod motion;
mod norm;
mod picture;

pub use flow::Flow;
pub use graphs::{Dim, Extent, Graph, Graphs, Picture, Port, Role};
pub use norm::{Clip, ColumnStats, EpsilonRule, Norm, NormStats, Normalisation, Scale, Statistic};
pub use picture::{Alignment, Filter};

use crate::core::dtype::Dtype;
use crate::core::layout::{CHUNK_VALUES_MAX, OBSERVATION_FRAMES_MAX, STATE_VALUES_MAX};
use serde::Deserialize;

/// Rows of a chunk, as `src/limits.ts` bounds them.
const ROWS_MAX: usize = 128;
/// Columns of a row, as `src/bundle/manifest-facts.ts` bounds them.
pub const COLUMNS_MAX: usize = 64;

/// See `src/bundle/manifest.ts` for each field.
#[derive(Deserialize)]
pub struct Manifest {
    pub export_id: String,
    pub cameras: Vec<String>,
    pub frames: Frames,
    pub image: Image,
    pub state: State,
    /// None: the model reads no instruction.
    pub prompt: Option<Prompt>,
    pub action: Action,
    /// None: one graph gives the chunk.
    pub flow: Option<Flow>,
    pub guidance: Option<Guidance>,
    pub memory: Option<MemoryFacts>,
    pub batch: usize,
    pub graphs: Graphs,
    /// The type that the graphs compute in; None: f32.
    pub compute: Option<Dtype>,
    #[serde(default)]
    pub weight_files: Vec<String>,
    pub tokenizer: Option<String>,
    pub norm: String,
    pub parity: Parity,
    #[serde(default)]
    pub files: Vec<Listed>,
}

#[derive(Deserialize)]
pub struct Listed {
    pub path: String,
    pub size: u64,
    pub sha256: String,
}

/// The vectors that a device must compute before it serves.
#[derive(Deserialize)]
pub struct Parity {
    pub file: String,
    pub tolerance: f32,
    /// Its observation is not of this robot: limits of jumps are not judged by its rows.
    #[serde(default)]
    pub drawn: bool,
}

#[derive(Deserialize)]
pub struct Frames {
    pub first: usize,
    pub later: usize,
}

#[derive(Deserialize, Clone, Copy)]
pub struct Image {
    pub width: usize,
    pub height: usize,
    pub resize: Resize,
    pub place: Option<Alignment>,
    #[serde(default)]
    pub filter: Filter,
    pub mean: [f64; 3],
    pub std: [f64; 3],
    pub tokens: usize,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    Pad,
    Stretch,
    Crop,
    Exact,
}

#[derive(Deserialize)]
pub struct State {
    pub columns: Vec<StateColumn>,
    pub width: usize,
}

#[derive(Deserialize)]
pub struct StateColumn {
    pub name: String,
    #[serde(flatten)]
    pub normalisation: Normalisation,
}

#[derive(Deserialize)]
pub struct Prompt {
    pub tokens_max: usize,
    #[serde(default)]
    pub buckets: Vec<usize>,
    pub pad_id: u32,
    pub parts: Vec<PromptPart>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PromptPart {
    Token { id: u32 },
    Instruction,
    StateTokens { base: u32, bins: u32 },
    Template { text: String, bins: Option<u32>, clean: Option<Vec<Clean>> },
}

/// A step in which an instruction is cleaned; `src/bundle/manifest-facts.ts` says what each does.
#[derive(Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Clean {
    Strip,
    Underscores,
    Newlines,
    Words,
    EndNewline,
}

#[derive(Deserialize)]
pub struct Action {
    pub rows: usize,
    pub width: usize,
    /// Most rows that a chunk may continue.
    #[serde(default)]
    pub prefix: usize,
    pub columns: Vec<ActionColumn>,
    pub rotation6d: Vec<usize>,
    pub out_of_range: OutOfRange,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum OutOfRange {
    Clamp,
    Fail,
}

#[derive(Deserialize)]
pub struct ActionColumn {
    pub name: String,
    #[serde(flatten)]
    pub normalisation: Normalisation,
    pub relative_to: Option<usize>,
    pub min: f64,
    pub max: f64,
    pub max_jump: Option<f64>,
    pub max_step: Option<f64>,
}

/// There are two branches: row 0 with the instruction, row 1 without it.
#[derive(Deserialize)]
pub struct Guidance {
    pub scale: f64,
    pub apply: Vec<Guided>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Guided {
    Video,
    Action,
}

/// The memory of an episode, in latent frames of `tokens` tokens each.
#[derive(Deserialize, Clone, Copy)]
pub struct MemoryFacts {
    pub window: usize,
    pub tokens: usize,
    pub first: usize,
    pub later: usize,
}

impl MemoryFacts {
    /// Tokens of an inference's block at most.
    pub fn block_tokens(&self) -> usize {
        self.first.max(self.later) * self.tokens
    }
}

impl Manifest {
    /// Most frames that one observation of this model may carry.
    pub fn frames_max(&self) -> usize {
        self.cameras.len() * self.frames.first.max(self.frames.later)
    }

    /// Rows of the graphs' text-dependent tensors for one observation.
    pub fn branches(&self) -> usize {
        if self.guidance.is_some() { 2 } else { 1 }
    }

    /// The scale of the guidance; None: the first branch counts alone.
    pub fn guide(&self, what: Guided) -> Option<f32> {
        let guidance = self.guidance.as_ref().filter(|guidance| guidance.apply.contains(&what));
        guidance.map(|guidance| guidance.scale as f32)
    }

    /// The lengths that a prompt is padded to, the longest last: one of 0 for a model that reads none.
    pub fn prompt_lengths(&self) -> impl Iterator<Item = usize> {
        let prompt = self.prompt.as_ref();
        let buckets = prompt.map_or(&[][..], |prompt| &prompt.buckets);
        buckets.iter().copied().chain([self.prompt_max()])
    }

    /// Tokens of the longest prompt.
    pub fn prompt_max(&self) -> usize {
        self.prompt.as_ref().map_or(0, |prompt| prompt.tokens_max)
    }

    /// Moments at which an inference can be stopped: the steps of its flow, or the one graph.
    pub fn steps(&self) -> u32 {
        self.flow.as_ref().map_or(1, |flow| flow.steps)
    }

    /// The sizes of an inference of `batch` rows whose prompts are padded to `prompt` tokens. A state that prefill reads is a token of the prefix.
    pub fn extent(&self, batch: usize, prompt: usize) -> Extent {
        let images = self.prefix_views() * self.frames.later * self.image.tokens;
        let is_told = self.graphs.prefill.inputs.iter().any(|port| port.role == Role::State);
        Extent { batch, prompt, prefix: images + prompt + usize::from(is_told) }
    }

    pub fn picture(&self) -> Picture {
        let images = self.graphs.prefill.inputs.iter().find(|port| port.role == Role::Images);
        images.map_or(Picture::Normalised, Picture::of)
    }

    /// Refuses a model that is too large for the fixed slots of the ABI.
    pub fn check(&self) -> Result<(), String> {
        let bound = |what: &str, value: usize, max: usize| {
            if (1..=max).contains(&value) { Ok(()) } else { Err(format!("{what} is {value}, expected 1 to {max}")) }
        };
        bound("frames per observation", self.frames_max(), OBSERVATION_FRAMES_MAX)?;
        bound("state columns", self.state.columns.len(), STATE_VALUES_MAX)?;
        bound("rows", self.action.rows, ROWS_MAX)?;
        bound("rows x columns", self.action.rows * self.action.columns.len(), CHUNK_VALUES_MAX)?;
        if self.action.prefix >= self.action.rows {
            return Err(format!("a chunk of {} rows cannot continue {}", self.action.rows, self.action.prefix));
        }
        bound("action values", self.action.columns.len(), self.action.width)?;
        bound("action columns", self.action.columns.len(), COLUMNS_MAX)?;
        bound("batch", self.batch, 16)?;
        let lengths: Vec<usize> = self.prompt_lengths().collect();
        if !lengths.is_sorted_by(|one, next| one < next) || (self.prompt.is_some() && lengths[0] == 0) {
            return Err("the lengths of a prompt do not ascend".into());
        }
        if self.prompt.is_some() != self.tokenizer.is_some() {
            return Err("a tokenizer is there exactly when the model reads a prompt".into());
        }
        if self.memory.is_some() && lengths.len() > 1 {
            return Err("a model with memory has one length of prompts".into());
        }
        bound("state width", self.state.width, STATE_VALUES_MAX)?;
        bound("state values", self.state.columns.len(), self.state.width)?;
        if let Some(memory) = &self.memory {
            bound("memory window", memory.window, 1 << 16)?;
            bound("tokens of a latent frame", memory.tokens, 1 << 20)?;
            bound("first latent frames", memory.first, memory.window)?;
            bound("later latent frames", memory.later, memory.window)?;
            bound("batch of a model with memory", self.batch, 1)?;
            if self.frames.first > self.frames.later {
                return Err("a model with memory takes more frames first than later".into());
            }
        } else if self.frames.first != self.frames.later {
            return Err("a model without memory cannot tell a first observation from a later one".into());
        }
        if self.memory.is_some() != self.graphs.extend.is_some() {
            return Err("an extend graph is there exactly when the model has memory".into());
        }
        if self.guidance.is_some() && self.memory.is_none() {
            return Err("guidance is for models with memory, whose batch is one".into());
        }
        self.check_flow()?;
        self.check_picture()?;
        self.check_motion()
    }
}
