//! The devices of all models of an engine: their replicas, their health, and what they hold.
//!
//! A lost device takes all of its replicas out at once, whichever inference met the loss: every later call there would fail too. A drained
//! device takes no more work, finishes what it has, and is out then. Other devices go on.

use crate::core::device::Device;
use crate::core::lost;
use crate::core::sync::lock;
use serde::Serialize;
use std::sync::{Arc, Mutex, Weak};

/// A model, as its devices see it.
pub trait HostedModel: Send + Sync {
    /// Takes a replica out, unless it is.
    fn lose(&self, replica: usize, reason: &str);
    /// Has a replica finish its inferences and take no more.
    fn leave(&self, replica: usize);
    fn accepts_work(&self, replica: usize) -> bool;
    fn is_out(&self, replica: usize) -> bool;
    fn load(&self, replica: usize) -> Load;
    fn replicas(&self) -> usize;
    fn counted(&self) -> bool;
}

#[derive(Serialize, Clone, Copy, Default, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    pub inferences: usize,
    pub slots: usize,
    /// Session slots whose memory is not empty.
    pub slots_held: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Ready,
    /// It takes no more work.
    Draining,
    Lost(Arc<str>),
}

/// What `src/engine/engine.ts` calls `DeviceFigures`, in its words.
#[derive(Serialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    device: String,
    /// `ready`, `draining`, `drained` or `lost`.
    health: &'static str,
    reason: Option<String>,
    replicas: usize,
    replicas_out: usize,
    #[serde(flatten)]
    load: Load,
    /// Frames that wait for a decoder; devices beyond `QUEUES_MAX` share a queue.
    frames_waiting: usize,
}

struct Inner {
    health: Health,
    /// The replicas with their models. An unloaded model is forgotten.
    crew: Vec<(Weak<dyn HostedModel>, usize)>,
}

pub struct Hardware {
    /// Its name in the configuration; for a GPU with two providers the name with CUDA.
    name: String,
    queue: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub struct Devices(Mutex<Vec<Arc<Hardware>>>);

impl Devices {
    /// The device of a name in the configuration. Providers of the same GPU share it.
    pub fn named(&self, name: &str) -> Arc<Hardware> {
        let name = name.strip_prefix("tensorrt:").map_or_else(|| name.into(), |number| format!("cuda:{number}"));
        let mut all = lock(&self.0);
        if let Some(known) = all.iter().find(|hardware| hardware.name == name) {
            return known.clone();
        }
        let inner = Mutex::new(Inner { health: Health::Ready, crew: Vec::new() });
        let hardware = Arc::new(Hardware { name, queue: all.len(), inner });
        all.push(hardware.clone());
        hardware
    }

    /// Drains the device; the error is a sentence.
    pub fn drain(&self, name: &str) -> Result<(), String> {
        let known = lock(&self.0).iter().find(|hardware| hardware.name == name).cloned();
        known.ok_or_else(|| format!("no model runs on a device '{name}'"))?.drain()
    }

    pub fn figures(&self, frames_waiting: impl Fn(usize) -> usize) -> Vec<Figures> {
        let all = lock(&self.0).clone();
        let figures = all.iter().map(|hardware| hardware.figures(frames_waiting(hardware.queue)));
        figures.filter(|figures| figures.replicas > 0).collect()
    }
}

impl Hardware {
    pub fn queue(&self) -> usize {
        self.queue
    }

    /// Whether it can fail alone: a CPU cannot, and `echo` is no device.
    pub fn can_fail(&self) -> bool {
        !matches!(self.name.as_str(), "cpu" | "echo")
    }

    /// Why no model is placed on it.
    pub fn refusal(&self) -> Option<String> {
        match &lock(&self.inner).health {
            Health::Ready => None,
            Health::Draining => Some("it was drained".into()),
            Health::Lost(reason) => Some(reason.to_string()),
        }
    }

