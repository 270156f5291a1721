//! The devices that are lost. An object of ONNX Runtime or of the driver on one is left as it is until the process ends. To give it back
//! may throw or wait for ever, which would end the robots of all other devices.

use crate::core::device::Device;
use crate::core::sync::{Mutex, lock};

static LOST: Mutex<Vec<Device>> = Mutex::new(Vec::new());

/// Notes the loss, from which no device comes back while the process lives.
pub fn mark(device: Device) {
    if !is_lost(device) {
        lock(&LOST).push(device);
    }
}

pub fn is_lost(device: Device) -> bool {
    lock(&LOST).iter().any(|lost| lost.shares_memory_with(device))
}

/// Begins with whole devices again, which only a rehearsal can.
#[cfg(feature = "rehearsal")]
pub fn restore() {
    lock(&LOST).clear();
}
