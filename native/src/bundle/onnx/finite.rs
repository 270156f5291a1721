//! The graph that tells whether values in a device's memory are finite, for a host that does not copy them.
//!
//! A value less itself is 0 if it is finite, and not a number if it is infinite or none: the sum over all is 0 or not a number.

use super::{F32, attribute, node, typed};
use crate::core::dtype::Dtype;

const F16: u8 = 10;
const BF16: u8 = 16;

/// Names of the two values of a type: its inputs end with their numbers.
pub struct Names {
    /// Vectors of values of this type.
    pub values: String,
    /// `[1]`: 0, or not a number.
    pub sum: String,
}

/// Of values of a type; None of one whose values are all finite.
pub fn names(dtype: Dtype) -> Option<Names> {
    let word = match dtype {
        Dtype::F32 => "f32",
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
        Dtype::I32 | Dtype::I64 | Dtype::U8 | Dtype::Bool => return None,
    };
    Some(Names { values: format!("{word}_"), sum: format!("{word}_sum") })
}

/// For vectors of these types, as ModelProto. Each type has one sum; what is not a float has no input.
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
