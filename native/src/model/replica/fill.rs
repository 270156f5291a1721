//! Writes one observation into the bound tensors: that of an inference or of a parity vector.

use super::Replica;
use crate::episode::{Entry, Pass};

pub(super) struct Inputs<'a> {
    /// The model's state vector in robot units.
    pub(super) state: &'a [f32],
    /// The rows that the chunk continues, in robot units.
    pub(super) prefix: &'a [f32],
    pub(super) instruction: &'a [u32],
    /// Step and seed of the noise.
    pub(super) step: u32,
    pub(super) seed: u64,
}

impl Replica {
    /// Copies frame `index` of `count` into row `row`.
    pub(super) fn picture(&mut self, row: usize, pass: Pass, (index, count): (usize, usize), tensor: &[u8]) {
        let manifest = &self.model.manifest;
        let per_camera = count / manifest.cameras.len();
        let read = if pass.entry == Entry::Later { per_camera } else { manifest.frames.first };
        let (camera, age) = (index / per_camera, index % per_camera);
        // A new window reads the last frames of each camera.
        if let (Some(network), true) = (&mut self.network, age + read >= per_camera) {
            network.picture(pass.entry, row, camera, age + read - per_camera).copy_from_slice(tensor);
        }
    }

    /// Writes prompt, state and noise into row `row`. Returns the tokens of its longest prompt.
    pub(super) fn fill(&mut self, row: usize, pass: Pass, inputs: &Inputs<'_>) -> usize {
        let Replica { model, network: Some(network), .. } = self else { return 0 };
        let manifest = &model.manifest;
        let mut longest = 0;
        let Inputs { state, prefix, instruction, step, seed } = *inputs;
        for branch in 0..network.branches() {
            let text = if branch == 0 { instruction } else { model.prompt.empty() };
            let write = |tokens: &mut [i64], mask: &mut [u8]| model.prompt.write(text, state, tokens, mask);
            longest = longest.max(network.prompt(pass.entry, row, branch, write));
        }
        network.state(row, |to| model.prompt.write_state(state, to));
        let latent = network.latent(row);
        let actions = latent.len();
        if manifest.flow.is_some() {
            crate::flow::noise::fill(latent, 0, model.noise_key, step, seed);
            model.encoder.latent_of(prefix, state, latent);
        }
        network.tell(row, state, prefix);
        network.set_prefix(row, prefix.len() / manifest.action.columns.len());
        if let Some(video) = network.video_latent() {
            crate::flow::noise::fill(video, actions, model.noise_key, step, seed);
        }
        network.lengths(pass, manifest.memory.map_or(0, |memory| memory.tokens));
        longest
    }
}
