//! Pixels from libjpeg-turbo, opened by path: exact DCT, fancy upsampling and 1/1 scale, as in Pillow.

use super::header::{Header, SCANS_MAX};
use libloading::Library as Shared;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

type Handle = *mut c_void;

/// libturbojpeg 3 and its calls that we use.
pub struct Library {
    init: unsafe extern "C" fn(c_int) -> Handle,
    set: unsafe extern "C" fn(Handle, c_int, c_int) -> c_int,
    get: unsafe extern "C" fn(Handle, c_int) -> c_int,
    read_header: unsafe extern "C" fn(Handle, *const u8, usize) -> c_int,
    decompress: unsafe extern "C" fn(Handle, *const u8, usize, *mut u8, c_int, c_int) -> c_int,
    error_text: unsafe extern "C" fn(Handle) -> *const c_char,
    error_code: unsafe extern "C" fn(Handle) -> c_int,
    destroy: unsafe extern "C" fn(Handle),
    _shared: Shared,
}

// Values of turbojpeg.h, part of the library's stable interface.
const INIT_DECOMPRESS: c_int = 1;
const PARAM_WIDTH: c_int = 5;
const PARAM_HEIGHT: c_int = 6;
const PARAM_FAST_UPSAMPLE: c_int = 9;
const PARAM_FAST_DCT: c_int = 10;
const PARAM_SCAN_LIMIT: c_int = 13;
const PARAM_MEMORY_MB_MAX: c_int = 23;
const PIXELS_RGB: c_int = 0;
const ERROR_FATAL: c_int = 1;

/// A progressive 4096×4096 4:4:4 file needs 96 MiB of coefficients.
const MEMORY_MB_MAX: c_int = 128;

impl Library {
    /// Opens the library at `path`.
    pub fn open(path: &Path) -> Result<Arc<Library>, String> {
        // SAFETY: libturbojpeg's initialisers have no side effects; the symbols below have the signatures of turbojpeg.h 3.
        unsafe {
            let shared = Shared::new(path).map_err(|error| format!("libturbojpeg: {error}"))?;
            macro_rules! symbol {
                ($name:literal) => {
                    *shared.get($name).map_err(|error| format!("libturbojpeg: {error}"))?
                };
            }
            Ok(Arc::new(Library {
                init: symbol!("tj3Init"),
                set: symbol!("tj3Set"),
                get: symbol!("tj3Get"),
                read_header: symbol!("tj3DecompressHeader"),
                decompress: symbol!("tj3Decompress8"),
                error_text: symbol!("tj3GetErrorStr"),
                error_code: symbol!("tj3GetErrorCode"),
                destroy: symbol!("tj3Destroy"),
                _shared: shared,
            }))
        }
    }
}

/// Decodes each picture with a new decompressor.
///
/// A libjpeg decompressor keeps quantisation and Huffman tables from one image to the next. A file without tables would be
/// decoded with those of another robot's frame, and a damaged file could spoil the next. A new one costs a few microseconds.
pub struct Decoder {
    library: Arc<Library>,
}

struct Decompressor<'a> {
    library: &'a Library,
    handle: Handle,
}

impl Decompressor<'_> {
    fn new(library: &Library) -> Result<Decompressor<'_>, String> {
        // SAFETY: the constant is valid; a null handle is checked.
        let handle = unsafe { (library.init)(INIT_DECOMPRESS) };
        if handle.is_null() {
            return Err("libturbojpeg gave no decompressor".into());
        }
        let decompressor = Decompressor { library, handle };
        for (parameter, value) in [
            (PARAM_FAST_UPSAMPLE, 0),
            (PARAM_FAST_DCT, 0),
            (PARAM_SCAN_LIMIT, SCANS_MAX as c_int),
            (PARAM_MEMORY_MB_MAX, MEMORY_MB_MAX),
        ] {
            // SAFETY: the handle is live.
            if unsafe { (library.set)(handle, parameter, value) } != 0 {
                return Err(format!("libturbojpeg refused parameter {parameter}: {}", decompressor.error()));
            }
        }
        Ok(decompressor)
    }

    fn error(&self) -> String {
        // SAFETY: the library returns a C string that stays valid until the next call on this handle.
        unsafe { CStr::from_ptr((self.library.error_text)(self.handle)) }.to_string_lossy().into_owned()
    }
}

impl Drop for Decompressor<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used again.
        unsafe { (self.library.destroy)(self.handle) };
    }
}

impl Decoder {
    /// A decoder; fails if the library cannot make a decompressor with our settings.
    pub fn new(library: &Arc<Library>) -> Result<Decoder, String> {
        Decompressor::new(library)?;
        Ok(Decoder { library: library.clone() })
    }

    /// Decodes into `rgb`: `height` rows of `width` × 3 bytes, tightly packed. The error is a sentence part.
    ///
    /// Damaged data, which libjpeg would decode with a warning, is refused.
    pub fn decode(&mut self, jpeg: &[u8], header: Header, rgb: &mut [u8]) -> Result<(), String> {
        let (width, height) = (header.width as usize, header.height as usize);
        let decompressor = Decompressor::new(&self.library)?;
        let Decompressor { library, handle } = &decompressor;
        assert!(rgb.len() >= width * height * 3, "the pixel buffer holds the picture");
        // The library writes as many pixels as it reads from the file itself: a size that differs from the one that the buffer
        // was cut for must never get there. A warning about the header is judged with those about the pixels.
        // SAFETY: `jpeg` is readable for its length; the handle is live.
        let found = unsafe {
            (library.read_header)(*handle, jpeg.as_ptr(), jpeg.len());
            [PARAM_WIDTH, PARAM_HEIGHT].map(|parameter| (library.get)(*handle, parameter))
        };
        if found.map(i64::from) != [header.width, header.height].map(i64::from) {
            let [found_width, found_height] = found;
            return Err(format!(
                "its header says {width}x{height} pixels, but its decoder found {found_width}x{found_height}"
            ));
        }
        // SAFETY: `jpeg` is readable for its length; `rgb` holds height × pitch bytes for the size that the library has just
        // read from the same bytes.
        let status = unsafe {
            (library.decompress)(*handle, jpeg.as_ptr(), jpeg.len(), rgb.as_mut_ptr(), (width * 3) as c_int, PIXELS_RGB)
        };
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the handle is live.
        let fatal = unsafe { (library.error_code)(*handle) } == ERROR_FATAL;
        let text = decompressor.error();
        if !fatal && is_harmless(&text) {
            return Ok(());
        }
        Err(format!("its data is damaged ({text})"))
    }
}

/// Stray bytes before the end-of-image marker, which cheap cameras send: all pixels have been decoded by then.
///
/// Only this warning is accepted. libjpeg keeps the text of its first warning only, so any other first warning may hide real
/// damage; and many stray bytes before the end mean that decoding lost synchronisation.
fn is_harmless(warning: &str) -> bool {
    let count =
        || warning.split_once(" extraneous bytes before marker 0xd9")?.0.rsplit(' ').next()?.parse::<u32>().ok();
    count().is_some_and(|bytes| bytes <= STRAY_BYTES_MAX)
}

const STRAY_BYTES_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_stray_bytes_before_the_end_are_harmless() {
        assert!(is_harmless("Corrupt JPEG data: 2 extraneous bytes before marker 0xd9"));
        for warning in [
            "Corrupt JPEG data: 2301 extraneous bytes before marker 0xd9",
            "Corrupt JPEG data: 2 extraneous bytes before marker 0xe0",
            "Corrupt JPEG data: premature end of data segment",
            "",
        ] {
            assert!(!is_harmless(warning), "{warning}");
        }
    }
}
