//! Chunk decode against `Encoder::encode`.

use super::random::Random;
use super::stage::Stage;
use super::{Of, Test};
use serde_json::{Value, json};
use tendon::bundle::manifest::{ColumnStats, Manifest, Statistic};
use tendon::flow::encoder::Encoder;
use tendon::gpu::chunk::{Batch, Kernel, NOWHERE, Plans, Refusal, Verdict};

pub const TESTS: &[Test] = &[
    ("chunk::the_kernel_equals_the_engine", Of::Kernels, equals),
    ("chunk::the_first_reason_is_the_engines", Of::Host, judged),
];

/// The chunk of a bundle: its encoder, and the sizes of latent and state.
struct Bundle {
    encoder: Encoder,
    rows: usize,
    width: usize,
    columns: usize,
    states: usize,
    names: Vec<String>,
    rotations: Vec<usize>,
}

const NORMS: [&str; 3] = ["none", "quantile", "mean_std"];
const EPSILON_RULES: [&str; 3] = ["added", "zero_range", "at_least"];

/// The strictness of a bundle.
#[derive(Clone, Copy)]
struct Kind {
    clamp: bool,
    limits: bool,
    /// Edges of the ranges: narrow ones are left.
    range: f64,
    /// Means so large that their sum with a state cancels: the order of a sum, and each rounding, is seen.
    cancels: bool,
    /// Additions of published policies: statistics of each row, clips, and columns that are computed in f32.
    published: bool,
}

impl Bundle {
    fn new(rows: usize, columns: usize, rotations: &[usize], kind: Kind, random: &mut Random) -> Bundle {
        let (width, states) = (columns + random.below(5), columns + random.below(3));
        let names: Vec<String> = (0..columns).map(|index| format!("c{index}")).collect();
        let state: Vec<Value> =
            (0..states).map(|index| json!({ "name": format!("c{index}"), "norm": "none" })).collect();
        let action: Vec<Value> = (names.iter())
            .map(|name| {
                let clip = (kind.published && random.below(2) == 0).then(|| json!({ "min": -0.7, "max": 0.8 }));
                let relative = (random.below(3) == 0).then(|| random.below(states));
                let limit = |random: &mut Random| (kind.limits && random.below(2) == 0).then(|| 2.0 + random.unit());
                json!({
                    "name": name,
                    "norm": NORMS[random.below(3)],
                    "epsilon_rule": EPSILON_RULES[if kind.published { random.below(3) } else { 0 }],
                    "relative_to": relative,
                    "clip": clip,
                    "min": -kind.range + random.unit() * 0.1,
                    "max": kind.range + random.unit() * 0.1,
                    "max_jump": limit(random),
                    "max_step": limit(random),
                })
            })
            .collect();
        let mut manifest: Value = serde_json::from_str(include_str!("../manifest.json")).expect("JSON");
        manifest["state"] = json!({ "columns": state, "width": states });
        manifest["action"] = json!({
            "rows": rows, "prefix": rows / 2, "width": width, "columns": action, "rotation6d": rotations,
            "out_of_range": if kind.clamp { "clamp" } else { "fail" },
        });
        let manifest: Manifest = serde_json::from_value(manifest).expect("a manifest");
        let mut draw = |low: f64, high: f64| -> Vec<f64> {
            (0..columns).map(|_| low + (high - low) * (random.unit() + 1.0) / 2.0).collect()
        };
        let (q01, q99, mut mean, std) = (draw(-1.5, -0.5), draw(0.5, 1.5), draw(-0.3, 0.3), draw(0.2, 0.9));
        if kind.cancels {
            // Each is an f32, as the state is that it is added to.
            mean.iter_mut().for_each(|mean| *mean = f64::from((*mean * 1e12) as f32));
        }
        let table = |values: Vec<f64>| match kind.published {
            true => Statistic::Rows(
                (0..rows).map(|row| values.iter().map(|value| value + 0.01 * row as f64).collect()).collect(),
            ),
            false => Statistic::Columns(values),
        };
        let [q01, q99, mean] = [q01, q99, mean].map(table);
        let stats = ColumnStats { q01, q99, mean, std: Statistic::Columns(std), ..ColumnStats::default() };
        let encoder = Encoder::new(&manifest, &stats).expect("an encoder");
        Bundle { encoder, rows, width, columns, states, names, rotations: rotations.to_vec() }
    }

    /// The engine's result for a latent: how many values were clamped, or the beginning of its sentence.
    fn engine(&self, Input { latent, state, prefix }: &Input) -> (Vec<f32>, Result<u32, String>) {
        let mut values = vec![0.0; self.rows * self.columns];
        let clamped = self.encoder.encode(prefix, latent, state, &mut values);
        (values, clamped)
    }

