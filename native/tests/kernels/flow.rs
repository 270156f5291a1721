//! Flow update against `euler::advance`.

use super::halves::{assert_holds, tensor, widen};
use super::random::Random;
use super::stage::Stage;
use super::{Of, Test};
use tendon::flow::euler;
use tendon::gpu::device::Memory;
use tendon::gpu::flow::{Kernel, PAIRS, Step, Version, bytes};
use tendon::gpu::{CudaError, Number};

pub const TESTS: &[Test] = &[
    ("flow::the_reference_equals_the_engine", Of::Host, reference),
    ("flow::every_version_equals_the_engine", Of::Kernels, versions),
    ("flow::every_half_is_read_as_its_value", Of::Kernels, loads),
    ("flow::version_2_refuses_what_it_cannot_load_at_once", Of::Host, unaligned),
    ("flow::a_step_moves_latent_and_velocity", Of::Host, moved),
];

/// A step on values that f32 holds.
struct Case {
    latent: Vec<f32>,
    velocity: Vec<f32>,
    branches: usize,
    guide: Option<f32>,
    dt: f32,
    /// Values of a row of the batch, and of each row those that are held.
    row: usize,
    held: Option<Vec<u32>>,
}

/// All ways to be guided, both directions, and values behind the ones that are used.
fn cases(count: usize, random: &mut Random) -> Vec<Case> {
    let ways = [(1, None), (2, None), (2, Some(3.0)), (2, Some(0.7)), (2, Some(0.0))];
    let mut cases = Vec::new();
    for (branches, guide) in ways {
        for dt in [-0.1, 0.1, 1.0 / 3.0, -1.0] {
            let branch = count.next_multiple_of(4) + 4 * random.below(3);
            let (latent, velocity) = (random.floats(count), random.floats(branch * branches));
            let row = 1 + random.below(count);
            let held = (random.below(2) == 0)
                .then(|| (0..count.div_ceil(row)).map(|_| random.below(row + 1) as u32).collect());
            cases.push(Case { latent, velocity, branches, guide, dt, row, held });
        }
    }
    cases
}

fn engine(case: &Case) -> Vec<f32> {
    let mut latent = case.latent.clone();
    euler::advance(&mut latent, &case.velocity, case.branches, case.guide, case.dt);
    for (row, &held) in case.held.iter().flatten().enumerate() {
        let end = (row * case.row + held as usize).min(latent.len());
        latent[row * case.row..end].copy_from_slice(&case.latent[row * case.row..end]);
    }
    latent
}

const COUNTS: [usize; 9] = [1, 2, 3, 4, 5, 127, 128, 960, 4097];

