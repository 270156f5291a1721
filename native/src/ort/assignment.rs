//! The providers of a session's nodes. ONNX Runtime gives a node that a provider cannot run to the CPU and reports nothing; all its values
//! then go through host memory. On a device only nodes that compute shapes may run on the CPU.

use crate::bundle::shapes;
use crate::ort::environment::check as checked;
use ort::AsPointer;
use ort::session::Session;
use ort::sys;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::slice::from_raw_parts;

/// The configuration entry of a session that records its nodes.
pub const RECORD: (&str, &str) = ("session.record_ep_graph_assignment_info", "1");

/// The provider's name of a CPU.
const CPU: &str = "CPUExecutionProvider";

/// A node on the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnCpu {
    /// Its operator, with its domain unless that is ONNX's.
    pub operator: String,
    pub name: String,
}

/// The nodes that the CPU computes, in a session that records them.
pub fn on_cpu(session: &Session) -> Result<Vec<OnCpu>, String> {
    let api = ort::api();
    let (mut parts, mut count) = (null::<*const sys::OrtEpAssignedSubgraph>(), 0);
    let mut found = Vec::new();
    // SAFETY: a live session, which owns what is returned; each array is as long as the call says; each status is checked.
    unsafe {
        checked((api.Session_GetEpGraphAssignmentInfo)(session.ptr(), &mut parts, &mut count))?;
        for &part in list(parts, count) {
            if text(|out| (api.EpAssignedSubgraph_GetEpName)(part, out))? != CPU {
                continue;
            }
            let (mut nodes, mut count) = (null::<*const sys::OrtEpAssignedNode>(), 0);
            checked((api.EpAssignedSubgraph_GetNodes)(part, &mut nodes, &mut count))?;
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
    checked(get(&mut start))?;
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned())
}

/// Refuses a session in which the CPU runs a node that does not compute a shape. The session was opened with `RECORD` from the file at
/// `path`, or from `made`, which was made of that file.
pub fn check(session: &Session, path: &Path, made: Option<&[u8]>) -> Result<(), String> {
    let on_cpu = on_cpu(session)?;
    if on_cpu.is_empty() {
        return Ok(());
    }
    let shapes = made.map_or_else(|| shapes::of(path), shapes::of_bytes)?;
    refuse(&on_cpu, |node| shapes.contains(&node.name))
}

/// Refuses nodes on the CPU that are not `allowed` there; the sentence names the first.
pub fn refuse(on_cpu: &[OnCpu], allowed: impl Fn(&OnCpu) -> bool) -> Result<(), String> {
    let strays: Vec<&OnCpu> = on_cpu.iter().filter(|node| !allowed(node)).collect();
    let Some(first) = strays.first() else { return Ok(()) };
    let more = if strays.len() > 1 { format!(" and {} more nodes", strays.len() - 1) } else { String::new() };
    Err(format!("it cannot run {} '{}'{more} of the graph, which the CPU would have to", first.operator, first.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::onnx::{graph_with, node};
    use crate::ort::runtime;
    use std::collections::HashSet;

    #[test]
    fn nodes_that_compute_shapes_may_run_on_the_cpu_and_the_first_other_one_is_named() {
        let assigned = |name: &str, operator: &str| OnCpu { name: name.into(), operator: operator.into() };
        let shapes = HashSet::from(["rows".to_string()]);
        let named = |node: &OnCpu| shapes.contains(&node.name);
        assert_eq!(refuse(&[assigned("rows", "Shape")], named), Ok(()));
        let strays = [assigned("rows", "Shape"), assigned("ids", "Gather"), assigned("mask", "Where")];
        assert_eq!(
            refuse(&strays, named),
            Err("it cannot run Gather 'ids' and 1 more nodes of the graph, which the CPU would have to".into())
        );
    }

    #[test]
    fn a_session_of_the_cpu_has_every_node_there_and_only_that_of_a_shape_would_be_allowed() {
        let packaged = "../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1";
        let runtime = runtime::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged)).expect("ONNX Runtime");
        // The length depends on the data, so it cannot be folded away.
        let nodes = [
            node("kept", "NonZero", &["x"], &["found"]),
            node("size", "Shape", &["found"], &["s"]),
            node("named", "Cast", &["s"], &["y"]),
        ];
        let mut cast = nodes[2].clone();
        // Its attribute: to = f32.
        cast.extend([0x2a, 9, 0x0a, 2, b't', b'o', 0x18, 1, 0xa0, 0x01, 2]);
        let file = std::env::temp_dir().join(format!("tendon-assignment-{}.onnx", std::process::id()));
        std::fs::write(&file, graph_with(&["x"], &["y"], &[nodes[0].clone(), nodes[1].clone(), cast]))
            .expect("written");
        let recorded = runtime.plain(1).and_then(|options| Ok(options.with_config_entry(RECORD.0, RECORD.1)?));
        let session = recorded.expect("options").commit_from_file(&file).expect("a session");
        let mut names: Vec<String> = on_cpu(&session).expect("an answer").into_iter().map(|node| node.name).collect();
        names.sort();
        assert_eq!(names, ["kept", "named", "size"]);
        assert_eq!(
            check(&session, &file, None),
            Err("it cannot run NonZero 'kept' of the graph, which the CPU would have to".into())
        );
        std::fs::remove_file(&file).expect("gone");
    }
}
