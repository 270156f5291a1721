//! The engine: the tables behind the tickets. Only `abi.rs` calls it.

mod load;

use crate::core::allocator;
use crate::core::completion::{Completion, Completions, panics};
use crate::core::layout::{
    ERROR_TEXT_BYTES, FRAMES_MAX, JPEG_BYTES_MAX, MODELS_MAX, ObserveRequest, OpenOptions, Stats,
};
use crate::core::memory;
use crate::core::status::{ErrorText, Failure, Status};
use crate::core::sync::lock;
use crate::core::ticket::{Kind, Ticket, Word};
use crate::episode::{Moves, Usage};
use crate::image::frame::DropOutcome;
use crate::image::jpeg::Library;
use crate::model::decode_pool::Pool;
use crate::model::devices::Devices;
use crate::model::inference::InferenceSlots;
use crate::model::{Host, Model};
use crate::ort::environment;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

#[derive(Default)]
enum SlotState {
    #[default]
    Free,
    /// With the flag that gives the load up.
    Loading(Arc<AtomicBool>),
    Ready(Arc<Model>),
    Failed,
}

/// State of a model's ticket from its load to its unload.
const NAMED: u8 = 1;

struct ModelSlot {
    word: Word,
    state: Mutex<SlotState>,
    error: Mutex<ErrorText>,
}

/// One engine. All calls return at once, except `close`.
pub struct Engine {
    host: Arc<Host>,
    pool: Pool,
    models: Arc<[ModelSlot; MODELS_MAX]>,
    in_call: AtomicBool,
    /// Threads of loads and unloads, running or ended.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

type Answer<T> = Result<T, Failure>;

fn misuse<T>(text: &str) -> Answer<T> {
    Err(Failure::new(Status::Misuse, text))
}

impl Engine {
    /// Starts the decode pool. The first model that needs ONNX Runtime opens it.
    pub fn open(options: &OpenOptions, runtime: &Path, jpeg: &Path, done: Completion) -> Answer<Engine> {
        let range = |what: &str, value: u32, max: u32| {
            if (1..=max).contains(&value) { Ok(()) } else { misuse(&format!("{what} is {value}, expected 1 to {max}")) }
        };
        range("decode_threads", options.decode_threads, 256)?;
        range("chunks_max", options.chunks_max, 65_535)?;
        range("frames_max", options.frames_max, FRAMES_MAX as u32)?;
        environment::forbid_telemetry();
        let fail = |text: String| Failure::new(Status::Load, text);
        let library = Library::open(jpeg).map_err(fail)?;
        let frames_max = options.frames_max as usize;
        let completions = Arc::new(Completions::new(done));
        let inferences = Arc::new(InferenceSlots::new(options.chunks_max as usize));
        let threads = options.decode_threads as usize;
        let pool = Pool::start(&library, threads, frames_max * MODELS_MAX, &inferences, &completions).map_err(fail)?;
        let devices = Devices::default();
        let host = Arc::new(Host {
            runtime: runtime.to_path_buf(),
            jpeg: library,
            inferences,
            frames_max,
            completions,
            devices,
        });
        let slot = |index| ModelSlot {
            word: Word::new(Kind::Model, 0, index),
            state: Mutex::new(SlotState::Free),
            error: Mutex::new(ErrorText::new()),
        };
        Ok(Engine {
            host,
            pool,
            models: Arc::new(std::array::from_fn(slot)),
            in_call: AtomicBool::new(false),
            threads: Mutex::new(Vec::new()),
        })
    }

    /// Begins a call, which ends when the guard is dropped. None while another thread is in a call.
    pub fn begin(&self) -> Option<InCall<'_>> {
        // A refused caller makes no guard: dropping it would end the call of the other one.
        (!self.in_call.swap(true, Ordering::Acquire)).then(|| InCall(self))
    }

    fn slot(&self, ticket: Ticket) -> Option<&ModelSlot> {
        let slot = self.models.get(ticket.index(Kind::Model)?)?;
        slot.word.state(ticket).map(|_| slot)
    }

    fn model(&self, ticket: Ticket) -> Answer<Arc<Model>> {
        match self.slot(ticket).map(|slot| lock(&slot.state)).as_deref() {
            Some(SlotState::Ready(model)) => Ok(model.clone()),
            _ => misuse("unknown model, or it is not loaded"),
        }
    }

