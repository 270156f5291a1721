//! The graph that finds whether values in a device's memory are finite, so that the host does not copy them.
//!
//! x − x is 0 for a finite x, and NaN for an infinite one or NaN. The sum over all values is 0 or NaN.

use super::{F32, attribute, node, typed};
use crate::core::dtype::Dtype;

const F16: u8 = 10;
const BF16: u8 = 16;

/// Names of the two values of a type; the names of its inputs end with a number.
pub struct Names {
    /// Vectors of values of this type.
    pub values: String,
    /// `[1]`: 0 or NaN.
    pub sum: String,
}

/// The names for a type; None if all its values are finite.
pub fn names(dtype: Dtype) -> Option<Names> {
    let word = match dtype {
        Dtype::F32 => "f32",
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
        Dtype::I32 | Dtype::I64 | Dtype::U8 | Dtype::Bool => return None,
    };
    Some(Names { values: format!("{word}_"), sum: format!("{word}_sum") })
}

/// The ModelProto for vectors of these types. Each type has one sum; integers have no input.
pub fn finite(dtypes: &[Dtype]) -> Vec<u8> {
    let (mut inputs, mut outputs, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    for (dtype, kind) in [(Dtype::F32, F32), (Dtype::F16, F16), (Dtype::Bf16, BF16)] {
        let Some(Names { values, sum }) = names(dtype) else { continue };
        let inputs_of_kind: Vec<String> =
            (0..dtypes.len()).filter(|&at| dtypes[at] == dtype).map(|at| format!("{values}{at}")).collect();
        if inputs_of_kind.is_empty() {
            continue;
        }
        let (all, zeroes) = (format!("{values}all"), format!("{values}zeroes"));
        let names: Vec<&str> = inputs_of_kind.iter().map(String::as_str).collect();
        nodes.push([node(&format!("{values}join"), "Concat", &names, &[&all]), attribute("axis", 0)].concat());
        nodes.push(node(&format!("{values}less"), "Sub", &[&all, &all], &[&zeroes]));
        nodes.push(node(&format!("{values}add"), "ReduceSum", &[&zeroes], &[&sum]));
        inputs.extend(inputs_of_kind.into_iter().map(|name| (name, kind)));
        outputs.push((sum, kind));
    }
    typed(&inputs, &outputs, &nodes)
}
