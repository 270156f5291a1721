//! Places for sessions in the device's memory: one while a network is proved, and as many as there is memory for behind that.

use super::Network;
use crate::episode::{DeviceRows, Entry};
use crate::ort::graph::Graph;

impl Network {
    /// Makes as many places for sessions in the device's memory, or as many as can be made: their number, and why there are no more.
    /// Each is as the first one, which has been proved.
    pub fn add_blocks(&mut self, places: usize) -> (usize, Option<String>) {
        let Some(rows) = self.rows.clone() else {
            return (0, Some("its sessions do not lie on the device".into()));
        };
        let mut refusal = None;
        while rows.places() < places && refusal.is_none() {
            refusal = self.place_more(&rows).err();
        }
        // What is bound to it is not run again, and nothing of a run that failed is under way there.
        refusal = refusal.or(self.settle().err());
        rows.give_up();
        (rows.places(), refusal)
    }

    /// After a failure no other is tried: some graphs are bound to the place, and some are not.
    fn place_more(&mut self, rows: &DeviceRows) -> Result<(), String> {
        let extent = *self.variants.last().ok_or("it has no place")?;
        rows.add()?;
        for graph in [Some(&mut self.prefill), self.extend.as_mut(), Some(&mut self.denoise)].into_iter().flatten() {
            // SAFETY: as in `new`.
            unsafe { graph.add_variant(extent, &mut self.mirrors) }?;
        }
        self.variants.push(extent);
        if self.is_captured() {
            // What a place's kernels are captured in takes time and memory: now, not in a robot's first run there.
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
        self.prefill.is_captured() || extend || self.denoise.is_captured()
    }
}
