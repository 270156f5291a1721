//! The decode pool: threads that decode the frames of all models.

use crate::completion::{Completions, count_panic};
use crate::frame::{FrameSlots, Told, Worker};
use crate::jpeg::{Decoder, Library};
use crate::queue::Queue;
use crate::run::RunSlots;
use crate::status::Status;
use crate::sync::lock;
use crate::thread;
use crate::ticket::Ticket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

struct Work {
    slots: Arc<FrameSlots>,
    ticket: Ticket,
}

/// Counters of the pool.
#[derive(Default)]
pub struct PoolStats {
    /// Frames decoded.
    pub decoded: AtomicU64,
    /// Frames refused.
    pub refused: AtomicU64,
}

/// The threads and their queue.
pub struct Pool {
    queue: Arc<Queue<Work>>,
    closing: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Counters.
    pub stats: Arc<PoolStats>,
}

impl Pool {
    /// Starts `threads` threads; the queue holds `frames_max` frames.
    pub fn start(
        library: &Arc<Library>,
        threads: usize,
        frames_max: usize,
        runs: &Arc<RunSlots>,
        completions: &Arc<Completions>,
    ) -> Result<Pool, String> {
        let queue = Arc::new(Queue::<Work>::new(frames_max));
        let closing = Arc::new(AtomicBool::new(false));
        let stats = Arc::new(PoolStats::default());
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let worker = Worker::new(Decoder::new(library)?)?;
            let (queue, closing, stats) = (queue.clone(), closing.clone(), stats.clone());
            let listeners = Listeners { runs: runs.clone(), completions: completions.clone() };
            handles.push(thread::spawn(&format!("tendon-jpeg-{index}"), move || {
                run(worker, &queue, &closing, &stats, &listeners)
            })?);
        }
        Ok(Pool { queue, closing, threads: Mutex::new(handles), stats })
    }

    /// Queues a pending frame.
    pub fn submit(&self, slots: &Arc<FrameSlots>, turn: u32, ticket: Ticket) -> bool {
        self.queue.push(turn, Work { slots: slots.clone(), ticket }).is_ok()
    }

    /// Cancels what is queued, then ends the threads.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.queue.close();
        for thread in lock(&self.threads).drain(..) {
            // Cannot fail: a decode thread catches its panics.
            let _ = thread.join();
        }
    }
}

/// Who is told of decodes.
struct Listeners {
    runs: Arc<RunSlots>,
    completions: Arc<Completions>,
}

fn run(mut worker: Worker, queue: &Queue<Work>, closing: &AtomicBool, stats: &PoolStats, listeners: &Listeners) {
    let Listeners { runs, completions } = listeners;
    while let Some(Work { slots, ticket }) = queue.pop() {
        let given_up = || slots.awaited_by(ticket).is_some_and(|run| runs.cancelled(run));
        let told = if closing.load(Ordering::Acquire) || given_up() {
            slots.give_up(ticket)
        } else {
            match catch_unwind(AssertUnwindSafe(|| worker.decode(&slots, ticket))) {
                Ok((status, told)) => {
                    match status {
                        _ if !slots.counted => 0,
                        Status::Ok => stats.decoded.fetch_add(1, Ordering::Relaxed),
                        Status::Image => stats.refused.fetch_add(1, Ordering::Relaxed),
                        _ => 0,
                    };
                    told
                }
                Err(_) => {
                    count_panic();
                    slots.panicked(ticket)
                }
            }
        };
        match told {
            Told::Nobody => {}
            Told::Caller(status) => completions.tell(ticket, status),
            Told::Dropped => completions.tell(ticket, Status::Cancelled),
            Told::Run(run) => runs.arrived(run, &slots, ticket),
        }
    }
}
