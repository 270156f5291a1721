//! A loaded model: what its replicas share, and how an observation gets into their queue. `load.rs` loads it.

pub mod decode_pool;
mod device_view;
pub mod devices;
pub mod inference;
mod load;
mod open;
mod parity;
mod placement;
mod plan;
mod replica;
mod seating;
mod stages;
mod start;
mod watchdog;

pub use load::Host;
pub use seating::SessionCapacity;

use crate::bundle::manifest::Manifest;
use crate::bundle::prompt::Prompt;
use crate::core::active_batch::Running;
use crate::core::completion::Completions;
use crate::core::fault::Fault;
use crate::core::layout::{NO_SLOT, OBSERVATION_FRAMES_MAX, ObserveRequest};
use crate::core::queue::Queue;
use crate::core::rehearsal;
use crate::core::status::{Failure, Status};
use crate::core::sync::lock;
use crate::core::ticket::Ticket;
use crate::episode::{Entry, Episodes, Pass};
use crate::flow::FlowMode;
use crate::flow::encoder::Encoder;
use crate::image::frame::FrameSlots;
use crate::model::devices::Hardware;
use crate::model::inference::{InferenceSlots, Job};
use crate::model::watchdog::Crew;
use crate::ort::driver_device::DriverUse;
use crate::ort::graph::Copies;
use crate::ort::session::Tally;
use crate::ort::terminator::Terminator;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The devices of a model, and why it is not on others: a part of `Model` in `src/engine/engine.ts`, under the same names.
#[derive(serde::Serialize, Clone)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Name of the device, for example `cpu` or `echo`; the names of several devices, with commas.
    pub device: String,
    pub devices: Vec<String>,
    /// Devices that were tried before and refused, with the reasons.
    pub refused: Vec<RefusedDevice>,
    pub replicas: usize,
    /// Session slots of all replicas; 0 on a model without memory.
    pub slots: usize,
    #[serde(rename = "sessionMemory")]
    pub session_capacity: SessionCapacity,
    /// The largest difference of each parity vector over all replicas, in robot units; empty on `echo`.
    pub parity: Vec<f32>,
    /// The facts of the replica with the most memory on a device.
    #[serde(flatten)]
    pub network: NetworkFacts,
    /// The weights in the memory of devices.
    pub device_weights: Tally,
}

/// How a network runs a flow, and its use of its device and the driver.
#[derive(serde::Serialize, Clone, Default)]
#[serde(rename_all = "camelCase")]
pub struct NetworkFacts {
    pub flow: FlowMode,
    /// Why the steps of a flow are run one by one. None if they are not, and on a CPU, where nothing waits between them.
    pub flow_reason: Option<String>,
    /// Bytes of its tensors in the device's memory; 0 on a CPU.
    pub device_bytes: usize,
    /// Bytes that an observation copies between host and device in a batch of one; 0 on a CPU.
    pub copies: Copies,
    /// None without a driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_device: Option<DriverUse>,
}

/// A device that could not be used.
#[derive(serde::Serialize, Clone)]
pub struct RefusedDevice {
    pub device: String,
    pub reason: String,
}

