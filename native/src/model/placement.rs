//! Finds the devices of a model: those of its list, one for each replica, or the first device on which every replica can be opened and
//! computes the parity vectors.

use super::open::{OpenNetwork, Opening};
use super::{Model, NetworkFacts, Placement, RefusedDevice, SessionCapacity};
use crate::bundle::weights::Weights;
use crate::core::device::Device;
use crate::core::dtype::Dtype;
use crate::core::fault::status_of;
use crate::core::rehearsal::{self, Rehearsal};
use crate::core::room::Room;
use crate::core::status::{Failure, Status};
use crate::core::thread;
use crate::flow::{Files, Network};
use crate::model::Host;
use crate::model::devices::{Hardware, HostedModel};
use crate::model::plan::Wish;
use crate::model::stages::{Exam, Stages};
use crate::ort::provider::{self, GpuOptions};
use crate::ort::runtime::{self, Runtime, Threads};
use crate::ort::session::Tally;
use crate::ort::webgpu;
use std::cell::RefCell;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The time in which a device opens its graphs, and again that for the first inferences there. A provider that compiles takes minutes.
const STEP_MAX: Duration = Duration::from_secs(600);

/// Why replicas do not serve.
pub(super) enum ProofFailure {
    /// The device of a replica cannot be used, or computes wrongly: the replica's number and a sentence.
    Refused(usize, String),
    /// A step of a replica does not end in time, or the load is given up: the beginning of a sentence. Another replica may be refused
    /// meanwhile: its number and a sentence.
    Hangs(usize, String, Option<(usize, String)>),
    /// No thread can be made: a sentence.
    Unstarted(String),
    /// The device of a replica is lost or drained: the replica's number and a sentence.
    Closed(usize, String),
}

pub(super) struct Target {
    pub(super) files: Files,
    pub(super) weights: Arc<Weights>,
    pub(super) device: Wish,
    pub(super) threads: Threads,
    pub(super) gpu: GpuOptions,
    /// What every replica must compute; None on `echo`.
    pub(super) exam: Option<Arc<Exam>>,
}

impl Target {
    /// The cases whose stages are to be read.
    pub(super) fn shown(&self) -> Option<&Stages> {
        if let Some(Exam::Stages(stages)) = self.exam.as_deref() { Some(stages) } else { None }
    }
}

struct Trial {
    names: Vec<String>,
    differences: Vec<f32>,
    facts: NetworkFacts,
    weights: Tally,
}

impl NetworkFacts {
    fn of(network: &mut Network, flow_reason: Option<String>) -> NetworkFacts {
        let (device_bytes, copies) = network.traffic();
        NetworkFacts {
            flow: network.mode(),
            flow_reason,
            device_bytes,
            copies,
            driver_device: network.driver_use().cloned(),
        }
    }
}

impl Wish {
    pub(super) fn is_echo(&self) -> bool {
        matches!(self, Wish::One(word) if word == "echo")
    }

    /// The devices to try, in order: each try has one for every replica. The error names the unknown word.
    pub(super) fn tries(&self, replicas: usize) -> Result<Vec<Vec<Device>>, String> {
        let known = |word: &str| {
            Device::candidates(word)
                .ok_or_else(|| format!("unknown device '{word}', expected auto, cpu, cuda:N, tensorrt:N or webgpu:N"))
        };
        match self {
            Wish::One(word) => Ok(known(word)?.into_iter().map(|device| vec![device; replicas]).collect()),
            Wish::Each(names) if names.len() == replicas => {
                let one = |word: &String| match known(word)?[..] {
                    [device] => Ok(device),
                    _ => Err(format!("'{word}' stands in a list of devices, which names one for each replica")),
                };
                Ok(vec![names.iter().map(one).collect::<Result<_, _>>()?])
            }
            Wish::Each(names) => Err(format!("{} devices for {replicas} replicas", names.len())),
        }
    }

    /// How many of its replicas may compute on the processor at the same time.
    pub(super) fn on_processor(&self, replicas: usize) -> usize {
        match self {
            Wish::One(_) => replicas,
            Wish::Each(names) => names.iter().filter(|word| *word == "cpu").count().max(1),
        }
    }
}

