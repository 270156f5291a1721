//! The graphs of a manifest: inputs and outputs with their roles, types and shapes.

use serde::Deserialize;

#[derive(Deserialize)]
#[allow(missing_docs)]
pub struct Graphs {
    pub prefill: Graph,
    pub extend: Option<Graph>,
    pub denoise: Graph,
}

#[derive(Deserialize)]
#[allow(missing_docs)]
pub struct Graph {
    pub file: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

/// An input or output of a graph.
#[derive(Deserialize, Clone)]
#[allow(missing_docs)]
pub struct Port {
    pub name: String,
    pub role: Role,
    pub from: Option<String>,
    pub dtype: Dtype,
    pub shape: Vec<Dim>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Role {
    Images,
    Tokens,
    TokenMask,
    State,
    Latent,
    VideoLatent,
    Time,
    Cache,
    Block,
    BlockLength,
    Memory,
    MemoryLength,
    Velocity,
    VideoVelocity,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Dtype {
    F32,
    I64,
    Bool,
}

impl Dtype {
    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::I64 => 8,
            Dtype::Bool => 1,
        }
    }
}

/// The sizes that a run chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Rows.
    pub batch: usize,
    /// Tokens that a prompt is padded to.
    pub prompt: usize,
    /// Those and the tokens of all images.
    pub prefix: usize,
}

/// A fixed size, or the word of one that a run chooses.
#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(from = "RawDim")]
#[allow(missing_docs)]
pub enum Dim {
    Batch,
    Prompt,
    Prefix,
    Fixed(usize),
}

impl Dim {
    /// The size in a run.
    pub fn size(self, extent: Extent) -> usize {
        match self {
            Dim::Batch => extent.batch,
            Dim::Prompt => extent.prompt,
            Dim::Prefix => extent.prefix,
            Dim::Fixed(size) => size,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawDim {
    Size(usize),
    Word(Word),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Batch,
    Prompt,
    Prefix,
}

impl From<RawDim> for Dim {
    fn from(raw: RawDim) -> Dim {
        match raw {
            RawDim::Size(size) => Dim::Fixed(size),
            RawDim::Word(Word::Batch) => Dim::Batch,
            RawDim::Word(Word::Prompt) => Dim::Prompt,
            RawDim::Word(Word::Prefix) => Dim::Prefix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_shape_is_a_size_that_the_run_chooses() {
        let shape: Vec<Dim> = serde_json::from_str(r#"["batch", "prompt", "prefix", 5]"#).expect("a shape");
        let extent = Extent { batch: 2, prompt: 32, prefix: 224 };
        assert_eq!(shape.iter().map(|dim| dim.size(extent)).collect::<Vec<_>>(), [2, 32, 224, 5]);
        assert!(serde_json::from_str::<Vec<Dim>>(r#"["rows"]"#).is_err());
    }
}
