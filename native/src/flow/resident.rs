//! Which caches stay on the device, from the graph that writes them to the last step that reads them.

use super::Graphs;
use crate::graph::Home;
use crate::manifest::{self, Graph as GraphSpec, Role};
use crate::weights::Loaded;
use ort::session::Session;
use std::collections::HashSet;
use std::sync::Arc;

/// Names of prefill's caches that every graph writes and reads in `home`. One that a graph computes with on the CPU goes through the
/// host: bound to memory of the device it would be copied once, and be that of another observation from then on.
pub(super) fn residents<'a>(
    specs: &'a manifest::Graphs,
    sessions: &Graphs<Arc<Loaded>>,
    home: Option<Home>,
) -> Result<HashSet<&'a str>, String> {
    let caches = |spec: &'a GraphSpec| spec.outputs.iter().filter(|port| port.role == Role::Cache);
    let Some(home) = home else { return Ok(HashSet::new()) };
    let mut names: HashSet<&str> = caches(&specs.prefill).map(|port| port.name.as_str()).collect();
    let graphs = [
        (Some(&specs.prefill), Some(&sessions.prefill)),
        (specs.extend.as_ref(), sessions.extend.as_ref()),
        (Some(&specs.denoise), Some(&sessions.denoise)),
    ];
    for (spec, session) in graphs {
        let (Some(spec), Some(session)) = (spec, session) else { continue };
        for (ports, given) in [(&spec.inputs, true), (&spec.outputs, false)] {
            let elsewhere = elsewhere(session.get(), home, given)?;
            for port in ports.iter().filter(|port| elsewhere.contains(&port.name)) {
                names.remove(port.from.as_ref().unwrap_or(&port.name).as_str());
            }
        }
    }
    Ok(names)
}

/// Inputs or outputs of a session that do not lie in `home`.
fn elsewhere(session: &Session, home: Home, given: bool) -> Result<HashSet<String>, String> {
    let ports = if given { session.inputs() } else { session.outputs() };
    let held = home.holds(session, given)?;
    Ok(ports.iter().zip(held).filter(|(_, held)| !held).map(|(port, _)| port.name().to_string()).collect())
}
