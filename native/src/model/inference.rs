//! Result slots. A slot has one inference, from `observe` until its caller has read the result and committed or aborted it.
//!
//! A slot is free → queued (and running) → done → closed (committed or aborted) → free. An inference enters its model's queue when the last
//! of its frames is decoded. Each inference has exactly one completion, called by the thread that turns it from queued to done. An
//! inference is written to under the lock of its job, while it is queued. So a thread that hung until others ended its inference finds it
//! ended, also if another inference has the slot by then.

use crate::core::fault::Fault;
use crate::core::layout::{CHUNK_VALUES_MAX, ChunkResult, NO_STEP, OBSERVATION_FRAMES_MAX, STATE_VALUES_MAX};
use crate::core::status::{ErrorText, Status};
use crate::core::sync::lock;
use crate::core::ticket::{FREE, Kind, Ticket, Word};
use crate::episode::Episodes;
use crate::image::frame::FrameSlots;
use crate::model::Model;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const QUEUED: u8 = 1;
const DONE: u8 = 2;
const CLOSED: u8 = 3;

pub struct Job {
    /// The model; None in a free slot.
    pub model: Option<Arc<Model>>,
    /// Frame tickets, `frames_len` of them, claimed.
    pub frames: [Ticket; OBSERVATION_FRAMES_MAX],
    pub frames_len: usize,
    /// The model's state vector in robot units.
    pub state: [f32; STATE_VALUES_MAX],
    /// Rows that the chunk continues, in robot units: the first `prefix_len` values.
    pub prefix: Box<[f32]>,
    pub prefix_len: usize,
    pub instruction: Option<Arc<[u32]>>,
    /// Zero-based chunk index in the session.
    pub step: u32,
    pub seed: u64,
    /// The flow step before which it fails, or `NO_STEP`.
    pub fail_step: u32,
    pub fault: Fault,
    /// The memory of the episode and the slot there, which the inference has until it is closed.
    pub episode: Option<(Arc<Episodes>, usize)>,
    pub submitted: Instant,
    pub begun: Option<Instant>,
    pub turn: u32,
    /// The number of frames whose decode it awaits, plus 1 while they are claimed.
    pub awaited: usize,
    /// The first frame that could not be decoded, by its index, and its status.
    pub bad: Option<(usize, Status)>,
    /// Microseconds of its frames' decodes.
    pub frames_us: u32,
}

impl Job {
    /// The rows that the chunk continues.
    pub fn prefix(&self) -> &[f32] {
        &self.prefix[..self.prefix_len]
    }

    /// Adds the decode of a frame that has ended.
    pub fn count(&mut self, index: usize, status: Status, spent_us: u32) {
        self.frames_us = self.frames_us.saturating_add(spent_us);
        if status != Status::Ok && self.bad.is_none_or(|(first, _)| index < first) {
            self.bad = Some((index, status));
        }
    }
}

struct Slot {
    word: Word,
    cancelled: AtomicBool,
    /// Whether the inference ended with a chunk.
    whole: AtomicBool,
    job: Mutex<Job>,
    /// It is boxed, because the caller reads it at a fixed address.
    result: Mutex<Box<ChunkResult>>,
    error: Mutex<ErrorText>,
}

#[derive(Default)]
pub struct InferenceStats {
    pub run: AtomicU64,
    pub failed: AtomicU64,
    pub cancelled: AtomicU64,
    pub clamped: AtomicU64,
    /// ONNX Runtime's allocations in the last batch.
    pub runtime_allocations: AtomicU64,
}

