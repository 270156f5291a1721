//! The graphs of a manifest: inputs and outputs with their roles, types and shapes.

use crate::core::dtype::Dtype;
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Graphs {
    pub prefill: Graph,
    pub extend: Option<Graph>,
    /// None: prefill gives the chunk, without a flow.
    pub denoise: Option<Graph>,
}

#[derive(Deserialize)]
pub struct Graph {
    pub file: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

/// An input or output of a graph.
#[derive(Deserialize, Clone, Debug)]
pub struct Port {
    pub name: String,
    pub role: Role,
    pub from: Option<String>,
    pub dtype: Dtype,
    pub shape: Vec<Dim>,
    pub buckets: Option<u32>,
    pub cameras: Option<Vec<String>>,
}

impl Port {
    /// The views of an input of images or of their mask.
    pub fn views<'a>(&'a self, cameras: &'a [String]) -> &'a [String] {
        self.cameras.as_deref().unwrap_or(cameras)
    }

    pub fn is_fixed(&self) -> bool {
        self.role == Role::ImageMask
    }

    pub fn steps(&self) -> bool {
        matches!(self.role, Role::Latent | Role::VideoLatent | Role::Time)
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Images,
    Tokens,
    TokenMask,
    ImageMask,
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
    /// The normalised chunk of a model without a flow.
    Actions,
    /// A value inside a graph that `tendon bundle verify` reads.
    Inner,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Picture {
    /// f32 `[3, height, width]`, normalised.
    Normalised,
    /// u8 `[3, height, width]`, as decoded and resized.
    Pixels,
}

impl Picture {
    /// The picture that the type of a port `images` means.
    pub fn of(port: &Port) -> Picture {
        if port.dtype == Dtype::U8 { Picture::Pixels } else { Picture::Normalised }
    }

    pub fn dtype(self) -> Dtype {
        if self == Picture::Normalised { Dtype::F32 } else { Dtype::U8 }
    }
}

/// The sizes of an inference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub batch: usize,
    /// Tokens that a prompt is padded to.
    pub prompt: usize,
    pub prefix: usize,
}

/// A fixed size, or the name of a size of the inference.
#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(from = "RawDim")]
pub enum Dim {
    Batch,
    Prompt,
    Prefix,
    Fixed(usize),
}

impl Dim {
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

    #[test]
    fn an_input_says_where_its_values_come_from_and_as_what() {
        let port = |text: &str| serde_json::from_str::<Port>(text).map_err(|error| error.to_string());
        let time =
            port(r#"{"name": "t", "role": "time", "dtype": "i64", "shape": [1], "buckets": 1000}"#).expect("a time");
        assert_eq!((time.buckets, time.steps()), (Some(1000), true));
        assert!(
            port(r#"{"name": "t", "role": "timestep", "dtype": "i64", "shape": [1]}"#)
                .unwrap_err()
                .contains("timestep")
        );
    }
}