    /// The engine's sentence about a refusal; `*` is a part that varies.
    fn sentence(&self, refusal: Refusal) -> String {
        let name = |column: u32| &self.names[column as usize];
        match refusal {
            Refusal::NotFinite(row, column) => format!("row {row}, {} is not a finite number", name(column)),
            Refusal::NoRotation(row, rotation) => {
                format!("row {row}, {} begins no rotation", self.names[self.rotations[rotation as usize]])
            }
            Refusal::Outside(row, column) => format!("row {row}, {} is * outside", name(column)),
            Refusal::Jump(row, column) => {
                format!("row {row}, {} is * from the {}", name(column), if row == 0 { "state's" } else { "" })
            }
            Refusal::Step(row, column) => format!("row {row}, {} is * in the row before", name(column)),
        }
    }

    /// Asserts that verdict and values are the engine's.
    fn check(&self, input: &Input, values: &[f32], verdict: &Verdict, what: &str) -> String {
        let (expected, clamped) = self.engine(input);
        match (self.encoder.facts().judge(verdict), clamped) {
            (Ok(clamped), Ok(engine)) => {
                assert_eq!(clamped, engine, "{what}: clamped");
                let differ = |(one, other): (&f32, &f32)| one.to_bits() != other.to_bits();
                assert_eq!(values.iter().zip(&expected).position(differ), None, "{what}: a value differs");
                String::from(if clamped > 0 { "clamped" } else { "good" })
            }
            (Err(refusal), Err(engine)) => {
                let sentence = self.sentence(refusal);
                let (begin, end) = sentence.split_once('*').unwrap_or((&sentence, ""));
                assert!(engine.starts_with(begin) && engine.contains(end.trim()), "{what}: {refusal:?}, {engine}");
                format!("{refusal:?}").split('(').next().unwrap_or_default().into()
            }
            (ours, engine) => panic!("{what}: {ours:?}, but the engine says {engine:?}"),
        }
    }
}

fn bundles() -> Vec<Bundle> {
    let mut random = Random::new(7);
    let mut all = Vec::new();
    for (rows, columns, rotations) in
        [(30, 14, &[][..]), (1, 1, &[]), (50, 32, &[4]), (16, 20, &[0, 14]), (32, 64, &[3, 40]), (3, 6, &[0])]
    {
        for (clamp, limits, range, cancels, published) in [
            (true, false, 1.0, false, false),
            (true, false, 3.0, true, false),
            (true, true, 2.0, false, false),
            (false, false, 9.0, false, false),
            (false, true, 4.0, false, false),
            (false, true, 0.9, false, false),
            (true, false, 1.0, false, true),
            (true, true, 2.5, false, true),
            (false, false, 9.0, false, true),
            (false, true, 4.0, false, true),
        ] {
            let kind = Kind { clamp, limits, range, cancels, published };
            all.push(Bundle::new(rows, columns, rotations, kind, &mut random));
        }
    }
    all
}

/// The inputs of one chunk.
struct Input {
    latent: Vec<f32>,
    state: Vec<f32>,
    /// Rows that it continues.
    prefix: Vec<f32>,
}

/// A latent and a state, some of them bad: NaN, too large, a rotation that spans no plane, a jump; and rows to continue.
fn inputs(bundle: &Bundle, turn: usize, random: &mut Random) -> Input {
    let slope: Vec<f32> = random.floats(bundle.width);
    let mut latent: Vec<f32> = (0..bundle.rows * bundle.width)
        .map(|at| slope[at % bundle.width] * 0.3 + (random.unit() * 0.4) as f32)
        .collect();
    let mut state: Vec<f32> = random.floats(bundle.states).iter().map(|value| value * 0.3).collect();
    let facts = bundle.encoder.facts();
    for (column, scale) in facts.columns.iter().zip(&facts.scales).filter(|(_, scale)| scale.offset.abs() > 1e9) {
        if let Ok(index) = usize::try_from(column.relative_to) {
            state[index] = -scale.offset as f32;
        }
    }
    let mut any = || random.below(latent.len());
    let (one, other) = (any(), any());
    match turn % 10 {
        1 => latent[one] = f32::NAN,
        2 => (latent[one], latent[other]) = (f32::INFINITY, f32::NAN),
        3 => latent[one] = 40.0,
        4 => latent.fill(0.0),
        5 => latent[one / bundle.width * bundle.width..][..bundle.width].fill(1e-9),
        6 => state[0] = 30.0,
        7 => (latent[one], state[0]) = (f32::MAX, f32::NAN),
        // A state that is no rotation, and one that is nowhere.
        8 => state.fill(0.25),
        9 => state.fill(f32::MAX),
        _ => {}
    }
    let rows = random.below(facts.prefix_rows as usize + 1);
    let prefix = random.floats(rows * bundle.columns).iter().map(|value| value * 0.3).collect();
    Input { latent, state, prefix }
}

const TURNS: usize = 30;

