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

/// A fixed size, or `"batch"`.
#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(from = "RawDim")]
#[allow(missing_docs)]
pub enum Dim {
    Batch,
    Fixed(usize),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawDim {
    Size(usize),
    #[allow(dead_code, reason = "only the word \"batch\" reaches this side; the manifest check has seen to it")]
    Word(String),
}

impl From<RawDim> for Dim {
    fn from(raw: RawDim) -> Dim {
        match raw {
            RawDim::Size(size) => Dim::Fixed(size),
            RawDim::Word(_) => Dim::Batch,
        }
    }
}
