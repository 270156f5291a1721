//! A provider that computes wrongly, for tests: what the check at load must refuse cannot be had on a machine without a GPU.
//!
//! Nothing of a configuration, an environment or a load plan reaches this: it is set by one exported call, which the product never
//! makes (`src/engine/binding.ts` does not declare it).

use crate::core::sync::lock;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// Makes a device be played by the CPU.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Rehearsal {
    /// Name of the device, for example `cuda:0`.
    pub device: String,
    /// Inputs are copied when they are bound, as a GPU does it; true: what changed is not bound again.
    #[serde(default)]
    pub stale: bool,
    #[serde(default)]
    pub hangs: bool,
    /// Milliseconds that its first runs may take, instead of those of the product.
    pub proof_ms_max: Option<u64>,
    /// A library that plays the driver of an NVIDIA GPU (`native/cuda/driver.h`); without it none is asked.
    pub driver: Option<PathBuf>,
    /// Graphs that the device runs instead of the bundle's, by their path in the bundle: a flipped weight, half precision.
    #[serde(default)]
    pub graphs: HashMap<String, PathBuf>,
}

static REHEARSALS: Mutex<Vec<Rehearsal>> = Mutex::new(Vec::new());

/// Sets what the next loads meet, each device once; none ends it.
pub fn set(rehearsals: Vec<Rehearsal>) {
    *lock(&REHEARSALS) = rehearsals;
}

/// The rehearsal of a device, if there is one.
pub fn of(device: &str) -> Option<Rehearsal> {
    lock(&REHEARSALS).iter().find(|rehearsal| rehearsal.device == device).cloned()
}
