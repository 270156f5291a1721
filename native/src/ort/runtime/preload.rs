//! Opens the libraries that a provider library needs, from the folder of ONNX Runtime and before the provider. A provider library names
//! them without a folder, and the loader finds open libraries by name. The loader searches for libraries that are not in the folder.

use crate::core::sync::lock;
use crate::gpu::calls::loader_error;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Each library comes after those that it needs. cuDNN finds its own parts beside it.
const CUDA: [&str; 8] = [
    "libcudart.so.13",
    "libnvJitLink.so.13",
    "libcublasLt.so.13",
    "libcublas.so.13",
    "libnvrtc.so.13",
    "libcurand.so.10",
    "libcufft.so.12",
    "libcudnn.so.9",
];
const TENSORRT: [&str; 2] = ["libnvinfer.so.10", "libnvonnxparser.so.10"];

static OPENED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

pub fn cuda(folder: &Path) -> Result<(), String> {
    CUDA.iter().try_for_each(|file| open(&folder.join(file)))
}

pub fn tensorrt(folder: &Path) -> Result<(), String> {
    TENSORRT.iter().try_for_each(|file| open(&folder.join(file)))
}

fn open(path: &Path) -> Result<(), String> {
    let mut opened = lock(&OPENED);
    if opened.contains(path) || !path.exists() {
        return Ok(());
    }
    // SAFETY: a vendor's library that the provider opens next; its initialisers are its vendor's business.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    // It stays open for the life of the process, as the provider does.
    std::mem::forget(library.map_err(|error| loader_error(&error))?);
    opened.insert(path.to_path_buf());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_folder_is_left_to_the_loader_and_what_cannot_be_opened_is_named() {
        let folder = std::env::temp_dir().join(format!("tendon-preload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        assert_eq!(cuda(&folder), Ok(()));
        std::fs::write(folder.join("libcublas.so.13"), "no library").expect("written");
        assert!(cuda(&folder).expect_err("refused").contains("libcublas.so.13"));
        assert_eq!(tensorrt(&folder), Ok(()));
        std::fs::remove_dir_all(&folder).expect("gone");
    }
}
