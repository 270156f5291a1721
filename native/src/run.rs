//! Result slots: one run each, from `observe` until its caller has read the result and committed or aborted it.
//!
//! A slot is free → queued (and running) → done → closed (committed or aborted) → free. Each run gets exactly one completion.

use crate::episode::Episodes;
use crate::layout::{ChunkResult, NO_STEP, OBSERVATION_FRAMES_MAX, STATE_VALUES_MAX};
use crate::model::Model;
use crate::status::{ErrorText, Kind, Status, Ticket};
use crate::sync::lock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

const FREE: u32 = 0;
const QUEUED: u32 = 1;
const DONE: u32 = 2;
const CLOSED: u32 = 3;

/// What a replica needs to know of one observation.
pub struct Job {
    /// The model that runs it; None in a free slot.
    pub model: Option<Arc<Model>>,
    /// Frame tickets, `frames_len` of them, claimed.
    pub frames: [u32; OBSERVATION_FRAMES_MAX],
    /// Number of frames.
    pub frames_len: usize,
    /// The model's state vector in robot units.
    pub state: [f32; STATE_VALUES_MAX],
    /// The instruction's tokens.
    pub instruction: Option<Arc<[u32]>>,
    /// Zero-based chunk index in the session.
    pub step: u32,
    /// Seed of the noise.
    pub seed: u64,
    /// The flow step that it fails before, or `NO_STEP`.
    pub fail_step: u32,
    /// The episode's memory and its slot there, reserved for the run until it is closed.
    pub episode: Option<(Arc<Episodes>, usize)>,
    /// When it was submitted.
    pub submitted: Instant,
}

struct Slot {
    state: AtomicU32,
    ticket: AtomicU32,
    cancelled: AtomicBool,
    /// The run ended with a chunk.
    whole: AtomicBool,
    job: Mutex<Job>,
    /// Boxed: the caller reads it at a fixed address.
    result: Mutex<Box<ChunkResult>>,
    error: Mutex<ErrorText>,
}

/// Counters of all runs.
#[derive(Default)]
pub struct RunStats {
    /// Runs that gave a chunk.
    pub run: AtomicU64,
    /// Runs that failed.
    pub failed: AtomicU64,
    /// Runs that were cancelled.
    pub cancelled: AtomicU64,
    /// Values clamped.
    pub clamped: AtomicU64,
    /// ONNX Runtime's allocations in the last batch.
    pub runtime_allocations: AtomicU64,
}

/// The result slots of an engine.
pub struct RunSlots {
    slots: Vec<Slot>,
    free: Mutex<Vec<u16>>,
    generation: AtomicU32,
    /// Counters.
    pub stats: RunStats,
}

impl RunSlots {
    /// `count` slots, all memory allocated now.
    pub fn new(count: usize) -> RunSlots {
        let now = Instant::now();
        let slot = || Slot {
            state: AtomicU32::new(FREE),
            ticket: AtomicU32::new(0),
            cancelled: AtomicBool::new(false),
            whole: AtomicBool::new(false),
            job: Mutex::new(Job {
                model: None,
                frames: [0; OBSERVATION_FRAMES_MAX],
                frames_len: 0,
                state: [0.0; STATE_VALUES_MAX],
                instruction: None,
                step: 0,
                seed: 0,
                fail_step: NO_STEP,
                episode: None,
                submitted: now,
            }),
            result: Mutex::new(Box::new(ChunkResult::ZERO)),
            error: Mutex::new(ErrorText::new()),
        };
        let stats = RunStats { runtime_allocations: AtomicU64::new(u64::MAX), ..RunStats::default() };
        RunSlots {
            slots: (0..count).map(|_| slot()).collect(),
            free: Mutex::new((0..count as u16).rev().collect()),
            generation: AtomicU32::new(0),
            stats,
        }
    }

    /// Address of each slot's result; fixed for the life of the engine.
    pub fn address(&self, index: usize) -> Option<*const ChunkResult> {
        let slot = self.slots.get(index)?;
        Some(std::ptr::from_ref(&**lock(&slot.result)))
    }

    /// Takes a free slot and fills in its job. None when all are taken.
    pub fn open(&self, fill: impl FnOnce(&mut Job)) -> Option<(Ticket, u16)> {
        let index = lock(&self.free).pop()?;
        let slot = &self.slots[index as usize];
        fill(&mut lock(&slot.job));
        let ticket = Ticket::new(Kind::Chunk, self.generation.fetch_add(1, Ordering::Relaxed), index as usize);
        slot.cancelled.store(false, Ordering::Relaxed);
        slot.ticket.store(ticket.0, Ordering::Relaxed);
        slot.state.store(QUEUED, Ordering::Release);
        Some((ticket, index))
    }

