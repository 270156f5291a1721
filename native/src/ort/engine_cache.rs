//! The folder for the engines that TensorRT has built: to build them takes minutes, to read them seconds.
//!
//! An engine needs the architecture and the TensorRT that it was built with, and has the weights of one bundle. All are part of the
//! folder's name, so that no stale engine is read. The folder above has the version of ONNX Runtime in its name. An engine is code for the
//! GPU, so only this user may be able to write there.

use crate::ort::provider::Precision;
use libloading::{Library, Symbol};
use std::ffi::c_int;
use std::fs::DirBuilder;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

pub struct Key<'a> {
    /// Architecture of the GPU, for example `sm_90`.
    pub arch: &'a str,
    /// Version of TensorRT, for example `10.16.1`.
    pub tensorrt: &'a str,
    pub precision: Precision,
    pub bundle: &'a str,
}

/// Digits of the bundle's digest in a folder's name.
const DIGITS: usize = 16;

impl Key<'_> {
    /// The folder of the key below `root`.
    pub fn folder(&self, root: &Path) -> PathBuf {
        let Key { arch, tensorrt, precision, bundle } = self;
        let precision = match precision {
            Precision::F32 => "f32",
            Precision::F16 => "f16",
            Precision::Bf16 => "bf16",
        };
        root.join(format!("{arch}-trt{tensorrt}-{precision}-{}", &bundle[..bundle.len().min(DIGITS)]))
    }
}

/// Makes the folder if it is missing, and refuses one that others may write to.
pub fn make(folder: &Path) -> Result<(), String> {
    let failure = |error: std::io::Error| format!("engine_cache: {}: {error}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failure)?;
    let found = std::fs::symlink_metadata(folder).map_err(failure)?;
    // SAFETY: no argument, no failure.
    let user = unsafe { libc::geteuid() };
    if found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(format!("engine_cache: {} is not a folder that this user alone may write to", folder.display()))
}

/// Version of the TensorRT that the provider beside ONNX Runtime in `libraries` would use; None where there is none.
pub fn tensorrt(libraries: &Path) -> Option<String> {
    const FILE: &str = "libnvinfer.so.10";
    let beside = libraries.join(FILE);
    let path = if beside.exists() { beside } else { PathBuf::from(FILE) };
    // SAFETY: the vendor's library, which the provider opens next. It stays open, since it is needed anyway.
    let library = ManuallyDrop::new(unsafe { Library::new(path) }.ok()?);
    // SAFETY: int32_t getInferLibVersion(void), of NvInferRuntime.h.
    let version: Symbol<'_, unsafe extern "C" fn() -> c_int> = unsafe { library.get(b"getInferLibVersion") }.ok()?;
    // SAFETY: as above.
    Some(dotted(unsafe { version() }))
}

/// `101601` as `10.16.1`.
fn dotted(number: c_int) -> String {
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn whatever_an_engine_depends_on_is_in_the_name_of_its_folder() {
        let bundle = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let key = Key { arch: "sm_90", tensorrt: "10.16.1", precision: Precision::F16, bundle };
        let folder = |key: &Key<'_>| key.folder(Path::new("/c/engines/ort1.30.0"));
        assert_eq!(folder(&key), Path::new("/c/engines/ort1.30.0/sm_90-trt10.16.1-f16-0123456789abcdef"));
        let others = [
            Key { arch: "sm_120", ..key },
            Key { tensorrt: "10.16.2", ..key },
            Key { precision: Precision::Bf16, ..key },
            Key { bundle: &bundle[1..], ..key },
        ];
        for other in &others {
            assert_ne!(folder(other), folder(&key));
        }
        assert_eq!(dotted(101_601), "10.16.1");
    }

    #[test]
    fn the_folder_is_made_for_this_user_alone_and_one_that_others_may_write_to_is_refused() {
        let root = std::env::temp_dir().join(format!("tendon-engines-{}", std::process::id()));
        let folder = root.join("ort1.30.0").join("sm_90");
        make(&folder).expect("a folder");
        assert_eq!(std::fs::metadata(&folder).expect("it").mode() & 0o777, 0o700);
        make(&folder).expect("the same again");
        std::fs::set_permissions(&folder, Permissions::from_mode(0o770)).expect("it");
        assert!(make(&folder).expect_err("refused").contains("this user alone"));
        std::fs::remove_dir_all(&root).expect("gone");
        std::fs::write(&root, "a file").expect("written");
        assert!(make(&folder).expect_err("refused").starts_with("engine_cache: "));
        std::fs::remove_file(&root).expect("gone");
    }
}
