//! The load plan: the argument of `tendon_load`.

use crate::bundle::manifest::Manifest;
use crate::model::stages::StagesPlan;
use crate::ort::provider::GpuOptions;
use serde::Deserialize;
use std::collections::HashMap;

/// The argument of `tendon_load`, as JSON: what `src/engine/engine.ts` calls `LoadOptions`, in its words.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadPlan {
    pub manifest: Manifest,
    /// Absolute path of each file, by its path in the bundle.
    pub files: HashMap<String, String>,
    pub device: Wish,
    /// Replicas, at least 1.
    pub replicas: u32,
    /// Threads inside one inference, at least 1; None: as many as fit the machine.
    pub threads: Option<u32>,
    /// Sessions per replica, of a model with memory, that lie where the graphs read them; None: as many as fit the device's memory.
    pub slots: Option<usize>,
    /// Bytes of host memory for parked sessions of the model; None: as `SessionLimits` says; absent: no session is parked.
    #[serde(default = "nothing")]
    pub parked_bytes_max: Option<u64>,
    /// Milliseconds of a batch after which its replica is taken out.
    pub inference_ms_max: u64,
    /// False: the model warms the engine up. It has few frame slots, and no counter includes it.
    #[serde(default = "yes")]
    pub counted: bool,
    /// Replicas of all models of the process that may compute on the processor; absent: its own.
    #[serde(default)]
    pub on_processor: usize,
    /// Options for a GPU; absent: it computes as the CPU does.
    #[serde(default)]
    pub gpu: GpuOptions,
    /// Cases that are played in place of the parity vectors; the model is never to be served then.
    pub stages: Option<StagesPlan>,
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
