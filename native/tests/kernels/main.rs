//! The kernels of `native/cuda/` against the code of the engine that they must equal, to the bit in f32, to the rounding in f16 and bf16.
//!
//! They are compiled as C++ with a library that answers as the NVIDIA driver does, which the engine's own code loads and launches them
//! through (`src/cuda/`). So this shows that kernels, launches and the engine agree; how a GPU takes them it cannot show.
//!
//! A harness of its own, since whether there is a C++ compiler is known when it runs: without one each test is skipped, and counted so.
//! A word behind `--` runs the tests whose names have it. On a host with a GPU, `-- gpu:FILE` runs the tests of the kernels there, with
//! the device code of that file (`dist/gpu/kernels.fatbin`); no host has done so yet.
//! The word `time` times the kernels beside (`timed.rs`).

mod chunk;
mod device;
mod flow;
mod frame;
mod halves;
mod host;
mod nvjpeg;
mod random;
mod stage;
mod timed;

use stage::Stage;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// A test: its name, whether it is of the kernels and can run on a GPU too, and what it does.
type Test = (&'static str, Of, fn(&Stage));

/// What a test is of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    /// Kernels, wherever they run.
    Kernels,
    /// The host's side, or the references.
    Host,
}

/// The word that asks for times.
const TIME: &str = "time";

fn main() -> ExitCode {
    let tests =
        [device::TESTS, host::TESTS, frame::TESTS, flow::TESTS, chunk::TESTS, nvjpeg::TESTS, timed::TESTS].concat();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let image = words.iter().find_map(|word| word.strip_prefix("gpu:"));
    let times = words.iter().any(|word| word == TIME);
    let part = words.iter().find(|word| !word.starts_with("gpu:") && *word != TIME).map_or("", String::as_str);
    let can_run = |of: Of| image.is_none() || of == Of::Kernels;
    let chosen: Vec<Test> = tests.iter().copied().filter(|(name, of, _)| can_run(*of) && name.contains(part)).collect();
    let out = tests.len() - chosen.len();
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    match Stage::build(image) {
        Ok(stage) => {
            if times {
                timed::print(&stage, timed::WHOLE);
            }
            for (name, _, test) in chosen {
                let good = catch_unwind(AssertUnwindSafe(|| test(&stage))).is_ok();
                println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
                *(if good { &mut passed } else { &mut failed }) += 1;
            }
        }
        Err(stage::Absent(reason)) => {
            chosen.iter().for_each(|(name, ..)| println!("test {name} ... ignored, {reason}"));
            ignored = chosen.len();
        }
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {out} filtered out\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
