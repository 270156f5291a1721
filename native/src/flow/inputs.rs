//! Inputs that the host writes for each inference: prompt, masks, lengths, times. `src/bundle/input-roles.ts` has the meaning and the shape
//! of each role. Every declared input is written, as the type that its graph declares.

use super::roles::Owner;
use crate::bundle::manifest::{Manifest, Port, Role};
use crate::core::dtype::Dtype;
use crate::ort::tensor::Tensor;

enum Source {
    Tokens,
    TokenMask,
    Time {
        buckets: Option<u32>,
        of_rows: bool,
    },
    /// The committed tokens of an episode, and those of the inference's block.
    MemoryLength,
    BlockLength,
}

/// A time as the value of an input: with buckets, the number of the bucket that it lies in.
pub(super) fn time_value(time: f64, buckets: Option<u32>) -> f64 {
    buckets.map_or(time, |buckets| (time * f64::from(buckets)).floor())
}

struct Input {
    owner: Owner,
    at: usize,
    source: Source,
}

pub(super) struct Inputs {
    inputs: Vec<Input>,
    /// Rows of the largest run, and branches of each.
    rows: usize,
    branches: usize,
    /// One prompt with padding, and a mask of its tokens.
    tokens: Vec<i64>,
    mask: Vec<u8>,
    /// The number of rows that the chunk of each row continues.
    prefix_rows: Vec<usize>,
}

impl Inputs {
    /// Finds the inputs among the tensors and writes the constant ones. The error is a sentence.
    pub(super) fn new(
        manifest: &Manifest,
        rows: usize,
        ports: &[(Owner, &Port)],
        tensors: &mut [Tensor],
    ) -> Result<Inputs, String> {
        let branches = manifest.branches();
        let text = manifest.prompt_max();
        let chunk = manifest.action.rows;
        let mut inputs = Vec::new();
        for (at, (&(owner, port), tensor)) in ports.iter().zip(tensors.iter_mut()).enumerate() {
            let (len, each) = (tensor.len, rows * branches);
            let expect = |lens: &[usize], dtypes: &[Dtype]| {
                let fits = lens.contains(&len) && dtypes.contains(&tensor.dtype);
                fits.then_some(())
                    .ok_or_else(|| format!("{} has not the type and size of its role, {:?}", port.name, port.role))
            };
            let source = match port.role {
                Role::Tokens => expect(&[each * text], &[Dtype::I64]).map(|()| Source::Tokens)?,
                Role::TokenMask => expect(&[each * text], &[Dtype::Bool]).map(|()| Source::TokenMask)?,
                Role::Time => {
                    expect(&[1, rows * chunk], &[Dtype::F32, Dtype::I64])?;
                    if tensor.dtype != Dtype::F32 && port.buckets.is_none() {
                        return Err(format!("{} is a time in integers without buckets", port.name));
                    }
                    Source::Time { buckets: port.buckets, of_rows: port.shape.len() == 2 }
                }
                Role::MemoryLength => expect(&[1], &[Dtype::I64]).map(|()| Source::MemoryLength)?,
                Role::BlockLength => expect(&[1], &[Dtype::I64]).map(|()| Source::BlockLength)?,
                Role::ImageMask => {
                    let views = port.views(&manifest.cameras);
                    expect(&[rows * views.len()], &[Dtype::Bool])?;
                    let seen = views.iter().map(|view| f64::from(u8::from(manifest.cameras.contains(view))));
                    let seen: Vec<f64> = seen.collect();
                    tensor.write(0, seen.iter().copied().cycle().take(len));
                    continue;
                }
                _ => continue,
            };
            inputs.push(Input { owner, at, source });
        }
        let is_told = inputs.iter().any(|input| matches!(input.source, Source::Time { .. }));
        if manifest.flow.is_some() && !is_told {
            return Err("no input of the denoise graph has the role time".into());
        }
        let (tokens, mask) = (vec![0; text], vec![0; text]);
        Ok(Inputs { inputs, rows, branches, tokens, mask, prefix_rows: vec![0; rows] })
    }

    /// Writes row `row` of one branch. `write` gives tokens and mask, as long as the longest prompt, and returns the number of tokens.
    pub(super) fn prompt(
        &mut self,
        tensors: &mut [Tensor],
        reader: Owner,
        (row, branch): (usize, usize),
        write: impl FnOnce(&mut [i64], &mut [u8]) -> usize,
    ) -> usize {
        let Inputs { inputs, branches, tokens, mask, .. } = self;
        let count = write(tokens, mask);
        let part = row * *branches + branch;
        for Input { at, source, .. } in
            inputs.iter().filter(|input| input.owner == reader || input.owner == Owner::Denoise)
        {
            let tensor = &mut tensors[*at];
            match source {
                Source::Tokens => tensor.write(part * tokens.len(), tokens.iter().map(|&id| id as f64)),
                Source::TokenMask => tensor.write(part * mask.len(), mask.iter().map(|&valid| f64::from(valid))),
                _ => {}
            }
        }
        count
    }

    pub(super) fn prefix_rows(&self, row: usize) -> usize {
        self.prefix_rows[row]
    }

    /// Sets how many rows the chunk of row `row` continues; `time` writes that to the denoise graph.
    pub(super) fn set_prefix(&mut self, row: usize, count: usize) {
        self.prefix_rows[row] = count;
    }

    /// Writes the time of a step. Continued rows have the time of the flow's end.
    pub(super) fn time(&self, tensors: &mut [Tensor], time: f64, end: f64) {
        for Input { at, source, .. } in &self.inputs {
            let Source::Time { buckets, of_rows } = source else { continue };
            let time_value = |time: f64| time_value(time, *buckets);
            let tensor = &mut tensors[*at];
            if !of_rows {
                tensor.write(0, std::iter::repeat_n(time_value(time), tensor.len));
                continue;
            }
            let rows = tensor.len / self.rows;
            for (row, &prefix_rows) in self.prefix_rows.iter().enumerate() {
                let times = (0..rows).map(|index| time_value(if index < prefix_rows { end } else { time }));
                tensor.write(row * rows, times);
            }
        }
    }

    /// Valid tokens in an episode's memory and in this run's block.
    pub(super) fn lengths(&self, tensors: &mut [Tensor], kept: usize, written: usize) {
        for Input { at, source, .. } in &self.inputs {
            match source {
                Source::MemoryLength => tensors[*at].write(0, [kept as f64]),
                Source::BlockLength => tensors[*at].write(0, [written as f64]),
                _ => {}
            }
        }
    }
}