    pub fn placement(&self, ticket: Ticket) -> Answer<String> {
        Ok(self.model(ticket)?.placement())
    }

    pub fn device_figures(&self) -> String {
        let figures = self.host.devices.figures(|queue| self.pool.waiting(queue));
        serde_json::to_string(&figures).expect("plain strings")
    }

    /// Has the replicas of a device finish their inferences and take no more.
    pub fn drain(&self, device: &str) -> Answer<()> {
        self.host.devices.drain(device).map_err(|text| Failure::new(Status::Misuse, text))
    }

    pub fn measure(&self, request: &ObserveRequest, instruction: &str) -> Answer<u32> {
        Ok(self.model(Ticket::from_wire(request.model))?.measure(request, instruction)? as u32)
    }

    /// Bytes of the longest instruction that `measure` reads.
    pub fn instruction_bytes_max(&self, model: Ticket) -> Answer<usize> {
        Ok(self.model(model)?.instruction_bytes_max())
    }

    /// Copies a JPEG and queues its decode.
    pub fn frame_put(&self, model: Ticket, turn: u32, jpeg: &[u8]) -> Answer<Ticket> {
        let model = self.model(model)?;
        if jpeg.len() > JPEG_BYTES_MAX {
            return misuse("the JPEG is longer than its bound");
        }
        let busy = || Failure::new(Status::Busy, "every frame slot is taken");
        let ticket = model.frames.put(jpeg).ok_or_else(busy)?;
        if !self.pool.submit(&model.frames, model.decode_queues(), turn, ticket) {
            model.frames.refuse(ticket);
            return Err(busy());
        }
        Ok(ticket)
    }

    /// Frees a frame: 0 if it is free now, 1 if its completion comes.
    pub fn frame_drop(&self, model: Ticket, frame: Ticket) -> Answer<i32> {
        let dropped = self.model(model)?.frames.drop_frame(frame);
        dropped.map_or_else(
            || misuse("stale frame, or it belongs to an inference"),
            |dropped| Ok(i32::from(dropped == DropOutcome::Later)),
        )
    }

    /// Asks for a frame's completion: 1 if it comes, otherwise the status of the frame.
    pub fn frame_watch(&self, model: Ticket, frame: Ticket) -> Answer<i32> {
        match self.model(model)?.frames.watch(frame) {
            Some(status) => Ok(status.map_or(1, |status| status as i32)),
            None => misuse("stale frame, or it was dropped or belongs to an inference"),
        }
    }

    /// Microseconds that the decode of a frame took.
    pub fn frame_spent(&self, model: Ticket, frame: Ticket) -> Answer<i32> {
        Ok(self.model(model)?.frames.spent_us(frame))
    }

    pub fn observe(&self, request: &ObserveRequest, instruction: &str) -> Answer<Ticket> {
        self.model(Ticket::from_wire(request.model))?.observe(request, instruction)
    }

    /// Asks an inference to stop; a queued one is cancelled at once. A load is given up: its completion comes within moments.
    pub fn cancel(&self, inference: Ticket) -> Answer<()> {
        if let Some(slot) = self.slot(inference) {
            if let SlotState::Loading(given_up) = &*lock(&slot.state) {
                given_up.store(true, Ordering::Release);
            }
            return Ok(());
        }
        if !self.host.inferences.cancel(inference) {
            return misuse("stale run");
        }
        self.host.inferences.take_back(inference);
        Ok(())
    }

    /// Cancels an inference that has not started; returns whether it was cancelled.
    pub fn withdraw(&self, inference: Ticket) -> bool {
        self.host.inferences.take_back(inference)
    }

    /// Keeps or discards what the inference adds to the memory of its episode, if the model has memory.
    pub fn close_inference(&self, inference: Ticket, keep: bool) -> Answer<()> {
        if self.host.inferences.close(inference, keep) {
            return Ok(());
        }
        misuse("the inference is stale, not done, closed already, or failed and so cannot be kept")
    }

    pub fn slot_free(&self, inference: Ticket) -> Answer<()> {
        if self.host.inferences.free(inference) { Ok(()) } else { misuse("the inference is stale or not closed") }
    }

    pub fn session_drop(&self, model: Ticket, slot: u32) -> Answer<()> {
        let model = self.model(model)?;
        let Some((episodes, slot)) = model.episode(slot) else { return misuse("the model has no such slot") };
        if episodes.forget(slot) { Ok(()) } else { misuse("an inference has the slot") }
    }

