//! nvJPEG, NVIDIA's decoder: JPEG → RGB in a device's memory. Opened by name at run time; it brings a CUDA runtime inside, which works in
//! the context that its thread has entered, and needs the driver alone.
//!
//! **No GPU has run this yet**: it was tested against a library that plays nvJPEG on the CPU (`native/cuda/nvjpeg_host.cpp`).

use super::context::Context;
use super::stream::Stream;
use super::{Address, CudaError};
use libloading::Library;
use std::error::Error;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::Arc;

/// `nvjpegHandle_t`, `nvjpegJpegState_t`.
type Handle = *mut c_void;

/// Its names, the newest first. Damaged files could crash or hang it before that of CUDA 13.4 Update 1, say NVIDIA's release notes.
pub const NAMES: [&str; 2] = ["libnvjpeg.so.13", "libnvjpeg.so.12"];

/// Why a call failed: `nvjpegStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Status {
    NotInitialised,
    InvalidParameter,
    BadJpeg,
    JpegNotSupported,
    AllocatorFailed,
    ExecutionFailed,
    ArchMismatch,
    InternalError,
    NotImplemented,
    IncompleteBitstream,
    /// Of a newer library.
    Unknown(c_int),
}

impl Status {
    /// 0 is success.
    fn of(code: c_int) -> Result<(), Status> {
        Err(match code {
            0 => return Ok(()),
            1 => Status::NotInitialised,
            2 => Status::InvalidParameter,
            3 => Status::BadJpeg,
            4 => Status::JpegNotSupported,
            5 => Status::AllocatorFailed,
            6 => Status::ExecutionFailed,
            7 => Status::ArchMismatch,
            8 => Status::InternalError,
            9 => Status::NotImplemented,
            10 => Status::IncompleteBitstream,
            code => Status::Unknown(code),
        })
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Status::NotInitialised => "it was not initialised",
            Status::InvalidParameter => "an invalid parameter",
            Status::BadJpeg => "the JPEG is damaged",
            Status::JpegNotSupported => "a JPEG of this kind is not supported",
            Status::AllocatorFailed => "no memory",
            Status::ExecutionFailed => "the device did not run it",
            Status::ArchMismatch => "not for this device",
            Status::InternalError => "an internal error",
            Status::NotImplemented => "not implemented",
            Status::IncompleteBitstream => "the JPEG is not whole",
            Status::Unknown(code) => return write!(to, "an unknown error ({code})"),
        })
    }
}

/// What nvJPEG, or the way to it, can fail with.
#[derive(Clone, Debug, PartialEq)]
pub enum NvjpegError {
    /// No library of its names can be opened, or it lacks a call: the loader's words.
    Absent(String),
    /// A call failed.
    Call(&'static str, Status),
    /// It found a picture of another size, width and height, than the file's header says.
    Size([c_int; 2]),
    /// The driver refuses what is done around it.
    Driver(CudaError),
}

impl From<CudaError> for NvjpegError {
    fn from(error: CudaError) -> NvjpegError {
        NvjpegError::Driver(error)
    }
}

impl std::fmt::Display for NvjpegError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NvjpegError::Absent(reason) => {
                write!(to, "nvJPEG cannot be used: {reason} (where it is missing, tendon setup gpu fetches it)")
            }
            NvjpegError::Call(call, status) => write!(to, "{call}: {status}"),
            NvjpegError::Size([width, height]) => write!(to, "nvJPEG found {width}x{height} pixels"),
            NvjpegError::Driver(error) => error.fmt(to),
        }
    }
}

/// `nvjpegImage_t`: where the channels of a picture lie, and bytes of a row. An interleaved one has the first alone.
#[repr(C)]
struct Image {
    channel: [*mut u8; CHANNELS],
    pitch: [usize; CHANNELS],
}

