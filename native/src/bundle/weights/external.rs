//! Finds the tensors of an `.onnx` file whose values lie in a weight file: names, types, shapes and ranges.
//!
//! The file is read as a protobuf message of the public onnx.proto: ModelProto.graph = 7, GraphProto.initializer = 5, and the fields of
//! TensorProto below. Other fields are skipped. ONNX Runtime reads the same file, but tells nothing before a session exists.

use crate::bundle::onnx::wire::{Field, Fields, Value, text, varint};
use ort::sys::ONNXTensorElementDataType as Type;

/// A tensor whose values lie in a weight file.
#[derive(Debug, PartialEq)]
pub struct External {
    pub name: String,
    pub kind: Type,
    pub dims: Vec<i64>,
    pub file: String,
    /// First byte of its values in the file.
    pub offset: usize,
    /// Bytes of its values, those of the shape.
    pub bytes: usize,
}

/// All such tensors of the graph in `model`, the bytes of an `.onnx` file. The error is a sentence.
pub fn externals(model: &[u8]) -> Result<Vec<External>, String> {
    let mut found = Vec::new();
    for field in Fields(model).collect::<Result<Vec<_>, _>>()? {
        let Field { number: GRAPH, value: Value::Bytes(graph), .. } = field else { continue };
        for part in Fields(graph) {
            if let Field { number: INITIALIZER, value: Value::Bytes(tensor), .. } = part?
                && let Some(external) = external(tensor)?
            {
                found.push(external);
            }
        }
    }
    Ok(found)
}

const GRAPH: u64 = 7;
const INITIALIZER: u64 = 5;
const DIMS: u64 = 1;
const DATA_TYPE: u64 = 2;
const NAME: u64 = 8;
const EXTERNAL_DATA: u64 = 13;
const DATA_LOCATION: u64 = 14;
/// The value of data_location for another file.
const ELSEWHERE: u64 = 1;

/// The tensor, if its values lie in another file.
fn external(tensor: &[u8]) -> Result<Option<External>, String> {
    let (mut name, mut kind, mut dims, mut elsewhere) = (String::new(), 0, Vec::new(), false);
    let (mut file, mut offset, mut length) = (String::new(), 0, None);
    for part in Fields(tensor) {
        let Field { number, value, .. } = part?;
        match (number, value) {
            (DIMS, Value::Number(dim)) => dims.push(dim as i64),
            (DIMS, Value::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    dims.push(varint(&mut packed)? as i64);
                }
            }
            (DATA_TYPE, Value::Number(number)) => kind = number,
            (NAME, Value::Bytes(bytes)) => name = text(bytes)?.into(),
            (DATA_LOCATION, Value::Number(place)) => elsewhere = place == ELSEWHERE,
            (EXTERNAL_DATA, Value::Bytes(entry)) => {
                let (mut key, mut value) = (String::new(), String::new());
                for part in Fields(entry) {
                    let part = part?;
                    match (part.number, part.value) {
                        (1, Value::Bytes(bytes)) => key = text(bytes)?.into(),
                        (2, Value::Bytes(bytes)) => value = text(bytes)?.into(),
                        _ => {}
                    }
                }
                let number = || value.parse::<usize>().map_err(|_| format!("{key} of a tensor is {value:?}"));
                match key.as_str() {
                    "location" => file = value,
                    "offset" => offset = number()?,
                    "length" => length = Some(number()?),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if !elsewhere {
        return Ok(None);
    }
    let (kind, size) = element(kind).ok_or_else(|| format!("tensor {name} has data type {kind}"))?;
    let bytes = (dims.iter()).try_fold(size, |bytes, &dim| usize::try_from(dim).ok()?.checked_mul(bytes));
    let bytes = bytes.filter(|&bytes| length.is_none_or(|length| length == bytes));
    let bytes = bytes.ok_or_else(|| format!("tensor {name} has not the length of its shape"))?;
    if offset % size != 0 {
        return Err(format!("tensor {name} begins at byte {offset}, expected a multiple of {size}"));
    }
    Ok(Some(External { name, kind, dims, file, offset, bytes }))
}

/// ONNX Runtime's name of a TensorProto.DataType, and bytes per value.
fn element(kind: u64) -> Option<(Type, usize)> {
    Some(match kind {
        1 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4),
        2 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1),
        3 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1),
        6 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4),
        7 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8),
        9 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1),
        10 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2),
        16 => (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes; all that is written here is short.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let length = [content.len() as u8 & 0x7f | 0x80, (content.len() >> 7) as u8];
        [&[number << 3 | 2][..], &length, content].concat()
    }

    fn entry(key: &str, value: &str) -> Vec<u8> {
        bytes(13, &[bytes(1, key.as_bytes()), bytes(2, value.as_bytes())].concat())
    }

    /// A model with one tensor inside and one [3, 2] of `kind` outside.
    fn model(kind: u8, offset: &str, length: &str) -> Vec<u8> {
        let inside = [&[1 << 3, 2, 2 << 3, 1][..], &bytes(8, b"inside"), &bytes(9, &[0; 8])].concat();
        let place = [entry("location", "weights.bin"), entry("offset", offset), entry("length", length)].concat();
        let outside =
            [&[1 << 3, 3, 1 << 3, 2, 2 << 3, kind][..], &bytes(8, b"outside"), &place, &[14 << 3, 1]].concat();
        let graph = [bytes(2, b"denoise"), bytes(5, &inside), bytes(5, &outside)].concat();
        [&[1 << 3, 11][..], &bytes(2, b"tendon"), &bytes(7, &graph)].concat()
    }

    #[test]
    fn the_tensors_that_lie_elsewhere_are_found_with_their_places() {
        let found = externals(&model(16, "4096", "12")).expect("a model");
        let expected = External {
            name: "outside".into(),
            kind: Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
            dims: vec![3, 2],
            file: "weights.bin".into(),
            offset: 4096,
            bytes: 12,
        };
        assert_eq!(found, [expected]);
        let bytes = externals(&model(3, "4095", "6")).expect("a model");
        let of_bytes = (bytes[0].kind, bytes[0].offset, bytes[0].bytes);
        assert_eq!(of_bytes, (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 4095, 6));
        assert_eq!(externals(&[]).expect("nothing"), []);
    }

    #[test]
    fn places_that_do_not_fit_the_shape_are_told() {
        for (kind, offset, length, expected) in [
            (16, "4096", "13", "has not the length of its shape"),
            (1, "4096", "12", "has not the length of its shape"),
            (16, "4097", "12", "begins at byte 4097, expected a multiple of 2"),
            (16, "-1", "12", "offset of a tensor is \"-1\""),
            (16, "0", "all", "length of a tensor is \"all\""),
            (8, "0", "12", "tensor outside has data type 8"),
        ] {
            let error = externals(&model(kind, offset, length)).expect_err("a refusal");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_refused_or_shorter_and_never_read_over_its_end() {
        let whole = model(16, "4096", "12");
        for length in 0..whole.len() {
            // A model that is cut between two fields lacks the later ones.
            assert!(
                externals(&whole[..length]).is_ok_and(|found| found.is_empty()) || externals(&whole[..length]).is_err()
            );
        }
        assert!(externals(&[0xff; 12]).is_err());
    }
}
