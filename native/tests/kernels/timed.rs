//! How long each version of each kernel takes on the shapes of a robot, against what the card copies in the same run.
//!
//! The word `time` behind `--` prints it: microseconds of a launch by the device's events, median of rounds that take the versions in
//! turns; the bytes that the launch moves at least; and their share of the card's own copy. On a CPU the figures say nothing.

use super::chunk::plain;
use super::random::Random;
use super::stage::Stage;
use super::{Of, Test};
use tendon::bundle::manifest::Place;
use tendon::gpu::chunk::{Batch, Kernel as Decode, Plans, Verdict, Version as DecodeVersion};
use tendon::gpu::device::Memory;
use tendon::gpu::flow::{Kernel as Update, Step, Version as UpdateVersion, bytes as update_bytes};
use tendon::gpu::frame::{BLOCK, Frame, Kernel as Resize, Layout, Target, Value, Version as ResizeVersion, Way};
use tendon::gpu::stream::Laps;
use tendon::gpu::{CudaError, Number};
use tendon::image::resize::Mode;

pub const TESTS: &[Test] = &[("timed::every_version_has_a_time_and_a_share_of_a_copy", Of::Host, every)];

/// A kernel, its version and shape.
struct Timed<'a> {
    name: String,
    bytes: u64,
    launch: Box<dyn Fn() -> Result<(), CudaError> + 'a>,
    us: Vec<f32>,
}

/// How often.
#[derive(Clone, Copy)]
pub struct Rounds {
    /// Rounds, of which the median is taken.
    pub count: usize,
    /// Launches of a round, side by side in the stream.
    pub launches: usize,
    /// Bytes of the card's own copy.
    pub copied: usize,
}

/// Of a card.
pub const WHOLE: Rounds = Rounds { count: 9, launches: 200, copied: 256 << 20 };

/// Prints a line for the card's copy and one for each kernel.
pub fn print(stage: &Stage, rounds: Rounds) -> Vec<String> {
    let device = &stage.device;
    let [from, to] = [0, 1].map(|_| device.memory(rounds.copied).expect("memory"));
    let (source, target, copied) = (from.address(), to.address(), rounds.copied);
    // Before what borrows it.
    let (frames, updates, chunks) = (Frames::new(stage), Updates::new(stage), Chunks::new(stage));
    let mut all = vec![Timed {
        name: "the card's own copy".into(),
        // Read and written.
        bytes: 2 * copied as u64,
        // SAFETY: as many bytes at both, which live to the end of this function.
        launch: Box::new(move || unsafe { device.stream().copy(target, source, copied) }),
        us: Vec::new(),
    }];
    all.extend(frames.timed(stage));
    all.extend(updates.timed(stage));
    all.extend(chunks.timed(stage));
    let mut laps = Laps::new(device.stream(), 1).expect("events");
    for _ in 0..=rounds.count {
        for one in &mut all {
            laps.begin();
            (0..rounds.launches).for_each(|_| (one.launch)().expect("a launch"));
            laps.end();
            one.us.push(1000.0 * laps.take_ms().expect("a time") / rounds.launches as f32);
        }
    }
    let mut best = 0.0;
    let lines = all.iter_mut().map(|one| {
        // The first round warms up.
        one.us.remove(0);
        one.us.sort_by(f32::total_cmp);
        let us = one.us[one.us.len() / 2];
        let rate = one.bytes as f32 / us / 1000.0;
        if best == 0.0 {
            best = rate;
        }
        format!("{}: {us:.2} us, {} bytes, {rate:.1} GB/s, {:.1} %", one.name, one.bytes, 100.0 * rate / best)
    });
    let lines: Vec<String> = lines.collect();
    lines.iter().for_each(|line| println!("time {line}"));
    lines
}

/// Three cameras of a robot.
struct Frames {
    ways: Vec<Way>,
    frames: Memory,
    normal: Memory,
    tensor: Memory,
    _pictures: Vec<Memory>,
}

impl Frames {
    const SOURCE: (usize, usize) = (640, 360);
    const EDGE: usize = 224;
    const COUNT: usize = 3;

    fn new(stage: &Stage) -> Frames {
        let (device, edge) = (&stage.device, Frames::EDGE);
        let mut random = Random::new(12);
        let way = || Way::new(device, Mode::Pad(Place::Centre), Frames::SOURCE, (edge, edge)).expect("the weights");
        let ways: Vec<Way> = (0..Frames::COUNT).map(|_| way()).collect();
        let bytes = Frames::SOURCE.0 * Frames::SOURCE.1 * 3;
        let mut pictures = Vec::new();
        let mut placed: Vec<Frame> = Vec::new();
        for way in &ways {
            let rgb = device.copy_of(&random.bytes(bytes)).expect("memory");
            let scratch = device.memory(way.scratch_bytes()).expect("memory");
            placed.push(way.frame(rgb.address(), scratch.address()));
            pictures.extend([rgb, scratch]);
        }
        let normal = device.copy_of(&random.floats(768)).expect("memory");
        let tensor = device.memory(Frames::COUNT * edge * edge * 3 * 4).expect("memory");
        Frames { ways, frames: device.copy_of(&placed).expect("memory"), normal, tensor, _pictures: pictures }
    }