/// `NVJPEG_MAX_COMPONENT`.
const CHANNELS: usize = 4;
/// `NVJPEG_BACKEND_DEFAULT`: the library chooses by the picture.
const BACKEND_DEFAULT: c_int = 0;
/// `NVJPEG_FLAGS_BITSTREAM_STRICT`: what breaks the format is refused. Whether it is a frame is libjpeg-turbo's to say then.
const STRICT: c_uint = 4;
/// `NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION`, since 12.1: colours between the stored ones, as libjpeg-turbo makes them. Without it
/// each stored one is repeated, and pixels at edges of colour are far off.
const INTERPOLATED: c_uint = 32;
/// `NVJPEG_OUTPUT_RGBI`.
const RGB_INTERLEAVED: c_int = 5;

macro_rules! calls {
    ($($field:ident = $symbol:literal: ($($arg:ty),*);)*) => {
        /// Each as `nvjpeg.h` has it.
        struct Calls {
            $($field: unsafe extern "C" fn($($arg),*) -> c_int,)*
            /// Never closed: its CUDA runtime has work at the end of the process.
            _library: ManuallyDrop<Library>,
        }

        impl Calls {
            fn of(library: Library) -> Result<Calls, libloading::Error> {
                // SAFETY: the symbols have the signatures of nvjpeg.h.
                unsafe {
                    $(let $field = *library.get($symbol)?;)*
                    Ok(Calls { $($field,)* _library: ManuallyDrop::new(library) })
                }
            }
        }
    };
}