impl Model {
    /// Starts the replicas on the first right devices that are not in `refused`, which is kept with the reasons. If a device does not end
    /// in time, its threads are left behind with this model, and `refused` comes back: the next device needs another model.
    pub(super) fn place(
        self: &Arc<Model>,
        wanted: &Arc<Target>,
        host: &Host,
        mut refused: Vec<RefusedDevice>,
    ) -> Result<Option<Vec<RefusedDevice>>, Failure> {
        let fail = |text: String| Failure::new(Status::Load, text);
        let replicas = self.running.len();
        if wanted.device.is_echo() {
            let on_host = self.episodes.iter().try_for_each(|episodes| episodes.lie_on_host(None));
            on_host.map_err(|text| Failure::new(status_of(&text, Status::Load), text))?;
            return match self.start((0..replicas).map(|_| None).collect(), None, &[], STEP_MAX) {
                Ok((differences, _)) => {
                    let session_capacity = self.seat(&[], None)?;
                    let names = vec!["echo".into(); replicas];
                    let (facts, weights) = Default::default();
                    let trial = Trial { names, differences, facts, weights };
                    self.settle(trial, session_capacity, Vec::new(), host).map(|()| None)
                }
                Err(
                    ProofFailure::Refused(_, reason)
                    | ProofFailure::Closed(_, reason)
                    | ProofFailure::Unstarted(reason),
                ) => Err(fail(reason)),
                Err(ProofFailure::Hangs(..)) => Err(fail("its thread does not start".into())),
            };
        }
        let tries = wanted.device.tries(replicas).map_err(fail)?;
        let runtime = runtime::open(&host.runtime).map_err(fail)?;
        let mut status = Status::Load;
        let is_refused = |refused: &[RefusedDevice], name: &str| refused.iter().any(|one| one.device == name);
        let last = tries.len() - 1;
        for (at, devices) in tries.into_iter().enumerate() {
            if last > 0 && is_refused(&refused, &devices[0].name()) {
                continue;
            }
            if let Some(reason) = self.passed_over(wanted, &devices) {
                refused.push(RefusedDevice { device: devices[0].name(), reason });
                continue;
            }
            match self.try_on(runtime, wanted, &devices, host) {
                Ok((trial, room)) => {
                    let session_capacity = self.seat(&devices, room)?;
                    return self.settle(trial, session_capacity, refused, host).map(|()| None);
                }
                Err(ProofFailure::Refused(replica, reason)) => {
                    let device = devices[replica];
                    // A bundle is made for the CPU: what fails there is not the device's fault.
                    let is_for_it = device == Device::Cpu && self.manifest.compute != Some(Dtype::Bf16);
                    let otherwise = if is_for_it { Status::BadBundle } else { Status::Load };
                    status = status_of(&reason, otherwise);
                    tell_if_lost(host, device, status, &reason);
                    refused.push(RefusedDevice { device: device.name(), reason });
                }
                Err(ProofFailure::Closed(replica, reason)) => {
                    status = status_of(&reason, Status::Load);
                    refused.push(RefusedDevice { device: devices[replica].name(), reason });
                }
                Err(ProofFailure::Unstarted(reason)) => return Err(fail(reason)),
                Err(ProofFailure::Hangs(replica, reason, beside)) => {
                    self.abandon();
                    if self.is_given_up() {
                        return Err(Failure::new(Status::Cancelled, "the load was given up"));
                    }
                    if let Some((other, reason)) = beside {
                        tell_if_lost(host, devices[other], status_of(&reason, Status::Load), &reason);
                        refused.push(RefusedDevice { device: devices[other].name(), reason });
                    }
                    refused.push(RefusedDevice { device: devices[replica].name(), reason });
                    status = Status::Load;
                    // Its threads may go on at any time, on the memory of this model.
                    if at < last {
                        return Ok(Some(refused));
                    }
                }
            }
        }
        let tried: Vec<String> =
            refused.iter().map(|RefusedDevice { device, reason }| format!("{device}: {reason}")).collect();
        Err(Failure::new(status, format!("{}; {}", tried.join(". "), advice(status))))
    }

