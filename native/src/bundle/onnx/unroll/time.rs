//! The times of a flow's steps as constants of its one graph.

use super::node::Made;
use super::{Loop, MARK, at};
use crate::bundle::onnx::{attribute, tensor};

/// An input that is the time.
pub struct Time<'a> {
    pub name: &'a str,
    /// The type of its values, as in TensorProto: f32, i32 or i64.
    pub kind: u8,
    pub shape: TimeShape,
    /// What it is told in each step: one value of that type, little-endian.
    pub values: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeShape {
    /// [].
    Scalar,
    /// [1].
    One,
    /// [B], all of one value, B being the first dimension of the first latent. A graph learns of it when it is run.
    Rows,
}

impl Time<'_> {
    /// Its value in a step: as it is told, [] or [1]; for rows [1] under a name of its own, from which `for_rows` makes the others.
    pub(super) fn constant(&self, step: usize) -> Vec<u8> {
        let (name, len) = match self.shape {
            TimeShape::Scalar => (at(self.name, step), None),
            TimeShape::One => (at(self.name, step), Some(1)),
            TimeShape::Rows => (self.one(step), Some(1)),
        };
        tensor(&name, self.kind, len, &self.values[step])
    }

    /// What makes a step's value that of each row; None where there is one for all.
    pub(super) fn for_rows(&self, step: usize) -> Option<Made> {
        let (one, told) = (self.one(step), at(self.name, step));
        let node = || Made::new(&at(&format!("flow.{}", self.name), step), "Expand", &[&one, &size()], &[&told]);
        (self.shape == TimeShape::Rows).then(node)
    }

    fn one(&self, step: usize) -> String {
        at(&format!("{MARK}{}", self.name), step)
    }
}

/// The first dimension of the first latent, i64 [1]. A mark at the begin: no value of a step has such a name.
fn size() -> String {
    format!("{MARK}rows")
}

/// What computes it, where a time needs it: one node. A device leaves arithmetic on shapes to the CPU, and a graph that the CPU has a part
/// in is not captured.
pub(super) fn rows(flow: &Loop<'_>) -> Option<Made> {
    let latent = flow.latents.first().filter(|_| flow.has_rows())?;
    let mut shape = Made::new(&format!("flow.{}", size()), "Shape", &[latent.name], &[&size()]);
    shape.bytes.extend(attribute("end", 1));
    Some(shape)
}

impl Loop<'_> {
    pub(super) fn has_rows(&self) -> bool {
        self.times.iter().any(|time| time.shape == TimeShape::Rows)
    }
}