/// A model with its queue, frame slots and replicas.
pub struct Model {
    /// The part of the manifest that the engine needs.
    pub manifest: Manifest,
    /// Slots for frames; `counted` says whether the engine's counters include the model.
    pub frames: Arc<FrameSlots>,
    pub prompt: Prompt,
    pub encoder: Encoder,
    pub noise_key: [u32; 2],
    /// Queues of inferences: one for all replicas, or one per replica on a model with memory.
    queues: Vec<Queue<Ticket>>,
    /// The session memory of each replica; empty on a model without memory.
    pub episodes: Vec<Arc<Episodes>>,
    /// Tokens of the state tensor: 1 if a graph has one, else 0.
    state_tokens: usize,
    pub running: Vec<Running<Terminator>>,
    /// The time of a batch after which its replica is taken out.
    pub inference_max: Duration,
    pub crew: Crew,
    /// The engine's ticket of this model.
    pub ticket: Ticket,
    pub inferences: Arc<InferenceSlots>,
    pub completions: Arc<Completions>,
    /// Set by the caller of a load that is not wanted any more.
    given_up: Arc<AtomicBool>,
    /// Set when the model is unloaded: queued inferences are cancelled.
    pub closing: AtomicBool,
    /// Its devices; set once they have been proved.
    pub placement: OnceLock<Placement>,
    hardware: OnceLock<Vec<Arc<Hardware>>>,
    /// The queues of the devices in the decode pool, each once.
    decode_queues: OnceLock<Vec<usize>>,
    /// Whether each replica finishes its inferences and takes no more.
    leaving: Vec<AtomicBool>,
    /// One thread for each replica, in their order.
    threads: Mutex<Vec<JoinHandle<()>>>,
    watchdog: Mutex<Option<JoinHandle<()>>>,
}

/// `Placement`, and the replicas that are out now.
#[derive(serde::Serialize)]
struct PlacementNow<'a> {
    /// It is there once the model is loaded.
    #[serde(flatten)]
    placement: Option<&'a Placement>,
    lost: Vec<LostReplica>,
}

/// A replica that takes no more work.
#[derive(serde::Serialize)]
struct LostReplica {
    replica: usize,
    device: String,
    /// `device_lost`, `drained` or `replica_failed`.
    cause: &'static str,
    reason: String,
}

impl Model {
    pub fn placement(&self) -> String {
        let lost = (self.running.iter().enumerate())
            .filter_map(|(replica, running)| Some(self.lost_replica(replica, running.lost()?.to_string())));
        let now = PlacementNow { placement: self.placement.get(), lost: lost.collect() };
        serde_json::to_string(&now).expect("plain strings")
    }

    /// The queues of its frames in the decode pool.
    pub fn decode_queues(&self) -> &[usize] {
        self.decode_queues.get().map_or(&[0], Vec::as_slice)
    }

    /// The replica of a session slot, and the index of the slot there; None for a slot that does not exist.
    fn home(&self, slot: u32) -> Option<(usize, usize)> {
        let per_replica = self.episodes.first()?.len();
        let (replica, slot) = (slot as usize / per_replica, slot as usize % per_replica);
        (replica < self.episodes.len()).then_some((replica, slot))
    }

    /// The memory with the slot, and the index of the slot there.
    pub fn episode(&self, slot: u32) -> Option<(&Arc<Episodes>, usize)> {
        let (replica, slot) = self.home(slot)?;
        Some((&self.episodes[replica], slot))
    }

    /// The queue that a replica takes its inferences from.
    pub fn queue(&self, replica: usize) -> &Queue<Ticket> {
        &self.queues[replica % self.queues.len()]
    }

    /// Prompt tokens of an inference whose instruction has `text` tokens: image, text and state tokens.
    pub fn prompt_tokens(&self, pass: Pass, text: usize, state: Option<&[f32]>) -> usize {
        let images = match &self.manifest.memory {
            Some(memory) => (pass.kept + pass.written) * memory.tokens,
            None => self.manifest.frames.later * self.manifest.cameras.len() * self.manifest.image.tokens,
        };
        images + self.prompt.len(text, state) + self.state_tokens
    }

    /// Bytes of the longest instruction that is read at all.
    pub fn instruction_bytes_max(&self) -> usize {
        self.prompt.raw_bytes_max()
    }

