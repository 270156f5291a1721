//! Stops a run from another thread.

use crate::core::active_batch::Stop;
use crate::ort::environment::check;
use ort::sys::OrtRunOptions;
use std::ptr::null_mut;
use std::sync::Arc;

/// The options of a replica's runs.
pub struct Terminator(pub(super) *mut OrtRunOptions);

// SAFETY: other threads touch the options only through SetTerminate and UnsetTerminate, which ONNX Runtime allows from any thread; their
// entries are the replica's alone, which writes them between its runs.
unsafe impl Send for Terminator {}
// SAFETY: as above.
unsafe impl Sync for Terminator {}

impl Terminator {
    pub fn new() -> Result<Arc<Terminator>, String> {
        let mut options = null_mut();
        // SAFETY: an out pointer for one object, released in Drop.
        check(unsafe { (ort::api().CreateRunOptions)(&mut options) })?;
        Ok(Arc::new(Terminator(options)))
    }
}

impl Terminator {
    /// Runs with these options end when their work is in the stream of the provider, or else when it is done.
    pub(super) fn leave_running(&self, leave: bool) -> Result<(), String> {
        let (key, value) = (c"disable_synchronize_execution_providers", if leave { c"1" } else { c"0" });
        // SAFETY: live options, and C strings that are copied.
        check(unsafe { (ort::api().AddRunConfigEntry)(self.0, key.as_ptr(), value.as_ptr()) })
    }
}

impl Stop for Terminator {
    /// Ends the run that uses these options as soon as its current node is done.
    fn set(&self) {
        // SAFETY: live options. A failure would mean that the run goes on to its end, which the flow loop's own check covers.
        let _ = check(unsafe { (ort::api().RunOptionsSetTerminate)(self.0) });
    }

    fn unset(&self) {
        // SAFETY: live options. A failure would end the next run with an error that is reported.
        let _ = check(unsafe { (ort::api().RunOptionsUnsetTerminate)(self.0) });
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        // SAFETY: made in `new`, released once.
        unsafe { (ort::api().ReleaseRunOptions)(self.0) };
    }
}
