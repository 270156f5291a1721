//! The weight files of a bundle: mapped, never read into our own memory, and given to ONNX Runtime by address.
//!
//! One mapping serves all graphs and replicas of a model. Its pages are those of the system's file cache: they are read at the first use of
//! a weight, and dropped without a write when memory is short. On a CPU the kernels read them in place. A GPU has one copy of each tensor
//! for all its graphs and replicas (`ort/weight_store.rs`).
//!
//! ONNX Runtime 1.30 uses memory in place with `AddInitializer` alone. `AddExternalInitializersFromFilesInMemory` copied each tensor, and a
//! folded or cast one more than once: 485 MB of bf16 weights took 1.9 GB (`bench/weights.ts`). A prepacked-weights container would share
//! the weights that kernels repack, but not folded ones, and each session packs its own first. Replicas on a CPU share the whole session
//! instead (`Providers::shares_sessions`).
//!
//! A bundle is immutable: a folder is renamed over it, as `tendon bundle build` does, and nobody writes into its files. Its digests are
//! checked before a load; its sizes are checked here, on the opened file. A renamed or deleted file stays mapped. Only a copy would protect
//! against a write into a served file. Changed bytes become changed weights until the next load refuses the digest. A truncated file ends
//! the process with SIGBUS at the next use of a lost page; its supervisor starts it again, and the load refuses the file.

mod external;

pub use self::external::External;

use self::external::externals;
use crate::bundle::manifest::{Listed, Manifest};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;

/// Bytes of a folded node in a session with weight files. A larger node is computed in each run. A bf16 matrix is cast to f32 at its use:
/// if that were folded, all matrices would stay in memory as f32 beside their file. A model's own times and positions are smaller and are
/// folded.
pub const FOLDED_BYTES_MAX: &str = "1048576";

const PAGE: usize = 4096;

/// The mapped weight files of one bundle, in the order of its manifest.
pub struct Weights(Vec<Mapped>);

/// A whole file, mapped for reading.
struct Mapped {
    name: String,
    /// Its SHA-256, as the manifest lists it.
    sha256: String,
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping is read only, and lives until it is dropped.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Weights {
    /// Maps the files of the manifest; `paths` has their paths. The error is a sentence about a wrong file.
    pub fn open(manifest: &Manifest, paths: &HashMap<String, String>) -> Result<Weights, String> {
        let mapped = manifest.weight_files.iter().map(|name| {
            let listed = manifest.files.iter().find(|file| file.path == *name);
            let listed = listed.ok_or_else(|| format!("{name} is not listed in the manifest"))?;
            let path = paths.get(name).ok_or_else(|| format!("the load plan has no path for {name}"))?;
            Mapped::open(listed, Path::new(path))
        });
        Ok(Weights(mapped.collect::<Result<_, _>>()?))
    }

    pub fn none() -> Weights {
        Weights(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// SHA-256 of each file; they were checked before the load.
    pub fn digests(&self) -> Vec<String> {
        self.0.iter().map(|mapped| mapped.sha256.clone()).collect()
    }

    /// Drops the pages of copied values. They are read from the file again if they are needed.
    pub fn forget(&self, values: &[u8]) {
        let range = values.as_ptr_range();
        let start = (range.start as usize).next_multiple_of(PAGE);
        if let Some(bytes) = (range.end as usize).checked_sub(start) {
            // SAFETY: whole pages of a shared mapping of a file, or none: what is read there stays the same.
            unsafe { libc::madvise(start as *mut c_void, bytes, libc::MADV_DONTNEED) };
        }
    }

    /// The tensors of the graph at `path` that lie in these files.
    pub fn of_graph(&self, path: &Path) -> Result<Vec<External>, String> {
        let failure = |error: String| format!("{}: {error}", path.display());
        let model = std::fs::read(path).map_err(|error| failure(error.to_string()))?;
        externals(&model).map_err(failure)
    }

    /// The values of a tensor: the number of their file, and where it is mapped.
    pub fn values(&self, External { name, file, offset, bytes, .. }: &External) -> Result<(usize, &[u8]), String> {
        let at = self.0.iter().position(|mapped| mapped.name == *file);
        let at = at.ok_or_else(|| format!("tensor {name} lies in {file}, which the manifest does not name"))?;
        let values = offset.checked_add(*bytes).and_then(|end| self.0[at].all().get(*offset..end));
        values.map(|values| (at, values)).ok_or_else(|| format!("tensor {name} reaches over the end of {file}"))
    }
}

impl Mapped {
    fn open(Listed { path: name, size, sha256 }: &Listed, path: &Path) -> Result<Mapped, String> {
        let (name, size, sha256) = (name.clone(), *size, sha256.clone());
        let shown = path.display();
        let file = File::open(path).map_err(|error| format!("{shown} cannot be opened: {error}"))?;
        // The size is that of the opened file, so that no other file can be mapped.
        let found = file.metadata().map_err(|error| format!("{shown}: {error}"))?;
        if !found.is_file() || found.len() != size {
            return Err(format!("{shown} has {} bytes, expected {size}: fetch the bundle again", found.len()));
        }
        let bytes = usize::try_from(size).map_err(|_| format!("{shown} is larger than memory can be"))?;
        if bytes == 0 {
            return Err(format!("{shown} is empty"));
        }
        // SAFETY: a new read-only mapping of an open file, which may be closed afterwards; the result is checked.
        let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("{shown} cannot be mapped: {}", std::io::Error::last_os_error()));
        }
        Ok(Mapped { name, sha256, start, bytes })
    }

    fn all(&self) -> &[u8] {
        // SAFETY: a readable mapping of `len` bytes, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
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

    fn open(path: &Path, size: u64) -> Result<Mapped, String> {
        Mapped::open(&Listed { path: "weights.bin".into(), size, sha256: "0".repeat(64) }, path)
    }

    fn refusal(path: &Path, size: u64) -> String {
        open(path, size).err().expect("a refusal")
    }

    #[test]
    fn a_file_is_mapped_as_it_is_and_stays_so_when_its_name_is_gone() {
        let folder = folder("mapped");
        let path = folder.join("weights.bin");
        let values: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &values).expect("a file");
        let mapped = open(&path, 10_000).expect("mapped");
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!((mapped.all(), mapped.start as usize % PAGE), (&values[..], 0));
        // Pages of copied values may go, and are there again when they are read.
        let weights = Weights(vec![mapped]);
        for range in [0..10_000, 1..9999, 4096..4097, 10..10] {
            weights.forget(&weights.0[0].all()[range]);
            assert_eq!(weights.0[0].all(), values);
        }
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