    /// Prompt tokens of an observation. Without a state it is the most that any state needs; without a slot it is that of a first
    /// observation.
    pub fn measure(&self, request: &ObserveRequest, instruction: &str) -> Result<usize, Failure> {
        let misuse = |text: &str| Failure::new(Status::Misuse, text);
        let text = self.prompt.instruction(instruction).ok_or_else(too_long)?;
        let state = match request.state_len as usize {
            0 => None,
            len if len == self.manifest.state.columns.len() => Some(&request.state[..len]),
            _ => return Err(misuse("the state has not the model's number of values")),
        };
        let pass = match (request.slot, &self.manifest.memory) {
            (NO_SLOT, Some(memory)) => Pass { entry: Entry::First, kept: 0, written: memory.first },
            (NO_SLOT, None) => NO_MEMORY,
            (slot, _) => (self.episode(slot).and_then(|(episodes, slot)| episodes.plan(slot)))
                .ok_or_else(|| misuse("the model has no such slot"))?,
        };
        Ok(self.prompt_tokens(pass, text.len(), state))
    }

    /// Queues one observation. `self` is an `Arc`, because the inference keeps the model alive.
    pub fn observe(self: &Arc<Model>, request: &ObserveRequest, instruction: &str) -> Result<Ticket, Failure> {
        let misuse = |text: String| Failure::new(Status::Misuse, text);
        let home = match (request.slot, self.manifest.memory.is_some()) {
            (NO_SLOT, false) => None,
            (slot, true) => Some(self.home(slot).ok_or_else(|| misuse("the model has no such slot".into()))?),
            (_, false) => return Err(misuse("this model has no episode memory".into())),
        };
        let out = |home: Option<(usize, usize)>| match home {
            Some((replica, _)) => self.running[replica].lost().is_some(),
            None => self.is_lost(),
        };
        let lost = || Failure::new(Status::Lost, "the replica that would run this is out");
        if out(home) {
            return Err(lost());
        }
        let fault = Fault::from_wire(request.fault).ok_or_else(|| misuse("there is no such fault".into()))?;
        let fault = rehearsal::next_fault().unwrap_or(fault);
        let pass = home.and_then(|(replica, slot)| self.episodes[replica].plan(slot)).unwrap_or(NO_MEMORY);
        let frames = &self.manifest.frames;
        let expected =
            self.manifest.cameras.len() * if pass.entry == Entry::First { frames.first } else { frames.later };
        let count = request.frames_len as usize;
        if count != expected {
            return Err(misuse(format!("{count} frames, expected {expected}")));
        }
        if request.state_len as usize != self.manifest.state.columns.len() {
            return Err(misuse(format!(
                "{} state values, expected {}",
                request.state_len,
                self.manifest.state.columns.len()
            )));
        }
        let prefix = self.prefix(request).map_err(misuse)?;
        let mut tickets = [Ticket(0); OBSERVATION_FRAMES_MAX];
        for (ticket, &frame) in tickets.iter_mut().zip(&request.frames[..count]) {
            *ticket = Ticket::from_wire(frame);
        }
        let frames = &tickets[..count];
        for (index, &frame) in frames.iter().enumerate() {
            if !self.frames.is_claimable(frame) || frames[..index].contains(&frame) {
                return Err(misuse(format!("frame {index} is dropped, watched, already taken or stale")));
            }
        }
        let instruction = self.prompt.instruction(instruction).ok_or_else(too_long)?;
        let episode = home.map(|(replica, slot)| (self.episodes[replica].clone(), slot));
        if episode.as_ref().is_some_and(|(episodes, slot)| !episodes.take(*slot)) {
            return Err(misuse("another inference has the slot".into()));
        }
        let opened = self.inferences.open(|job| {
            job.model = Some(self.clone());
            job.frames = tickets;
            job.frames_len = count;
            job.state = request.state;
            job.prefix[..prefix.len()].copy_from_slice(prefix);
            job.prefix_len = prefix.len();
            job.instruction = Some(instruction);
            job.step = request.step;
            job.seed = u64::from(request.seed_high) << 32 | u64::from(request.seed_low);
            job.fail_step = request.fail_step;
            job.fault = fault;
            job.episode = episode;
            job.submitted = Instant::now();
            job.begun = None;
            job.turn = request.turn;
            job.bad = None;
            job.frames_us = 0;
            // One more than its frames, so that it does not begin before all are claimed.
            job.awaited = count + 1;
        });
        let ticket = opened.ok_or_else(|| {
            if let Some((replica, slot)) = home {
                self.episodes[replica].settle(slot, false);
            }
            Failure::new(Status::Busy, "every result slot is taken")
        })?;
        for (index, &frame) in frames.iter().enumerate() {
            if !self.frames.claim(frame, ticket, index) {
                self.inferences.arrived(ticket, &self.frames, frame);
            }
        }
        self.inferences.claimed(ticket);
        Ok(ticket)
    }