    /// Adds a replica of the model. A replica that comes after the loss is out at once.
    pub fn join(&self, model: Weak<dyn HostedModel>, replica: usize) {
        let mut inner = lock(&self.inner);
        inner.crew.retain(|(model, _)| model.strong_count() > 0);
        inner.crew.push((model.clone(), replica));
        let lost = if let Health::Lost(reason) = &inner.health { Some(reason.clone()) } else { None };
        drop(inner);
        if let (Some(reason), Some(model)) = (lost, model.upgrade()) {
            model.lose(replica, &reason);
        }
    }

    pub fn lose(&self, reason: &str) {
        let mut inner = lock(&self.inner);
        let reason = match &inner.health {
            Health::Lost(first) => first.clone(),
            _ => reason.into(),
        };
        inner.health = Health::Lost(reason.clone());
        if let Some([device]) = Device::candidates(&self.name).as_deref() {
            lost::mark(*device);
        }
        let crew = inner.crew.clone();
        // A lost replica calls its completion, which must not wait for this lock.
        drop(inner);
        for (model, replica) in crew {
            if let Some(model) = model.upgrade() {
                model.lose(replica, &reason);
            }
        }
    }

    /// The reason of a drained replica.
    pub fn drained(&self) -> String {
        format!("{} was drained", self.name)
    }

    /// The cause of a lost replica for programs; `reason` is its text.
    pub fn cause(&self, reason: &str) -> &'static str {
        match &lock(&self.inner).health {
            Health::Lost(why) if **why == *reason => "device_lost",
            _ if self.drained() == reason => "drained",
            _ => "replica_failed",
        }
    }

    /// Has its replicas finish. It is refused if a model would have none left: that is what stopping the service is for.
    fn drain(&self) -> Result<(), String> {
        let mut inner = lock(&self.inner);
        match &inner.health {
            Health::Ready => {}
            Health::Draining => return Ok(()),
            Health::Lost(reason) => return Err(format!("{} is lost: {reason}", self.name)),
        }
        let crew: Vec<(Arc<dyn HostedModel>, usize)> =
            inner.crew.iter().filter_map(|(model, replica)| Some((model.upgrade()?, *replica))).collect();
        if !crew.iter().any(|(model, _)| model.counted()) {
            return Err(format!("no model runs on {}", self.name));
        }
        for (model, _) in crew.iter().filter(|(model, _)| model.counted()) {
            let here = |replica| crew.iter().any(|(other, own)| *own == replica && Arc::ptr_eq(other, model));
            if !(0..model.replicas()).any(|replica| !here(replica) && model.accepts_work(replica)) {
                return Err(format!(
                    "a model on {} has no replica that works elsewhere; to end that too, stop the service",
                    self.name
                ));
            }
        }
        inner.health = Health::Draining;
        drop(inner);
        crew.iter().for_each(|(model, replica)| model.leave(*replica));
        Ok(())
    }

    fn figures(&self, frames_waiting: usize) -> Figures {
        let inner = lock(&self.inner);
        let health = inner.health.clone();
        let crew = inner.crew.clone();
        drop(inner);
        let (mut replicas, mut replicas_out, mut load) = (0, 0, Load::default());
        for (model, replica) in crew {
            let Some(model) = model.upgrade().filter(|model| model.counted()) else { continue };
            let Load { inferences, slots, slots_held } = model.load(replica);
            replicas += 1;
            replicas_out += usize::from(model.is_out(replica));
            load.inferences += inferences;
            load.slots += slots;
            load.slots_held += slots_held;
        }
        let (health, reason) = match health {
            Health::Ready => ("ready", None),
            Health::Draining if replicas_out == replicas => ("drained", None),
            Health::Draining => ("draining", None),
            Health::Lost(reason) => ("lost", Some(reason.to_string())),
        };
        Figures { device: self.name.clone(), health, reason, replicas, replicas_out, load, frames_waiting }
    }
}

#[cfg(test)]
mod tests;
