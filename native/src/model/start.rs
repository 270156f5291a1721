//! Starts the threads of a model's replicas, which prove their networks before they serve.

use super::Model;
use super::placement::ProofFailure;
use crate::core::device::Device;
use crate::core::room::Room;
use crate::core::sync::lock;
use crate::core::thread;
use crate::flow::Network;
use crate::model::parity::Vectors;
use crate::model::replica::{Order, Proof, Replica, larger};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

impl Model {
    /// Starts one thread per replica and waits until all have proved their networks. Returns the largest differences, and what was measured
    /// when places were made on `devices`. After a refusal no replica runs; one that hangs is left behind.
    pub(super) fn start(
        self: &Arc<Model>,
        networks: Vec<Option<Network>>,
        vectors: Option<&Arc<Vectors>>,
        devices: &[Device],
        most: Duration,
    ) -> Result<(Vec<f32>, Option<Room>), ProofFailure> {
        let begun = Instant::now();
        let (prove, proofs) = mpsc::channel::<(usize, Proof)>();
        let mut serves = Vec::new();
        let mut started = Ok(());
        for (index, network) in networks.into_iter().enumerate() {
            let replica = Replica::new(self.clone(), index, network);
            let (prove, vectors) = (prove.clone(), vectors.cloned());
            let (serve, may_serve) = mpsc::channel();
            let work = move || replica.work(vectors, &prove, &may_serve);
            self.crew.started(index);
            match thread::spawn(&format!("tendon-replica-{index}"), work) {
                Ok(thread) => lock(&self.threads).push(thread),
                Err(text) => {
                    self.crew.ended(index);
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
                let (replica, proof) = match proofs.recv_timeout(most.saturating_sub(begun.elapsed())) {
                    Ok(proof) => proof,
                    Err(RecvTimeoutError::Timeout) => return Err(ProofFailure::Hangs(first, None)),
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
            match proofs.recv_timeout(most.saturating_sub(begun.elapsed())) {
                Ok((replica, _)) => unproved.retain(|&other| other != replica),
                Err(RecvTimeoutError::Timeout) => {
                    let beside = match outcome {
                        Err(ProofFailure::Refused(replica, reason)) => Some((replica, reason)),
                        _ => None,
                    };
                    outcome = Err(ProofFailure::Hangs(first, beside));
                }
                Err(RecvTimeoutError::Disconnected) => unproved.clear(),
            }
        }
        if matches!(outcome, Err(ProofFailure::Hangs(..))) {
            lock(&self.threads).clear();
            return outcome;
        }
        for thread in lock(&self.threads).drain(..) {
            // Cannot fail: a replica catches its panics.
            let _ = thread.join();
        }
        outcome
    }
}