    /// The rows that the chunk continues; the error is a sentence about wrong ones.
    fn prefix<'a>(&self, request: &'a ObserveRequest) -> Result<&'a [f32], String> {
        let (rows, most) = (request.prefix_rows as usize, self.manifest.action.prefix);
        if rows > most {
            return Err(format!("{rows} rows to continue, expected {most} at most"));
        }
        let prefix = &request.prefix[..rows * self.manifest.action.columns.len()];
        self.encoder.prefix_rows(prefix).map(|_| prefix)
    }

    /// Puts an inference whose frames are decoded into the queue of its replica, or says why it cannot run.
    pub fn enqueue(&self, job: &Job, ticket: Ticket) -> Result<(), (Status, &'static str)> {
        let replica = job
            .episode
            .as_ref()
            .and_then(|(episodes, _)| self.episodes.iter().position(|own| Arc::ptr_eq(own, episodes)));
        // A queue has room for every inference. It is closed with its model, or with its last replica.
        self.queue(replica.unwrap_or(0)).push(job.turn, ticket).map_err(|_| {
            if self.closing.load(Ordering::Acquire) {
                (Status::Cancelled, "the model is being unloaded")
            } else {
                (Status::Lost, "the replica of the inference is out")
            }
        })
    }

    /// Takes an inference out of its queue. False if a replica has taken it.
    pub fn unqueue(&self, ticket: Ticket) -> bool {
        self.queues.iter().any(|queue| queue.remove(|&waiting| waiting == ticket).is_some())
    }

    /// Stops the batch of an inference if all its inferences are cancelled.
    pub fn stop_if_all_cancelled(&self, ticket: Ticket) {
        for running in &self.running {
            running.stop_if_all(ticket, |other| self.inferences.cancelled(other));
        }
    }

    /// Frees the unread frames of an inference, ends it and calls its completion; does nothing if it has ended.
    pub fn end(&self, ticket: Ticket, outcome: Result<u32, (Status, &str)>) {
        let Some((frames, count)) = self.inferences.job(ticket).map(|job| (job.frames, job.frames_len)) else { return };
        frames[..count].iter().for_each(|&frame| self.frames.finish(frame));
        let status = outcome.as_ref().map_or_else(|(status, _)| *status, |_| Status::Ok);
        if self.inferences.finish(ticket, &outcome) {
            self.completions.tell(ticket, status);
        }
    }

    /// Cancels queued inferences, ends the replicas and joins them. Returns within `inference_max` of the last batch's begin: the thread of
    /// a replica that is out is left behind, with the memory that it may still write to.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.queues.iter().for_each(Queue::close);
        self.running.iter().for_each(Running::stop);
        self.wait_for_replicas();
        for (replica, thread) in lock(&self.threads).drain(..).enumerate() {
            if self.running[replica].lost().is_none() {
                // `Presence` has reported a panic.
                let _ = thread.join();
            }
        }
        if let Some(watchdog) = lock(&self.watchdog).take() {
            // Cannot fail: it does not panic.
            let _ = watchdog.join();
        }
    }
}

/// The pass of a model without memory.
pub const NO_MEMORY: Pass = Pass { entry: Entry::First, kept: 0, written: 0 };

fn too_long() -> Failure {
    Failure::new(Status::TooLong, "the instruction is longer than the model's prompt")
}