calls! {
    property = "nvjpegGetProperty": (c_int, *mut c_int);
    create = "nvjpegCreateEx": (c_int, *const c_void, *const c_void, c_uint, *mut Handle);
    destroy = "nvjpegDestroy": (Handle);
    state_create = "nvjpegJpegStateCreate": (Handle, *mut Handle);
    state_destroy = "nvjpegJpegStateDestroy": (Handle);
    info = "nvjpegGetImageInfo": (Handle, *const u8, usize, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    decode = "nvjpegDecode": (Handle, Handle, *const u8, usize, c_int, *mut Image, *mut c_void);
}

impl Calls {
    fn open(places: &[PathBuf]) -> Result<Calls, NvjpegError> {
        let words = |error: libloading::Error| error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let mut absent = Vec::new();
        for place in places {
            // SAFETY: a vendor's library; what it does when it is opened is its vendor's business.
            match unsafe { Library::new(place) }.and_then(Calls::of) {
                Ok(calls) => return Ok(calls),
                Err(error) => absent.push(words(error)),
            }
        }
        Err(NvjpegError::Absent(absent.join("; ")))
    }
}

/// The library on one device, for any of its threads.
pub struct NvJpeg {
    calls: Calls,
    context: Arc<Context>,
    handle: Handle,
    version: [c_int; 3],
}

// SAFETY: a handle is for any number of threads, says NVIDIA; what is here does not change.
unsafe impl Send for NvJpeg {}
// SAFETY: as above.
unsafe impl Sync for NvJpeg {}

impl NvJpeg {
    /// The first library of `places` that opens, in a context.
    pub fn open(places: &[PathBuf], context: &Arc<Context>) -> Result<Arc<NvJpeg>, NvjpegError> {
        let calls = Calls::open(places)?;
        let (mut version, mut handle) = ([0; 3], null_mut());
        for (kind, number) in version.iter_mut().enumerate() {
            // SAFETY: an out pointer; kinds 0 to 2 are major, minor and patch.
            let code = unsafe { (calls.property)(kind as c_int, number) };
            Status::of(code).map_err(|status| NvjpegError::Call("nvjpegGetProperty", status))?;
        }
        let flags = if (version[0], version[1]) >= (12, 1) { STRICT | INTERPOLATED } else { STRICT };
        context.within(|_| {
            // SAFETY: an out pointer; without allocators it takes those of its runtime.
            let code = unsafe { (calls.create)(BACKEND_DEFAULT, null_mut(), null_mut(), flags, &mut handle) };
            Ok(Status::of(code).map_err(|status| NvjpegError::Call("nvjpegCreateEx", status)))
        })??;
        Ok(Arc::new(NvJpeg { calls, context: context.clone(), handle, version }))
    }

    /// For example `13.0.4`.
    pub fn version(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("{major}.{minor}.{patch}")
    }
}

impl Drop for NvJpeg {
    fn drop(&mut self) {
        // A device that is lost refuses this, and nobody is to be told then.
        let _ = self.context.within(|_| {
            // SAFETY: made by `open`; its states keep it.
            unsafe { (self.calls.destroy)(self.handle) };
            Ok(())
        });
    }
}

/// What one decode at a time needs: memory on both sides, as much as its largest picture took.
pub struct State {
    nvjpeg: Arc<NvJpeg>,
    handle: Handle,
}

// SAFETY: the library takes a state from any thread; `&mut self` keeps its users apart.
unsafe impl Send for State {}

impl State {
    /// A state that has seen no picture yet.
    pub fn new(nvjpeg: &Arc<NvJpeg>) -> Result<State, NvjpegError> {
        let mut handle = null_mut();
        nvjpeg.context.within(|_| {
            // SAFETY: an out pointer and a live handle.
            let code = unsafe { (nvjpeg.calls.state_create)(nvjpeg.handle, &mut handle) };
            Ok(Status::of(code).map_err(|status| NvjpegError::Call("nvjpegJpegStateCreate", status)))
        })??;
        Ok(State { nvjpeg: nvjpeg.clone(), handle })
    }

    /// Puts the decode of a picture of `size` = width, height into the stream, on a thread that has entered its context: RGB, row after row
    /// without a gap. Whatever comes out, the stream may have work of it.
    ///
    /// # Safety
    /// `to` has 3 bytes for each pixel, in the memory of this device, and lives until the stream is through with it, as `jpeg` does.
    pub unsafe fn decode(
        &mut self,
        jpeg: &[u8],
        size: [u32; 2],
        to: Address,
        stream: &Stream,
    ) -> Result<(), NvjpegError> {
        let State { nvjpeg, handle } = self;
        let (mut channels, mut subsampling) = (0, 0);
        let (mut widths, mut heights) = ([0; CHANNELS], [0; CHANNELS]);
        // SAFETY: the file is readable for its length; out pointers for one value, and for as many channels as there can be.
        let code = unsafe {
            let (widths, heights) = (widths.as_mut_ptr(), heights.as_mut_ptr());
            let (bytes, len) = (jpeg.as_ptr(), jpeg.len());
            (nvjpeg.calls.info)(nvjpeg.handle, bytes, len, &mut channels, &mut subsampling, widths, heights)
        };
        Status::of(code).map_err(|status| NvjpegError::Call("nvjpegGetImageInfo", status))?;
        // It writes as many pixels as it reads from the file itself: a size that differs from the one that the memory was cut for must
        // never get there.
        let found = [widths[0], heights[0]];
        if found.map(i64::from) != size.map(i64::from) {
            return Err(NvjpegError::Size(found));
        }
        let mut image = Image { channel: [null_mut(); CHANNELS], pitch: [0; CHANNELS] };
        (image.channel[0], image.pitch[0]) = (to as *mut u8, size[0] as usize * 3);
        // SAFETY: the size is that of the file; the caller vouches for the rest.
        let code = unsafe {
            let (bytes, len) = (jpeg.as_ptr(), jpeg.len());
            (nvjpeg.calls.decode)(nvjpeg.handle, *handle, bytes, len, RGB_INTERLEAVED, &mut image, stream.handle())
        };
        Status::of(code).map_err(|status| NvjpegError::Call("nvjpegDecode", status))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = self.nvjpeg.context.within(|_| {
            // SAFETY: made by `new`, destroyed once; nothing of it is in a stream any more.
            unsafe { (self.nvjpeg.calls.state_destroy)(self.handle) };
            Ok(())
        });
    }
}