    fn slot(&self, ticket: Ticket) -> Option<(u16, &Slot)> {
        let index = ticket.index(Kind::Chunk)?;
        let slot = self.slots.get(index)?;
        (slot.ticket.load(Ordering::Relaxed) == ticket.0).then_some((index as u16, slot))
    }

    /// Cancels a run that no replica has taken yet; returns the ticket for the completion. None if one has taken it, or if it has
    /// ended.
    pub fn take_back(&self, ticket: Ticket) -> Option<Ticket> {
        let (index, slot) = self.slot(ticket)?;
        let (model, frames, count) = {
            let job = lock(&slot.job);
            (job.model.clone()?, job.frames, job.frames_len)
        };
        let waited = model.take_back(index, &frames[..count]);
        waited.then(|| self.finish(index, &Err((Status::Cancelled, "the run was taken back before it began"))))
    }

    /// Asks the run to stop. True for a live ticket, whatever its state.
    pub fn cancel(&self, ticket: Ticket) -> bool {
        let Some((index, slot)) = self.slot(ticket) else { return false };
        slot.cancelled.store(true, Ordering::Release);
        let model = lock(&slot.job).model.clone();
        if let Some(model) = model {
            model.stop_if_all_cancelled(index, |index| self.cancelled(index));
        }
        true
    }

    /// Whether the run was asked to stop.
    pub fn cancelled(&self, index: u16) -> bool {
        self.slots[index as usize].cancelled.load(Ordering::Acquire)
    }

    /// The job of a queued run.
    pub fn job(&self, index: u16) -> MutexGuard<'_, Job> {
        lock(&self.slots[index as usize].job)
    }

    /// The result that a replica fills in.
    pub fn result(&self, index: u16) -> MutexGuard<'_, Box<ChunkResult>> {
        lock(&self.slots[index as usize].result)
    }

    /// Ends a run; returns the ticket for the completion.
    pub fn finish(&self, index: u16, outcome: &Result<u32, (Status, &str)>) -> Ticket {
        let slot = &self.slots[index as usize];
        match outcome {
            Ok(clamped) => {
                self.stats.run.fetch_add(1, Ordering::Relaxed);
                self.stats.clamped.fetch_add(u64::from(*clamped), Ordering::Relaxed);
            }
            Err((status, text)) => {
                let counter = if *status == Status::Cancelled { &self.stats.cancelled } else { &self.stats.failed };
                counter.fetch_add(1, Ordering::Relaxed);
                lock(&slot.error).set(format_args!("{text}"));
            }
        }
        slot.whole.store(outcome.is_ok(), Ordering::Release);
        let mut job = lock(&slot.job);
        job.model = None;
        job.instruction = None;
        slot.state.store(DONE, Ordering::Release);
        Ticket(slot.ticket.load(Ordering::Relaxed))
    }

    /// Commits (`keep`) or aborts: done → closed. False for any other state, and for the commit of a run that failed.
    pub fn close(&self, ticket: Ticket, keep: bool) -> bool {
        let Some((_, slot)) = self.slot(ticket) else { return false };
        if keep && !slot.whole.load(Ordering::Acquire) {
            return false;
        }
        if slot.state.compare_exchange(DONE, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        if let Some((episodes, place)) = lock(&slot.job).episode.take() {
            episodes.settle(place, keep);
        }
        true
    }

    /// Frees a closed slot. False for any other state.
    pub fn free(&self, ticket: Ticket) -> bool {
        let Some((index, slot)) = self.slot(ticket) else { return false };
        if slot.state.compare_exchange(CLOSED, FREE, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        slot.ticket.store(0, Ordering::Relaxed);
        lock(&self.free).push(index);
        true
    }

    /// Frees the slot of a refused run: the queue was full.
    pub fn withdraw(&self, index: u16) {
        let slot = &self.slots[index as usize];
        let mut job = lock(&slot.job);
        job.model = None;
        job.instruction = None;
        job.episode = None;
        slot.ticket.store(0, Ordering::Relaxed);
        slot.state.store(FREE, Ordering::Release);
        lock(&self.free).push(index);
    }

    /// The text of a failed run.
    pub fn error(&self, ticket: Ticket) -> Option<MutexGuard<'_, ErrorText>> {
        let (_, slot) = self.slot(ticket)?;
        Some(lock(&slot.error))
    }

    /// Free slots now.
    pub fn free_count(&self) -> usize {
        lock(&self.free).len()
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
}
