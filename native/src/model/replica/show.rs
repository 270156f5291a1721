//! Plays the cases of a comparison with a publisher's values, and writes what each stage computed.

use super::Replica;
use super::fill::Inputs;
use crate::episode::Entry;
use crate::flow::Network;
use crate::model::NO_MEMORY;
use crate::model::stages::{Case, Sheet, Stages};

impl Replica {
    /// Plays each case alone and writes its file, which is empty if the instruction is too long; the error is a sentence.
    pub(super) fn show(&mut self, stages: &Stages) -> Result<(), String> {
        self.network.iter().for_each(Network::enter);
        for (number, case) in stages.cases.iter().enumerate() {
            let sheet = self.case(case).map_err(|error| format!("case {number}: {error}"))?;
            sheet.save(&stages.out.join(format!("{number}.safetensors")))?;
        }
        Ok(())
    }

    fn case(&mut self, case: &Case) -> Result<Sheet, String> {
        let model = self.model.clone();
        let Some(instruction) = model.prompt.instruction(&case.instruction) else { return Ok(Sheet::default()) };
        for (at, tensor) in case.frames.iter().enumerate() {
            self.picture(0, NO_MEMORY, (at, case.frames.len()), tensor);
        }
        let observed = Inputs { state: &case.state, prefix: &[], instruction: &instruction, step: 0, seed: 0 };
        let tokens = self.fill(0, NO_MEMORY, &observed);
        let network = self.network.as_mut().ok_or("it has no network")?;
        if !case.noise.is_empty() {
            network.latent(0).copy_from_slice(&case.noise);
        }
        let variant = network.variant(1, tokens);
        let extent = network.variants()[variant];
        network.read(Entry::First, variant)?;
        let mut sheet = Sheet::default();
        let mut state = vec![0.0; case.state.len()];
        model.prompt.write_state(&case.state, &mut state);
        sheet.floats("normalised_state", &[state.len()], &state);
        let graphs = &model.manifest.graphs;
        for port in graphs.prefill.inputs.iter().chain(&graphs.prefill.outputs) {
            let shape: Vec<usize> = port.shape.iter().map(|dim| dim.size(extent)).collect();
            let bytes = network.stage(port, variant).ok_or_else(|| format!("{} cannot be read", port.name))?;
            sheet.put(&port.name, port.dtype, &shape, bytes);
        }
        let (rows, columns) = model.encoder.size();
        let chunk = [rows, model.manifest.action.width];
        network.denoise_in_steps(variant, |step, velocity| {
            sheet.floats(&format!("velocity.{step}"), &chunk, velocity);
        })?;
        let mut values = vec![0.0; rows * columns];
        model.encoder.plain_rows(network.latent(0), &case.state, &mut values);
        sheet.floats("normalised_rows", &chunk, network.latent(0));
        sheet.floats("rows", &[rows, columns], &values);
        Ok(sheet)
    }
}
