//! The bundle's parity vectors: observations of one episode, and the rows that another implementation computed for them.
//!
//! Every replica computes them on its device before the model is ready. A wrong device does not fail: it gives finite rows that may have
//! nothing to do with the frames.

use crate::bundle::manifest::Manifest;
use crate::core::memory::Block;
use crate::image::frame::{FrameSpec, Worker};
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;

/// `parity/chunk.json`; `src/bundle/manifest.ts` has the full format.
#[derive(Deserialize)]
struct File {
    instruction: String,
    seed: u64,
    observations: Vec<Observation>,
}

#[derive(Deserialize)]
struct Observation {
    frames: Vec<String>,
    state: Vec<f32>,
    #[serde(default)]
    prefix: Vec<Vec<f32>>,
    step: u32,
    actions: Vec<Vec<f32>>,
    cache_reset: bool,
}

/// One observation, ready to be run.
pub struct Vector {
    /// The tensors of its frames in wire order, as the graphs take them.
    pub frames: Vec<Block>,
    pub state: Vec<f32>,
    /// Rows that its chunk continues, in robot units, row-major.
    pub prefix: Vec<f32>,
    pub step: u32,
    pub cache_reset: bool,
    rows: Vec<f32>,
}

pub struct Vectors {
    pub instruction: String,
    pub seed: u64,
    pub episode: Vec<Vector>,
    tolerance: f32,
    columns: Vec<String>,
}

/// The largest difference of one vector, and where it was.
#[derive(Clone, Copy, Default)]
pub struct Difference {
    pub size: f32,
    row: usize,
    column: usize,
}

impl Vectors {
    /// Reads the vectors and decodes their frames; the error is a sentence.
    pub fn read(
        manifest: &Manifest,
        path: impl Fn(&str) -> Result<PathBuf, String>,
        worker: &mut Worker,
    ) -> Result<Vectors, String> {
        let name = &manifest.parity.file;
        let text = std::fs::read_to_string(path(name)?).map_err(|error| format!("{name}: {error}"))?;
        let file: File = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let folder = name.rfind('/').map_or("", |end| &name[..=end]);
        let spec = FrameSpec::of(manifest);
        let mut decode = |frame: &String| -> Result<Block, String> {
            let name = format!("{folder}{frame}");
            let jpeg = std::fs::read(path(&name)?).map_err(|error| format!("{name}: {error}"))?;
            let mut tensor = Block::lazy(spec.bytes())?;
            worker
                .frame(&spec, &jpeg, &mut tensor)
                .map_err(|failure| format!("{name} is no good frame: {}", failure.text))?;
            Ok(tensor)
        };
        let (rows, columns) = (manifest.action.rows, manifest.action.columns.len());
        let mut episode = Vec::with_capacity(file.observations.len());
        for (index, observation) in file.observations.into_iter().enumerate() {
            let Observation { frames, state, prefix, step, actions, cache_reset } = observation;
            let first = manifest.memory.is_none() || index == 0;
            let per_camera = if first { manifest.frames.first } else { manifest.frames.later };
            let fits = frames.len() == per_camera * manifest.cameras.len()
                && state.len() == manifest.state.columns.len()
                && prefix.len() <= manifest.action.prefix
                && actions.len() == rows
                && prefix.iter().chain(&actions).all(|row| row.len() == columns);
            if !fits {
                return Err(format!("{name}: observation {index} has not the model's frames, state, rows or columns"));
            }
            let frames = frames.iter().map(&mut decode).collect::<Result<_, _>>()?;
            let (prefix, rows) = (prefix.concat(), actions.concat());
            episode.push(Vector { frames, state, prefix, step, cache_reset, rows });
        }
        if episode.is_empty() {
            return Err(format!("{name} has no observation"));
        }
        Ok(Vectors {
            instruction: file.instruction,
            seed: file.seed,
            episode,
            tolerance: manifest.parity.tolerance,
            columns: manifest.action.columns.iter().map(|column| column.name.clone()).collect(),
        })
    }

    pub fn difference(&self, index: usize, values: &[f32]) -> Difference {
        let columns = self.columns.len();
        let mut worst = Difference::default();
        for (at, (value, expected)) in values.iter().zip(&self.episode[index].rows).enumerate() {
            let size = (value - expected).abs();
            // NaN is the largest difference.
            if size > worst.size || size.is_nan() {
                let size = if size.is_nan() { f32::INFINITY } else { size };
                worst = Difference { size, row: at / columns, column: at % columns };
            }
        }
        worst
    }

    pub fn admits(&self, difference: Difference) -> bool {
        difference.size <= self.tolerance
    }

    /// The sizes, if none is above the bundle's tolerance; else a sentence with all of them.
    pub fn judge(&self, differences: &[Difference]) -> Result<Vec<f32>, String> {
        let sizes = differences.iter().map(|difference| difference.size).collect();
        let Some((vector, worst)) =
            differences.iter().enumerate().max_by(|(_, one), (_, other)| one.size.total_cmp(&other.size))
        else {
            return Ok(sizes);
        };
        if self.admits(*worst) {
            return Ok(sizes);
        }
        let Difference { size, row, column } = *worst;
        let mut text = format!(
            "its rows are wrong: they differ by {size:.1e} from the bundle's parity vector {} of {} (row {row}, {}), expected at \
             most {:.1e}",
            vector + 1,
            differences.len(),
            self.columns[column],
            self.tolerance,
        );
        if differences.len() > 1 {
            text.push_str(" (each vector:");
            for difference in differences {
                // Cannot fail: a String grows.
                let _ = write!(text, " {:.1e}", difference.size);
            }
            text.push(')');
        }
        Err(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(tolerance: f32) -> Vectors {
        let vector = || Vector {
            frames: Vec::new(),
            state: Vec::new(),
            prefix: Vec::new(),
            step: 0,
            cache_reset: false,
            rows: vec![1.0, 2.0, 3.0, 4.0],
        };
        let columns = vec!["x".to_string(), "y".to_string()];
        Vectors { instruction: String::new(), seed: 0, episode: vec![vector(), vector()], tolerance, columns }
    }

    #[test]
    fn a_difference_above_the_tolerance_is_told_with_its_size_and_place() {
        let vectors = vectors(1e-4);
        let good = vectors.difference(0, &[1.0, 2.0, 3.0, 4.0]);
        let bad = vectors.difference(1, &[1.0, 2.0, 3.0, 4.5]);
        assert_eq!(vectors.judge(&[good, good]), Ok(vec![0.0, 0.0]));
        assert_eq!(
            vectors.judge(&[good, bad]).unwrap_err(),
            "its rows are wrong: they differ by 5.0e-1 from the bundle's parity vector 2 of 2 (row 1, y), expected at most \
             1.0e-4 (each vector: 0.0e0 5.0e-1)"
        );
    }

    #[test]
    fn a_value_that_is_no_number_passes_no_tolerance() {
        let vectors = vectors(f32::MAX);
        for bad in [f32::NAN, f32::INFINITY] {
            assert!(vectors.judge(&[vectors.difference(0, &[1.0, bad, 3.0, 4.0])]).is_err());
        }
    }
}
