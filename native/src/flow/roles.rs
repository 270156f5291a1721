//! Finds the tensor of each role, and the memory that each port of a graph is bound to.

use crate::episode::Episodes;
use crate::graph::{Bound, Tensor, port_len};
use crate::manifest::{Dtype, Extent, Manifest, Port, Role};

/// The graph that a tensor belongs to: two graphs may use the same name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Owner {
    Prefill,
    Extend,
    Denoise,
}

/// Indices into the tensors.
pub(super) struct Roles {
    pub(super) prefill: EntryRoles,
    pub(super) extend: Option<EntryRoles>,
    pub(super) states: Vec<usize>,
    /// Extend's and denoise's `memory_length`, and denoise's `block_length`.
    pub(super) extend_memory_length: Option<usize>,
    pub(super) memory_length: Option<usize>,
    pub(super) block_length: Option<usize>,
    pub(super) latent: usize,
    pub(super) time: usize,
    pub(super) velocity: usize,
}

#[derive(Clone, Copy)]
pub(super) struct EntryRoles {
    pub(super) images: usize,
    pub(super) tokens: usize,
    pub(super) token_mask: usize,
}

/// No ports.
pub(super) static NO_PORTS: Vec<Port> = Vec::new();

/// The memory of one port: a tensor of its graph, an output of prefill, or a slot's rows.
pub(super) fn bound<'a>(
    port: &'a Port,
    owner: Owner,
    most: Extent,
    owned: &'a [(Owner, Tensor)],
    episodes: Option<&Episodes>,
) -> Result<Bound<'a>, String> {
    let name = port.from.as_ref().unwrap_or(&port.name);
    if port.role == Role::Memory || port.role == Role::Block {
        let (start, stride) = (episodes.and_then(|episodes| episodes.address(name, port.role)))
            .ok_or_else(|| format!("no block is named {name}"))?;
        if port.dtype != Dtype::F32 || port_len(port, most)? != stride {
            return Err(format!("{} is not f32 of {stride} values", port.name));
        }
        // Within the block: there are as many variants as slots.
        let address = Box::new(move |slot| start.wrapping_add(slot * stride).cast());
        return Ok(Bound { port, address, on_device: false });
    }
    let given = port.from.is_some() || port.role == Role::Cache;
    let home = if given { Owner::Prefill } else { owner };
    let (_, tensor) = (owned.iter())
        .find(|(owner, tensor)| *owner == home && tensor.name == *name && tensor.role == port.role)
        .ok_or_else(|| format!("no tensor is named {name}"))?;
    if tensor.dtype != port.dtype || tensor.len != port_len(port, most)? {
        return Err(format!("{} and {name} differ in type or size", port.name));
    }
    Ok(Bound { port, address: Box::new(|_| tensor.address()), on_device: tensor.is_on_device() })
}

/// The tensor of a role; an error if it has another type or length than a run expects.
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
        let prompt = batch * branches * manifest.prompt.tokens_max;
        let entry = |owner: Owner, frames: usize| -> Result<EntryRoles, String> {
            let images = batch * manifest.cameras.len() * frames * manifest.frame_values();
            Ok(EntryRoles {
                images: role(owned, owner, Role::Images, (Dtype::F32, images))?,
                tokens: role(owned, owner, Role::Tokens, (Dtype::I64, prompt))?,
                token_mask: role(owned, owner, Role::TokenMask, (Dtype::Bool, prompt))?,
            })
        };
        let states: Vec<usize> = (owned.iter().enumerate())
            .filter(|(_, (_, tensor))| tensor.role == Role::State)
            .map(|(at, (_, tensor))| {
                let right = tensor.dtype == Dtype::F32 && tensor.len == batch * manifest.state.width;
                if right { Ok(at) } else { Err("the state tensor is not f32 of the state's width".to_string()) }
            })
            .collect::<Result<_, _>>()?;
        let remembers = manifest.memory.is_some();
        let length =
            |owner: Owner, which: Role| remembers.then(|| role(owned, owner, which, (Dtype::I64, 1))).transpose();
        let chunk = manifest.action.rows * manifest.action.width;
        Ok(Roles {
            prefill: entry(Owner::Prefill, manifest.frames.first)?,
            extend: remembers.then(|| entry(Owner::Extend, manifest.frames.later)).transpose()?,
            states,
            extend_memory_length: length(Owner::Extend, Role::MemoryLength)?,
            memory_length: length(Owner::Denoise, Role::MemoryLength)?,
            block_length: length(Owner::Denoise, Role::BlockLength)?,
            latent: role(owned, Owner::Denoise, Role::Latent, (Dtype::F32, batch * chunk))?,
            time: role(owned, Owner::Denoise, Role::Time, (Dtype::F32, 1))?,
            velocity: role(owned, Owner::Denoise, Role::Velocity, (Dtype::F32, batch * branches * chunk))?,
        })
    }
}

/// Indices of the video latent and its velocity, if the model has them.
pub(super) fn video(manifest: &Manifest, owned: &[(Owner, Tensor)]) -> Result<Option<(usize, usize)>, String> {
    let Some(latent) = owned.iter().position(|(_, tensor)| tensor.role == Role::VideoLatent) else {
        return Ok(None);
    };
    let velocity = manifest.branches() * owned[latent].1.len;
    Ok(Some((latent, role(owned, Owner::Denoise, Role::VideoVelocity, (Dtype::F32, velocity))?)))
}
