//! libjpeg-turbo against the decoders of a device, at load: what the frames of an observation take, and how far apart the pixels are.

use super::{FrameSpec, OnDevice, Refusal, Worker};
use crate::core::memory::Block;
use crate::core::sync::lock;
use crate::image::jpeg::{self, Decoder, Library};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Rounds that are not measured, and those whose median counts: once this time is over, three are enough.
const WARM_ROUNDS: usize = 2;
const ROUNDS: usize = 15;
const ROUNDS_MIN: usize = 3;
const TIME_MAX: Duration = Duration::from_millis(500);

/// Microseconds until the tensors of all frames of an observation are in host memory, each the median.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// By libjpeg-turbo.
    pub host_us: f64,
    /// By the decoders of the device, and by libjpeg-turbo where none of them is free or takes the file.
    pub device_us: f64,
}

/// How far pixels are from those of libjpeg-turbo, in levels from 0 to 255, before they are resized.
#[derive(Serialize, Clone, Copy, Default, Debug, PartialEq)]
pub struct Apart {
    /// The largest difference.
    pub largest: u8,
    /// The mean of all.
    pub mean: f64,
}

/// Decodes an observation's frames, each with its camera, on `threads` threads as the decode pool does it: both sides in turns, so that a
/// machine that slows down slows both. `slowed`: how much longer libjpeg-turbo takes for a frame, for a test. The error is a sentence part.
pub fn race(
    device: &OnDevice,
    library: &Arc<Library>,
    specs: &[FrameSpec],
    frames: &[(usize, &[u8])],
    threads: usize,
    slowed: Duration,
) -> Result<Times, String> {
    let threads = threads.clamp(1, frames.len().max(1));
    let tensors = frames.iter().map(|(camera, _)| Block::locked(specs[*camera].bytes()).map(Mutex::new));
    let tensors: Vec<Mutex<Block<u8>>> = tensors.collect::<Result<_, _>>()?;
    let workers: Vec<Worker> =
        (0..threads).map(|_| Worker::new(Decoder::new(library)?)).collect::<Result<_, String>>()?;
    let (gate, next) = (Barrier::new(threads + 1), AtomicUsize::new(0));
    let failed = Mutex::new(None);
    let decode = |worker: &mut Worker, on_device: bool, at: usize| -> Result<(), String> {
        let ((camera, jpeg), tensor) = (frames[at], &mut lock(&tensors[at]));
        if on_device {
            let header = jpeg::inspect(jpeg)?;
            match device.decode(camera, jpeg, header, tensor) {
                Some(Ok(())) => return Ok(()),
                Some(Err(refusal)) if !refusal.is_by_rule() => return Err(refusal.to_string()),
                _ => {}
            }
        }
        worker.frame(&specs[camera], jpeg, tensor)?;
        if !slowed.is_zero() {
            std::thread::sleep(slowed);
        }
        Ok(())
    };
    // What the next round is: None is the end.
    let side = Mutex::new(None);
    let mut spent = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    std::thread::scope(|scope| -> Result<(), String> {
        let mut begins = Vec::with_capacity(threads);
        for mut worker in workers {
            let (gate, next, failed, decode, side) = (&gate, &next, &failed, &decode, &side);
            let (begin, begun) = mpsc::channel::<()>();
            let work = move || {
                // Where one of them cannot be made, none goes to the gate.
                if begun.recv().is_err() {
                    return;
                }
                loop {
                    gate.wait();
                    let Some(on_device) = *lock(side) else { return };
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= frames.len() {
                            break;
                        }
                        // The others wait for this thread, whatever happens to it.
                        let done = catch_unwind(AssertUnwindSafe(|| decode(&mut worker, on_device, at)));
                        if let Err(reason) = done.unwrap_or_else(|_| Err("a decoder panicked".into())) {
                            lock(failed).get_or_insert(reason);
                        }
                    }
                    gate.wait();
                }
            };
            let made = std::thread::Builder::new().spawn_scoped(scope, work);
            made.map_err(|error| format!("no thread to measure it with: {error}"))?;
            begins.push(begin);
        }
        for begin in begins {
            // Cannot fail: the thread waits for it.
            let _ = begin.send(());
        }
        let all = Instant::now();
        for round in 0..WARM_ROUNDS + ROUNDS {
            if round >= WARM_ROUNDS + ROUNDS_MIN && all.elapsed() > TIME_MAX {
                break;
            }
            for on_device in [false, true] {
                *lock(&side) = Some(on_device);
                next.store(0, Ordering::Relaxed);
                // Both waits order what the threads read and write.
                let begun = Instant::now();
                gate.wait();
                gate.wait();
                if round >= WARM_ROUNDS {
                    spent[usize::from(on_device)].push(begun.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
        *lock(&side) = None;
        gate.wait();
        Ok(())
    })?;
    if let Some(reason) = lock(&failed).take() {
        return Err(reason);
    }
    let [host_us, device_us] = spent.map(median);
    Ok(Times { host_us, device_us })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The pixels by both decoders, of all frames that nvJPEG is given. The error is a sentence part.
pub fn apart<'a>(
    device: &OnDevice,
    worker: &mut Worker,
    frames: impl Iterator<Item = &'a [u8]>,
) -> Result<Apart, String> {
    let (mut largest, mut sum, mut count) = (0, 0_u64, 0_u64);
    for jpeg in frames {
        let header = worker.pixels(jpeg)?;
        let by_device = match device.pixels(jpeg, header).ok_or("its device is lost")? {
            Err(refusal) if refusal.is_by_rule() => continue,
            done => done.map_err(|refusal: Refusal| refusal.to_string())?,
        };
        for (one, other) in by_device.iter().zip(worker.rgb()) {
            let size = one.abs_diff(*other);
            largest = largest.max(size);
            sum += u64::from(size);
        }
        count += by_device.len() as u64;
    }
    if count == 0 {
        return Err("none of them is baseline YCbCr of 1920x1080 or less".into());
    }
    Ok(Apart { largest, mean: sum as f64 / count as f64 })
}
