//! A model as its devices see it (`model/devices.rs`).

use super::{LostReplica, Model};
use crate::core::device::Device;
use crate::gpu::context::Entered;
use crate::model::devices::{HostedModel, Load};
use crate::ort::driver_device;
use std::sync::atomic::Ordering;

impl Model {
    /// An inference has met an error after which its device computes nothing any more. On a CPU only the replica is out.
    pub fn device_failed(&self, replica: usize, text: &str) {
        match self.hardware.get().map(|hardware| &hardware[replica]) {
            Some(hardware) if hardware.can_fail() => hardware.lose(&format!("device lost: {text}")),
            _ => self.lose(replica, format!("its device failed: {text}")),
        }
    }

    /// For the thread that frees the model's memory on its devices.
    pub fn enter(&self) -> Vec<Entered> {
        let names = self.placement.get().map_or(&[][..], |placement| &placement.devices);
        names.iter().filter_map(|name| Device::candidates(name)).flatten().filter_map(driver_device::enter).collect()
    }

    /// Whether a replica takes nothing more from a shared queue. A replica with its own queue empties that first.
    pub fn leaves(&self, replica: usize) -> bool {
        self.episodes.is_empty() && self.is_leaving(replica)
    }

    /// Stops a replica's use of a shared queue, also if it waits there now.
    pub fn leave_queue(&self, replica: usize) {
        self.leaving[replica].store(true, Ordering::Release);
        if self.episodes.is_empty() {
            self.queue(replica).wake();
        }
    }

    pub fn is_leaving(&self, replica: usize) -> bool {
        self.leaving[replica].load(Ordering::Acquire)
    }

    /// Why a replica whose thread has ended is out.
    pub fn end_reason(&self, replica: usize) -> String {
        let drained = self.hardware.get().filter(|_| self.is_leaving(replica));
        drained.map_or_else(|| "its thread ended".into(), |hardware| hardware[replica].drained())
    }

    pub(super) fn lost_replica(&self, replica: usize, reason: String) -> LostReplica {
        let hardware = self.hardware.get().map(|hardware| &hardware[replica]);
        let device = self.placement.get().map(|placement| placement.devices[replica].clone());
        LostReplica {
            replica,
            device: device.unwrap_or_default(),
            cause: hardware.map_or("replica_failed", |hardware| hardware.cause(&reason)),
            reason,
        }
    }
}

impl HostedModel for Model {
    fn lose(&self, replica: usize, reason: &str) {
        Model::lose(self, replica, reason.into());
    }

    fn leave(&self, replica: usize) {
        self.leave_queue(replica);
        if !self.episodes.is_empty() {
            self.queue(replica).close();
        }
    }

    fn accepts_work(&self, replica: usize) -> bool {
        !self.is_leaving(replica) && !self.is_out(replica)
    }

    fn is_out(&self, replica: usize) -> bool {
        self.running[replica].lost().is_some()
    }

    fn load(&self, replica: usize) -> Load {
        let episodes = self.episodes.get(replica);
        Load {
            inferences: self.running[replica].owed(),
            slots: episodes.map_or(0, |episodes| episodes.len()),
            slots_held: episodes.map_or(0, |episodes| episodes.usage().slots),
        }
    }

    fn replicas(&self) -> usize {
        self.running.len()
    }

    fn counted(&self) -> bool {
        self.frames.counted
    }
}
