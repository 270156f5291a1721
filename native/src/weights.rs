//! The weight files of a bundle: mapped, never read into memory of our own, and given to ONNX Runtime by address.
//!
//! One mapping serves all graphs and replicas of a model. Its pages are those of the system's file cache: they come when a weight is
//! first used, and leave without being written when memory is short. On a CPU the kernels read them there; a GPU's provider copies
//! from them.
//!
//! Of the ways that ONNX Runtime 1.30 has, only `AddInitializer` uses memory where it lies: `AddExternalInitializersFromFilesInMemory`
//! copied each tensor, and a folded or cast one more than once (485 MB of bf16 weights took 1.9 GB, `bench/weights.ts` has what is
//! left). A prepacked-weights container would share what kernels repack between sessions of one model, but not what is folded, and
//! each session packs it before it finds the other's; replicas on a CPU share the whole session instead (`Providers::shares_sessions`).
//!
//! A bundle is immutable: it is replaced by renaming a folder over it, as `tendon bundle build` does, never by writing into its
//! files. Its digests are checked before a load, its sizes here, on the opened file. A renamed or deleted file stays mapped as it
//! was. Against somebody who writes into a served file there is no defence that does not copy it: changed bytes become changed
//! weights until the next load refuses the digest, and a file that is cut short ends the process with SIGBUS at the next touch of
//! what is gone. Its supervisor starts it again, and the load then refuses the file.

mod external;

use self::external::{External, externals};
use crate::graph::Opened;
use crate::manifest::Manifest;
use ort::session::Session;
use ort::sys::{self, OrtAllocatorType, OrtMemType, OrtSessionOptions, OrtValue};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

/// Values of a folded node in a session of a bundle with weight files: larger ones are computed in each run. A matrix that is kept
/// as bf16 is cast to f32 where it is used; folded, all of them would stay in memory as f32 beside their file. What a model's own
/// times and positions give is smaller than this and is folded.
pub const FOLDED_BYTES_MAX: &str = "1048576";

/// The mapped weight files of one bundle, in the order of its manifest.
pub struct Weights(Vec<Mapped>);

/// A session and what it reads: replicas on a CPU share one for each graph. Its fields are dropped in this order.
pub struct Loaded {
    session: Opened,
    _weights: Arc<Weights>,
}

impl Loaded {
    /// `session` was made with these weights, or without any.
    pub fn new(session: Opened, weights: Arc<Weights>) -> Loaded {
        Loaded { session, _weights: weights }
    }

    /// The session, for a call that waits for its turn.
    pub fn get(&self) -> &Session {
        self.session.get()
    }
}