impl InferenceStats {
    fn count(&self, outcome: &Result<u32, (Status, &str)>) {
        let counter = match outcome {
            Ok(_) => &self.run,
            Err((Status::Cancelled, _)) => &self.cancelled,
            Err(_) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.clamped.fetch_add(u64::from(*outcome.as_ref().unwrap_or(&0)), Ordering::Relaxed);
    }
}

/// The result slots of an engine.
pub struct InferenceSlots {
    slots: Vec<Slot>,
    free: Mutex<Vec<u16>>,
    pub stats: InferenceStats,
}

impl InferenceSlots {
    /// `count` slots, all memory allocated now.
    pub fn new(count: usize) -> InferenceSlots {
        let now = Instant::now();
        let slot = |index| Slot {
            word: Word::new(Kind::Chunk, 0, index),
            cancelled: AtomicBool::new(false),
            whole: AtomicBool::new(false),
            job: Mutex::new(Job {
                model: None,
                frames: [Ticket(0); OBSERVATION_FRAMES_MAX],
                frames_len: 0,
                state: [0.0; STATE_VALUES_MAX],
                prefix: vec![0.0; CHUNK_VALUES_MAX].into(),
                prefix_len: 0,
                instruction: None,
                step: 0,
                seed: 0,
                fail_step: NO_STEP,
                fault: Fault::None,
                episode: None,
                submitted: now,
                begun: None,
                turn: 0,
                awaited: 0,
                bad: None,
                frames_us: 0,
            }),
            result: Mutex::new(Box::new(ChunkResult::ZERO)),
            error: Mutex::new(ErrorText::new()),
        };
        let stats = InferenceStats { runtime_allocations: AtomicU64::new(u64::MAX), ..InferenceStats::default() };
        InferenceSlots {
            slots: (0..count).map(slot).collect(),
            free: Mutex::new((0..count as u16).rev().collect()),
            stats,
        }
    }

    /// Address of each slot's result; fixed for the life of the engine.
    pub fn address(&self, index: usize) -> Option<*const ChunkResult> {
        let slot = self.slots.get(index)?;
        Some(std::ptr::from_ref(&**lock(&slot.result)))
    }

    /// Takes a free slot and fills in its job; None when all are taken.
    pub fn open(&self, fill: impl FnOnce(&mut Job)) -> Option<Ticket> {
        let slot = &self.slots[lock(&self.free).pop()? as usize];
        let ticket = slot.word.next()?;
        let mut job = lock(&slot.job);
        fill(&mut job);
        slot.cancelled.store(false, Ordering::Relaxed);
        slot.word.open(ticket, QUEUED);
        Some(ticket)
    }

    /// The slot of an inference that is queued, running or waiting to be read and freed.
    fn slot(&self, ticket: Ticket) -> Option<&Slot> {
        let slot = self.slots.get(ticket.index(Kind::Chunk)?)?;
        slot.word.state(ticket).map(|_| slot)
    }

    /// Cancels an inference that no replica has taken. False if a replica has taken it or it has ended. An inference that awaits frames
    /// ends with the last of them.
    pub fn take_back(&self, ticket: Ticket) -> bool {
        let Some(slot) = self.slot(ticket) else { return false };
        let Some(job) = self.job(ticket) else { return false };
        let Some(model) = job.model.clone() else { return false };
        if job.awaited > 0 {
            slot.cancelled.store(true, Ordering::Release);
            return true;
        }
        // The lock of its job keeps it from entering the queue now.
        let waited = model.unqueue(ticket);
        drop(job);
        if waited {
            model.end(ticket, Err((Status::Cancelled, "the inference was taken back before it began")));
        }
        waited
    }

    /// Notes that the decode of an awaited frame has ended. The last one starts the inference.
    pub fn arrived(&self, ticket: Ticket, frames: &FrameSlots, frame: Ticket) {
        let Some((index, status, spent_us)) = frames.of_inference(frame) else { return };
        self.advance(ticket, |job| job.count(index, status, spent_us));
    }

    pub fn claimed(&self, ticket: Ticket) {
        self.advance(ticket, |_| {});
    }

    fn advance(&self, ticket: Ticket, note: impl FnOnce(&mut Job)) {
        let Some(mut job) = self.job(ticket) else { return };
        note(&mut job);
        job.awaited -= 1;
        if job.awaited > 0 {
            return;
        }
        let Some(model) = job.model.clone() else { return };
        let refused = if self.cancelled_now(ticket) {
            Some((Status::Cancelled, "the inference was cancelled before it began"))
        } else if let Some((_, status)) = job.bad {
            Some((status, ""))
        } else {
            // The lock of the job is held until it is in the queue, where `take_back` finds it.
            model.enqueue(&job, ticket).err()
        };
        let bad = job.bad.map(|(index, _)| job.frames[index]);
        drop(job);
        if let Some((status, text)) = refused {
            let frame = bad.filter(|_| status != Status::Cancelled);
            let reason = frame.and_then(|frame| model.frames.error(frame).map(|text| text.to_text()));
            model.end(ticket, Err((status, reason.as_deref().unwrap_or(text))));
        }
    }

