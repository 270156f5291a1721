//! Finds the tensor of each role, and the memory that each port of a graph is bound to.

use super::pictures::{self, Pictures};
use crate::bundle::manifest::{Extent, Graph, Manifest, Port, Role};
use crate::core::dtype::Dtype;
use crate::episode::{Address, Episodes};
use crate::ort::graph::BoundPort;
use crate::ort::tensor::{Tensor, port_len};

/// The graph that a tensor belongs to: two graphs may use the same name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Owner {
    Prefill,
    Extend,
    Denoise,
}

pub(super) struct Roles {
    pub(super) prefill: Vec<Pictures>,
    pub(super) extend: Option<Vec<Pictures>>,
    pub(super) states: Vec<usize>,
    /// The latent that steps advance; without a flow the chunk, as prefill gives it.
    pub(super) latent: usize,
    /// None without a flow.
    pub(super) velocity: Option<usize>,
}

pub(super) static NO_PORTS: Vec<Port> = Vec::new();

/// The memory of one port: a tensor of its graph, an output of prefill, or the rows of a place. It is valid while those live.
pub(super) fn bound(
    port: &Port,
    owner: Owner,
    most: Extent,
    owned: &[(Owner, Tensor)],
    episodes: Option<&Episodes>,
) -> Result<BoundPort, String> {
    let name = port.from.as_ref().unwrap_or(&port.name);
    if port.role == Role::Memory || port.role == Role::Block {
        let Address { of, bytes, dtype, on_device } = (episodes.and_then(|episodes| episodes.address(name, port.role)))
            .ok_or_else(|| format!("no block is named {name}"))?;
        if port.dtype != dtype || port_len(port, most)? * dtype.bytes() != bytes {
            return Err(format!("{} is not {dtype:?} of {bytes} bytes", port.name));
        }
        return Ok(BoundPort { port: port.clone(), address: of, on_device });
    }
    let from_prefill = port.from.is_some() || port.role == Role::Cache;
    let home = if from_prefill { Owner::Prefill } else { owner };
    let (_, tensor) = (owned.iter())
        .find(|(owner, tensor)| *owner == home && tensor.name == *name && tensor.role == port.role)
        .ok_or_else(|| format!("no tensor is named {name}"))?;
    if tensor.dtype != port.dtype || tensor.len != port_len(port, most)? {
        return Err(format!("{} and {name} differ in type or size", port.name));
    }
    Ok(BoundPort::fixed(port, tensor.address(), tensor.is_on_device()))
}

/// The tensor of a role; an error if its type or length is not the expected one.
fn role(owned: &[(Owner, Tensor)], owner: Owner, role: Role, expected: (Dtype, usize)) -> Result<usize, String> {
    let found = owned.iter().position(|(home, tensor)| *home == owner && tensor.role == role);
    let at = found.ok_or_else(|| format!("no tensor of {owner:?} has the role {role:?}"))?;
    let (dtype, len) = expected;
    if owned[at].1.dtype != dtype || owned[at].1.len != len {
        return Err(format!("the tensor of role {role:?} is not {dtype:?} of {len} values"));
    }
    Ok(at)
}

impl Roles {
    pub(super) fn find(manifest: &Manifest, batch: usize, owned: &[(Owner, Tensor)]) -> Result<Roles, String> {
        let branches = manifest.branches();
        let image = |(owner, tensor): &&(Owner, Tensor)| *owner == Owner::Denoise && tensor.role == Role::Images;
        if let Some((_, tensor)) = owned.iter().find(image) {
            return Err(format!("the flow step takes pictures, as {}", tensor.name));
        }
        let states: Vec<usize> = (0..owned.len()).filter(|&at| owned[at].1.role == Role::State).collect();
        let width = manifest.state.width;
        let unfit = |tensor: &&Tensor| tensor.dtype != Dtype::F32 || tensor.len != batch * width;
        if let Some(tensor) = states.iter().map(|&at| &owned[at].1).find(unfit) {
            return Err(format!("{}, of the state, is not f32 of {width} values a row", tensor.name));
        }
        let remembers = manifest.memory.is_some();
        let chunk = manifest.action.rows * manifest.action.width;
        let graphs = &manifest.graphs;
        let extend = graphs.extend.as_ref().filter(|_| remembers);
        let entry = |owner, graph: &Graph, frames| pictures::find(manifest, graph, owner, (batch, frames), owned);
        let chunks = batch * chunk;
        let (latent, velocity) = match &graphs.denoise {
            Some(_) => {
                let velocity = role(owned, Owner::Denoise, Role::Velocity, (Dtype::F32, chunks * branches))?;
                (role(owned, Owner::Denoise, Role::Latent, (Dtype::F32, chunks))?, Some(velocity))
            }
            None => (role(owned, Owner::Prefill, Role::Actions, (Dtype::F32, chunks))?, None),
        };
        Ok(Roles {
            prefill: entry(Owner::Prefill, &graphs.prefill, manifest.frames.first)?,
            extend: extend.map(|graph| entry(Owner::Extend, graph, manifest.frames.later)).transpose()?,
            states,
            latent,
            velocity,
        })
    }
}

/// Indices of the video latent and its velocity, if the model has them.
pub(super) fn video(manifest: &Manifest, owned: &[(Owner, Tensor)]) -> Result<Option<(usize, usize)>, String> {
    let Some((_, tensor)) = owned.iter().find(|(_, tensor)| tensor.role == Role::VideoLatent) else {
        return Ok(None);
    };
    let latent = role(owned, Owner::Denoise, Role::VideoLatent, (Dtype::F32, tensor.len))?;
    let velocity = manifest.branches() * tensor.len;
    Ok(Some((latent, role(owned, Owner::Denoise, Role::VideoVelocity, (Dtype::F32, velocity))?)))
}
