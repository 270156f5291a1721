//! One step of the flow on a CPU. `native/cuda/flow.cu` is the same for a GPU, to the bit.

/// x ← x + dt · v, v = v_u + guide · (v_c − v_u) where there is a guide, else v_c.
///
/// `velocity` has `branches` parts of the same length, the first with the instruction (v_c), the last without it (v_u). Each begins with
/// one value for each of `latent`.
pub fn advance(latent: &mut [f32], velocity: &[f32], branches: usize, guide: Option<f32>, dt: f32) {
    let (conditional, unconditional) = velocity.split_at(velocity.len() / branches);
    match guide {
        Some(scale) => {
            for ((x, c), u) in latent.iter_mut().zip(conditional).zip(unconditional) {
                *x += dt * (u + scale * (c - u));
            }
        }
        None => latent.iter_mut().zip(conditional).for_each(|(x, v)| *x += dt * v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_follows_the_velocity_in_either_direction() {
        for (dt, after) in [(0.5, [2.0, -1.0]), (-0.5, [0.0, -3.0])] {
            let mut latent = [1.0, -2.0];
            advance(&mut latent, &[2.0, 2.0], 1, None, dt);
            assert_eq!(latent, after);
        }
    }

    #[test]
    fn guidance_goes_beyond_the_velocity_without_instruction() {
        let mut latent = [0.0];
        advance(&mut latent, &[3.0, 1.0], 2, Some(2.0), 1.0);
        assert_eq!(latent, [5.0]);
        // Two branches of which only the first counts.
        advance(&mut latent, &[3.0, 1.0], 2, None, 1.0);
        assert_eq!(latent, [8.0]);
    }
}