    fn cancelled_now(&self, ticket: Ticket) -> bool {
        self.slot(ticket).is_none_or(|slot| slot.cancelled.load(Ordering::Acquire))
    }

    /// Asks the inference to stop. True for a live ticket, whatever its state.
    pub fn cancel(&self, ticket: Ticket) -> bool {
        let Some(slot) = self.slot(ticket) else { return false };
        slot.cancelled.store(true, Ordering::Release);
        let model = lock(&slot.job).model.clone();
        if let Some(model) = model {
            model.stop_if_all_cancelled(ticket);
        }
        true
    }

    pub fn cancelled(&self, ticket: Ticket) -> bool {
        self.slot(ticket)
            .is_none_or(|slot| slot.cancelled.load(Ordering::Acquire) || slot.word.state(ticket) != Some(QUEUED))
    }

    /// The job of an inference that has not ended; it cannot end while the guard is held.
    pub fn job(&self, ticket: Ticket) -> Option<MutexGuard<'_, Job>> {
        let slot = self.slot(ticket)?;
        let job = lock(&slot.job);
        (slot.word.state(ticket) == Some(QUEUED)).then_some(job)
    }

    /// The result, which a replica fills in while it holds the inference's job.
    pub fn result(&self, ticket: Ticket, _job: &Job) -> MutexGuard<'_, Box<ChunkResult>> {
        lock(&self.slots[ticket.index(Kind::Chunk).expect("an inference's ticket")].result)
    }

    /// Ends an inference. False if it has ended before. The thread that gets true calls the completion, and no other does.
    pub fn finish(&self, ticket: Ticket, outcome: &Result<u32, (Status, &str)>) -> bool {
        let Some(slot) = self.slot(ticket) else { return false };
        let mut job = lock(&slot.job);
        if slot.word.state(ticket) != Some(QUEUED) {
            return false;
        }
        let counted = job.model.as_ref().is_none_or(|model| model.frames.counted);
        if counted {
            self.stats.count(outcome);
        }
        if let Err((_, text)) = outcome {
            lock(&slot.error).set(format_args!("{text}"));
        }
        let mut result = lock(&slot.result);
        result.frames_us = job.frames_us;
        result.bad_frame = job.bad.map_or(0, |(index, _)| index as u32);
        result.model_us = job.begun.map_or(0, |begun| micros(begun.elapsed()));
        drop(result);
        slot.whole.store(outcome.is_ok(), Ordering::Release);
        job.model = None;
        job.instruction = None;
        // Only this line leaves the state, under the lock of the job.
        slot.word.turn(ticket, QUEUED, DONE)
    }

    /// Commits (`keep`) or aborts: done → closed. False for any other state, and for the commit of an inference that failed.
    pub fn close(&self, ticket: Ticket, keep: bool) -> bool {
        let Some(slot) = self.slot(ticket) else { return false };
        if keep && !slot.whole.load(Ordering::Acquire) || !slot.word.turn(ticket, DONE, CLOSED) {
            return false;
        }
        if let Some((episodes, slot)) = lock(&slot.job).episode.take() {
            episodes.settle(slot, keep);
        }
        true
    }

    /// Frees a closed slot. False for any other state.
    pub fn free(&self, ticket: Ticket) -> bool {
        let Some(index) = ticket.index(Kind::Chunk) else { return false };
        let freed = self.slots.get(index).is_some_and(|slot| slot.word.turn(ticket, CLOSED, FREE));
        if freed {
            lock(&self.free).push(index as u16);
        }
        freed
    }

    /// The text of a failed inference.
    pub fn error(&self, ticket: Ticket) -> Option<MutexGuard<'_, ErrorText>> {
        self.slot(ticket).map(|slot| lock(&slot.error))
    }

    pub fn free_count(&self) -> usize {
        lock(&self.free).len()
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Whole microseconds, saturating.
pub fn micros(duration: Duration) -> u32 {
    duration.as_micros().min(u128::from(u32::MAX)) as u32
}
