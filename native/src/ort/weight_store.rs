//! Weights in the memory of a device, once for all sessions that read them: those of every graph, of every replica, and of other models
//! with the same weight files.
//!
//! ONNX Runtime reads an initializer where a user has it, if that is the memory which it has planned for it; otherwise it says so and
//! copies the file for that session (`Refused` in `ort/runtime/with_weights.rs` counts those). What a session folds, or packs for a kernel,
//! is its own in any case. A tensor is copied from the mapped file by itself, so that the host never has two of them in memory.

use crate::bundle::weights::{External, Weights};
use crate::core::sync::lock;
use crate::ort::device_memory::DeviceBlock;
use crate::ort::home::{Home, Info};
use crate::ort::session::OpenSession;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

/// The weights of one bundle on one device. Dropped when the last session that reads it is gone, each block in its turn. WebGPU keeps
/// what is given back for its next allocations, and gives out some sizes alone: 102 MiB take 128.
pub struct Store {
    blocks: Mutex<HashMap<FileRange, DeviceBlock>>,
    home: Home,
    info: Info,
    session: OpenSession,
}

/// The weights of a bundle as the sessions of one device get them.
#[derive(Clone)]
pub struct DeviceWeights {
    pub weights: Arc<Weights>,
    /// What of them lies in the device's memory for all sessions; None: a session copies what its device cannot read in the file.
    pub store: Option<Arc<Store>>,
}

/// The number of a file, the first byte there, and how many.
type FileRange = (usize, usize, usize);

/// Digests of the files, and the device's memory.
type Key = (Vec<String>, Home);

/// Those of this process. A device may have the files of a model that another one has loaded.
static STORES: Mutex<Vec<(Key, Weak<Store>)>> = Mutex::new(Vec::new());

impl Store {
    /// All tensors of these graphs in the memory of `home`, those that are there already as they are. `open` makes a session on the
    /// device, of `onnx::bytes_through` if it can. With it comes how many bytes were copied for that. The error is a sentence; what had been copied goes with the store.
    pub fn of(
        weights: &Weights,
        graphs: &[&Path],
        home: Home,
        open: impl FnOnce() -> Result<OpenSession, String>,
    ) -> Result<(Arc<Store>, usize), String> {
        let store = Store::find(weights, home, open)?;
        store.fill(weights, graphs).map(|copied| (store, copied))
    }

    fn find(
        weights: &Weights,
        home: Home,
        open: impl FnOnce() -> Result<OpenSession, String>,
    ) -> Result<Arc<Store>, String> {
        let key: Key = (weights.digests(), home);
        let known = |stores: &[(Key, Weak<Store>)]| {
            stores.iter().filter(|(other, _)| *other == key).find_map(|(_, store)| store.upgrade())
        };
        if let Some(store) = known(&lock(&STORES)) {
            return Ok(store);
        }
        // Without the lock: loads on other devices do not wait for this one.
        let (blocks, info) = (Mutex::default(), home.info()?);
        let made = Arc::new(Store { blocks, home, info, session: open()? });
        let mut stores = lock(&STORES);
        stores.retain(|(_, store)| store.strong_count() > 0);
        if let Some(store) = known(&stores) {
            return Ok(store);
        }
        stores.push((key, Arc::downgrade(&made)));
        Ok(made)
    }

    fn fill(&self, weights: &Weights, graphs: &[&Path]) -> Result<usize, String> {
        // Another load of the same files waits for its end.
        let mut blocks = lock(&self.blocks);
        let mut copied = 0;
        for path in graphs {
            for tensor in weights.of_graph(path)? {
                let (file, values) = weights.values(&tensor)?;
                if let Entry::Vacant(entry) = blocks.entry((file, tensor.offset, tensor.bytes)) {
                    entry.insert(DeviceBlock::of(self.session.get(), self.home, values)?);
                    weights.forget(values);
                    copied += values.len();
                }
            }
        }
        Ok(copied)
    }

    /// Where the device has a tensor; None if it has not.
    pub(super) fn find_tensor(&self, file: usize, tensor: &External) -> Option<(&Info, *mut c_void)> {
        let blocks = lock(&self.blocks);
        blocks.get(&(file, tensor.offset, tensor.bytes)).map(|block| (&self.info, block.address()))
    }

    pub fn bytes(&self) -> usize {
        lock(&self.blocks).values().map(DeviceBlock::bytes).sum()
    }
}
