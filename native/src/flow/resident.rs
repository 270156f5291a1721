//! The caches that stay on the device, from the graph that writes them to the last step that reads them, and whether episode memory does.

use super::{Files, Graphs, Whole};
use crate::bundle::manifest::{self, Graph as GraphSpec, Role};
use crate::ort::home::Home;
use crate::ort::session::GraphSession;
use std::collections::HashSet;
use std::sync::Arc;

/// Names of prefill's caches that every graph writes and reads in `home`. A cache that a graph uses on the CPU goes through the host: bound
/// to device memory it would be copied once, and be that of another observation later.
pub(super) fn residents<'a>(
    specs: &'a manifest::Graphs,
    sessions: &Graphs<Arc<GraphSession>>,
    home: Option<Home>,
) -> Result<HashSet<&'a str>, String> {
    let caches = |spec: &'a GraphSpec| spec.outputs.iter().filter(|port| port.role == Role::Cache);
    let Some(home) = home else { return Ok(HashSet::new()) };
    let mut names: HashSet<&str> = caches(&specs.prefill).map(|port| port.name.as_str()).collect();
    let graphs = [
        (Some(&specs.prefill), Some(&sessions.prefill)),
        (specs.extend.as_ref(), sessions.extend.as_ref()),
        (specs.denoise.as_ref(), sessions.denoise.as_ref()),
    ];
    for (spec, session) in graphs {
        let (Some(spec), Some(session)) = (spec, session) else { continue };
        for (ports, is_input) in [(&spec.inputs, true), (&spec.outputs, false)] {
            let elsewhere = home.elsewhere(session.get(), is_input)?;
            for port in ports.iter().filter(|port| elsewhere.contains(&port.name)) {
                names.remove(port.from.as_ref().unwrap_or(&port.name).as_str());
            }
        }
    }
    Ok(names)
}

/// An error, which is a sentence, if the denoise graph uses latents, velocities or times on the CPU.
pub(super) fn latents_reside(spec: &GraphSpec, session: &GraphSession, home: Option<Home>) -> Result<(), String> {
    let home = home.ok_or("the device computes in the memory of the host")?;
    for (ports, is_input) in [(&spec.inputs, true), (&spec.outputs, false)] {
        let elsewhere = home.elsewhere(session.get(), is_input)?;
        let moved = ports.iter().filter(|port| {
            use Role::{Latent, Time, Velocity, VideoLatent, VideoVelocity};
            matches!(port.role, Latent | Velocity | VideoLatent | VideoVelocity | Time)
        });
        if let Some(port) = moved.into_iter().find(|port| elsewhere.contains(&port.name)) {
            return Err(format!("{} has {} on the CPU", spec.file, port.name));
        }
    }
    Ok(())
}

/// An error, which is a sentence, if a graph uses episode memory on the CPU. `files` are the files of the sessions.
pub fn memory_resides(
    specs: &manifest::Graphs,
    sessions: &Graphs<Arc<GraphSession>>,
    (files, whole): (&Files, Option<&Whole>),
    home: Home,
) -> Result<(), String> {
    let made = whole.map(|whole| &whole.model[..]);
    let graphs = [
        (Some(&specs.prefill), Some(&sessions.prefill), Some(&files.prefill), None),
        (specs.extend.as_ref(), sessions.extend.as_ref(), files.extend.as_ref(), None),
        (specs.denoise.as_ref(), sessions.denoise.as_ref(), files.denoise.as_ref(), made),
    ];
    for (spec, session, path, made) in graphs {
        let (Some(spec), Some(session), Some(path)) = (spec, session, path) else { continue };
        for (ports, is_input) in [(&spec.inputs, true), (&spec.outputs, false)] {
            let elsewhere = home.used_elsewhere(session.get(), is_input, (path, made))?;
            let mut remembered = ports.iter().filter(|port| matches!(port.role, Role::Memory | Role::Block));
            if let Some(port) = remembered.find(|port| elsewhere.contains(&port.name)) {
                return Err(format!("{} has {} on the CPU", spec.file, port.name));
            }
        }
    }
    Ok(())
}
