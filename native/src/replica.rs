//! A replica: one thread, sole owner of its network. It takes all that waits as one batch, so a lone robot never
//! waits for a timer.

use crate::allocator::thread_mallocs;
use crate::episode::{Entry, Pass};
use crate::flow::Network;
use crate::layout::{OBSERVATION_FRAMES_MAX, STATE_VALUES_MAX};
use crate::model::{Model, NO_MEMORY};
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
    frames_len: usize,
    /// Its memory slot on this replica.
    slot: Option<usize>,
    state: [f32; STATE_VALUES_MAX],
    instruction: Option<Arc<[u32]>>,
    step: u32,
    seed: u64,
    submitted: Instant,
}

impl Snapshot {
    fn of(job: &Job) -> Snapshot {
        let Job { frames, frames_len, state, instruction, step, seed, submitted, episode, .. } = job;
        Snapshot {
            frames: *frames,
            frames_len: *frames_len,
            slot: episode.as_ref().map(|(_, slot)| *slot),
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
    /// Rows of the batch that were told to fail, and have.
    failed: Vec<bool>,
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
        let failed = vec![false; model.manifest.batch];
        Replica { model, index, network, runs, done, taken, failed }
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
        let model = self.model.clone();
        while model.queue(self.index).take(&mut taken, most) {
            self.run(&mut taken);
        }
    }

    /// One run per batch size: shapes are planned and the runtime's memory taken before the first robot comes.
    fn warm_up(&mut self) -> Result<(), String> {
        let batch = self.model.manifest.batch;
        let Replica { model, network, .. } = self;
        let Some(network) = network else { return Ok(()) };
        let entries: &[Entry] =
            if model.manifest.memory.is_some() { &[Entry::First, Entry::Later] } else { &[Entry::First] };
        let branches = network.branches();
        for (&entry, rows) in entries.iter().flat_map(|entry| (1..=batch).map(move |rows| (entry, rows))) {
            for (row, branch) in (0..rows).flat_map(|row| (0..branches).map(move |branch| (row, branch))) {
                // The lowest and the highest token that a state can become: one that the graph does not know shows now.
                let extreme = if row % 2 == 0 && entry == Entry::First { -f32::MAX } else { f32::MAX };
                let (tokens, mask) = network.prompt(entry, row, batch, branch);
                model.prompt.write(model.prompt.empty(), &[extreme; STATE_VALUES_MAX], tokens, mask);
            }
            // Batches are variants 0 and up; a memory's slot 0 is empty.
            network.read(entry, rows - 1)?;
            network.denoise(rows - 1, rows, batch, |step| step == 0)?;
            if (0..rows).any(|row| network.latent(row, batch).iter().any(|value| !value.is_finite())) {
                return Err("its first run gave numbers that are not finite".into());
            }
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
                _ if self.failed[row] => Err((Status::Model, "the run was told to fail at this flow step".into())),
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

    /// Fills the bound tensors, then prefill or extend, and the flow loop. None when it was stopped between steps.
    fn compute(&mut self, batch: &[u16], stop: impl Fn() -> bool) -> Result<Option<BatchTimes>, String> {
        let start = Instant::now();
        let (model, most) = (self.model.clone(), self.model.manifest.batch);
        self.failed.fill(false);
        // A model with memory runs one observation at a time, on the variant of its slot.
        let (mut variant, mut pass) = (batch.len() - 1, NO_MEMORY);
        for (row, &index) in batch.iter().enumerate() {
            // Copied out: whoever cancels must not wait for pixels to be moved.
            let observed = Snapshot::of(&self.runs.job(index));
            if let Some(slot) = observed.slot {
                let episodes = &model.episodes[self.index];
                episodes.begin(slot);
                pass = episodes.plan(slot).ok_or("the memory slot is gone")?;
                variant = slot;
            }
            let (first, last) = self.feed(row, pass, &observed)?;
            // Its frames are given back: whatever happens now, nobody looks at their tickets again.
            self.runs.job(index).frames_len = 0;
            let instruction = observed.instruction.as_deref().unwrap_or(&[]);
            let state = &observed.state[..model.manifest.state.columns.len()];
            let mut result = self.runs.result(index);
            result.prompt_tokens = model.prompt_tokens(pass, instruction.len(), Some(state)) as u32;
            result.cached_tokens = model.manifest.memory.map_or(0, |memory| pass.kept * memory.tokens) as u32;
            result.cache_reset = u32::from(pass.entry == Entry::Reset);
            result.decode_us = micros(last.duration_since(first));
            result.queue_us = micros(start.duration_since(observed.submitted));
            result.batch = batch.len() as u32;
        }
        let Some(network) = &mut self.network else {
            for (failed, &index) in self.failed.iter_mut().zip(batch) {
                *failed = self.runs.job(index).fail_step < model.manifest.flow.steps;
            }
            return Ok(Some(BatchTimes { prefill: Duration::ZERO, denoise: Duration::ZERO }));
        };
        let before = thread_mallocs();
        network.read(pass.entry, variant)?;
        let prefilled = Instant::now();
        let (runs, failed) = (&self.runs, &mut self.failed);
        let whole = network.denoise(variant, batch.len(), most, |step| {
            for (failed, &index) in failed.iter_mut().zip(batch) {
                *failed |= runs.job(index).fail_step == step;
            }
            !stop() && batch.iter().zip(&*failed).any(|(&index, failed)| !failed && !runs.cancelled(index))
        })?;
        if let (Some(before), Some(after)) = (before, thread_mallocs()) {
            self.runs.stats.runtime_allocations.store(after - before, Ordering::Relaxed);
        }
        let prefill = prefilled.duration_since(start);
        Ok(whole.then(|| BatchTimes { prefill, denoise: prefilled.elapsed() }))
    }

    /// Writes one observation's frames, prompt, state and noise into row `row`; when its first frame came and its last was
    /// decoded. Its frames are free afterwards.
    fn feed(&mut self, row: usize, pass: Pass, observed: &Snapshot) -> Result<(Instant, Instant), String> {
        let Replica { model, network, .. } = self;
        let (manifest, most) = (&model.manifest, model.manifest.batch);
        let Snapshot { frames, frames_len, state, instruction, step, seed, .. } = observed;
        let frames = &frames[..*frames_len];
        let given = frames.len() / manifest.cameras.len();
        let read = if pass.entry == Entry::Later { given } else { manifest.frames.first };
        let mut span: Option<(Instant, Instant)> = None;
        for (index, &ticket) in frames.iter().enumerate() {
            let ticket = Ticket(ticket);
            let frame = model.frames.claimed(ticket).ok_or("a frame of the run is gone")?;
            span = span
                .map_or(Some((frame.put, frame.done)), |(put, done)| Some((put.min(frame.put), done.max(frame.done))));
            let (camera, age) = (index / given, index % given);
            // A window that starts anew reads the last frames of each camera.
            if let (Some(network), true) = (&mut *network, age + read >= given) {
                let place = camera * read + age + read - given;
                let values = manifest.frame_values();
                network.images(pass.entry, row, most)[place * values..][..values].copy_from_slice(&frame.tensor);
            }
            drop(frame);
            model.frames.finish(ticket);
        }
        if let Some(network) = network {
            let state = &state[..manifest.state.columns.len()];
            for branch in 0..network.branches() {
                let text = if branch == 0 { instruction.as_deref().unwrap_or(&[]) } else { model.prompt.empty() };
                let (tokens, mask) = network.prompt(pass.entry, row, most, branch);
                model.prompt.write(text, state, tokens, mask);
            }
            network.state(row, most, |to| model.prompt.write_state(state, to));
            let latent = network.latent(row, most);
            let actions = latent.len();
            crate::noise::fill(latent, 0, model.noise_key, *step, *seed);
            if let Some(video) = network.video_latent() {
                crate::noise::fill(video, actions, model.noise_key, *step, *seed);
            }
            network.lengths(pass, manifest.memory.map_or(0, |memory| memory.tokens));
        }
        span.ok_or_else(|| "an observation has no frames".into())
    }

    /// The rows of one run, in robot units, into its result; returns how many values were clamped.
    fn encode(&mut self, row: usize, index: u16, times: &BatchTimes) -> Result<u32, (Status, String)> {
        let model = &*self.model;
        let begun = Instant::now();
        let job = self.runs.job(index);
        let mut result = self.runs.result(index);
        let (chunk_rows, columns) = model.encoder.size();
        let values = &mut result.values[..chunk_rows * columns];
        if let Some((episodes, slot)) = &job.episode {
            // What the run has written stands ready to be kept.
            let gone = || (Status::Model, "the memory slot is gone".to_string());
            let pass = episodes.plan(*slot).ok_or_else(gone)?;
            episodes.stage(*slot, pass);
        }
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
