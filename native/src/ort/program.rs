//! A graph of the engine itself, on values in a device's memory.

use crate::ort::device_memory::DeviceBlock;
use crate::ort::environment::check;
use crate::ort::home::Home;
use crate::ort::session::OpenSession;
use crate::ort::value::Value;
use ort::AsPointer;
use ort::sys::OrtIoBinding;
use std::ffi::CString;
use std::ptr::{null, null_mut};

/// A session with bindings, which belongs to no model.
pub struct Program {
    bindings: Vec<*mut OrtIoBinding>,
    has_run: bool,
    session: OpenSession,
}

// SAFETY: the raw objects belong to the session and have no tie to a thread; `&mut self` keeps runs apart.
unsafe impl Send for Program {}

impl Program {
    pub fn new(session: OpenSession) -> Program {
        Program { bindings: Vec::new(), has_run: false, session }
    }

    pub fn block(&self, home: Home, bytes: usize) -> Result<DeviceBlock, String> {
        DeviceBlock::new(self.session.get(), home, bytes)
    }

    /// Binds inputs and outputs; returns the binding's number. An output may have the memory of an input.
    ///
    /// # Safety
    /// The memory of the values lives until the program is gone or the binding is not run any more.
    pub unsafe fn bind(
        &mut self,
        inputs: &[(CString, &Value)],
        outputs: &[(CString, &Value)],
    ) -> Result<usize, String> {
        let _turn = self.session.turns().wait();
        let (api, mut binding) = (ort::api(), null_mut());
        // SAFETY: a live session and an out pointer; released in Drop.
        check(unsafe { (api.CreateIoBinding)(self.session.get().ptr().cast_mut(), &mut binding) })?;
        self.bindings.push(binding);
        for (put, values) in [(api.BindInput, inputs), (api.BindOutput, outputs)] {
            for (name, value) in values {
                // SAFETY: live binding, name and value.
                check(unsafe { put(binding, name.as_ptr(), value.pointer()) })?;
            }
        }
        Ok(self.bindings.len() - 1)
    }

    /// Runs a binding with other values of the device for these inputs. Every session can read the outputs when this returns.
    ///
    /// # Safety
    /// The contract is that of `bind`, and no other thread uses the memory meanwhile.
    pub unsafe fn run(&mut self, binding: usize, inputs: &[(CString, Value)]) -> Result<(), String> {
        let _turn = self.session.turns().run(!std::mem::replace(&mut self.has_run, true), false);
        let (api, binding) = (ort::api(), self.bindings[binding]);
        let session = self.session.get().ptr().cast_mut();
        // SAFETY: live session, binding, names and values.
        unsafe {
            for (name, value) in inputs {
                check((api.BindInput)(binding, name.as_ptr(), value.pointer()))?;
            }
            check((api.RunWithBinding)(session, null(), binding))?;
            self.session.turns().settle(|| check((api.SynchronizeBoundOutputs)(binding)))
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made in `bind`, released once, before the session.
        let release = |&binding: &*mut OrtIoBinding| unsafe { (ort::api().ReleaseIoBinding)(binding) };
        self.session.turns().release(|| self.bindings.iter().for_each(release));
    }
}
