//! The work of one batch: it fills the bound tensors, runs the graphs, and writes rows into result slots.

use super::Replica;
use super::fill::Inputs;
use crate::core::allocator::thread_mallocs;
use crate::core::completion::count_panic;
#[cfg(feature = "rehearsal")]
use crate::core::fault::DEVICE_FULL;
use crate::core::fault::{DEVICE_LOST, Fault};
use crate::core::layout::{NO_STEP, OBSERVATION_FRAMES_MAX, STATE_VALUES_MAX};
use crate::core::status::Status;
use crate::core::ticket::Ticket;
use crate::episode::{Entry, Pass};
use crate::flow::encoder::Encoder;
use crate::flow::{DeviceTimes, Network};
use crate::model::NO_MEMORY;
use crate::model::inference::{Job, micros};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(super) struct BatchTimes {
    pub(super) prefill: Duration,
    pub(super) denoise: Duration,
    pub(super) finite_check: Duration,
    pub(super) device: Option<DeviceTimes>,
}

/// The part of a job that the computation needs, copied out of its lock.
struct Snapshot {
    frames: [Ticket; OBSERVATION_FRAMES_MAX],
    frames_len: usize,
    slot: Option<usize>,
    state: [f32; STATE_VALUES_MAX],
    instruction: Option<Arc<[u32]>>,
    step: u32,
    seed: u64,
    submitted: Instant,
    fault: Fault,
}

const ENDED: &str = "the inference has ended";

impl Snapshot {
    fn of(job: &Job) -> Snapshot {
        let Job { frames, frames_len, state, instruction, step, seed, submitted, episode, fault, .. } = job;
        Snapshot {
            frames: *frames,
            frames_len: *frames_len,
            slot: episode.as_ref().map(|(_, slot)| *slot),
            state: *state,
            instruction: instruction.clone(),
            step: *step,
            seed: *seed,
            submitted: *submitted,
            fault: *fault,
        }
    }
}

/// The rows of a chunk, decoded by the device or here, and how many values were clamped; the error is a sentence.
pub(super) fn rows_of(
    network: &mut Network,
    encoder: &Encoder,
    row: usize,
    (state, prefix): (&[f32], &[f32]),
    values: &mut [f32],
) -> Result<u32, String> {
    if let Some((rows, Ok(clamped))) = network.decoded(row) {
        values.copy_from_slice(rows);
        return Ok(clamped);
    }
    let refused = network.decoded(row).is_some();
    let clamped = encoder.encode(prefix, network.latent(row), state, values);
    if refused && clamped.is_ok() {
        return Err("the device refuses its rows, which the host would take".into());
    }
    clamped
}

