//! Places for sessions in the device's memory: one while a network is proved, then as many as fit.

use super::Network;
use crate::episode::{DeviceRows, Entry};
use crate::ort::graph::Graph;

impl Network {
    /// Makes places for sessions in the device's memory; returns their number, and why there are no more. Each is like the first one, which
    /// was proved.
    pub fn add_blocks(&mut self, places: usize) -> (usize, Option<String>) {
        let Some(rows) = self.rows.clone() else {
            return (0, Some("its sessions do not lie on the device".into()));
        };
        let mut refusal = None;
        while rows.places() < places && refusal.is_none() {
            refusal = self.place_more(&rows).err();
        }
        // The place of a failure is not used again, and no work of it is in progress.
        refusal = refusal.or(self.settle().err());
        rows.give_up();
        (rows.places(), refusal)
    }

    /// A failure ends this, since some graphs are bound to the place and some are not.
    fn place_more(&mut self, rows: &DeviceRows) -> Result<(), String> {
        let extent = *self.variants.last().ok_or("it has no place")?;
        rows.add()?;
        for graph in [Some(&mut self.prefill), self.extend.as_mut(), self.denoise.as_mut()].into_iter().flatten() {
            // SAFETY: as in `new`.
            unsafe { graph.add_variant(extent, &mut self.mirrors) }?;
        }
        self.variants.push(extent);
        if self.is_captured() {
            // A capture of a place's kernels takes time and memory, so it is done now and not in a robot's first inference.
            let place = self.variants.len() - 1;
            for entry in [Entry::First, Entry::Later] {
                self.read(entry, place)?;
            }
            self.warm(place)?;
        }
        rows.offer(self.variants.len());
        Ok(())
    }

    fn is_captured(&self) -> bool {
        let extend = self.extend.as_ref().is_some_and(Graph::is_captured);
        self.prefill.is_captured() || extend || self.denoise.as_ref().is_some_and(Graph::is_captured)
    }
}
