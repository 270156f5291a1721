//! Decides how many sessions a model takes on its devices, once every replica has computed there.

use super::Model;
use super::placement::ProofFailure;
use crate::core::device::Device;
use crate::core::room::{self, Room, fit};
use crate::core::status::{Failure, Status};
use crate::core::sync::{Mutex, lock};
use crate::episode::Episodes;
use crate::model::replica::Order;
use crate::ort::driver_device;
use serde::Serialize;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

#[derive(Serialize, Clone, Default)]
#[serde(rename_all = "camelCase")]
pub struct SessionCapacity {
    /// Slots whose memory lies where the graphs read it. The other slots can be parked in host memory.
    pub places: usize,
    pub places_on_device: usize,
    /// Why the memory of a replica on a device lies on the host, for the first such replica: each of its observations copies it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_memory_because: Option<String>,
    /// Bytes of one session at most.
    pub slot_bytes: usize,
    /// The memory for sessions that was measured; None on a model without memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
}

/// Two loads do not count on the same bytes.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Model {
    /// Has the replicas with sessions on a device make places there: as many as were asked for, or as many as fit. Returns what was
    /// measured; None if no session lies on a device.
    pub(super) fn make_places(
        &self,
        replicas: &[Sender<Order>],
        devices: &[Device],
        most: Duration,
    ) -> Result<Option<Room>, ProofFailure> {
        let on_device = |replica: usize| self.episodes.get(replica).is_some_and(|episodes| episodes.is_on_device());
        let there: Vec<usize> = (0..replicas.len()).filter(|&replica| on_device(replica)).collect();
        let Some(first) = there.first().map(|&replica| &self.episodes[replica]) else { return Ok(None) };
        let _turn = lock(&ONE_AT_A_TIME);
        // The places of another model do not count as delay of this one.
        let begun = Instant::now();
        let (share, room) = self.share(devices, true);
        let wanted = if first.places_are_named() {
            first.places_most()
        } else {
            // The first place was made before the measurement, so it counts as free.
            fit(share + first.slot_bytes() as u64, first.slot_bytes(), first.places_most())
        };
        for replica in there {
            let (made, places) = mpsc::channel();
            // Cannot fail: a replica that has proved its network waits for an order.
            let _ = replicas[replica].send(Order::Places(wanted, made));
            let (places, refusal) = match self.receive(&places, most.saturating_sub(begun.elapsed())) {
                Ok(made) => made,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ProofFailure::Hangs(
                        replica,
                        "its places for sessions were not made in time".into(),
                        None,
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => (0, Some("its thread ended".into())),
            };
            if places < if first.places_are_named() { wanted } else { 1 } {
                let refusal = refusal.unwrap_or_default();
                return Err(ProofFailure::Refused(
                    replica,
                    format!("{places} of {wanted} places for sessions: {refusal}"),
                ));
            }
        }
        Ok(Some(room))
    }

    /// Gives the replicas as many session slots as were asked for, or as fit. `room` is what was measured when places were made. Closes the
    /// model on failure.
    pub(super) fn seat(&self, devices: &[Device], room: Option<Room>) -> Result<SessionCapacity, Failure> {
        self.seats_of(devices, room).map_err(|text| {
            self.close();
            Failure::new(Status::Load, text)
        })
    }

    fn seats_of(&self, devices: &[Device], measured: Option<Room>) -> Result<SessionCapacity, String> {
        let Some(first) = self.episodes.first() else { return Ok(SessionCapacity::default()) };
        let _turn = lock(&ONE_AT_A_TIME);
        let (share, room) = self.share(devices, false);
        // All replicas have the same number, even if free memory changed while they were mapped.
        let mapped = self.episodes.iter().map(|episodes| episodes.places()).min().unwrap_or(1);
        let bytes = share.min((mapped * first.slot_bytes()) as u64);
        let parked = room::parked() / self.episodes.len() as u64;
        let (mut places, mut places_on_device) = (0, 0);
        for episodes in &self.episodes {
            let own = episodes.seat(bytes, parked)?.places;
            places += own;
            places_on_device += if episodes.is_on_device() { own } else { 0 };
        }
        Ok(SessionCapacity {
            places,
            places_on_device,
            host_memory_because: self.episodes.iter().find_map(|episodes| episodes.refusal()),
            slot_bytes: first.slot_bytes(),
            room: Some(measured.unwrap_or(room)),
        })
    }

    /// Bytes for the sessions of each replica whose rows lie on a device (`there`) or on the host. The device with the least memory for
    /// each decides.
    fn share(&self, devices: &[Device], there: bool) -> (u64, Room) {
        let placed = |episodes: &&Episodes| episodes.is_on_device() == there;
        let on_host = self.episodes.iter().map(|one| &**one).filter(|one| !one.is_on_device()).count().max(1) as u64;
        let own = self.episodes.iter().zip(devices).filter(|(episodes, _)| placed(&&***episodes));
        let shares = own.map(|(_, &device)| {
            let together = devices.iter().filter(|other| other.shares_memory_with(device)).count() as u64;
            let room = room_of(Some(device), there);
            let share = room.bytes() / together;
            (if there { share } else { share.min(room::host().bytes() / on_host) }, room)
        });
        shares.min_by_key(|(share, _)| *share).unwrap_or_else(|| {
            let room = room_of(None, false);
            let nobody = there || self.episodes.iter().all(|episodes| episodes.is_on_device());
            (if nobody { u64::MAX } else { room.bytes() / on_host }, room)
        })
    }
}

/// The part of a GPU's memory, one in sixteen, and the least of it, that stays free for later allocations.
const GPU_RESERVE: u64 = 16;
const GPU_RESERVE_MIN: u64 = 512 << 20;

/// The memory for sessions of a model on `device` whose rows lie `there`, or else on the host. `None`: the model runs on no device.
fn room_of(device: Option<Device>, there: bool) -> Room {
    let host = room::host();
    let gpu =
        match device {
            Some(gpu @ (Device::Cuda(_) | Device::TensorRt(_))) => driver_device::memory(gpu)
                .map(|(free, total)| Room { of: "gpu", free, reserve: (total / GPU_RESERVE).max(GPU_RESERVE_MIN) }),
            // WebGPU does not report its memory.
            Some(Device::WebGpu(_)) => Some(Room::unknown()),
            _ => None,
        };
    // Rows on the host are copied to the GPU for each inference. The memory of an unknown device may be the host's.
    let alone = there && matches!(device, Some(Device::Cuda(_) | Device::TensorRt(_)));
    gpu.filter(|gpu| alone || gpu.bytes() < host.bytes()).unwrap_or(host)
}
