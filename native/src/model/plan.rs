//! The load plan: the argument of `tendon_load`.

use crate::bundle::manifest::Manifest;
use crate::ort::provider::GpuOptions;
use serde::Deserialize;
use std::collections::HashMap;

/// The argument of `tendon_load`, as JSON.
#[derive(Deserialize)]
pub struct LoadPlan {
    pub manifest: Manifest,
    /// Absolute path of each file, by its path in the bundle.
    pub files: HashMap<String, String>,
    pub device: Wish,
    /// Replicas, at least 1.
    pub replicas: u32,
    /// Threads inside one inference, at least 1; None: as many as the machine has for it.
    pub threads: Option<u32>,
    /// Sessions per replica of a model with memory that lie where the graphs read them; None: as many as the memory of the device can.
    pub slots: Option<usize>,
    /// Bytes of host memory that parked sessions of the model may take; None: as `SessionLimits` says. Absent: no session is parked.
    #[serde(default = "nothing")]
    pub parked_bytes_max: Option<u64>,
    /// Milliseconds from a batch's begin after which its replica is taken out.
    pub inference_ms_max: u64,
    /// False: the model is there to warm the engine up. It has few frame slots, and no counter knows of it.
    #[serde(default = "yes")]
    pub counted: bool,
    /// How it runs on a GPU; absent: as the CPU computes.
    #[serde(default)]
    pub gpu: GpuOptions,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Wish {
    One(String),
    /// A device for each replica, neither `auto` nor `echo`.
    Each(Vec<String>),
}

fn yes() -> bool {
    true
}

fn nothing() -> Option<u64> {
    Some(0)
}
