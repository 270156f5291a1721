//! Finds the frames of each camera in the image inputs of a graph. A graph has one input for all cameras, or several for some of them.

use super::roles::Owner;
use crate::bundle::manifest::{Graph, Manifest, Picture, Port, Role};
use crate::ort::tensor::Tensor;

/// The frames of one camera in a tensor `[rows, pictures, …]`.
#[derive(Clone, Copy)]
pub(super) struct Pictures {
    pub(super) tensor: usize,
    /// Index of its first byte in a row.
    pub(super) first: usize,
    pub(super) bytes: usize,
}

/// The pictures by camera, for `batch` rows of `frames` frames of each camera. The error names a camera without an input, or one whose
/// pictures do not fill its input.
pub(super) fn find(
    manifest: &Manifest,
    graph: &Graph,
    owner: Owner,
    (batch, frames): (usize, usize),
    owned: &[(Owner, Tensor)],
) -> Result<Vec<Pictures>, String> {
    let dtype = manifest.picture().dtype();
    let bytes = manifest.image.values() * dtype.bytes();
    let mut found: Vec<Option<Pictures>> = vec![None; manifest.cameras.len()];
    for port in graph.inputs.iter().filter(|port| port.role == Role::Images) {
        let is_port = |(home, tensor): &(Owner, Tensor)| *home == owner && tensor.name == port.name;
        let tensor = owned.iter().position(is_port).ok_or_else(|| format!("no tensor is named {}", port.name))?;
        let mut first = 0;
        for name in port.views(&manifest.cameras) {
            // A view without a camera stays black.
            if let Some(camera) = manifest.cameras.iter().position(|camera| camera == name)
                && found[camera].replace(Pictures { tensor, first, bytes }).is_some()
            {
                return Err(format!("two inputs take the pictures of {name}"));
            }
            first += frames * bytes;
        }
        let of = &owned[tensor].1;
        let values = batch * first / dtype.bytes();
        if of.dtype != dtype || of.len != values {
            return Err(format!("{} is not {dtype:?} of {values} values", port.name));
        }
    }
    let missing = |at: usize| format!("no input takes the pictures of {}", manifest.cameras[at]);
    found.into_iter().enumerate().map(|(at, pictures)| pictures.ok_or_else(|| missing(at))).collect()
}

/// Blackens all pictures of the inputs that name views: a view without a camera stays so.
pub(super) fn blacken(manifest: &Manifest, ports: &[(Owner, &Port)], tensors: &mut [Tensor]) {
    if manifest.picture() != Picture::Normalised {
        // New tensors are zeroed already.
        return;
    }
    let black = |channel: usize| (0.0 - manifest.image.mean[channel]) / manifest.image.std[channel];
    for ((_, port), tensor) in ports.iter().zip(tensors) {
        if port.role == Role::Images && port.cameras.is_some() {
            let pixels = manifest.image.values() / 3;
            let len = tensor.len;
            tensor.write(0, (0..len).map(|at| black(at / pixels % 3)));
        }
    }
}
