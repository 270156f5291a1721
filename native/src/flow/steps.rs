//! The flow of one batch, from noise to chunks: all steps as one graph or one by one, advanced by our kernels or by the host.

use super::device_flow::DeviceFlow;
use super::{Network, Video};
use crate::flow::euler;
use crate::gpu::CudaError;
use crate::ort::mirrors::Changed;

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
    pub fn denoise(&mut self, variant: usize, mut go_on: impl FnMut(u32) -> bool) -> Result<bool, String> {
        if self.device_flow.is_some() {
            let ran = self.denoise_on_device(variant, go_on);
            return self.settle().and(ran);
        }
        if self.whole {
            if !(0..self.flow.steps).all(go_on) {
                return Ok(false);
            }
            let ran = self.denoise.run(variant, Changed::All, &mut self.mirrors, &mut self.tensors);
            return ran.map(|()| true).map_err(|error| format!("denoise: {error}"));
        }
        for step in 0..self.flow.steps {
            if !go_on(step) {
                return Ok(false);
            }
            self.step(variant, step)?;
        }
        Ok(true)
    }

    /// Runs one step of a variant's flow, with latents on the host.
    pub(super) fn step(&mut self, variant: usize, step: u32) -> Result<(), String> {
        let (rows, most) = (self.variants[variant].batch, self.rows_max());
        let (_, dt) = self.flow.step(step);
        self.inputs.time(&mut self.tensors, self.flow.time(step), self.flow.time(self.flow.steps));
        self.denoise
            .run(variant, Changed::of(step), &mut self.mirrors, &mut self.tensors)
            .map_err(|error| format!("denoise step {step}: {error}"))?;
        let values = self.tensors[self.at.latent].len / most * rows;
        self.advance(self.at.latent, self.at.velocity, self.guide_action, values, dt);
        self.restore_prefix(rows);
        if let Some(Video { latent, velocity, guide }) = self.video {
            self.advance(latent, velocity, guide, self.tensors[latent].len, dt);
        }
        Ok(())
    }

    /// Runs the steps with latents on the device, where chunks are decoded too. Steps enter the stream ahead of the device, so an early end
    /// drops the steps that are not in the stream yet.
    fn denoise_on_device(&mut self, variant: usize, mut go_on: impl FnMut(u32) -> bool) -> Result<bool, String> {
        let rows = self.variants[variant].batch;
        let Network { device_flow: Some(device_flow), inputs, tensors, flow, denoise, mirrors, .. } = self else {
            return Ok(false);
        };
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

    /// Restores the continued rows of the first `rows` rows, as they were before the step.
    fn restore_prefix(&mut self, rows: usize) {
        if self.prefix_latents.is_empty() {
            return;
        }
        let chunk = self.prefix_latents.len() / self.rows_max();
        for row in 0..rows {
            let len = self.prefix_len(row);
            let Network { prefix_latents, tensors, at, .. } = self;
            tensors[at.latent].floats()[row * chunk..][..len].copy_from_slice(&prefix_latents[row * chunk..][..len]);
        }
    }

    /// Advances the first `values` values of a latent by one step.
    fn advance(&mut self, latent: usize, velocity: usize, guide: Option<f32>, values: usize, dt: f32) {
        let [latent, velocity] = self.tensors.get_disjoint_mut([latent, velocity]).expect("two roles are two tensors");
        euler::advance(&mut latent.floats()[..values], velocity.floats(), self.branches, guide, dt);
    }
}
