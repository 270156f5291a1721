//! A replica: one thread, sole owner of its network. It takes all that waits as one batch, so a lone robot never
//! waits for a timer.

use crate::allocator::thread_mallocs;
use crate::flow::Network;
use crate::layout::{OBSERVATION_FRAMES_MAX, STATE_VALUES_MAX};
use crate::model::Model;
use crate::pool::Completion;
use crate::run::{Job, RunSlots};
use crate::status::{Status, Ticket};
use crate::sync::lock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How a batch's native part ended, and its times.
struct BatchTimes {
    prefill: Duration,
    denoise: Duration,
}

/// What a run needs of its job, without its lock.
struct Snapshot {
    frames: [u32; OBSERVATION_FRAMES_MAX],
    state: [f32; STATE_VALUES_MAX],
    instruction: Option<Arc<[u32]>>,
    step: u32,
    seed: u64,
    submitted: Instant,
}

impl Snapshot {
    fn of(job: &Job) -> Snapshot {
        let Job { frames, state, instruction, step, seed, submitted, .. } = job;
        Snapshot {
            frames: *frames,
            state: *state,
            instruction: instruction.clone(),
            step: *step,
            seed: *seed,
            submitted: *submitted,
        }
    }
}

/// What the thread owns.
pub struct Replica {
    model: Arc<Model>,
    index: usize,
    /// None on `echo`.
    network: Option<Network>,
    runs: Arc<RunSlots>,
    done: Completion,
    taken: Vec<u16>,
}

impl Replica {
    /// A replica that has not run yet.
    pub fn new(
        model: Arc<Model>,
        index: usize,
        network: Option<Network>,
        runs: Arc<RunSlots>,
        done: Completion,
    ) -> Replica {
        let taken = Vec::with_capacity(model.manifest.batch);
        Replica { model, index, network, runs, done, taken }
    }

    /// Warms up, reports it, then works until the model is closed.
    pub fn work(mut self, ready: &mpsc::Sender<Result<(), String>>) {
        let warm =
            catch_unwind(AssertUnwindSafe(|| self.warm_up())).unwrap_or_else(|_| Err("the first run panicked".into()));
        let failed = warm.is_err();
        // The loader waits for this message; it is gone only if the process is.
        let _ = ready.send(warm);
        if failed {
            return;
        }
        let most = self.model.manifest.batch;
        let mut taken = std::mem::take(&mut self.taken);
        while self.model.queue.take(&mut taken, most) {
            self.run(&mut taken);
        }
    }

    /// One run per batch size: shapes are planned and the runtime's memory taken before the first robot comes.
    fn warm_up(&mut self) -> Result<(), String> {
        let batch = self.model.manifest.batch;
        let Some(network) = &mut self.network else { return Ok(()) };
        for rows in 1..=batch {
            for row in 0..rows {
                network.prompt(row, batch).1.fill(1);
            }
            network.prefill(rows)?;
            let mut steps = 0;
            network.denoise(rows, batch, || {
                steps += 1;
                steps <= 1
            })?;
        }
        Ok(())
    }

    /// Runs a batch and completes each of its runs exactly once.
    fn run(&mut self, taken: &mut Vec<u16>) {
        let (model, runs) = (self.model.clone(), self.runs.clone());
        let running = &model.running[self.index];
        let closing = || model.closing.load(Ordering::Acquire);
        taken.retain(|&index| {
            let live = !closing() && !runs.cancelled(index);
            if !live {
                self.end(index, Err((Status::Cancelled, "the run was cancelled before it began")));
            }
            live
        });
        if taken.is_empty() {
            return;
        }
        lock(&running.batch).extend_from_slice(taken);
        let batch = taken.as_slice();
        let stop = || closing() || batch.iter().all(|&index| runs.cancelled(index));
        let outcome = catch_unwind(AssertUnwindSafe(|| self.compute(batch, stop)));
        {
            // Emptied before anybody is told, so that a late cancel cannot stop the next batch.
            let mut running_batch = lock(&running.batch);
            running_batch.clear();
            if let Some(terminator) = &running.terminator {
                terminator.unset();
            }
        }
        // Asked once: a slot that has ended may be somebody else's by the time of the next.
        let stopped = stop();
        for (row, &index) in batch.iter().enumerate() {
            let encoded = match &outcome {
                Ok(Ok(Some(times))) if !runs.cancelled(index) => {
                    catch_unwind(AssertUnwindSafe(|| self.encode(row, index, times)))
                        .unwrap_or_else(|_| Err((Status::Panic, "encoding panicked".into())))
                }
                Ok(Ok(_)) => Err((Status::Cancelled, "the run was cancelled".into())),
                Ok(Err(_)) if stopped => Err((Status::Cancelled, "the run was cancelled".into())),
                Ok(Err(text)) => Err((Status::Model, text.clone())),
                Err(_) => Err((Status::Panic, "the run panicked".into())),
            };
            self.end(
                index,
                encoded.as_ref().map(|&clamped| clamped).map_err(|(status, text)| (*status, text.as_str())),
            );
        }
    }

