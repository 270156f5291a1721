//! Weights in the memory of a device, once for all sessions that read them: those of every graph, of every replica, and of other models
//! with the same weight files.
//!
//! ONNX Runtime reads an initializer in place if it lies in the memory that it has planned for it. Otherwise it logs that and copies the
//! file for that session (`CopyLog` in `ort/runtime/with_weights.rs` counts those). Folded weights, and those packed for a kernel, are
//! always the session's. Tensors are copied from the mapped file one by one, so that the host never holds two of them.

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

/// The weights of one bundle on one device, dropped with the last session that reads them. WebGPU keeps freed memory for its next
/// allocations, and has some sizes alone: 102 MiB take 128.
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
    /// The shared weights in the device's memory; None: a session copies what its device cannot read in the file.
    pub store: Option<Arc<Store>>,
}

/// The number of a file, the first byte there, and how many.
type FileRange = (usize, usize, usize);

/// Digests of the files, and the device's memory.
type Key = (Vec<String>, Home);

/// The stores of this process. Models on one device may share files.
static STORES: Mutex<Vec<(Key, Weak<Store>)>> = Mutex::new(Vec::new());

impl Store {
    /// Brings all tensors of these graphs into the memory of `home`, unless they are there. `open` makes a session on the device, of
    /// `onnx::bytes_through` if possible. Also returns how many bytes were copied. The error is a sentence, and the copies are freed with
    /// the store.
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
        // The lock is free here, so that loads on other devices do not wait.
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
        // Another load of the same files waits here.
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

    /// The address of a tensor on the device; None if it is not there.
    pub(super) fn find_tensor(&self, file: usize, tensor: &External) -> Option<(&Info, *mut c_void)> {
        let blocks = lock(&self.blocks);
        blocks.get(&(file, tensor.offset, tensor.bytes)).map(|block| (&self.info, block.address()))
    }

    pub fn bytes(&self) -> usize {
        lock(&self.blocks).values().map(DeviceBlock::bytes).sum()
    }
}
