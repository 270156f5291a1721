//! The memory that a provider computes in, and how its device reads the inputs of a graph.

use crate::bundle::onnx::unroll::unused_inputs;
use crate::core::device::Device;
use crate::core::rehearsal::Playing;
use crate::ort::environment::check;
use crate::ort::turn::Turns;
use ort::AsPointer;
use ort::session::Session;
use ort::sys::{self, OrtMemoryInfo};
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::Path;
use std::ptr::{null, null_mut};

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Home {
    pub name: &'static CStr,
    pub id: i32,
    /// How many threads may use the provider at once.
    pub turns: Turns,
}

impl Home {
    /// The memory of the process, for the CPU provider and a device that the CPU plays.
    pub const HOST: Home = Home { name: c"Cpu", id: 0, turns: Turns::Free };

    /// The memory of the WebGPU device. ONNX Runtime has one per process.
    pub const WEBGPU: Home = Home { name: c"WebGPU_Buf", id: 0, turns: Turns::One };

    /// Names of the inputs (`is_input`) or outputs of a session that lie elsewhere. They are used where they are: a tensor of this memory
    /// would be copied when it is bound.
    pub fn elsewhere(self, session: &Session, is_input: bool) -> Result<HashSet<String>, String> {
        let ports = if is_input { session.inputs() } else { session.outputs() };
        let is_here = self.are_here(session, is_input)?;
        Ok(ports.iter().zip(is_here).filter(|(_, is_here)| !is_here).map(|(port, _)| port.name().to_string()).collect())
    }

    /// The names of `elsewhere` that the graph at `path` uses, or `made`, which was made of it. ONNX Runtime reports an unread input as on the
    /// CPU; it does not count.
    pub fn used_elsewhere(
        self,
        session: &Session,
        is_input: bool,
        (path, made): (&Path, Option<&[u8]>),
    ) -> Result<HashSet<String>, String> {
        let names = self.elsewhere(session, is_input)?;
        if names.is_empty() || !is_input {
            return Ok(names);
        }
        let read = || std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        made.map_or_else(|| used(&names, &read()?), |model| used(&names, model))
    }

    /// Whether a run leaves this memory for an input or an output.
    pub fn is_left(self, session: &Session, graph: (&Path, Option<&[u8]>)) -> Result<bool, String> {
        let names = |is_input| self.used_elsewhere(session, is_input, graph);
        Ok(!names(true)?.is_empty() || !names(false)?.is_empty())
    }

    fn are_here(self, session: &Session, is_input: bool) -> Result<Vec<bool>, String> {
        let api = ort::api();
        let ports = if is_input { session.inputs().len() } else { session.outputs().len() };
        let mut places: Vec<*const OrtMemoryInfo> = vec![null(); ports];
        let ask = if is_input { api.SessionGetMemoryInfoForInputs } else { api.SessionGetMemoryInfoForOutputs };
        // SAFETY: a live session, and as many places as it has ports.
        check(unsafe { ask(session.ptr(), places.as_mut_ptr(), ports) })?;
        let is_here = |place: &*const OrtMemoryInfo| {
            let mut name = null();
            // SAFETY: the session's own object, and a C string that lives with it.
            unsafe {
                check((api.MemoryInfoGetName)(*place, &mut name))?;
                Ok(CStr::from_ptr(name) == self.name)
            }
        };
        places.iter().map(is_here).collect()
    }

    pub fn info(self) -> Result<Info, String> {
        let mut info = null_mut();
        let (kind, class) = (sys::OrtAllocatorType::OrtDeviceAllocator, sys::OrtMemType::OrtMemTypeDefault);
        // SAFETY: a C string and an out pointer for one object, released in Drop.
        check(unsafe { (ort::api().CreateMemoryInfo)(self.name.as_ptr(), kind, self.id, class, &mut info) })?;
        Ok(Info(info))
    }
}

/// Those of these inputs that a node of the model reads.
fn used(names: &HashSet<String>, model: &[u8]) -> Result<HashSet<String>, String> {
    Ok(names - &unused_inputs(model)?)
}

pub struct Info(*mut OrtMemoryInfo);

// SAFETY: it is read alone, and has no tie to a thread.
unsafe impl Send for Info {}
// SAFETY: as above.
unsafe impl Sync for Info {}

impl Info {
    pub fn pointer(&self) -> *mut OrtMemoryInfo {
        self.0
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: made in `Home::info`, released once.
        unsafe { (ort::api().ReleaseMemoryInfo)(self.0) };
    }
}

/// How a device reads the memory of a graph's inputs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reach {
    /// In place: a CPU. Every run reads the values anew.
    InPlace,
    /// The device computes in its own memory. ONNX Runtime copies an input of the host to it when it is **bound**, not when it runs. So
    /// changed values are written into that memory before each run, or bound again if that is impossible. Otherwise nothing fails, but the
    /// rows have nothing to do with the frames.
    Copied(Home),
    /// The CPU plays such a device in a rehearsal.
    Played(Playing),
}

impl Reach {
    pub fn of(device: Device) -> Reach {
        match device {
            Device::Cpu => Reach::InPlace,
            Device::Cuda(id) | Device::TensorRt(id) => Reach::Copied(Home { name: c"Cuda", id, turns: Turns::Gpu(id) }),
            Device::WebGpu(_) => Reach::Copied(Home::WEBGPU),
        }
    }

    /// The memory that the device computes in, unless all tensors lie there.
    pub fn home(self) -> Option<Home> {
        match self {
            Reach::InPlace => None,
            Reach::Copied(home) => Some(home),
            Reach::Played(_) => Some(Home::HOST),
        }
    }

    pub fn turns(self) -> Turns {
        self.home().map_or(Turns::Free, |home| home.turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::onnx::{graph_with, node};

    #[test]
    fn an_input_on_the_cpu_keeps_its_graph_from_a_capture_unless_no_node_reads_it() {
        let model = graph_with(&["lengths", "unread"], &["y"], &[node("sum", "Add", &["lengths", "lengths"], &["y"])]);
        let on_cpu = |names: &[&str]| used(&names.iter().map(ToString::to_string).collect(), &model).expect("a graph");
        assert!(on_cpu(&["unread"]).is_empty());
        assert_eq!(on_cpu(&["unread", "lengths"]), HashSet::from(["lengths".to_string()]));
    }
}
