//! Which nodes of a graph ONNX Runtime has given to the CPU, beside the device that was asked for.
//!
//! A provider that lacks a kernel hands the node to the CPU, whole layers too, and nothing fails: every value takes the way through
//! host memory. What computes ids, masks, lengths and shapes may lie there, and nothing else.

use super::check;
use ort::AsPointer;
use ort::session::Session;
use ort::sys;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};
use std::slice::from_raw_parts;

/// The entry of a session's configuration without which nothing is recorded.
pub const RECORD: (&str, &str) = ("session.record_ep_graph_assignment_info", "1");

/// The provider's name of a CPU.
const CPU: &str = "CPUExecutionProvider";

/// A node that is not on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnCpu {
    /// Its operator, with the domain before it unless that is ONNX's own.
    pub operator: String,
    /// Its name in the graph.
    pub name: String,
}

/// The nodes that the CPU computes, in a session that records them.
pub fn on_cpu(session: &Session) -> Result<Vec<OnCpu>, String> {
    let api = ort::api();
    let (mut parts, mut count) = (null::<*const sys::OrtEpAssignedSubgraph>(), 0);
    let mut found = Vec::new();
    // SAFETY: a live session, which owns what is returned; each array is as long as the call says; each status is checked.
    unsafe {
        check((api.Session_GetEpGraphAssignmentInfo)(session.ptr(), &mut parts, &mut count))?;
        for &part in list(parts, count) {
            if text(|out| (api.EpAssignedSubgraph_GetEpName)(part, out))? != CPU {
                continue;
            }
            let (mut nodes, mut count) = (null::<*const sys::OrtEpAssignedNode>(), 0);
            check((api.EpAssignedSubgraph_GetNodes)(part, &mut nodes, &mut count))?;
            for &node in list(nodes, count) {
                let domain = text(|out| (api.EpAssignedNode_GetDomain)(node, out))?;
                let operator = text(|out| (api.EpAssignedNode_GetOperatorType)(node, out))?;
                let name = text(|out| (api.EpAssignedNode_GetName)(node, out))?;
                let operator = if domain.is_empty() { operator } else { format!("{domain}.{operator}") };
                found.push(OnCpu { operator, name });
            }
        }
    }
    Ok(found)
}

/// # Safety
/// `start` points to `count` values that live as long as they are used, or `count` is 0.
unsafe fn list<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { from_raw_parts(start, count) }
}

/// # Safety
/// `get` writes the address of a C string that lives as long as the session.
unsafe fn text(get: impl FnOnce(*mut *const c_char) -> sys::OrtStatusPtr) -> Result<String, String> {
    let mut start: *const c_char = null_mut();
    check(get(&mut start))?;
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned())
}