    /// Why `auto` does not try the device. A named device is tried.
    fn passed_over(&self, wanted: &Target, devices: &[Device]) -> Option<String> {
        let (Wish::One(word), [device, ..]) = (&wanted.device, devices) else { return None };
        if word != "auto" || rehearsal::of(&device.name()).is_some() {
            return None;
        }
        provider::fits(*device, &wanted.gpu).err().or_else(|| webgpu::unfit_for_auto(*device))
    }

    /// Opens the replicas on their devices and proves them.
    fn try_on(
        self: &Arc<Model>,
        runtime: &'static Runtime,
        wanted: &Arc<Target>,
        devices: &[Device],
        host: &Host,
    ) -> Result<(Trial, Option<Room>), ProofFailure> {
        let names: Vec<String> = devices.iter().map(|device| device.name()).collect();
        for (replica, name) in names.iter().enumerate() {
            if let Some(reason) = host.devices.named(name).refusal() {
                return Err(ProofFailure::Closed(replica, reason));
            }
        }
        let (opened, weights) = self.open_in_time(runtime, wanted, devices)?;
        let mut facts = Vec::with_capacity(opened.len());
        let networks = opened.into_iter().map(|(mut network, apart): OpenNetwork| {
            facts.push(NetworkFacts::of(&mut network, apart));
            Some(network)
        });
        let networks: Vec<Option<Network>> = networks.collect();
        let (differences, room) =
            self.start(networks, wanted.exam.as_ref(), devices, step_max(devices, |rehearsal| rehearsal.proof_ms_max))?;
        // The replica with the most memory on a device; one on the CPU has none.
        let facts = facts.into_iter().max_by_key(|facts| facts.device_bytes).unwrap_or_default();
        Ok((Trial { names, differences, facts, weights }, room))
    }

    /// Opens the networks on a thread, which is left behind if it does not end in time: a provider that compiles cannot be stopped. It keeps
    /// a core and its memory until then, and drops what comes of it.
    fn open_in_time(
        self: &Arc<Model>,
        runtime: &'static Runtime,
        wanted: &Arc<Target>,
        devices: &[Device],
    ) -> Result<(Vec<OpenNetwork>, Tally), ProofFailure> {
        let (send, opened) = mpsc::channel();
        let (model, wanted, all) = (self.clone(), wanted.clone(), devices.to_vec());
        let work = move || drop(send.send(model.open(runtime, &wanted, &all)));
        thread::spawn("tendon-open", work).map_err(ProofFailure::Unstarted)?;
        let most = step_max(devices, |rehearsal| rehearsal.open_ms_max);
        match self.receive(&opened, most) {
            Ok(opened) => opened,
            Err(RecvTimeoutError::Timeout) => {
                let late = format!("its graphs were not open after {} ms", most.as_millis());
                Err(ProofFailure::Hangs(0, late, None))
            }
            Err(RecvTimeoutError::Disconnected) => Err(ProofFailure::Refused(0, "opening its graphs panicked".into())),
        }
    }

    fn open(
        &self,
        runtime: &Runtime,
        wanted: &Target,
        devices: &[Device],
    ) -> Result<(Vec<OpenNetwork>, Tally), ProofFailure> {
        let copied = RefCell::default();
        let apart = wanted.shown().map(|_| "each of its steps is shown");
        let opening = Opening { runtime, wanted, apart, copied: &copied };
        match self.networks(&opening, devices) {
            // A device may refuse a whole flow as one graph, which is many times as large, and take its step.
            Err(ProofFailure::Refused(replica, reason))
                if copied.borrow().has_whole && status_of(&reason, Status::Load) != Status::DeviceLost =>
            {
                let apart = format!("{} does not open the flow as one graph: {reason}", devices[replica].name());
                self.networks(&Opening { apart: Some(&apart), ..opening }, devices)
            }
            opened => opened,
        }
    }