fn reference(stage: &Stage) {
    type Reference = unsafe extern "C" fn(*mut f32, *const f32, u64, u64, f32, f32, u32, *const u32, u64);
    // SAFETY: the signature of flow_reference.
    let reference = unsafe { stage.library.get::<Reference>("flow_reference") }.expect("the reference");
    let mut random = Random::new(1);
    for case in COUNTS.iter().flat_map(|&count| cases(count, &mut random)) {
        let mut latent = case.latent.clone();
        let (count, branch) = (latent.len() as u64, (case.velocity.len() / case.branches) as u64);
        let (guide, guided) = (case.guide.unwrap_or(0.0), u32::from(case.guide.is_some()));
        let held = case.held.as_ref().map_or(std::ptr::null(), |held| held.as_ptr());
        let (to, from, row) = (latent.as_mut_ptr(), case.velocity.as_ptr(), case.row as u64);
        // SAFETY: all are as long as said.
        unsafe { reference(to, from, count, branch, case.dt, guide, guided, held, row) };
        assert_eq!(bits(&latent), bits(&engine(&case)), "{count} values, guide {:?}, dt {}", case.guide, case.dt);
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn versions(stage: &Stage) {
    for pair in PAIRS {
        for version in Version::ALL {
            let kernel = Kernel::find(&stage.module, version, pair).expect("the kernel");
            let mut random = Random::new(2);
            for case in COUNTS.iter().flat_map(|&count| cases(count, &mut random)) {
                for threads in [32, 256] {
                    stage.in_both_orders(|| check(stage, &kernel, pair, &case, threads));
                }
            }
        }
    }
}

fn check(stage: &Stage, kernel: &Kernel, pair: (Number, Number), case: &Case, threads: u32) {
    let (latent_bytes, latent) = tensor(pair.0, &case.latent);
    let (velocity_bytes, velocity) = tensor(pair.1, &case.velocity);
    let expected = engine(&Case { latent, velocity, held: case.held.clone(), ..*case });
    let on = |bytes: &[u8]| stage.device.copy_of(bytes).expect("memory");
    let (latent, velocity) = (on(&latent_bytes), on(&velocity_bytes));
    let held = case.held.as_ref().map(|held| stage.device.copy_of(held).expect("memory"));
    let step = Step {
        latent: latent.address(),
        velocity: velocity.address(),
        count: case.latent.len() as u64,
        branch: (case.velocity.len() / case.branches) as u64,
        dt: case.dt,
        guide: case.guide,
        prefix_values: held.as_ref().map_or(0, Memory::address),
        row: case.row as u64,
    };
    // SAFETY: the tensors are as large as the step says.
    unsafe { kernel.launch(&step, threads) }.expect("a launch");
    let what = format!("{pair:?}, {} values, guide {:?}, dt {}", step.count, case.guide, case.dt);
    assert_holds(pair.0, &latent.read(latent_bytes.len()).expect("the latent"), &expected, &what);
}

fn loads(stage: &Stage) {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for number in [Number::F16, Number::Bf16] {
        for version in Version::ALL {
            let kernel = Kernel::find(&stage.module, version, (Number::F32, number)).expect("the kernel");
            let velocity = stage.device.copy_of(&all).expect("memory");
            let latent = stage.device.copy_of(&vec![0_f32; all.len()]).expect("memory");
            let (count, branch) = (all.len() as u64, all.len() as u64);
            let (latent_at, velocity_at) = (latent.address(), velocity.address());
            let step = Step {
                latent: latent_at,
                velocity: velocity_at,
                count,
                branch,
                dt: 1.0,
                guide: None,
                prefix_values: 0,
                row: count,
            };
            // SAFETY: the tensors are as large as the step says.
            unsafe { kernel.launch(&step, 256) }.expect("a launch");
            for (value, &bits) in latent.read::<f32>(all.len()).expect("the latent").iter().zip(&all) {
                let expected = widen(number, bits);
                assert!(*value == expected || (value.is_nan() && expected.is_nan()), "{number:?} {bits:#x} is {value}");
            }
        }
    }
}

fn unaligned(stage: &Stage) {
    let kernel = Kernel::find(&stage.module, Version::V2, (Number::F32, Number::F32)).expect("the kernel");
    let memory = stage.device.copy_of(&[0_f32; 64]).expect("memory");
    let (latent, velocity) = (memory.address(), memory.address() + 128);
    let whole = Step { latent, velocity, count: 8, branch: 8, dt: 0.0, guide: Some(1.0), prefix_values: 0, row: 1 };
    // SAFETY: 64 values hold them all.
    let launch = |step: &Step| unsafe { kernel.launch(step, 32) };
    assert_eq!(launch(&whole), Ok(()));
    assert_eq!(launch(&Step { branch: 7, guide: None, ..whole }), Ok(()));
    for bad in
        [Step { latent: latent + 4, ..whole }, Step { velocity: velocity + 8, ..whole }, Step { branch: 7, ..whole }]
    {
        assert!(matches!(launch(&bad), Err(CudaError::Call(_))), "{bad:?}");
    }
}

fn moved(_: &Stage) {
    let step = Step { latent: 0, velocity: 0, count: 100, branch: 100, dt: 0.0, guide: None, prefix_values: 0, row: 1 };
    assert_eq!(bytes(&step, (Number::F32, Number::F32)), 1200);
    assert_eq!(bytes(&Step { guide: Some(2.0), ..step }, (Number::F32, Number::Bf16)), 1200);
}