/// A whole file, mapped for reading.
struct Mapped {
    /// As the graphs name it.
    name: String,
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping is read only, and lives until it is dropped.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Weights {
    /// Maps the files that the manifest names, by their paths in `paths`. The error is a sentence about the file that is not as the
    /// manifest lists it.
    pub fn open(manifest: &Manifest, paths: &HashMap<String, String>) -> Result<Weights, String> {
        let mapped = manifest.weight_files.iter().map(|name| {
            let listed = manifest.files.iter().find(|file| file.path == *name);
            let size = listed.ok_or_else(|| format!("{name} is not listed in the manifest"))?.size;
            let path = paths.get(name).ok_or_else(|| format!("the load plan has no path for {name}"))?;
            Mapped::open(name, Path::new(path), size)
        });
        Ok(Weights(mapped.collect::<Result<_, _>>()?))
    }

    /// Of graphs that keep all weights themselves.
    pub fn none() -> Weights {
        Weights(Vec::new())
    }

    /// There is no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tensors of the graph at `path` that lie in these files, as ONNX Runtime takes them.
    pub fn of_graph(&self, path: &Path) -> Result<Given, String> {
        let told = |error: String| format!("{}: {error}", path.display());
        let model = std::fs::read(path).map_err(|error| told(error.to_string()))?;
        let mut given = Given(Vec::new());
        for tensor in externals(&model).map_err(told)? {
            given.0.push(self.value(&tensor).map_err(told)?);
        }
        Ok(given)
    }

    fn value(&self, tensor: &External) -> Result<(CString, *mut OrtValue), String> {
        let External { name, kind, dims, file, offset, bytes } = tensor;
        let mapped = self.0.iter().find(|mapped| mapped.name == *file);
        let mapped = mapped.ok_or_else(|| format!("tensor {name} lies in {file}, which the manifest does not name"))?;
        if offset.checked_add(*bytes).is_none_or(|end| end > mapped.bytes) {
            return Err(format!("tensor {name} reaches over the end of {file}"));
        }
        let name = CString::new(name.as_str()).map_err(|_| "a tensor name contains a zero byte".to_string())?;
        let (api, mut memory_info, mut value) = (ort::api(), null_mut(), null_mut());
        // SAFETY: out pointers for one object each. The values lie inside the mapping, aligned, as `externals` and the lines above
        // have checked; `Loaded` keeps it as long as the session. ONNX Runtime only reads initializers.
        unsafe {
            check((api.CreateCpuMemoryInfo)(
                OrtAllocatorType::OrtDeviceAllocator,
                OrtMemType::OrtMemTypeDefault,
                &mut memory_info,
            ))?;
            let made = check((api.CreateTensorWithDataAsOrtValue)(
                memory_info,
                mapped.start.cast::<u8>().add(*offset).cast(),
                *bytes,
                dims.as_ptr(),
                dims.len(),
                *kind,
                &mut value,
            ));
            (api.ReleaseMemoryInfo)(memory_info);
            made?;
        }
        Ok((name, value))
    }
}

/// Tensors over mapped memory, by their names in one graph. They are needed until its session is made.
pub struct Given(Vec<(CString, *mut OrtValue)>);

impl Given {
    /// Makes a session use these tensors where they lie. Those that ONNX Runtime folds into others it reads from the file beside the
    /// graph once more.
    ///
    /// # Safety
    /// `options` are live and are not used when this is gone, and every session that is made with them becomes part of a `Loaded` that
    /// keeps the weights.
    pub unsafe fn add_to(&self, options: *mut OrtSessionOptions) -> Result<(), String> {
        // SAFETY: live options, as demanded; ONNX Runtime copies the name and keeps the value's address.
        self.0
            .iter()
            .try_for_each(|(name, value)| check(unsafe { (ort::api().AddInitializer)(options, name.as_ptr(), *value) }))
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // SAFETY: made in `value`, released once. The memory behind them stays.
        self.0.iter().for_each(|&(_, value)| unsafe { (ort::api().ReleaseValue)(value) });
    }
}

/// The sentence of a failed status.
fn check(status: sys::OrtStatusPtr) -> Result<(), String> {
    // SAFETY: the status comes straight from a call of the API and is consumed here.
    unsafe { ort::Error::<()>::result_from_status(status) }.map_err(|error| error.to_string())
}

impl Mapped {
    fn open(name: &str, path: &Path, size: u64) -> Result<Mapped, String> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| format!("{shown} cannot be opened: {error}"))?;
        // Of the opened file: what is mapped cannot be another one.
        let found = file.metadata().map_err(|error| format!("{shown}: {error}"))?;
        if !found.is_file() || found.len() != size {
            return Err(format!("{shown} has {} bytes, expected {size}: fetch the bundle again", found.len()));
        }
        let bytes = usize::try_from(size).map_err(|_| format!("{shown} is larger than memory can be"))?;
        // A mapping of no bytes does not exist.
        if bytes == 0 {
            return Err(format!("{shown} is empty"));
        }
        // SAFETY: a new read-only mapping of an open file, which may be closed afterwards; the result is checked.
        let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("{shown} cannot be mapped: {}", std::io::Error::last_os_error()));
        }
        Ok(Mapped { name: name.into(), start, bytes })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: made in `open`, unmapped once; no session is left that reads it.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tendon-weights-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn refusal(path: &Path, size: u64) -> String {
        Mapped::open("weights.bin", path, size).err().expect("a refusal")
    }

    #[test]
    fn a_file_is_mapped_as_it_is_and_stays_so_when_its_name_is_gone() {
        let folder = folder("mapped");
        let path = folder.join("weights.bin");
        let values: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &values).expect("a file");
        let mapped = Mapped::open("weights.bin", &path, 10_000).expect("mapped");
        std::fs::remove_dir_all(&folder).expect("removed");
        // SAFETY: a readable mapping of so many bytes.
        let seen = unsafe { std::slice::from_raw_parts(mapped.start.cast::<u8>(), mapped.bytes) };
        assert_eq!((seen, mapped.start as usize % 4096), (&values[..], 0));
    }

    #[test]
    fn a_file_that_is_missing_cut_longer_or_no_file_is_refused_in_words() {
        let folder = folder("refused");
        let path = folder.join("weights.bin");
        assert!(refusal(&path, 3).contains("cannot be opened: No such file"), "{}", refusal(&path, 3));
        std::fs::write(&path, b"two").expect("a file");
        for size in [2, 4, u64::MAX] {
            let text = refusal(&path, size);
            assert!(text.contains(&format!("has 3 bytes, expected {size}")), "{text}");
        }
        assert!(refusal(&folder, 3).contains("bytes, expected 3"), "{}", refusal(&folder, 3));
        std::fs::write(&path, b"").expect("a file");
        assert!(refusal(&path, 0).ends_with("is empty"));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
