//! The nodes of a graph that compute shapes: they begin at `Shape` or `Size`, and are arithmetic on their results. A GPU provider leaves
//! them to the CPU, where their few integers are needed. All other nodes belong on the device.
//!
//! Only the nodes of an ONNX file are read, by the field numbers of onnx.proto; weights are skipped.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// Operators that make a shape of a shape. Operators that make a tensor of one, such as `Expand`, do not count.
const ARITHMETIC: [&str; 26] = [
    "Abs",
    "Add",
    "Cast",
    "Ceil",
    "Concat",
    "Div",
    "Equal",
    "Floor",
    "Gather",
    "Greater",
    "Identity",
    "Less",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "ReduceMax",
    "ReduceProd",
    "ReduceSum",
    "Reshape",
    "Slice",
    "Squeeze",
    "Sub",
    "Unsqueeze",
];

/// Names of the nodes in the file at `path` that compute shapes.
pub fn of(path: &Path) -> Result<HashSet<String>, String> {
    let failure = |error: std::io::Error| format!("{}: {error}", path.display());
    read(BufReader::new(File::open(path).map_err(failure)?)).map_err(failure).map(|graph| graph.shapes())
}

pub fn of_bytes(model: &[u8]) -> Result<HashSet<String>, String> {
    read(Cursor::new(model)).map_err(|error| error.to_string()).map(|graph| graph.shapes())
}

#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    /// Inputs of the graph. A value that is neither an input nor the output of a node is a constant.
    inputs: HashSet<String>,
}

#[derive(Default)]
struct Node {
    name: String,
    operator: String,
    domain: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl Graph {
    fn shapes(&self) -> HashSet<String> {
        let computed: HashSet<&str> = self.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str).collect();
        let is_constant = |name: &str| name.is_empty() || !(computed.contains(name) || self.inputs.contains(name));
        let (mut values, mut constants): (HashSet<&str>, HashSet<&str>) = Default::default();
        let mut names = HashSet::new();
        // A graph lists a node after those that it needs.
        for node in self.nodes.iter().filter(|node| matches!(node.domain.as_str(), "" | "ai.onnx")) {
            let operator = node.operator.as_str();
            let outputs = node.outputs.iter().map(String::as_str);
            let known = |name: &String| is_constant(name) || constants.contains(name.as_str());
            if operator == "Constant" || (!node.inputs.is_empty() && node.inputs.iter().all(known)) {
                constants.extend(outputs);
                continue;
            }
            let is_shape = |name: &String| values.contains(name.as_str());
            let arithmetic = ARITHMETIC.contains(&operator)
                && node.inputs.iter().any(is_shape)
                && node.inputs.iter().all(|name| is_shape(name) || known(name));
            if matches!(operator, "Shape" | "Size") || arithmetic {
                values.extend(outputs);
                names.insert(node.name.clone());
            }
        }
        names
    }
}

/// A field of a message: its number, and what follows.
struct Field {
    number: u64,
    value: Value,
}

enum Value {
    /// The number of bytes that follow, which are not read yet.
    Bytes(u64),
    Other,
}

/// The next field before `end`; None at the end.
fn field(file: &mut (impl Read + Seek), end: u64) -> std::io::Result<Option<Field>> {
    if file.stream_position()? >= end {
        return Ok(None);
    }
    let tag = varint(file)?;
    let value = match tag & 7 {
        0 => {
            varint(file)?;
            Value::Other
        }
        1 => {
            file.seek(SeekFrom::Current(8))?;
            Value::Other
        }
        2 => Value::Bytes(varint(file)?),
        5 => {
            file.seek(SeekFrom::Current(4))?;
            Value::Other
        }
        _ => return Err(not_onnx()),
    };
    Ok(Some(Field { number: tag >> 3, value }))
}

fn varint(file: &mut impl Read) -> std::io::Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            return Ok(value);
        }
    }
    Err(not_onnx())
}

fn not_onnx() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, "it is no ONNX file")
}

