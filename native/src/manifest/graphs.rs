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
#[derive(Deserialize, Clone, Debug)]
#[allow(missing_docs)]
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

    /// It is the same in every run.
    pub fn is_fixed(&self) -> bool {
        self.role == Role::ImageMask
    }

    /// It changes with every flow step.
    pub fn steps(&self) -> bool {
        matches!(self.role, Role::Latent | Role::VideoLatent | Role::Time)
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
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
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Dtype {
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an F32.
    Bf16,
    I32,
    I64,
    U8,
    Bool,
}

impl Dtype {
    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::I64 => 8,
            Dtype::U8 | Dtype::Bool => 1,
        }
    }
}

/// How a graph takes a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Picture {
    /// f32 `[3, height, width]`, normalised.
    Normalised,
    /// u8 `[3, height, width]`, as decoded and resized.
    Planes,
    /// u8 `[height, width, 3]`, as decoded and resized.
    Interleaved,
}

impl Picture {
    /// As the type and the shape of the port `images` say; an image is wider than its three channels.
    pub fn of(port: &Port) -> Picture {
        match (port.dtype, port.shape.last()) {
            (Dtype::U8, Some(Dim::Fixed(3))) => Picture::Interleaved,
            (Dtype::U8, _) => Picture::Planes,
            _ => Picture::Normalised,
        }
    }

    /// The type of its values.
    pub fn dtype(self) -> Dtype {
        if self == Picture::Normalised { Dtype::F32 } else { Dtype::U8 }
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
    fn a_dtype_has_its_name_in_a_manifest_and_its_bytes() {
        let named: Vec<Dtype> =
            serde_json::from_str(r#"["f32", "f16", "bf16", "i32", "i64", "u8", "bool"]"#).expect("dtypes");
        assert_eq!(named.iter().map(|dtype| dtype.bytes()).collect::<Vec<_>>(), [4, 2, 2, 4, 8, 1, 1]);
        assert!(serde_json::from_str::<Dtype>(r#""f64""#).is_err());
    }

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
