//! Sessions, which are closed in their turn.

use crate::ort::turn::Turns;
use crate::ort::weight_store::{DeviceWeights, Store};
use ort::session::Session;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

/// An open session, which may be dropped anywhere.
pub struct OpenSession {
    session: ManuallyDrop<Session>,
    turns: Turns,
}

impl OpenSession {
    pub fn new(session: Session, turns: Turns) -> OpenSession {
        OpenSession { session: ManuallyDrop::new(session), turns }
    }

    /// The session, for a call that waits for its turn.
    pub fn get(&self) -> &Session {
        &self.session
    }

    pub fn turns(&self) -> Turns {
        self.turns
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        // SAFETY: dropped once, and not used afterwards.
        self.turns.close(|| unsafe { ManuallyDrop::drop(&mut self.session) });
    }
}

/// A session and its weights. Replicas on a CPU share one for each graph. The fields are dropped in this order.
pub struct GraphSession {
    session: OpenSession,
    is_captured: bool,
    own_bytes: usize,
    weights: DeviceWeights,
}

impl GraphSession {
    /// `session` was made with these weights, or without any, and has copied `own_bytes` of them. `is_captured`: its runs are captured once
    /// and replayed.
    pub fn new(session: OpenSession, is_captured: bool, weights: DeviceWeights, own_bytes: usize) -> GraphSession {
        GraphSession { session, is_captured, own_bytes, weights }
    }

    /// Whether its provider captures the kernels of a run and launches them as one from then on.
    pub fn is_captured(&self) -> bool {
        self.is_captured
    }

    /// The session, for a call that waits for its turn.
    pub fn get(&self) -> &Session {
        self.session.get()
    }

    pub fn turns(&self) -> Turns {
        self.session.turns()
    }
}

/// The weights of a model's sessions in the memory of devices. All is 0 on a CPU, and for graphs that contain their weights.
#[derive(serde::Serialize, Clone, Default)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Bytes that all sessions of a device share.
    pub shared_bytes: usize,
    /// Bytes of them that this load has copied; the others were there for another model.
    pub copied_bytes: usize,
    /// Bytes of the sessions' own copies.
    pub own_bytes: usize,
    /// Why there are own copies; None if they are only what the graphs compute on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::onnx;
    use crate::core::device::Device;
    use crate::core::lost;
    use crate::ort::runtime;
    use std::path::Path;

    #[test]
    fn a_session_of_a_lost_device_is_left_open_and_any_other_is_closed() {
        let packaged = "../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1";
        let runtime = runtime::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged)).expect("ONNX Runtime");
        lost::mark(Device::TensorRt(77));
        for (turns, owners) in [(Turns::Gpu(77), 2), (Turns::Gpu(78), 1), (Turns::Free, 1)] {
            let mut options = runtime.plain(1).expect("options");
            let session = OpenSession::new(options.commit_from_memory(&onnx::one_relu()).expect("open"), turns);
            let inner = session.get().inner();
            drop(session);
            assert_eq!(Arc::strong_count(&inner), owners, "{turns:?}");
        }
    }
}