/// Calls `each` for every field of bytes before `end`, and skips what it does not read.
fn fields<R: Read + Seek>(
    file: &mut R,
    end: u64,
    mut each: impl FnMut(&mut R, u64, u64) -> std::io::Result<()>,
) -> std::io::Result<()> {
    while let Some(Field { number, value }) = field(file, end)? {
        let Value::Bytes(len) = value else { continue };
        let after = file.stream_position()?.checked_add(len).filter(|after| *after <= end).ok_or_else(not_onnx)?;
        each(file, number, after)?;
        file.seek(SeekFrom::Start(after))?;
    }
    Ok(())
}

fn text(file: &mut (impl Read + Seek), after: u64) -> std::io::Result<String> {
    let mut bytes = vec![0; (after - file.stream_position()?) as usize];
    file.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| not_onnx())
}

/// ModelProto → its graph (7) → nodes (1) and inputs (11).
fn read(mut file: impl Read + Seek) -> std::io::Result<Graph> {
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut graph = Graph::default();
    fields(&mut file, end, |file, number, after| match number {
        7 => fields(file, after, |file, number, after| match number {
            1 => {
                graph.nodes.push(node(file, after)?);
                Ok(())
            }
            // ValueInfoProto: its name (1).
            11 => fields(file, after, |file, number, after| {
                if number == 1 {
                    graph.inputs.insert(text(file, after)?);
                }
                Ok(())
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    Ok(graph)
}

/// NodeProto: inputs (1), outputs (2), name (3), operator (4), domain (7).
fn node(file: &mut (impl Read + Seek), end: u64) -> std::io::Result<Node> {
    let mut node = Node::default();
    fields(file, end, |file, number, after| {
        match number {
            1 => node.inputs.push(text(file, after)?),
            2 => node.outputs.push(text(file, after)?),
            3 => node.name = text(file, after)?,
            4 => node.operator = text(file, after)?,
            7 => node.domain = text(file, after)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::onnx::{graph_with, node as written};

    fn shapes(nodes: &[Vec<u8>]) -> Vec<String> {
        let mut names: Vec<String> =
            read(Cursor::new(graph_with(&["x"], &["y"], nodes))).expect("a graph").shapes().into_iter().collect();
        names.sort();
        names
    }

    #[test]
    fn arithmetic_that_begins_at_a_shape_is_a_shape_and_what_is_made_with_it_is_not() {
        let nodes = [
            written("rows", "Shape", &["x"], &["s"]),
            written("first", "Gather", &["s", "zero"], &["n"]),
            written("made", "Constant", &[], &["four"]),
            written("double", "Mul", &["n", "four"], &["m"]),
            written("whole", "Concat", &["m", "rest"], &["shape"]),
            written("view", "Reshape", &["x", "shape"], &["v"]),
            written("grown", "Expand", &["one", "shape"], &["e"]),
            written("sum", "Add", &["v", "e"], &["y"]),
        ];
        assert_eq!(shapes(&nodes), ["double", "first", "rows", "whole"]);
    }

    #[test]
    fn integers_that_come_from_an_input_are_no_shape_whatever_is_computed_with_them() {
        let nodes = [
            written("ids", "Gather", &["x", "zero"], &["i"]),
            written("rows", "Shape", &["x"], &["s"]),
            written("mixed", "Mul", &["s", "i"], &["y"]),
        ];
        assert_eq!(shapes(&nodes), ["rows"]);
    }

    #[test]
    fn an_operator_of_another_domain_is_none_of_these() {
        let mut own = written("own", "Shape", &["x"], &["s"]);
        own.extend([0x3a, 3, b'o', b'w', b'n']);
        assert!(shapes(&[own]).is_empty());
    }

    #[test]
    fn a_file_that_is_cut_off_or_is_no_graph_is_an_error() {
        let whole = graph_with(&["x"], &["y"], &[written("rows", "Shape", &["x"], &["y"])]);
        // The graph is cut between its first and its last field.
        for len in 3..whole.len() - 4 {
            assert!(read(Cursor::new(whole[..len].to_vec())).is_err(), "{len}");
        }
        assert!(read(Cursor::new(b"<html>not a graph".to_vec())).is_err());
        assert!(of(Path::new("/nonexistent.onnx")).expect_err("none").starts_with("/nonexistent.onnx"));
    }
}
