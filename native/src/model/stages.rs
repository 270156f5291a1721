//! Observations with given noise that a replica plays in place of the parity vectors, and what each stage computed for them.
//!
//! `src/measure/golden` asks for them and compares them with a publisher's values. No other load has them.

use crate::bundle::manifest::Manifest;
use crate::core::dtype::Dtype;
use crate::core::memory::Block;
use crate::image::frame::{FrameSpec, Worker};
use crate::model::parity::Vectors;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What a replica computes before its model is ready.
pub enum Exam {
    Parity(Vectors),
    Stages(Stages),
}

/// The cases as the load plan has them.
#[derive(Deserialize)]
pub struct StagesPlan {
    /// A folder that is there. Case N is written to `N.safetensors` in it.
    out: PathBuf,
    /// The file of a prefill graph with more outputs, in place of the bundle's; it has the same weight files.
    prefill: Option<PathBuf>,
    cases: Vec<CasePlan>,
}

#[derive(Deserialize)]
struct CasePlan {
    instruction: String,
    /// Absolute paths of JPEG files in wire order.
    frames: Vec<PathBuf>,
    /// In robot units, in the order of the state's columns.
    state: Vec<f32>,
    /// `[rows, width]`; empty for a model without noise.
    noise: Vec<f32>,
}

pub struct Stages {
    pub out: PathBuf,
    pub prefill: Option<Vec<u8>>,
    pub cases: Vec<Case>,
}

/// An observation with decoded frames.
pub struct Case {
    pub instruction: String,
    pub frames: Vec<Block>,
    pub state: Vec<f32>,
    pub noise: Vec<f32>,
}

impl Stages {
    /// Decodes the frames of the cases; the error is a sentence.
    pub fn read(manifest: &Manifest, plan: StagesPlan, worker: &mut Worker) -> Result<Stages, String> {
        if manifest.memory.is_some() {
            return Err("the stages of a model with memory cannot be shown".into());
        }
        let spec = FrameSpec::of(manifest);
        let mut decode = |path: &PathBuf| -> Result<Block, String> {
            let jpeg = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let mut tensor = Block::lazy(spec.bytes())?;
            let decoded = worker.frame(&spec, &jpeg, &mut tensor);
            decoded.map_err(|failure| format!("{} is no good frame: {}", path.display(), failure.text))?;
            Ok(tensor)
        };
        let chunk = manifest.action.rows * manifest.action.width;
        let mut cases = Vec::with_capacity(plan.cases.len());
        for (number, CasePlan { instruction, frames, state, noise }) in plan.cases.into_iter().enumerate() {
            let fits = frames.len() == manifest.frames.later * manifest.cameras.len()
                && state.len() == manifest.state.columns.len()
                && (noise.is_empty() || noise.len() == chunk);
            if !fits {
                return Err(format!("case {number} has not the model's frames, state or noise"));
            }
            let frames = frames.iter().map(&mut decode).collect::<Result<_, _>>()?;
            cases.push(Case { instruction, frames, state, noise });
        }
        let graph = plan
            .prefill
            .as_ref()
            .map(|path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display())));
        Ok(Stages { out: plan.out, prefill: graph.transpose()?, cases })
    }
}

/// The values of one case, written as a safetensors file.
#[derive(Default)]
pub struct Sheet {
    header: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Sheet {
    pub fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.put(name, Dtype::F32, shape, &bytes);
    }

    pub fn put(&mut self, name: &str, dtype: Dtype, shape: &[usize], bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let offsets = [start, self.bytes.len()];
        self.header.insert(name.into(), json!({ "dtype": dtype.name(), "shape": shape, "data_offsets": offsets }));
    }

    pub fn save(self, path: &Path) -> Result<(), String> {
        let header = Value::Object(self.header).to_string();
        let length = header.len() as u64;
        let file = [&length.to_le_bytes()[..], header.as_bytes(), &self.bytes].concat();
        std::fs::write(path, file).map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_is_a_safetensors_file() {
        let mut sheet = Sheet::default();
        sheet.floats("velocity.0", &[1, 2], &[1.0, -2.0]);
        sheet.put("tokens", Dtype::I64, &[1], &7_i64.to_le_bytes());
        let path = std::env::temp_dir().join(format!("tendon-sheet-{}", std::process::id()));
        sheet.save(&path).expect("written");
        let bytes = std::fs::read(&path).expect("read");
        std::fs::remove_file(&path).expect("removed");
        let (length, rest) = bytes.split_at(8);
        let (header, data) = rest.split_at(u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize);
        let header: Value = serde_json::from_slice(header).expect("JSON");
        assert_eq!(header["velocity.0"], json!({ "dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8] }));
        assert_eq!(header["tokens"], json!({ "dtype": "I64", "shape": [1], "data_offsets": [8, 16] }));
        assert_eq!((data.len(), &data[4..8]), (16, &(-2.0_f32).to_le_bytes()[..]));
    }
}