    /// Latent frames that a slot's memory holds, and a digest of their values.
    #[cfg(feature = "rehearsal")]
    pub fn memory(&self, model: Ticket, slot: u32) -> Answer<(usize, u64)> {
        let model = self.model(model)?;
        let Some((episodes, slot)) = model.episode(slot) else { return misuse("the model has no such slot") };
        episodes.content(slot).map_or_else(|| misuse("an inference has the slot"), Ok)
    }

    pub fn result(&self, index: u32) -> Option<*const crate::core::layout::ChunkResult> {
        self.host.inferences.address(index as usize)
    }

    /// Copies the text of a ticket's failure; returns its length.
    pub fn error_text(&self, model: Ticket, ticket: Ticket, to: &mut [u8]) -> usize {
        let copy = |text: &ErrorText, to: &mut [u8]| {
            let bytes = text.as_bytes();
            let len = bytes.len().min(to.len()).min(ERROR_TEXT_BYTES);
            to[..len].copy_from_slice(&bytes[..len]);
            len
        };
        if let Some(text) = self.host.inferences.error(ticket) {
            return copy(&text, to);
        }
        if let Some(slot) = self.slot(ticket) {
            return copy(&lock(&slot.error), to);
        }
        let frames = self.model(model).map(|model| model.frames.clone());
        frames.ok().and_then(|frames| frames.error(ticket).map(|text| copy(&text, to))).unwrap_or(0)
    }

    pub fn stats(&self) -> Stats {
        let inferences = &self.host.inferences.stats;
        let (tensor_bytes, locked_bytes) = memory::totals();
        let mut frames_free = 0;
        let (mut usage, mut moved) = (Usage::default(), [0; 3]);
        let (mut replicas, mut replicas_out) = (0, 0);
        for slot in self.models.iter() {
            if let SlotState::Ready(model) = &*lock(&slot.state)
                && model.frames.counted
            {
                frames_free += model.frames.free() as u64;
                replicas += model.running.len() as u64;
                replicas_out += model.running.iter().filter(|running| running.lost().is_some()).count() as u64;
                for episodes in &model.episodes {
                    usage += episodes.usage();
                    let Moves { parked, brought_back, us } = &episodes.moves;
                    for (sum, counter) in moved.iter_mut().zip([parked, brought_back, us]) {
                        *sum += counter.load(Ordering::Relaxed);
                    }
                }
            }
        }
        Stats {
            allocations: allocator::allocations(),
            runtime_allocations_last: inferences.runtime_allocations.load(Ordering::Relaxed),
            frames_decoded: self.pool.stats.decoded.load(Ordering::Relaxed),
            frames_refused: self.pool.stats.refused.load(Ordering::Relaxed),
            chunks_run: inferences.run.load(Ordering::Relaxed),
            chunks_failed: inferences.failed.load(Ordering::Relaxed),
            chunks_cancelled: inferences.cancelled.load(Ordering::Relaxed),
            values_clamped: inferences.clamped.load(Ordering::Relaxed),
            locked_bytes,
            tensor_bytes,
            frames_free,
            chunks_free: self.host.inferences.free_count() as u64,
            slots_held: usage.slots as u64,
            memory_bytes_held: usage.bytes as u64,
            slots_parked: usage.parked as u64,
            parked_bytes_held: usage.parked_bytes as u64,
            sessions_parked: moved[0],
            sessions_brought_back: moved[1],
            parking_us: moved[2],
            replicas,
            replicas_out,
            panics: panics(),
        }
    }

    /// Cancels all inferences and joins every thread but those of replicas that are out. No completion comes afterwards.
    pub fn close(&self) {
        for thread in lock(&self.threads).drain(..) {
            // Cannot fail: these threads catch their panics.
            let _ = thread.join();
        }
        for slot in self.models.iter() {
            let state = std::mem::take(&mut *lock(&slot.state));
            if let SlotState::Ready(model) = state {
                model.close();
            }
        }
        self.pool.close();
        self.host.completions.close();
    }
}

/// A call in progress: one thread at a time uses the tables of the engine.
pub struct InCall<'a>(&'a Engine);

impl Deref for InCall<'_> {
    type Target = Engine;
    fn deref(&self) -> &Engine {
        self.0
    }
}

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        self.0.in_call.store(false, Ordering::Release);
    }
}
