//! The decode pool: threads that decode the frames of all models, divided among the devices that these run on (`lanes.rs`).

use crate::completion::{Completions, count_panic};
use crate::frame::{FrameSlots, Told, Worker};
use crate::jpeg::{Decoder, Library};
use crate::lanes::Lanes;
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
    lanes: Arc<Lanes<Work>>,
    closing: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Counters.
    pub stats: Arc<PoolStats>,
}

impl Pool {
    /// Starts `threads` threads; each lane holds `frames_max` frames.
    pub fn start(
        library: &Arc<Library>,
        threads: usize,
        frames_max: usize,
        runs: &Arc<RunSlots>,
        completions: &Arc<Completions>,
    ) -> Result<Pool, String> {
        let lanes = Arc::new(Lanes::<Work>::new(frames_max, threads));
        let closing = Arc::new(AtomicBool::new(false));
        let stats = Arc::new(PoolStats::default());
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let worker = Worker::new(Decoder::new(library)?)?;
            let (lanes, closing, stats) = (lanes.clone(), closing.clone(), stats.clone());
            let listeners = Listeners { runs: runs.clone(), completions: completions.clone() };
            handles.push(thread::spawn(&format!("tendon-jpeg-{index}"), move || {
                run(index, worker, &lanes, &closing, &stats, &listeners)
            })?);
        }
        Ok(Pool { lanes, closing, threads: Mutex::new(handles), stats })
    }

    /// Queues a pending frame of a model whose devices have these lanes.
    pub fn submit(&self, slots: &Arc<FrameSlots>, lanes: &[usize], turn: u32, ticket: Ticket) -> bool {
        self.lanes.push(lanes, turn, Work { slots: slots.clone(), ticket }).is_ok()
    }

    /// Frames that wait in a lane.
    pub fn waiting(&self, lane: usize) -> usize {
        self.lanes.waiting(lane)
    }

    /// Cancels what is queued, then ends the threads.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.lanes.close();
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

fn run(
    thread: usize,
    mut worker: Worker,
    lanes: &Lanes<Work>,
    closing: &AtomicBool,
    stats: &PoolStats,
    listeners: &Listeners,
) {
    let Listeners { runs, completions } = listeners;
    while let Some(Work { slots, ticket }) = lanes.pop(thread) {
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
