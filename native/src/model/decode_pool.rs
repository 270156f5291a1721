//! The decode pool: threads that decode the frames of all models. They are divided among the devices of the models
//! (`image/decode_queue.rs`).

use crate::core::completion::{Completions, count_panic};
use crate::core::status::Status;
use crate::core::sync::lock;
use crate::core::thread;
use crate::core::ticket::Ticket;
use crate::image::decode_queue::DecodeQueue;
use crate::image::frame::{FrameSlots, Listener, Worker};
use crate::image::jpeg::{Decoder, Library};
use crate::model::inference::InferenceSlots;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

struct Work {
    slots: Arc<FrameSlots>,
    ticket: Ticket,
}

#[derive(Default)]
pub struct PoolStats {
    pub decoded: AtomicU64,
    pub refused: AtomicU64,
}

pub struct Pool {
    queues: Arc<DecodeQueue<Work>>,
    closing: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    pub stats: Arc<PoolStats>,
}

impl Pool {
    /// Starts `threads` threads; each queue holds `frames_max` frames.
    pub fn start(
        library: &Arc<Library>,
        threads: usize,
        frames_max: usize,
        inferences: &Arc<InferenceSlots>,
        completions: &Arc<Completions>,
    ) -> Result<Pool, String> {
        let queues = Arc::new(DecodeQueue::<Work>::new(frames_max, threads));
        let closing = Arc::new(AtomicBool::new(false));
        let stats = Arc::new(PoolStats::default());
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let worker = Worker::new(Decoder::new(library)?)?;
            let (queues, closing, stats) = (queues.clone(), closing.clone(), stats.clone());
            let receivers = Receivers { inferences: inferences.clone(), completions: completions.clone() };
            handles.push(thread::spawn(&format!("tendon-jpeg-{index}"), move || {
                run(index, worker, &queues, &closing, &stats, &receivers)
            })?);
        }
        Ok(Pool { queues, closing, threads: Mutex::new(handles), stats })
    }

    /// Queues a pending frame in one of `queues`, those of its model's devices.
    pub fn submit(&self, slots: &Arc<FrameSlots>, queues: &[usize], turn: u32, ticket: Ticket) -> bool {
        self.queues.push(queues, turn, Work { slots: slots.clone(), ticket }).is_ok()
    }

    /// Frames that wait in a queue.
    pub fn waiting(&self, queue: usize) -> usize {
        self.queues.waiting(queue)
    }

    /// Cancels queued frames, then ends the threads.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.queues.close();
        for thread in lock(&self.threads).drain(..) {
            // Cannot fail: a decode thread catches its panics.
            let _ = thread.join();
        }
    }
}

struct Receivers {
    inferences: Arc<InferenceSlots>,
    completions: Arc<Completions>,
}

fn run(
    thread: usize,
    mut worker: Worker,
    queues: &DecodeQueue<Work>,
    closing: &AtomicBool,
    stats: &PoolStats,
    receivers: &Receivers,
) {
    let Receivers { inferences, completions } = receivers;
    while let Some(Work { slots, ticket }) = queues.pop(thread) {
        let is_cancelled = || slots.awaited_by(ticket).is_some_and(|run| inferences.cancelled(run));
        let listener = if closing.load(Ordering::Acquire) || is_cancelled() {
            slots.give_up(ticket)
        } else {
            match catch_unwind(AssertUnwindSafe(|| worker.decode(&slots, ticket))) {
                Ok((status, listener)) => {
                    match status {
                        _ if !slots.counted => 0,
                        Status::Ok => stats.decoded.fetch_add(1, Ordering::Relaxed),
                        Status::Image | Status::Size => stats.refused.fetch_add(1, Ordering::Relaxed),
                        _ => 0,
                    };
                    listener
                }
                Err(_) => {
                    count_panic();
                    slots.panicked(ticket)
                }
            }
        };
        match listener {
            Listener::Nobody => {}
            Listener::Caller(status) => completions.tell(ticket, status),
            Listener::Dropped => completions.tell(ticket, Status::Cancelled),
            Listener::Run(run) => inferences.arrived(run, &slots, ticket),
        }
    }
}
