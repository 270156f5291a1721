//! A replica: one thread that alone owns its network. It takes all queued runs as one batch, without waiting for more, so that a
//! single robot never waits for a timer.

mod compute;

use crate::episode::Entry;
use crate::flow::Network;
use crate::layout::STATE_VALUES_MAX;
use crate::model::Model;
use crate::pool::Completion;
use crate::run::RunSlots;
use crate::status::{Status, Ticket};
use crate::sync::lock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

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

    /// Warms up, reports it, then works until the model is closed.
    pub fn work(mut self, ready: &mpsc::Sender<Result<(), String>>) {
        let warm =
            catch_unwind(AssertUnwindSafe(|| self.warm_up())).unwrap_or_else(|_| Err("the first run panicked".into()));
        let failed = warm.is_err();
        // Cannot fail: the loader waits for this message.
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

    /// One run per batch size, so that the runtime plans shapes and allocates memory before the first observation.
    fn warm_up(&mut self) -> Result<(), String> {
        let batch = self.model.manifest.batch;
        let Replica { model, network, .. } = self;
        let Some(network) = network else { return Ok(()) };
        let entries: &[Entry] =
            if model.manifest.memory.is_some() { &[Entry::First, Entry::Later] } else { &[Entry::First] };
        let branches = network.branches();
        for (&entry, rows) in entries.iter().flat_map(|entry| (1..=batch).map(move |rows| (entry, rows))) {
            for (row, branch) in (0..rows).flat_map(|row| (0..branches).map(move |branch| (row, branch))) {
                // The lowest and the highest token of a state: an id that the graph does not know fails now.
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
