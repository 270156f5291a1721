//! What each stage of one inference computed, for a comparison with a publisher's values.

use super::Network;
use crate::bundle::manifest::Port;
use crate::ort::tensor::{Storage, port_len};

impl Network {
    /// The bytes of a port of prefill or denoise in row 0 of a run of `variant`, which has one row. None for a port that has no tensor in
    /// the host's memory.
    pub fn stage(&mut self, port: &Port, variant: usize) -> Option<&[u8]> {
        let len = port_len(port, self.variants[variant]).ok()? * port.dtype.bytes();
        let is_port = |role, name: &str| role == port.role && name == port.name;
        let tensor = self.tensors.iter_mut().find(|tensor| is_port(tensor.role, &tensor.name))?;
        matches!(tensor.storage, Storage::Host(_)).then(|| &tensor.bytes()[..len])
    }

    /// Runs the flow step by step on the host. `velocity` takes the number of each step and its velocity in row 0, `[rows, width]`.
    pub fn denoise_in_steps(&mut self, variant: usize, mut velocity: impl FnMut(u32, &[f32])) -> Result<(), String> {
        let row = self.latent(0).len();
        let (Some(flow), Some(at)) = (&self.flow, self.at.velocity) else { return Ok(()) };
        for step in 0..flow.steps {
            self.step(variant, step)?;
            velocity(step, &self.tensors[at].floats()[..row]);
        }
        Ok(())
    }
}