impl Replica {
    /// Fills the bound tensors, runs prefill or extend, then the flow. None if it was stopped between steps.
    pub(super) fn compute(&mut self, batch: &[Ticket], stop: impl Fn() -> bool) -> Result<Option<BatchTimes>, String> {
        let mut start = Instant::now();
        let model = self.model.clone();
        if let Some(network) = &mut self.network {
            network.settle()?;
        }
        self.failed.fill(None);
        self.prompt = 0;
        // A model with memory computes one observation at a time, on the variant of its place.
        let mut block = None;
        for (row, &ticket) in batch.iter().enumerate() {
            let place = self.place(ticket)?;
            if place.is_some() {
                // The wait for its memory counts as wait for the model.
                start = Instant::now();
            }
            // A wrong observation fails alone. The numbers of its row are not read.
            let prepared = catch_unwind(AssertUnwindSafe(|| self.prepare(row, ticket, start, batch.len(), place)));
            match prepared {
                Ok(Ok(at)) => block = at,
                Ok(Err(text)) => self.failed[row] = Some((Status::Model, text)),
                Err(_) => {
                    count_panic();
                    self.failed[row] = Some((Status::Panic, "reading the observation panicked".into()));
                }
            }
        }
        for &ticket in batch {
            self.strike(ticket)?;
        }
        let inferences = &model.inferences;
        let fails_at = |ticket: Ticket| inferences.job(ticket).map_or(NO_STEP, |job| job.fail_step);
        let failure = || Some((Status::Model, "the inference was told to fail at this flow step".to_string()));
        let Some(network) = &mut self.network else {
            for (failed, &ticket) in self.failed.iter_mut().zip(batch) {
                if failed.is_none() && fails_at(ticket) < model.manifest.steps() {
                    *failed = failure();
                }
            }
            return Ok(Some(BatchTimes {
                prefill: Duration::ZERO,
                denoise: Duration::ZERO,
                finite_check: Duration::ZERO,
                device: None,
            }));
        };
        let failed = &mut self.failed[..batch.len()];
        if failed.iter().all(Option::is_some) || stop() {
            return Ok(None);
        }
        let (variant, pass) = block.unwrap_or_else(|| (network.variant(batch.len(), self.prompt), NO_MEMORY));
        let before = thread_mallocs();
        network.read(pass.entry, variant)?;
        let prefilled = Instant::now();
        let whole = network.denoise(variant, |step| {
            for (failed, &ticket) in failed.iter_mut().zip(batch) {
                if failed.is_none() && fails_at(ticket) == step {
                    *failed = failure();
                }
            }
            !stop()
                && batch.iter().zip(&*failed).any(|(&ticket, failed)| failed.is_none() && !inferences.cancelled(ticket))
        })?;
        if let (Some(before), Some(after)) = (before, thread_mallocs()) {
            inferences.stats.runtime_allocations.store(after - before, Ordering::Relaxed);
        }
        let (prefill, denoise) = (prefilled.duration_since(start), prefilled.elapsed());
        let begun = Instant::now();
        // A model with memory has one row. The device is asked while the watchdog watches, and without a lock that a cancel waits for.
        if let (true, Some((place, pass)), None) = (whole, block, &failed[0]) {
            failed[0] = model.episodes[self.index].unfit(place, pass)?.map(|text| (Status::Model, text));
        }
        let finite_check = begun.elapsed();
        // The device's times are read after the clock: they wait for work that has ended.
        Ok(whole.then(|| BatchTimes { prefill, denoise, finite_check, device: network.device_times(pass.entry) }))
    }

    /// Brings the memory of an inference to a place that the graphs read; None for an inference without memory.
    fn place(&self, ticket: Ticket) -> Result<Option<usize>, String> {
        let slot = self.model.inferences.job(ticket).and_then(|job| job.episode.as_ref().map(|(_, slot)| *slot));
        slot.map(|slot| self.model.episodes[self.index].begin(slot)).transpose()
    }

    /// Reads one observation into row `row`, and notes the facts of its inference. Returns the place and the pass of an inference with
    /// memory.
    fn prepare(
        &mut self,
        row: usize,
        ticket: Ticket,
        start: Instant,
        batch: usize,
        place: Option<usize>,
    ) -> Result<Option<(usize, Pass)>, String> {
        let model = self.model.clone();
        // It is copied out of the lock, so that a cancel does not wait while pixels are copied.
        let mut job = model.inferences.job(ticket).ok_or(ENDED)?;
        job.begun = Some(start);
        let observed = Snapshot::of(&job);
        self.prefixes[row].clear();
        self.prefixes[row].extend_from_slice(job.prefix());
        drop(job);
        match observed.fault {
            #[cfg(feature = "rehearsal")]
            Fault::Feed => return Err("a frame of the inference is gone, as it was told".into()),
            Fault::Panic => panic!("an inference was told to panic"),
            _ => {}
        }
        let mut block = None;
        if let (Some(slot), Some(place)) = (observed.slot, place) {
            block = Some((place, model.episodes[self.index].plan(slot).ok_or("the memory slot is gone")?));
        }
        let pass = block.map_or(NO_MEMORY, |(_, pass)| pass);
        let decoded = self.feed(row, pass, &observed)?;
        let mut job = model.inferences.job(ticket).ok_or(ENDED)?;
        job.frames_len = 0;
        let instruction = observed.instruction.as_deref().unwrap_or(&[]);
        let state = &observed.state[..model.manifest.state.columns.len()];
        let mut result = model.inferences.result(ticket, &job);
        result.prompt_tokens = model.prompt_tokens(pass, instruction.len(), Some(state)) as u32;
        result.cached_tokens = model.manifest.memory.map_or(0, |memory| pass.kept * memory.tokens) as u32;
        result.cache_reset = u32::from(pass.entry == Entry::Reset);
        result.decoded_us = micros(start.duration_since(decoded));
        result.queue_us = micros(start.duration_since(observed.submitted));
        result.batch = batch as u32;
        result.replica = self.index as u32;
        Ok(block)
    }

