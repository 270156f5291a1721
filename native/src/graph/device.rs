//! Memory of a device, as ONNX Runtime's provider for it gives it out.

use super::check;
use super::turn::Turns;
use ort::AsPointer;
use ort::session::{Session, SharedSessionInner};
use ort::sys::{self, OrtAllocator, OrtMemoryInfo};
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Which memory a provider computes in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Home {
    /// Its name in ONNX Runtime.
    pub name: &'static CStr,
    /// The device's number there.
    pub id: i32,
    /// How many threads may use the provider at once.
    pub turns: Turns,
}

impl Home {
    /// The memory of the process: of the CPU provider, and of a device that the CPU plays.
    pub const HOST: Home = Home { name: c"Cpu", id: 0, turns: Turns::Free };

    /// Which inputs (`given`) or outputs of a session lie in this memory, by their number. The others are read and written elsewhere:
    /// a tensor of this memory would be copied when it is bound.
    pub fn holds(self, session: &Session, given: bool) -> Result<Vec<bool>, String> {
        let api = ort::api();
        let ports = if given { session.inputs().len() } else { session.outputs().len() };
        let mut places: Vec<*const OrtMemoryInfo> = vec![null(); ports];
        let ask = if given { api.SessionGetMemoryInfoForInputs } else { api.SessionGetMemoryInfoForOutputs };
        // SAFETY: a live session, and as many places as it has ports.
        check(unsafe { ask(session.ptr(), places.as_mut_ptr(), ports) })?;
        let held = |place: &*const OrtMemoryInfo| {
            let mut name = null();
            // SAFETY: the session's own object, and a C string that lives with it.
            unsafe {
                check((api.MemoryInfoGetName)(*place, &mut name))?;
                Ok(CStr::from_ptr(name) == self.name)
            }
        };
        places.iter().map(held).collect()
    }

    /// What a value in this memory is described with.
    pub(super) fn info(self) -> Result<Info, String> {
        let mut info = null_mut();
        let (kind, class) = (sys::OrtAllocatorType::OrtDeviceAllocator, sys::OrtMemType::OrtMemTypeDefault);
        // SAFETY: a C string and an out pointer for one object, released in Drop.
        check(unsafe { (ort::api().CreateMemoryInfo)(self.name.as_ptr(), kind, self.id, class, &mut info) })?;
        Ok(Info(info))
    }
}

/// An owned description of memory.
pub(super) struct Info(*mut OrtMemoryInfo);

impl Info {
    /// Valid as long as this.
    pub(super) fn pointer(&self) -> *mut OrtMemoryInfo {
        self.0
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: made in `Home::info`, released once.
        unsafe { (ort::api().ReleaseMemoryInfo)(self.0) };
    }
}

/// A fixed block of a device's memory, never moved. Its first values are whatever was there.
pub struct DeviceBlock {
    start: *mut c_void,
    bytes: usize,
    allocator: *mut OrtAllocator,
    turns: Turns,
    /// The allocator is the session's. None only while this is dropped.
    session: Option<Arc<SharedSessionInner>>,
}

// SAFETY: the block and its allocator have no tie to a thread; they are used in turns where the provider needs that.
unsafe impl Send for DeviceBlock {}

impl DeviceBlock {
    /// `bytes` in `home`, from the provider of `session`.
    pub fn new(session: &Session, home: Home, bytes: usize) -> Result<DeviceBlock, String> {
        let info = home.info()?;
        let turn = home.turns.wait();
        let api = ort::api();
        let (mut allocator, mut start) = (null_mut(), null_mut());
        // SAFETY: a live session and out pointers; the allocator is released in Drop, also when it has no memory to give.
        unsafe {
            check((api.CreateAllocator)(session.ptr(), info.pointer(), &mut allocator))?;
            let got = check((api.AllocatorAlloc)(allocator, bytes.max(1), &mut start));
            // Before a block is dropped, which waits for its own.
            drop(turn);
            let block = DeviceBlock { start, bytes, allocator, turns: home.turns, session: Some(session.inner()) };
            got.map(|()| block).map_err(|error| format!("no {bytes} bytes of the device's memory: {error}"))
        }
    }

    /// The address in the device's memory, or the handle of a buffer: not for the host to read.
    pub fn address(&self) -> *mut c_void {
        self.start
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        let _turn = self.turns.wait();
        // SAFETY: made in `new`, given back once. A failure would leak the block.
        unsafe {
            if !self.start.is_null() {
                let _ = check((ort::api().AllocatorFree)(self.allocator, self.start));
            }
            (ort::api().ReleaseAllocator)(self.allocator);
        }
        self.session = None;
    }
}