    fn timed(&self, stage: &Stage) -> Vec<Timed<'_>> {
        let edge = Frames::EDGE as u32;
        let read: u64 = self.ways.iter().map(Way::bytes).sum();
        let all = ResizeVersion::ALL.iter().flat_map(|&version| Value::ALL.map(|value| (version, value)));
        all.map(|(version, value)| {
            let kernel = Resize::find(&stage.module, version, value).expect("the kernel");
            let ways: Vec<&Way> = self.ways.iter().collect();
            let target = Target {
                tensor: self.tensor.address(),
                normal: self.normal.address(),
                width: edge,
                height: edge,
                layout: Layout::Chw,
            };
            let written = (Frames::COUNT * Frames::EDGE * Frames::EDGE * 3 * value.bytes()) as u64;
            Timed {
                name: format!("frame {version:?} {}, 3 of 640x360 to 224x224", value.name()),
                bytes: read + written,
                // SAFETY: the memory is as large as ways and target say, for values of four bytes, and lives as long as this.
                launch: Box::new(move || unsafe { kernel.launch(self.frames.address(), &ways, &target, BLOCK) }),
                us: Vec::new(),
            }
        })
        .collect()
    }
}

/// A latent of a chunk, and one that fills a card.
struct Updates {
    latent: Memory,
    velocity: Memory,
}

impl Updates {
    const COUNTS: [u64; 2] = [30 * 32, 1 << 22];

    fn new(stage: &Stage) -> Updates {
        let most = vec![0.0_f32; Updates::COUNTS[1] as usize];
        let copy = || stage.device.copy_of(&most).expect("memory");
        Updates { latent: copy(), velocity: copy() }
    }

    fn timed(&self, stage: &Stage) -> Vec<Timed<'_>> {
        let pair = (Number::F32, Number::F32);
        let all = UpdateVersion::ALL.iter().flat_map(|&version| Updates::COUNTS.map(|count| (version, count)));
        all.map(|(version, count)| {
            let kernel = Update::find(&stage.module, version, pair).expect("the kernel");
            let (latent, velocity) = (self.latent.address(), self.velocity.address());
            let step =
                Step { latent, velocity, count, branch: count, dt: -0.1, guide: None, prefix_values: 0, row: count };
            Timed {
                name: format!("flow {version:?} f32, {count} values"),
                bytes: update_bytes(&step, pair),
                // SAFETY: both tensors hold the most values, and live as long as this.
                launch: Box::new(move || unsafe { kernel.launch(&step, 128) }),
                us: Vec::new(),
            }
        })
        .collect()
    }
}

/// Chunks of 30 rows of 14 columns, alone and eight at once.
struct Chunks {
    plans: Plans,
    latents: Memory,
    states: Memory,
    values: Memory,
    verdicts: Memory,
}

impl Chunks {
    const BATCHES: [u32; 2] = [1, 8];

    fn new(stage: &Stage) -> Chunks {
        let (encoder, width, states) = plain(30, 14);
        let device = &stage.device;
        let most = Chunks::BATCHES[1] as usize;
        let mut random = Random::new(13);
        let plans = Plans::new(device, encoder.facts(), states as u32).expect("memory");
        let mut floats = |len: usize| device.copy_of(&random.floats(len)).expect("memory");
        let (latents, states) = (floats(most * 30 * width), floats(most * states));
        let values = device.memory(most * 30 * 14 * 4).expect("memory");
        let verdicts = device.memory(most * size_of::<Verdict>()).expect("memory");
        Chunks { plans, latents, states, values, verdicts }
    }

    fn timed(&self, stage: &Stage) -> Vec<Timed<'_>> {
        let all = DecodeVersion::ALL.iter().flat_map(|&version| Chunks::BATCHES.map(|chunks| (version, chunks)));
        all.map(|(version, chunks)| {
            let kernel = Decode::find(&stage.module, version, Number::F32).expect("the kernel");
            let batch = Batch {
                latents: self.latents.address(),
                states: self.states.address(),
                prefixes: 0,
                prefix_values: 0,
                values: self.values.address(),
                verdicts: self.verdicts.address(),
                chunks,
            };
            Timed {
                name: format!("chunk {version:?} f32, {chunks} of 30x14"),
                bytes: u64::from(chunks) * self.plans.bytes(Number::F32),
                // SAFETY: the memory is as large as plans and the largest batch say, and lives as long as this.
                launch: Box::new(move || unsafe { kernel.launch(&self.plans, &batch, 128) }),
                us: Vec::new(),
            }
        })
        .collect()
    }
}

fn every(stage: &Stage) {
    let lines = print(stage, Rounds { count: 1, launches: 1, copied: 1 << 20 });
    for kernel in ["frame V1 f16", "frame V3 f32", "flow V2 f32, 960 values", "chunk V2 f32, 8 of 30x14"] {
        let line = lines.iter().find(|line| line.starts_with(kernel)).unwrap_or_else(|| panic!("no {kernel}"));
        let bytes = line.split(", ").find_map(|part| part.strip_suffix(" bytes")?.parse::<u64>().ok());
        assert!(bytes.is_some_and(|bytes| bytes > 0) && line.ends_with(" %"), "{line}");
    }
    assert!(lines[0].ends_with(", 100.0 %"), "{}", lines[0]);
}
