//! The flow of one batch, from noise to chunks: all steps as one graph or one by one, advanced by our kernels or by the host.

use super::device_flow::DeviceFlow;
use super::roles::Roles;
use super::{Network, Video};
use crate::flow::euler;
use crate::gpu::CudaError;
use crate::ort::mirrors::Changed;
use crate::ort::tensor::Tensor;

/// The text of a failure of our kernels.
fn text(error: &CudaError) -> String {
    error.to_string()
}

impl Network {
    /// Runs a variant's flow for the first time: one step, or all of them as one graph.
    pub fn warm(&mut self, variant: usize) -> Result<(), String> {
        let whole = self.whole;
        self.denoise(variant, |step| whole || step == 0)?;
        self.fetch()
    }

    /// Waits until no work of a stopped or failed inference uses the host's tensors.
    pub fn settle(&mut self) -> Result<(), String> {
        self.device_flow.as_mut().map_or(Ok(()), DeviceFlow::settle).map_err(|error| text(&error))
    }

    /// Runs all flow steps of a variant. `go_on` is asked before each step, and for a whole flow before the first one. False ends the loop
    /// early and is returned.
    ///
    /// Without a flow prefill has given the chunk already, and `go_on` is asked once.
    pub fn denoise(&mut self, variant: usize, mut go_on: impl FnMut(u32) -> bool) -> Result<bool, String> {
        if self.device_flow.is_some() {
            let ran = self.denoise_on_device(variant, go_on);
            return self.settle().and(ran);
        }
        let Some(steps) = self.flow.as_ref().map(|flow| flow.steps) else { return Ok(go_on(0)) };
        if self.whole {
            if !(0..steps).all(go_on) {
                return Ok(false);
            }
            let Network { denoise: Some(denoise), mirrors, tensors, .. } = self else { return Ok(false) };
            let ran = denoise.run(variant, Changed::All, mirrors, tensors);
            return ran.map(|()| true).map_err(|error| format!("denoise: {error}"));
        }
        for step in 0..steps {
            if !go_on(step) {
                return Ok(false);
            }
            self.step(variant, step)?;
        }
        Ok(true)
    }

    /// Runs one step of a variant's flow, with latents on the host.
    pub(super) fn step(&mut self, variant: usize, step: u32) -> Result<(), String> {
        let share = (self.variants[variant].batch, self.rows_max());
        let Network { flow: Some(flow), denoise: Some(denoise), inputs, tensors, mirrors, branches, .. } = self else {
            return Ok(());
        };
        let Roles { latent, velocity: Some(velocity), .. } = self.at else {
            return Err("its flow has no velocity".into());
        };
        let (_, dt) = flow.step(step);
        inputs.time(tensors, flow.time(step), flow.time(flow.steps));
        denoise
            .run(variant, Changed::of(step), mirrors, tensors)
            .map_err(|error| format!("denoise step {step}: {error}"))?;
        advance(tensors, (latent, velocity), share, (*branches, self.guide_action), dt);
        restore(&mut tensors[latent], &self.prefix_latents, share, |row| inputs.prefix_rows(row) * self.action_width);
        if let Some(Video { latent, velocity, guide }) = self.video {
            advance(tensors, (latent, velocity), (1, 1), (*branches, guide), dt);
        }
        Ok(())
    }

    /// Runs the steps with latents on the device, where chunks are decoded too. Steps enter the stream ahead of the device, so an early end
    /// drops the steps that are not in the stream yet.
    fn denoise_on_device(&mut self, variant: usize, mut go_on: impl FnMut(u32) -> bool) -> Result<bool, String> {
        let rows = self.variants[variant].batch;
        let Network { device_flow: Some(device_flow), flow: Some(flow), denoise: Some(denoise), .. } = self else {
            return Ok(false);
        };
        let (inputs, tensors, mirrors) = (&mut self.inputs, &mut self.tensors, &mut self.mirrors);
        device_flow.begin(rows, inputs, tensors, flow).map_err(|error| text(&error))?;
        if self.whole {
            if !(0..flow.steps).all(go_on) {
                return Ok(false);
            }
            denoise.run(variant, Changed::All, mirrors, tensors).map_err(|error| format!("denoise: {error}"))?;
        } else {
            for step in 0..flow.steps {
                if !go_on(step) {
                    return Ok(false);
                }
                device_flow.step(step).map_err(|error| text(&error))?;
                let ran = denoise.run(variant, Changed::of(step), mirrors, tensors);
                ran.map_err(|error| format!("denoise step {step}: {error}"))?;
                device_flow.advance(rows, flow.step(step).1).map_err(|error| text(&error))?;
            }
        }
        device_flow.decode(rows).map_err(|error| text(&error))?;
        // The host makes the sentence about a refused chunk from its latent.
        if (0..rows).any(|row| device_flow.decoded(row).1.is_err()) {
            device_flow.fetch(tensors).map_err(|error| text(&error))?;
        }
        Ok(true)
    }

    /// Copies the latents that the device has decoded to the host, for a comparison.
    pub fn fetch(&mut self) -> Result<(), String> {
        let Network { device_flow, tensors, .. } = self;
        device_flow.as_mut().map_or(Ok(()), |device_flow| device_flow.fetch(tensors)).map_err(|error| text(&error))
    }
}

/// Restores the continued rows of the first of `most` rows, as they were before the step: `len` values of each.
fn restore(latent: &mut Tensor, kept: &[f32], (rows, most): (usize, usize), len: impl Fn(usize) -> usize) {
    if kept.is_empty() {
        return;
    }
    let chunk = kept.len() / most;
    for row in 0..rows {
        let at = row * chunk..row * chunk + len(row);
        latent.floats()[at.clone()].copy_from_slice(&kept[at]);
    }
}

/// Advances the first `rows` of `most` rows of a latent by one step.
fn advance(
    tensors: &mut [Tensor],
    (latent, velocity): (usize, usize),
    (rows, most): (usize, usize),
    (branches, guide): (usize, Option<f32>),
    dt: f32,
) {
    let values = tensors[latent].len / most * rows;
    let [latent, velocity] = tensors.get_disjoint_mut([latent, velocity]).expect("two roles are two tensors");
    euler::advance(&mut latent.floats()[..values], velocity.floats(), branches, guide, dt);
}
