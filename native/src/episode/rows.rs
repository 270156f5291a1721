//! The rows of a replica's sessions in places that the graphs are bound to, in host memory or in that of a device. Parked rows go to a
//! block of host memory and come back.

use super::device::DeviceRows;
use super::host::{HostCache, HostRows};
use super::layout::{Layout, ParkedFrames, Write};
use crate::bundle::manifest::Role;
use crate::core::dtype::Dtype;
use crate::core::memory::Block;
use crate::core::sync::lock;
use std::sync::{Arc, Mutex, OnceLock};

/// All rows of one replica. They lie on the host until they are placed on a device.
pub(super) struct Rows {
    pub(super) layout: Arc<Layout>,
    mapped: usize,
    pub(super) host: OnceLock<HostRows>,
    device: Mutex<Option<Arc<DeviceRows>>>,
}

impl Rows {
    pub(super) fn new(layout: Layout, mapped: usize) -> Rows {
        Rows { layout: Arc::new(layout), mapped, host: OnceLock::new(), device: Mutex::new(None) }
    }

    /// Places them in host memory. All places are empty.
    pub(super) fn lie_on_host(&self) -> Result<(), String> {
        *lock(&self.device) = None;
        if self.host.get().is_none() {
            // Only the thread that loads the model gets here.
            let _ = self.host.set(HostRows::new(&self.layout, self.mapped)?);
        }
        Ok(())
    }

    /// Takes them off the device.
    pub(super) fn leave_device(&self) {
        *lock(&self.device) = None;
    }

    /// Gives their memory back. The replica, which was its only user, has ended.
    pub(super) fn end(&self) {
        self.leave_device();
        for HostCache { committed, staged } in self.host.get().map_or(&[][..], |host| &host.0) {
            // SAFETY: no thread reads or writes them any more.
            unsafe { (committed.release(), staged.release()) };
        }
    }

    /// Places them on the device. All places are empty.
    pub(super) fn lie_on(&self, rows: Arc<DeviceRows>) {
        *lock(&self.device) = Some(rows);
    }

    pub(super) fn device(&self) -> Option<Arc<DeviceRows>> {
        lock(&self.device).clone()
    }

    fn host(&self) -> &HostRows {
        self.host.get().expect("it is known where the rows lie before one is used")
    }

    /// Number of places that have addresses.
    pub(super) fn places(&self) -> usize {
        self.device().map_or(self.mapped, |rows| rows.places())
    }

    /// The number of a cache, the type of its values and the bytes of one place of its committed or staged rows.
    pub(super) fn cache(&self, name: &str, role: Role) -> Option<(usize, Dtype, usize)> {
        let index = self.layout.caches.iter().position(|cache| cache.name == name)?;
        let cache = &self.layout.caches[index];
        let (committed, staged) = self.layout.place_bytes(cache);
        Some((index, cache.dtype, if role == Role::Memory { committed } else { staged }))
    }

    /// The address of place 0 on the host.
    pub(super) fn address(&self, cache: usize, role: Role) -> *mut u8 {
        let rows = &self.host().0[cache];
        if role == Role::Memory { rows.committed.address() } else { rows.staged.address() }
    }

    /// Why the staged rows of the frames must not be kept: they are not finite. A device checks all staged rows, and does not say which are
    /// bad; the error is the device's. Only the user of the place calls it.
    pub(super) fn unfit(&self, place: usize, frames: usize) -> Result<Option<String>, String> {
        match self.device() {
            Some(rows) => rows.unfit(place),
            None => Ok(self.host().check_staged(&self.layout, place, frames).err()),
        }
    }

    /// Clears rows of an earlier session from a place where they may not be finite. Only the user of the place calls it.
    pub(super) fn renew(&self, place: usize) -> Result<(), String> {
        self.device().map_or(Ok(()), |rows| rows.renew(place))
    }

    /// Copies a kept block to the end of the committed rows. Only the user of the place calls it.
    pub(super) fn apply_write(&self, place: usize, write: Write) -> Result<(), String> {
        match self.device() {
            Some(rows) => rows.apply_write(place, write),
            None => self.host().apply_write(&self.layout, place, write),
        }
    }

    /// Copies the rows of a place into a parked block. Only the user of both calls it.
    pub(super) fn park(&self, place: usize, kept: ParkedFrames, block: &Block) -> Result<(), String> {
        match self.device() {
            Some(rows) => rows.park(place, kept, block),
            None => self.host().park(&self.layout, place, kept, block),
        }
    }

    /// Copies a parked block into a place. Only the user of both calls it.
    pub(super) fn bring_back(&self, place: usize, kept: ParkedFrames, block: &Block) -> Result<(), String> {
        match self.device() {
            Some(rows) => rows.bring_back(place, kept, block),
            None => self.host().bring_back(&self.layout, place, kept, block),
        }
    }

    /// Bytes that a parked block takes.
    pub(super) fn parked_bytes(&self, kept: ParkedFrames) -> usize {
        self.device().map_or_else(|| self.layout.bytes(kept.committed + kept.staged), |rows| rows.parked_bytes(kept))
    }
}