    /// Does what goes wrong on purpose with an inference while its replica works.
    fn strike(&self, ticket: Ticket) -> Result<(), String> {
        let inferences = &self.model.inferences;
        match inferences.job(ticket).map_or(Fault::None, |job| job.fault) {
            Fault::Hang => loop {
                std::thread::park();
            },
            #[cfg(feature = "rehearsal")]
            Fault::Late => {
                while inferences.job(ticket).is_some() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            }
            Fault::Device => Err(DEVICE_LOST.into()),
            #[cfg(feature = "rehearsal")]
            Fault::Memory => Err(DEVICE_FULL.into()),
            _ => Ok(()),
        }
    }

    /// Writes the frames, prompt, state and noise of one observation into row `row`, and frees its frames. Returns when the last frame was
    /// decoded.
    fn feed(&mut self, row: usize, pass: Pass, observed: &Snapshot) -> Result<Instant, String> {
        let model = self.model.clone();
        let Snapshot { frames, frames_len, state, instruction, step, seed, .. } = observed;
        let frames = &frames[..*frames_len];
        let mut decoded: Option<Instant> = None;
        for (index, &ticket) in frames.iter().enumerate() {
            let frame = model.frames.claimed(ticket).ok_or("a frame of the inference is gone")?;
            decoded = decoded.max(Some(frame.done));
            self.picture(row, pass, (index, frames.len()), frame.tensor());
            drop(frame);
            model.frames.finish(ticket);
        }
        let state = &state[..model.manifest.state.columns.len()];
        let instruction = instruction.as_deref().unwrap_or(&[]);
        // It is taken out and put back, so that nothing is copied or allocated.
        let prefix = std::mem::take(&mut self.prefixes[row]);
        let tokens = self.fill(row, pass, &Inputs { state, prefix: &prefix, instruction, step: *step, seed: *seed });
        self.prefixes[row] = prefix;
        self.prompt = self.prompt.max(tokens);
        decoded.ok_or_else(|| "an observation has no frames".into())
    }

    /// Writes the rows of one inference, in robot units, into its result; returns how many values were clamped.
    pub(super) fn encode(&mut self, row: usize, ticket: Ticket, times: &BatchTimes) -> Result<u32, (Status, String)> {
        let model = &*self.model;
        let begun = Instant::now();
        let job = model.inferences.job(ticket).ok_or_else(|| (Status::Cancelled, ENDED.to_string()))?;
        let mut result = model.inferences.result(ticket, &job);
        let (chunk_rows, columns) = model.encoder.size();
        let values = &mut result.values[..chunk_rows * columns];
        if let Some((episodes, slot)) = &job.episode {
            // The block of the inference may be kept.
            let gone = || (Status::Model, "the memory slot is gone".to_string());
            let pass = episodes.plan(*slot).ok_or_else(gone)?;
            episodes.stage(*slot, pass);
        }
        let clamped = match &mut self.network {
            Some(network) => rows_of(network, &model.encoder, row, (&job.state, job.prefix()), values)
                .map_err(|text| (Status::Model, text))?,
            None => {
                values.fill(0.0);
                values[..job.prefix_len].copy_from_slice(job.prefix());
                0
            }
        };
        result.rows = chunk_rows as u32;
        result.columns = columns as u32;
        result.clamped = clamped;
        result.prefill_us = micros(times.prefill);
        result.denoise_us = micros(times.denoise);
        let device_us = |ms: Option<f32>| ms.map_or(0, |ms| (1000.0 * ms).round().max(1.0) as u32);
        result.prefill_device_us = device_us(times.device.map(|times| times.prefill_ms));
        result.denoise_device_us = device_us(times.device.map(|times| times.denoise_ms));
        result.encode_us = micros(times.finite_check + begun.elapsed());
        Ok(clamped)
    }
}