fn equals(stage: &Stage) {
    let mut seen = std::collections::BTreeSet::new();
    let kernel = Kernel::find(&stage.module).expect("the kernel");
    for threads in [128, 32, 1] {
        let mut random = Random::new(9);
        for bundle in bundles() {
            stage.in_both_orders(|| seen.extend(check(stage, &kernel, threads, &bundle, &mut random)));
        }
    }
    // The inputs are such that every verdict comes up.
    let kinds = ["Jump", "NoRotation", "NotFinite", "Outside", "Step", "clamped", "good"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), kinds);
}

/// Decodes all turns as one batch; returns their results.
fn check(stage: &Stage, kernel: &Kernel, threads: u32, bundle: &Bundle, random: &mut Random) -> Vec<String> {
    let plans = Plans::new(&stage.device, bundle.encoder.facts(), bundle.states as u32).expect("memory");
    let inputs: Vec<_> = (0..TURNS).map(|turn| inputs(bundle, turn, random)).collect();
    let on = |values: Vec<f32>| stage.device.copy_of(&values).expect("memory");
    let latent_memory = on(inputs.iter().flat_map(|input| input.latent.clone()).collect());
    let state_memory = on(inputs.iter().flat_map(|input| input.state.clone()).collect());
    let room = bundle.encoder.facts().prefix_rows as usize * bundle.columns;
    let prefixes: Vec<f32> = (inputs.iter())
        .flat_map(|input| input.prefix.iter().copied().chain(std::iter::repeat_n(f32::NAN, room - input.prefix.len())))
        .collect();
    let prefix_rows: Vec<u32> = inputs.iter().map(|input| (input.prefix.len() / bundle.columns) as u32).collect();
    let [prefix_memory, held_memory] =
        [stage.device.copy_of(&prefixes), stage.device.copy_of(&prefix_rows)].map(|memory| memory.expect("memory"));
    let len = bundle.rows * bundle.columns;
    let value_memory = stage.device.memory(TURNS * len * 4).expect("memory");
    let verdict_memory = stage.device.memory(TURNS * size_of::<Verdict>()).expect("memory");
    let batch = Batch {
        latents: latent_memory.address(),
        states: state_memory.address(),
        prefixes: prefix_memory.address(),
        // A bundle whose chunks continue no rows has no prefix.
        prefix_rows: if room > 0 { held_memory.address() } else { 0 },
        values: value_memory.address(),
        verdicts: verdict_memory.address(),
        chunks: TURNS as u32,
    };
    // SAFETY: the memory is as large as plan and batch say.
    unsafe { kernel.launch(&plans, &batch, threads) }.expect("a launch");
    let values = value_memory.read::<f32>(TURNS * len).expect("values");
    let verdicts = verdict_memory.read::<Verdict>(TURNS).expect("verdicts");
    (0..TURNS)
        .map(|turn| {
            let values = &values[turn * len..][..len];
            let what = format!("{threads} threads, turn {turn}");
            bundle.check(&inputs[turn], values, &verdicts[turn], &what)
        })
        .collect()
}

fn judged(_: &Stage) {
    let mut random = Random::new(10);
    let mut bundle = |clamp| {
        let kind = Kind { clamp, limits: true, range: 1.0, cancels: false, published: false };
        Bundle::new(4, 8, &[0, 2], kind, &mut random).encoder.facts()
    };
    let (clamping, failing) = (bundle(true), bundle(false));
    let good = Verdict::default();
    assert_eq!(good.not_finite, NOWHERE);
    assert_eq!(clamping.judge(&Verdict { clamped: 3, outside: 5, ..good }), Ok(3));
    assert_eq!(failing.judge(&Verdict { clamped: 3, outside: 21, jump: 1, ..good }), Err(Refusal::Outside(2, 5)));
    assert_eq!(failing.judge(&Verdict { jump: 6, step: 9, ..good }), Err(Refusal::Jump(0, 6)));
    assert_eq!(failing.judge(&Verdict { step: 9, ..good }), Err(Refusal::Step(1, 1)));
    // Row 1: its numbers come before its rotations, and row 0 before both.
    let fatal = |not_finite, no_rotation| clamping.judge(&Verdict { not_finite, no_rotation, outside: 0, ..good });
    assert_eq!(fatal(15, 2), Err(Refusal::NotFinite(1, 7)));
    assert_eq!(fatal(15, 1), Err(Refusal::NoRotation(0, 1)));
    assert_eq!(fatal(NOWHERE, 3), Err(Refusal::NoRotation(1, 1)));
    // Statistics of each row, and those that all rows share.
    let kind = Kind { clamp: true, limits: false, range: 9.0, cancels: false, published: true };
    let published = Bundle::new(4, 18, &[3, 12], kind, &mut random).encoder.facts();
    assert_eq!((published.scales.len(), clamping.scales.len()), (4 * 18, 8));
}
