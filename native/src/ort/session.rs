//! A session that is closed in its turn.

use crate::ort::turn::Turns;
use crate::ort::weight_store::{DeviceWeights, Store};
use ort::session::Session;
use std::sync::{Arc, Weak};

/// An open session, wherever it is dropped.
pub struct OpenSession {
    /// None only while this is dropped.
    session: Option<Session>,
    turns: Turns,
}

impl OpenSession {
    pub fn new(session: Session, turns: Turns) -> OpenSession {
        OpenSession { session: Some(session), turns }
    }

    /// The session, for a call that waits for its turn.
    pub fn get(&self) -> &Session {
        self.session.as_ref().expect("taken only by drop")
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        let _turn = self.turns.wait();
        self.session = None;
    }
}

/// A session and what it reads: replicas on a CPU share one for each graph. Its fields are dropped in this order.
pub struct GraphSession {
    session: OpenSession,
    is_captured: bool,
    own_bytes: usize,
    weights: DeviceWeights,
}

impl GraphSession {
    /// `session` was made with these weights, or without any, of which it has copied `own_bytes`. `is_captured`: its runs are captured
    /// once and replayed.
    pub fn new(session: OpenSession, is_captured: bool, weights: DeviceWeights, own_bytes: usize) -> GraphSession {
        GraphSession { session, is_captured, own_bytes, weights }
    }

    /// Whether its provider keeps the kernels of a run, and launches them as one from then on.
    pub fn is_captured(&self) -> bool {
        self.is_captured
    }

    /// The session, for a call that waits for its turn.
    pub fn get(&self) -> &Session {
        self.session.get()
    }
}

/// What the sessions of a model read of its weight files in the memory of devices; nothing of both on a CPU, and of graphs that hold
/// their weights themselves.
#[derive(serde::Serialize, Clone, Default)]
pub struct Tally {
    /// Bytes that lie on their device once for all sessions.
    pub shared_bytes: usize,
    /// Bytes of it that this load has copied there; the others were there, for another model.
    pub copied_bytes: usize,
    /// Bytes of the copies that sessions have of their own, over all of them.
    pub own_bytes: usize,
    /// Why they have; none where that is no more than what their graphs compute on the CPU.
    pub reason: Option<String>,
    #[serde(skip)]
    seen: Vec<Weak<Store>>,
}

impl Tally {
    /// Counts a session of one replica.
    pub fn add(&mut self, session: &GraphSession) {
        self.own_bytes += session.own_bytes;
        if let DeviceWeights { store: Some(store), .. } = &session.weights
            && !self.seen.iter().any(|seen| seen.as_ptr() == Arc::as_ptr(store))
        {
            self.seen.push(Arc::downgrade(store));
            self.shared_bytes += store.bytes();
        }
    }
}
