//! A replica: one thread that alone owns its network. It takes all queued runs as one batch, without waiting for more, so that a
//! single robot never waits for a timer.

mod compute;
mod fill;
mod prove;

use crate::flow::Network;
use crate::model::Model;
use crate::parity::Vectors;
use crate::pool::Completion;
use crate::run::RunSlots;
use crate::status::{Status, Ticket};
use crate::sync::lock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

/// Differences of the parity vectors, or why the device is refused.
pub type Proof = Result<Vec<f32>, String>;

/// State of the thread.
pub struct Replica {
    model: Arc<Model>,
    index: usize,
    /// None on `echo`.
    network: Option<Network>,
    runs: Arc<RunSlots>,
    done: Completion,
    taken: Vec<u16>,
    /// Rows of the batch that have failed on purpose (drills).
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

    /// Runs the vectors, reports their differences, waits until it may serve, then works until the model is closed. It ends at once
    /// when it may not: its device, or that of another replica, was refused.
    pub fn work(mut self, vectors: Option<Arc<Vectors>>, proved: &mpsc::Sender<Proof>, serve: &mpsc::Receiver<()>) {
        // Dropped with the closure: the frames of an episode may be many.
        let prove = || vectors.map_or(Ok(Vec::new()), |vectors| self.prove(&vectors));
        let proof = catch_unwind(AssertUnwindSafe(prove)).unwrap_or_else(|_| Err("the first run panicked".into()));
        // Cannot fail: the loader waits for this message.
        let _ = proved.send(proof);
        if serve.recv().is_err() {
            return;
        }
        let most = self.model.manifest.batch;
        let mut taken = std::mem::take(&mut self.taken);
        let model = self.model.clone();
        while model.queue(self.index).take(&mut taken, most) {
            self.run(&mut taken);
        }
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
            // Emptied before the first completion, so that a late cancel cannot stop the next batch.
            let mut running_batch = lock(&running.batch);
            running_batch.clear();
            if let Some(terminator) = &running.terminator {
                terminator.unset();
            }
        }
        // Read once: a slot that has ended may belong to another run a moment later.
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

    /// Frees the frames that a run has not read, ends it and calls its completion.
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
