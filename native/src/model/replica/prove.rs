//! The proof of a replica before it serves: an inference of every shape, then the bundle's parity vectors.

use super::compute::rows_of;
use super::fill::Inputs;
use super::{Proof, Replica};
use crate::core::layout::STATE_VALUES_MAX;
use crate::episode::{Entry, Pass, ProofSlot};
use crate::flow::Network;
use crate::gpu::chunk::Refusal;
use crate::model::NO_MEMORY;
use crate::model::parity::{Difference, Vector, Vectors};
use crate::model::stages::Exam;
use std::sync::Arc;

impl Replica {
    /// Computes the bundle's parity vectors, or plays given cases; the error is a sentence.
    pub(super) fn prove(&mut self, exam: Option<Arc<Exam>>) -> Proof {
        let vectors = match exam.as_deref() {
            None => return Ok(Vec::new()),
            Some(Exam::Stages(stages)) => return self.show(stages).map(|()| Vec::new()),
            Some(Exam::Parity(vectors)) => vectors,
        };
        // This thread runs the network from now on.
        self.network.iter().for_each(Network::enter);
        self.warm_up()?;
        self.episode(vectors)
    }

    /// The largest difference of each parity vector; the error is a sentence. The memory is empty afterwards.
    fn episode(&mut self, vectors: &Vectors) -> Result<Vec<f32>, String> {
        let differences = if let Some(episodes) = self.model.episodes.get(self.index).cloned() {
            let _slot = ProofSlot::of(&episodes).ok_or("its memory is in use before it is ready")?;
            (0..vectors.episode.len())
                .map(|index| {
                    episodes.take(0);
                    let difference = episodes.begin(0).and_then(|place| self.remembered(vectors, index, place));
                    episodes.settle(0, difference.is_ok());
                    difference
                })
                .collect::<Result<Vec<_>, _>>()?
        } else {
            (0..vectors.episode.len()).map(|index| self.batched(vectors, index)).collect::<Result<Vec<_>, _>>()?
        };
        vectors.judge(&differences)
    }

    /// One observation of the episode in slot 0.
    fn remembered(&mut self, vectors: &Vectors, index: usize, place: usize) -> Result<Difference, String> {
        let model = self.model.clone();
        let episodes = &model.episodes[self.index];
        let pass = episodes.plan(0).ok_or("it has no memory slot")?;
        if (pass.entry == Entry::Reset) != vectors.episode[index].cache_reset {
            return Err(format!("its memory starts anew at another observation than parity vector {}", index + 1));
        }
        self.pose(vectors, index, 0, pass);
        let network = self.network.as_mut().ok_or("it has no network")?;
        network.read(pass.entry, place)?;
        network.denoise(place, |_| true)?;
        let difference = self.compare(vectors, index, 0)?;
        episodes.unfit(place, pass)?.map_or(Ok(()), Err)?;
        episodes.stage(0, pass);
        Ok(difference)
    }

    /// Computes one observation with the least padding, and in every row of the largest variant, because each has its own bindings.
    fn batched(&mut self, vectors: &Vectors, index: usize) -> Result<Difference, String> {
        let most = self.most;
        let mut worst = Difference::default();
        let mut proved = None;
        for rows in [1, most] {
            let tokens = (0..rows).map(|row| self.pose(vectors, index, row, NO_MEMORY)).max().unwrap_or(0);
            let network = self.network.as_mut().ok_or("it has no network")?;
            let largest = network.variants().len() - 1;
            let variant = if proved.is_none() { network.variant(1, tokens) } else { largest };
            if proved.replace(variant) == Some(variant) {
                break;
            }
            network.read(Entry::First, variant)?;
            network.denoise(variant, |_| true)?;
            for row in 0..rows {
                let difference = self.compare(vectors, index, row)?;
                if difference.size >= worst.size {
                    worst = difference;
                }
            }
        }
        Ok(worst)
    }

    /// Writes the vector's observation into row `row`. Returns the tokens of its prompt.
    fn pose(&mut self, vectors: &Vectors, index: usize, row: usize, pass: Pass) -> usize {
        let vector = &vectors.episode[index];
        for (at, tensor) in vector.frames.iter().enumerate() {
            self.picture(row, pass, (at, vector.frames.len()), tensor);
        }
        let instruction = self.model.prompt.instruction(&vectors.instruction);
        self.fill(
            row,
            pass,
            &Inputs {
                state: &vector.state,
                prefix: &vector.prefix,
                instruction: instruction.as_deref().unwrap_or(&[]),
                step: vector.step,
                seed: vectors.seed,
            },
        )
    }

    /// Compares the rows of row `row` with those of the vector.
    fn compare(&mut self, vectors: &Vectors, index: usize, row: usize) -> Result<Difference, String> {
        let Replica { model, network, .. } = self;
        let network = network.as_mut().ok_or("it has no network")?;
        let (rows, columns) = model.encoder.size();
        let mut values = vec![0.0; rows * columns];
        let Vector { state, prefix, .. } = &vectors.episode[index];
        let refused = |text: String| format!("its rows of parity vector {} are refused: {text}", index + 1);
        // Continued rows come back unchanged: only their latents show whether the flow has held them.
        if !prefix.is_empty() {
            network.fetch()?;
        }
        match network.decoded(row).filter(|_| prefix.is_empty()) {
            // The rows are there even if the bundle refuses them.
            Some((rows, verdict)) if verdict.as_ref().map_or_else(Refusal::has_rows, |_| true) => {
                values.copy_from_slice(rows);
            }
            _ => model.encoder.rows(network.latent(row), state, &mut values).map_err(refused)?,
        }
        let difference = vectors.difference(index, &values);
        if vectors.admits(difference) && !model.manifest.parity.drawn {
            // If the bundle's own limits refuse right rows, the limits are wrong.
            rows_of(network, &model.encoder, row, (state, prefix), &mut values).map_err(refused)?;
        }
        Ok(difference)
    }

    /// Computes one inference per shape, so that the runtime plans shapes and allocates memory before the first observation. The largest
    /// comes first: a smaller one needs nothing more.
    fn warm_up(&mut self) -> Result<(), String> {
        let Replica { model, network, .. } = self;
        let Some(network) = network else { return Ok(()) };
        let entries: &[Entry] =
            if model.manifest.memory.is_some() { &[Entry::First, Entry::Later] } else { &[Entry::First] };
        let branches = network.branches();
        // All places have one shape, and all are empty.
        let shapes = if model.manifest.memory.is_some() { 1 } else { network.variants().len() };
        for (&entry, variant) in entries.iter().flat_map(|entry| (0..shapes).rev().map(move |variant| (entry, variant)))
        {
            let rows = network.variants()[variant].batch;
            // The lowest and the highest token of a state alternate: a token id that the graph does not know fails now.
            let extreme = |column: usize| if (column + variant).is_multiple_of(2) { -f32::MAX } else { f32::MAX };
            let extremes: [f32; STATE_VALUES_MAX] = std::array::from_fn(extreme);
            for (row, branch) in (0..rows).flat_map(|row| (0..branches).map(move |branch| (row, branch))) {
                network.prompt(entry, row, branch, |tokens, mask| {
                    model.prompt.write(model.prompt.empty(), &extremes, tokens, mask)
                });
            }
            network.read(entry, variant)?;
            network.warm(variant)?;
            if (0..rows).any(|row| network.latent(row).iter().any(|value| !value.is_finite())) {
                return Err("its first run gave numbers that are not finite".into());
            }
        }
        Ok(())
    }
}
