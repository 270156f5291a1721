//! The home of a replica's rows: host memory or that of its device. It is decided for each device that a model is tried on, while all slots
//! are empty.

use super::device::DeviceRows;
use super::{Episodes, PLACES_MAX};
use crate::bundle::manifest::Role;
use crate::core::dtype::Dtype;
use crate::core::sync::lock;
use crate::ort::home::Home;
use crate::ort::program::Program;
use std::ffi::c_void;
use std::sync::Arc;

/// The address of the committed or staged rows of a cache.
pub struct Address {
    pub of: Box<dyn Fn(usize) -> *mut c_void>,
    /// Bytes of one place, and the type of the values.
    pub bytes: usize,
    pub dtype: Dtype,
    /// They lie in the device's memory.
    pub on_device: bool,
}

impl Episodes {
    /// Places all rows in host memory. `refusal` says why they do not lie on the replica's device.
    pub fn lie_on_host(&self, refusal: Option<String>) -> Result<(), String> {
        *lock(&self.refusal) = refusal;
        self.rows.lie_on_host()
    }

    /// Frees the memory of a device. All places are empty, and the rows must be placed again before they are used.
    pub fn lie_nowhere(&self) {
        self.rows.leave_device();
    }

    /// Gives the memory of all sessions back: their replica has ended.
    pub fn end(&self) {
        self.rows.end();
        let mut seats = lock(&self.seats);
        for slot in 0..seats.slots.len() {
            if !seats.slots[slot].taken {
                seats.forget(slot);
            }
        }
        drop(seats);
        // What is parked goes back by `give_back`, and nothing more is kept for these sessions.
        self.account.promise(0, self.blocks.get().map_or(0, Vec::len));
    }

    /// Places all rows in the memory of `home`, with one place so far. `open` makes a session of a graph there. After an error, which is a
    /// sentence, the rows lie where they did.
    pub fn lie_on(&self, home: Home, open: impl Fn(&[u8]) -> Result<Program, String>) -> Result<(), String> {
        let rows = DeviceRows::new(self.rows.layout.clone(), home, open)?;
        *lock(&self.refusal) = None;
        self.rows.lie_on(Arc::new(rows));
        Ok(())
    }

    /// The rows, if they lie on a device.
    pub fn device(&self) -> Option<Arc<DeviceRows>> {
        self.rows.device()
    }

    pub fn is_on_device(&self) -> bool {
        self.device().is_some()
    }

    /// Why they do not, although the replica computes on one.
    pub fn refusal(&self) -> Option<String> {
        lock(&self.refusal).clone()
    }

    /// Number of places that graphs are bound to. On the host it does not change.
    pub fn places(&self) -> usize {
        self.rows.places()
    }

    /// Places that the configuration names, or the most that there may be.
    pub fn places_most(&self) -> usize {
        self.limits.places.unwrap_or(PLACES_MAX)
    }

    pub fn places_are_named(&self) -> bool {
        self.limits.places.is_some()
    }

    /// The address of the committed (`Memory`) or staged rows of a cache, valid while they lie there.
    pub fn address(&self, name: &str, role: Role) -> Option<Address> {
        let (cache, dtype, bytes) = self.rows.cache(name, role)?;
        let device = self.device();
        let on_device = device.is_some();
        let of: Box<dyn Fn(usize) -> *mut c_void> = match device {
            Some(rows) => Box::new(move |place| rows.address(cache, role, place)),
            None => {
                let start = self.rows.address(cache, role);
                // It is inside the block: there are as many variants as places.
                Box::new(move |place| start.wrapping_add(place * bytes).cast())
            }
        };
        Some(Address { of, bytes, dtype, on_device })
    }
}
