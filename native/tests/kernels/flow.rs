//! Flow update against `euler::advance`.

use super::random::Random;
use super::stage::Stage;
use super::{Of, Test};
use tendon::flow::euler;
use tendon::gpu::device::Memory;
use tendon::gpu::flow::{Kernel, Step};

pub const TESTS: &[Test] = &[("flow::the_kernel_equals_the_engine", Of::Kernels, equals)];

/// A step on values that f32 holds.
struct Case {
    latent: Vec<f32>,
    velocity: Vec<f32>,
    branches: usize,
    guide: Option<f32>,
    dt: f32,
    /// Values of a row of the batch, and how many first ones of each row stay unchanged.
    row: usize,
    prefix_values: Option<Vec<u32>>,
}

/// All kinds of guidance, both directions, and values behind the used ones.
fn cases(count: usize, random: &mut Random) -> Vec<Case> {
    let ways = [(1, None), (2, None), (2, Some(3.0)), (2, Some(0.7)), (2, Some(0.0))];
    let mut cases = Vec::new();
    for (branches, guide) in ways {
        for dt in [-0.1, 0.1, 1.0 / 3.0, -1.0] {
            let branch = count.next_multiple_of(4) + 4 * random.below(3);
            let (latent, velocity) = (random.floats(count), random.floats(branch * branches));
            let row = 1 + random.below(count);
            let prefix_values = (random.below(2) == 0)
                .then(|| (0..count.div_ceil(row)).map(|_| random.below(row + 1) as u32).collect());
            cases.push(Case { latent, velocity, branches, guide, dt, row, prefix_values });
        }
    }
    cases
}

fn engine(case: &Case) -> Vec<f32> {
    let mut latent = case.latent.clone();
    euler::advance(&mut latent, &case.velocity, case.branches, case.guide, case.dt);
    for (row, &prefix_values) in case.prefix_values.iter().flatten().enumerate() {
        let end = (row * case.row + prefix_values as usize).min(latent.len());
        latent[row * case.row..end].copy_from_slice(&case.latent[row * case.row..end]);
    }
    latent
}

const COUNTS: [usize; 9] = [1, 2, 3, 4, 5, 127, 128, 960, 4097];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn equals(stage: &Stage) {
    let kernel = Kernel::find(&stage.module).expect("the kernel");
    let mut random = Random::new(2);
    for case in COUNTS.iter().flat_map(|&count| cases(count, &mut random)) {
        for threads in [32, 256] {
            stage.in_both_orders(|| check(stage, &kernel, &case, threads));
        }
    }
}

fn check(stage: &Stage, kernel: &Kernel, case: &Case, threads: u32) {
    let on = |values: &[f32]| stage.device.copy_of(values).expect("memory");
    let (latent, velocity) = (on(&case.latent), on(&case.velocity));
    let prefix_values =
        case.prefix_values.as_ref().map(|prefix_values| stage.device.copy_of(prefix_values).expect("memory"));
    let step = Step {
        latent: latent.address(),
        velocity: velocity.address(),
        count: case.latent.len() as u64,
        branch: (case.velocity.len() / case.branches) as u64,
        dt: case.dt,
        guide: case.guide,
        prefix_values: prefix_values.as_ref().map_or(0, Memory::address),
        row: case.row as u64,
    };
    // SAFETY: the tensors are as large as the step says.
    unsafe { kernel.launch(&step, threads) }.expect("a launch");
    let moved: Vec<f32> = latent.read(case.latent.len()).expect("the latent");
    assert_eq!(bits(&moved), bits(&engine(case)), "{} values, guide {:?}, dt {}", step.count, case.guide, case.dt);
}
