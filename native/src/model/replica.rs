//! A replica: the one thread that uses its network. It takes all queued inferences as one batch and does not wait for more, so that a
//! single robot never waits for a timer.

mod compute;
mod fill;
mod prove;
mod show;

use crate::core::completion::count_panic;
#[cfg(feature = "rehearsal")]
use crate::core::fault::Fault;
use crate::core::fault::status_of;
use crate::core::status::Status;
use crate::core::ticket::Ticket;
use crate::flow::Network;
use crate::model::Model;
use crate::model::stages::Exam;
use crate::model::watchdog::Presence;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

/// The largest difference of each parity vector, or why the device is refused.
pub type Proof = Result<Vec<f32>, String>;

/// Keeps the larger differences of two replicas.
pub fn larger(one: &mut Vec<f32>, other: Vec<f32>) {
    one.resize(other.len(), 0.0);
    one.iter_mut().zip(other).for_each(|(one, other)| *one = one.max(other));
}

pub enum Order {
    /// Make this many places for sessions in the device's memory. The answer is the number of places, and why there are no more.
    Places(usize, mpsc::Sender<(usize, Option<String>)>),
    Serve,
}

pub struct Replica {
    model: Arc<Model>,
    index: usize,
    /// None on `echo`.
    network: Option<Network>,
    taken: Vec<Ticket>,
    gone: Vec<Ticket>,
    /// The rows, in robot units, that the chunk of each row of the batch continues.
    prefixes: Vec<Vec<f32>>,
    /// The failure of each row of the batch that has failed alone.
    failed: Vec<Option<(Status, String)>>,
    /// Tokens of the batch's longest prompt.
    prompt: usize,
    /// Inferences of a batch at most.
    most: usize,
    /// It ends when all memory is given back.
    presence: Presence,
}

impl Replica {
    /// A replica that has not computed yet.
    pub fn new(model: Arc<Model>, index: usize, network: Option<Network>) -> Replica {
        let most = network.as_ref().map_or(model.manifest.batch, Network::rows_max);
        let (taken, gone) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let prefix = model.manifest.action.prefix * model.manifest.action.columns.len();
        let prefixes = (0..most).map(|_| Vec::with_capacity(prefix)).collect();
        let (failed, presence) = (vec![None; most], Presence { model: model.clone(), replica: index, ready: false });
        Replica { model, index, network, taken, gone, prefixes, failed, prompt: 0, most, presence }
    }

    /// Does its exam (none on `echo`), reports the differences of the parity vectors, waits for its order, then works until the model is closed or the
    /// replica is out. It ends at once if its device, or that of another replica, was refused.
    pub fn work(
        mut self,
        exam: Option<Arc<Exam>>,
        proved: &mpsc::Sender<(usize, Proof)>,
        orders: &mpsc::Receiver<Order>,
    ) {
        let model = self.model.clone();
        // They are dropped with the closure, since the frames of an episode may be many.
        let prove = || explained(self.prove(exam), self.network.as_ref());
        let proof = catch_unwind(AssertUnwindSafe(prove)).unwrap_or_else(|_| Err("the first run panicked".into()));
        // Cannot fail: the loader waits for this message.
        let _ = proved.send((self.index, proof));
        while !self.presence.ready {
            match orders.recv() {
                Ok(Order::Places(places, made)) => {
                    let added =
                        catch_unwind(AssertUnwindSafe(|| self.network.as_mut().map(|one| one.add_blocks(places))));
                    // Cannot fail: the loader waits for this message, or has given the replica up.
                    let _ = made.send(added.ok().flatten().unwrap_or((0, Some("making its places panicked".into()))));
                }
                Ok(Order::Serve) => self.presence.ready = true,
                Err(mpsc::RecvError) => return,
            }
        }
        let most = self.most;
        let mut taken = std::mem::take(&mut self.taken);
        while model.queue(self.index).take(&mut taken, most, || model.leaves(self.index)) {
            if !self.run(&mut taken) {
                return;
            }
        }
    }

    /// Computes a batch and completes each of its inferences exactly once. False once the replica is out.
    fn run(&mut self, taken: &mut Vec<Ticket>) -> bool {
        let model = self.model.clone();
        let running = &model.running[self.index];
        let closing = || model.closing.load(Ordering::Acquire);
        let cancelled = |ticket| closing() || model.inferences.cancelled(ticket);
        let begun = running.begin(taken, &mut self.gone, cancelled);
        let out = !begun && running.lost().is_some();
        let refused = if out {
            (Status::Lost, "the replica of the inference is out")
        } else {
            (Status::Cancelled, "the inference was cancelled before it began")
        };
        for &ticket in &self.gone {
            model.end(ticket, Err(refused));
        }
        if !begun {
            return !out;
        }
        let batch = taken.as_slice();
        #[cfg(feature = "rehearsal")]
        if batch.iter().any(|&ticket| model.inferences.job(ticket).is_some_and(|job| job.fault == Fault::Die)) {
            std::panic::resume_unwind(Box::new("an inference was told to end its replica's thread"));
        }
        let stop = || batch.iter().all(|&ticket| cancelled(ticket));
        let compute = || explained(self.compute(batch, stop), self.network.as_ref());
        let outcome = catch_unwind(AssertUnwindSafe(compute));
        let stopped = stop();
        // The status of an inference of the batch that is not to blame.
        let failed = if let Ok(Err(text)) = &outcome { status_of(text, Status::Model) } else { Status::Model };
        if let (Ok(Err(text)), Status::DeviceLost, false) = (&outcome, failed, stopped) {
            model.device_failed(self.index, text);
        }
        if !running.computed() {
            return false;
        }
        if outcome.is_err() {
            count_panic();
        }
        for (row, &ticket) in batch.iter().enumerate() {
            let encoded = match (&outcome, self.failed[row].take()) {
                (_, Some(failed)) => Err(failed),
                (Ok(Ok(Some(times))), None) if !model.inferences.cancelled(ticket) => {
                    catch_unwind(AssertUnwindSafe(|| self.encode(row, ticket, times))).unwrap_or_else(|_| {
                        count_panic();
                        Err((Status::Panic, "encoding panicked".into()))
                    })
                }
                (Ok(Ok(_)), None) => Err((Status::Cancelled, "the inference was cancelled".into())),
                (Ok(Err(_)), None) if stopped => Err((Status::Cancelled, "the inference was cancelled".into())),
                (Ok(Err(text)), None) if failed == Status::OutOfMemory => Err((failed, text.clone())),
                (Ok(Err(text)), None) => Err((Status::Model, text.clone())),
                (Err(_), None) => Err((Status::Panic, "the inference panicked".into())),
            };
            model.end(
                ticket,
                encoded.as_ref().map(|&clamped| clamped).map_err(|(status, text)| (*status, text.as_str())),
            );
        }
        running.ended()
    }
}

impl Drop for Replica {
    /// Gives all its memory back. Its model may live on, with other replicas.
    fn drop(&mut self) {
        self.network = None;
        self.model.episodes.get(self.index).inspect(|episodes| episodes.end());
    }
}

fn explained<T>(outcome: Result<T, String>, network: Option<&Network>) -> Result<T, String> {
    outcome.map_err(|text| network.map_or(text.clone(), |network| network.explained(text)))
}
