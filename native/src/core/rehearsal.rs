//! Rehearsals of tests: a GPU that the CPU plays and that computes wrongly, and faults that no drill has.
//!
//! The cargo feature `rehearsal` turns this on, in the library of the tests (`native/rehearsal`) and in the fuzz targets. Without it
//! `Playing` and `Rehearsal` have no values, so that the compiler leaves out all code for them.

use crate::core::fault::Fault;
use std::collections::HashMap;
use std::path::PathBuf;

#[cfg(feature = "rehearsal")]
type Possible = ();
#[cfg(not(feature = "rehearsal"))]
type Possible = std::convert::Infallible;

/// How the CPU plays a device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "rehearsal", derive(Default, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Playing {
    /// False: an input is copied when it is bound and before each inference, as on a GPU. True: when it is bound alone.
    pub stale: bool,
    /// No inference ends.
    pub hangs: bool,
    /// Graphs are run as if they were captured.
    pub captures: bool,
    #[cfg_attr(feature = "rehearsal", serde(skip))]
    possible: Possible,
}

/// A device that the CPU plays.
#[derive(Clone)]
#[cfg_attr(feature = "rehearsal", derive(Default, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Rehearsal {
    /// Name of the device, for example `cuda:0`.
    pub device: String,
    pub playing: Playing,
    /// Milliseconds that its first inferences may take, instead of the product's.
    pub proof_ms_max: Option<u64>,
    /// Milliseconds that it takes to open the graphs of a replica, as a provider that compiles does, and that it may take.
    pub opens_ms: Option<u64>,
    pub open_ms_max: Option<u64>,
    /// A library that plays the driver of an NVIDIA GPU (`native/cuda/driver.h`). None: the device has no driver.
    pub driver: Option<PathBuf>,
    /// Graphs that the device runs instead of the bundle's, by their path in the bundle: a flipped weight, half precision.
    pub graphs: HashMap<String, PathBuf>,
}

#[cfg(not(feature = "rehearsal"))]
pub fn of(_device: &str) -> Option<Rehearsal> {
    None
}

#[cfg(not(feature = "rehearsal"))]
pub fn next_fault() -> Option<Fault> {
    None
}

#[cfg(feature = "rehearsal")]
pub use self::on::{Plan, next_fault, of};

#[cfg(feature = "rehearsal")]
mod on {
    use super::{Fault, Rehearsal};
    use crate::core::lost;
    use crate::core::sync::{Mutex, lock};
    use serde::Deserialize;

    static DEVICES: Mutex<Vec<Rehearsal>> = Mutex::new(Vec::new());
    static FAULT: Mutex<Option<Fault>> = Mutex::new(None);

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Plan {
        /// Devices of the next loads, each once.
        devices: Option<Vec<Rehearsal>>,
        /// The fault of the next inference.
        fault: Option<Fault>,
    }

    impl Plan {
        /// Replaces the parts that the plan names.
        pub fn begin(self) {
            if let Some(devices) = self.devices {
                *lock(&DEVICES) = devices;
                lost::restore();
            }
            if self.fault.is_some() {
                *lock(&FAULT) = self.fault;
            }
        }
    }

    /// The rehearsal of a device, if there is one.
    pub fn of(device: &str) -> Option<Rehearsal> {
        lock(&DEVICES).iter().find(|rehearsal| rehearsal.device == device).cloned()
    }

    /// Takes the fault of the next inference.
    pub fn next_fault() -> Option<Fault> {
        lock(&FAULT).take()
    }
}
