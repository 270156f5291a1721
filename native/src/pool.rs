//! The decode pool: threads that turn pending frames into tensors, whichever model they belong to.

use crate::frame::{Decoded, FrameSlots, Worker};
use crate::jpeg::{Decoder, Library};
use crate::queue::Queue;
use crate::status::{Status, Ticket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Called from any native thread with a ticket and a result code. The caller keeps it valid until `tendon_close` returns.
pub type Completion = extern "C" fn(ticket: u32, status: i32);

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
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Counters.
    pub stats: Arc<PoolStats>,
}

impl Pool {
    /// Starts `threads` threads; the queue holds `frames_max` frames.
    pub fn start(library: &Arc<Library>, threads: usize, frames_max: usize, done: Completion) -> Result<Pool, String> {
        let queue = Arc::new(Queue::<Work>::new(frames_max));
        let stats = Arc::new(PoolStats::default());
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let worker = Worker::new(Decoder::new(library)?)?;
            let (queue, stats) = (queue.clone(), stats.clone());
            let thread = std::thread::Builder::new()
                .name(format!("tendon-jpeg-{index}"))
                .spawn(move || run(worker, &queue, &stats, done))
                .map_err(|error| format!("no decode thread: {error}"))?;
            handles.push(thread);
        }
        Ok(Pool { queue, threads: Mutex::new(handles), stats })
    }

    /// Queues a pending frame.
    pub fn submit(&self, slots: &Arc<FrameSlots>, ticket: Ticket) -> bool {
        self.queue.push(Work { slots: slots.clone(), ticket }).is_ok()
    }

    /// Decodes what is queued, then ends the threads.
    pub fn close(&self) {
        self.queue.close();
        for thread in self.threads.lock().expect("no holder panics").drain(..) {
            // A decode thread catches its panics; one that died all the same has nothing left to join.
            let _ = thread.join();
        }
    }
}

fn run(mut worker: Worker, queue: &Queue<Work>, stats: &PoolStats, done: Completion) {
    while let Some(Work { slots, ticket }) = queue.pop() {
        let decoded = catch_unwind(AssertUnwindSafe(|| worker.decode(&slots, ticket)));
        let status = match decoded {
            Ok(Decoded::Ready) => {
                stats.decoded.fetch_add(1, Ordering::Relaxed);
                Status::Ok
            }
            Ok(Decoded::Refused) => {
                stats.refused.fetch_add(1, Ordering::Relaxed);
                Status::Image
            }
            Ok(Decoded::Dropped) => Status::Cancelled,
            Err(_) => Status::Panic,
        };
        done(ticket.0, status as i32);
    }
}
