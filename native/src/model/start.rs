//! Starts the threads of a model's replicas, which prove their networks before they serve.

use super::Model;
use super::placement::ProofFailure;
use crate::core::active_batch::{Running, Stop};
use crate::core::device::Device;
use crate::core::room::Room;
use crate::core::sync::lock;
use crate::core::thread;
use crate::flow::Network;
use crate::model::replica::{Order, Proof, Replica, larger};
use crate::model::stages::Exam;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

impl Model {
    /// Starts one thread per replica and waits until all have proved their networks. Returns the largest differences, and what was measured
    /// when places were made on `devices`. After a refusal no replica runs; one that hangs is left behind.
    pub(super) fn start(
        self: &Arc<Model>,
        networks: Vec<Option<Network>>,
        exam: Option<&Arc<Exam>>,
        devices: &[Device],
        most: Duration,
    ) -> Result<(Vec<f32>, Option<Room>), ProofFailure> {
        let begun = Instant::now();
        let late = || format!("its first runs had not ended after {} ms", most.as_millis());
        let (prove, proofs) = mpsc::channel::<(usize, Proof)>();
        let mut serves = Vec::new();
        let mut started = Ok(());
        for (index, network) in networks.into_iter().enumerate() {
            let replica = Replica::new(self.clone(), index, network);
            let (prove, exam) = (prove.clone(), exam.cloned());
            let (serve, may_serve) = mpsc::channel();
            let work = move || replica.work(exam, &prove, &may_serve);
            self.crew.started(index);
            match thread::spawn(&format!("tendon-replica-{index}"), work) {
                Ok(thread) => lock(&self.threads).push(thread),
                Err(text) => {
                    started = Err(text);
                    break;
                }
            }
            serves.push(serve);
        }
        drop(prove);
        let mut unproved: Vec<usize> = (0..serves.len()).collect();
        let outcome = started.map_err(ProofFailure::Unstarted).and_then(|()| {
            let mut worst = Vec::new();
            while let Some(&first) = unproved.first() {
                let (replica, proof) = match self.receive(&proofs, most.saturating_sub(begun.elapsed())) {
                    Ok(proof) => proof,
                    Err(RecvTimeoutError::Timeout) => return Err(ProofFailure::Hangs(first, late(), None)),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(ProofFailure::Refused(first, "a replica ended during its first run".into()));
                    }
                };
                unproved.retain(|&other| other != replica);
                larger(&mut worst, proof.map_err(|reason| ProofFailure::Refused(replica, reason))?);
            }
            Ok(worst)
        });
        let left = most.saturating_sub(begun.elapsed());
        let outcome = outcome.and_then(|worst| Ok((worst, self.make_places(&serves, devices, left)?)));
        if outcome.is_ok() {
            for serve in &serves {
                // Cannot fail: a replica that has proved its network waits for this.
                let _ = serve.send(Order::Serve);
            }
            return outcome;
        }
        drop(serves);
        // The other replicas may still be at their first inferences, and one of these may never end.
        let mut outcome = outcome;
        while let (Some(&first), false) = (unproved.first(), matches!(outcome, Err(ProofFailure::Hangs(..)))) {
            match self.receive(&proofs, most.saturating_sub(begun.elapsed())) {
                Ok((replica, _)) => unproved.retain(|&other| other != replica),
                Err(RecvTimeoutError::Timeout) => {
                    let beside = match outcome {
                        Err(ProofFailure::Refused(replica, reason)) => Some((replica, reason)),
                        _ => None,
                    };
                    outcome = Err(ProofFailure::Hangs(first, late(), beside));
                }
                Err(RecvTimeoutError::Disconnected) => unproved.clear(),
            }
        }
        if matches!(outcome, Err(ProofFailure::Hangs(..))) {
            return outcome;
        }
        for thread in lock(&self.threads).drain(..) {
            // Cannot fail: a replica catches its panics.
            let _ = thread.join();
        }
        outcome
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Waits for a step of the load. A load that is given up has no time left.
    pub(super) fn receive<T>(&self, from: &Receiver<T>, most: Duration) -> Result<T, RecvTimeoutError> {
        let begun = Instant::now();
        loop {
            let left = if self.is_given_up() { Duration::ZERO } else { most.saturating_sub(begun.elapsed()) };
            match from.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if left > LOOK => {}
                received => return received,
            }
        }
    }

    /// Leaves the threads of the load behind. Each ends with its present step, and drops what it has.
    pub(super) fn abandon(&self) {
        self.closing.store(true, Ordering::Release);
        self.running.iter().filter_map(Running::stopper).for_each(|stopper| stopper.set());
        lock(&self.threads).clear();
    }
}

/// How often a load looks whether it is given up.
const LOOK: Duration = Duration::from_millis(20);
