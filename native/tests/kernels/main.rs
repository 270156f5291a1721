//! The kernels of `native/cuda/` against the code of the engine that they must equal to the bit.
//!
//! They are compiled as C++ with a library that answers as the NVIDIA driver does; the engine's own code loads and launches them
//! (`src/gpu/`). So kernels, launches and the engine agree; a GPU may still differ.
//!
//! The harness is our own, because only a run shows whether there is a C++ compiler: without one each test is skipped and counted. A word
//! behind `--` runs the tests whose names have it. On a host with a GPU, `-- gpu:FILE` runs the tests of the kernels there, with the device
//! code of that file (`dist/gpu/kernels.fatbin`); no host has done so yet.

mod chunk;
mod device;
mod flow;
mod host;
mod random;
mod stage;

use stage::Stage;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// A test: its name, its subject and its function.
type Test = (&'static str, Of, fn(&Stage));

/// The subject of a test.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    /// Kernels, wherever they run.
    Kernels,
    /// The host's side.
    Host,
}

fn main() -> ExitCode {
    let tests = [device::TESTS, host::TESTS, flow::TESTS, chunk::TESTS].concat();
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let image = arguments.iter().find_map(|word| word.strip_prefix("gpu:"));
    let part = arguments.iter().find(|word| !word.starts_with("gpu:")).map_or("", String::as_str);
    let can_run = |of: Of| image.is_none() || of == Of::Kernels;
    let chosen: Vec<Test> = tests.iter().copied().filter(|(name, of, _)| can_run(*of) && name.contains(part)).collect();
    let out = tests.len() - chosen.len();
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    match Stage::build(image) {
        Ok(stage) => {
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