    /// Adds the replicas to their devices; an error if one of these was closed since the load began.
    fn settle(
        self: &Arc<Model>,
        trial: Trial,
        session_capacity: SessionCapacity,
        refused: Vec<RefusedDevice>,
        host: &Host,
    ) -> Result<(), Failure> {
        let Trial { names, differences, facts, weights } = trial;
        let slots = self.episodes.iter().map(|episodes| episodes.len()).sum();
        let mut distinct: Vec<&str> = Vec::new();
        for name in &names {
            if !distinct.contains(&name.as_str()) {
                distinct.push(name);
            }
        }
        let hardware: Vec<Arc<Hardware>> = names.iter().map(|name| host.devices.named(name)).collect();
        if let Some((name, reason)) = names.iter().zip(&hardware).find_map(|(name, one)| Some((name, one.refusal()?))) {
            self.close();
            let status = status_of(&reason, Status::Load);
            return Err(Failure::new(status, format!("{name}: {reason} while the model was loaded")));
        }
        let mut queues: Vec<usize> = hardware.iter().map(|hardware| hardware.queue()).collect();
        queues.sort_unstable();
        queues.dedup();
        let placement = Placement {
            device: distinct.join(", "),
            devices: names,
            refused,
            replicas: self.running.len(),
            slots,
            session_capacity,
            parity: differences,
            network: facts,
            device_weights: weights,
        };
        let _ = self.placement.set(placement);
        let _ = self.decode_queues.set(queues);
        let _ = self.hardware.set(hardware.clone());
        let model: Arc<dyn HostedModel> = self.clone();
        let model: Weak<dyn HostedModel> = Arc::downgrade(&model);
        hardware.iter().enumerate().for_each(|(replica, hardware)| hardware.join(model.clone(), replica));
        Ok(())
    }
}

/// Reports a lost device to the other models on it before they lose a chunk.
fn tell_if_lost(host: &Host, device: Device, status: Status, reason: &str) {
    let hardware = host.devices.named(&device.name());
    if status == Status::DeviceLost && hardware.can_fail() {
        hardware.lose(reason);
    }
}

fn step_max(devices: &[Device], rehearsed: impl Fn(Rehearsal) -> Option<u64>) -> Duration {
    let ms = devices.iter().find_map(|device| rehearsed(rehearsal::of(&device.name())?));
    ms.map_or(STEP_MAX, Duration::from_millis)
}

fn advice(status: Status) -> &'static str {
    match status {
        Status::OutOfMemory => "lower its replicas, its slots or arena_mib_max, or name another device",
        Status::DeviceLost => "look into the kernel's log, restart the machine or name another device",
        Status::BadBundle => "build or fetch the bundle again",
        _ => "name another device, or correct this one",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Wish {
        Wish::Each(names.iter().map(|&word| word.into()).collect())
    }

    #[test]
    fn one_word_places_all_replicas_together_and_a_list_each_on_its_own() {
        let one = |word: &str| Wish::One(word.into()).tries(2).expect("known");
        assert_eq!(one("cuda:1"), [[Device::Cuda(1), Device::Cuda(1)]]);
        assert_eq!(one("auto").len(), 4);
        assert_eq!(list(&["cuda:0", "cpu"]).tries(2), Ok(vec![vec![Device::Cuda(0), Device::Cpu]]));
    }

    #[test]
    fn a_list_names_one_known_device_for_each_replica() {
        let refused = |names: &[&str]| list(names).tries(2).expect_err("refused");
        assert!(refused(&["cuda:0"]).contains("1 devices for 2 replicas"));
        assert!(refused(&["cpu", "cuda"]).contains("unknown device 'cuda'"));
        for word in ["auto", "echo"] {
            assert!(refused(&["cpu", word]).contains(&format!("'{word}'")), "{word}");
        }
    }

    #[test]
    fn the_cores_are_divided_among_the_replicas_that_compute_on_the_processor() {
        assert_eq!(Wish::One("auto".into()).on_processor(3), 3);
        assert_eq!(list(&["cuda:0", "cpu", "cpu"]).on_processor(3), 2);
        assert_eq!(list(&["cuda:0", "cuda:1"]).on_processor(2), 1);
    }
}