    /// Fills the bound tensors, then prefill and flow loop. None when it was stopped between steps.
    fn compute(&mut self, batch: &[u16], stop: impl Fn() -> bool) -> Result<Option<BatchTimes>, String> {
        let start = Instant::now();
        let (model, most) = (&*self.model, self.model.manifest.batch);
        let frame_values = model.manifest.frame_values();
        for (row, &index) in batch.iter().enumerate() {
            // Copied out: whoever cancels must not wait for pixels to be moved.
            let Snapshot { frames, state, instruction, step, seed, submitted } = Snapshot::of(&self.runs.job(index));
            let state = &state[..model.manifest.state.columns.len()];
            let instruction = instruction.as_deref().unwrap_or(&[]);
            let count = model.manifest.frames_max();
            let mut first = start;
            let mut last: Option<Instant> = None;
            for (place, &ticket) in frames[..count].iter().enumerate() {
                let ticket = Ticket(ticket);
                let frame = model.frames.claimed(ticket).ok_or("a frame of the run is gone")?;
                first = first.min(frame.put);
                last = last.max(Some(frame.done));
                if let Some(network) = &mut self.network {
                    let images = network.images(row, most);
                    images[place * frame_values..][..frame_values].copy_from_slice(&frame.tensor);
                }
                drop(frame);
                model.frames.finish(ticket);
            }
            if let Some(network) = &mut self.network {
                let (tokens, mask) = network.prompt(row, most);
                model.prompt.write(instruction, state, tokens, mask);
                crate::noise::fill(network.latent(row, most), model.noise_key, step, seed);
            }
            let tokens = count * model.manifest.image.tokens + model.prompt.len(instruction.len());
            let mut result = self.runs.result(index);
            result.prompt_tokens = tokens as u32;
            result.cached_tokens = 0;
            result.cache_reset = 0;
            result.decode_us = micros(last.map_or(Duration::ZERO, |last| last.duration_since(first)));
            result.queue_us = micros(start.duration_since(submitted));
            result.batch = batch.len() as u32;
        }
        let Some(network) = &mut self.network else {
            return Ok(Some(BatchTimes { prefill: Duration::ZERO, denoise: Duration::ZERO }));
        };
        let before = thread_mallocs();
        network.prefill(batch.len())?;
        let prefilled = Instant::now();
        let whole = network.denoise(batch.len(), most, || !stop())?;
        if let (Some(before), Some(after)) = (before, thread_mallocs()) {
            self.runs.stats.runtime_allocations.store(after - before, Ordering::Relaxed);
        }
        let prefill = prefilled.duration_since(start);
        Ok(whole.then(|| BatchTimes { prefill, denoise: prefilled.elapsed() }))
    }

    /// The rows of one run, in robot units, into its result; returns how many values were clamped.
    fn encode(&mut self, row: usize, index: u16, times: &BatchTimes) -> Result<u32, (Status, String)> {
        let model = &*self.model;
        let begun = Instant::now();
        let job = self.runs.job(index);
        let mut result = self.runs.result(index);
        let (chunk_rows, columns) = model.encoder.size();
        let values = &mut result.values[..chunk_rows * columns];
        let clamped = match &mut self.network {
            Some(network) => {
                let latent = network.latent(row, model.manifest.batch);
                model.encoder.encode(latent, &job.state, values).map_err(|text| (Status::Model, text))?
            }
            None => {
                values.fill(0.0);
                0
            }
        };
        result.rows = chunk_rows as u32;
        result.columns = columns as u32;
        result.clamped = clamped;
        result.prefill_us = micros(times.prefill);
        result.denoise_us = micros(times.denoise);
        result.encode_us = micros(begun.elapsed());
        Ok(clamped)
    }

    /// Gives the frames of a run back that never read them, ends it and tells its caller.
    fn end(&self, index: u16, outcome: Result<u32, (Status, &str)>) {
        {
            let job = self.runs.job(index);
            for &ticket in &job.frames[..job.frames_len] {
                let claimed = self.model.frames.claimed(Ticket(ticket)).is_some();
                if claimed {
                    self.model.frames.finish(Ticket(ticket));
                }
            }
        }
        let status = outcome.as_ref().map_or_else(|(status, _)| *status, |_| Status::Ok);
        let ticket = self.runs.finish(index, &outcome);
        (self.done)(ticket.0, status as i32);
    }
}

/// Whole microseconds, saturating.
fn micros(duration: Duration) -> u32 {
    duration.as_micros().min(u128::from(u32::MAX)) as u32
}
