//! A node of the step graph, and a node of the whole flow.

use super::super::node as written;
use super::super::wire::{Field, Fields, Value, bytes, text};

/// Depth of graphs inside of graphs at most; no real graph has more.
const DEPTH_MAX: usize = 8;

const ATTRIBUTE: u64 = 5;
const GRAPHS: [u64; 2] = [6, 11];

/// A node of a step graph.
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) operator: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    /// Names that its own graphs read, with those of their own values.
    pub(super) captured: Vec<&'a str>,
    /// Its other fields, unchanged.
    kept: Vec<&'a [u8]>,
}

impl<'a> Node<'a> {
    pub(super) fn read(node: &'a [u8]) -> Result<Node<'a>, String> {
        let (inputs, outputs, captured, kept) = Default::default();
        let mut read = Node { name: "", operator: "", inputs, outputs, captured, kept };
        for field in Fields(node) {
            let Field { number, value, whole } = field?;
            match (number, value) {
                (1, Value::Bytes(name)) => read.inputs.push(text(name)?),
                (2, Value::Bytes(name)) => read.outputs.push(text(name)?),
                (3, Value::Bytes(name)) => read.name = text(name)?,
                (4, Value::Bytes(name)) => {
                    read.operator = text(name)?;
                    read.kept.push(whole);
                }
                (ATTRIBUTE, Value::Bytes(attribute)) => {
                    read_by(attribute, 0, &mut read.captured)?;
                    read.kept.push(whole);
                }
                _ => read.kept.push(whole),
            }
        }
        Ok(read)
    }

    /// The node under other names. An omitted input stays omitted.
    pub(super) fn renamed(&self, name: String, rename: impl Fn(&str) -> String) -> Made {
        let all = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| if name.is_empty() { String::new() } else { rename(name) }).collect()
        };
        let (inputs, outputs) = (all(&self.inputs), all(&self.outputs));
        let mut node: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
        node.extend(outputs.iter().flat_map(|name| bytes(2, name.as_bytes())));
        node.extend(bytes(3, name.as_bytes()));
        self.kept.iter().for_each(|kept| node.extend(*kept));
        // Values that its own graphs read are the same in every step.
        let needs = self.captured.iter().map(ToString::to_string);
        Made { inputs: inputs.into_iter().chain(needs).collect(), outputs, bytes: node, is_needed: false }
    }
}

/// Adds the names that the graphs of an AttributeProto read or give.
fn read_by<'a>(attribute: &'a [u8], depth: usize, names: &mut Vec<&'a str>) -> Result<(), String> {
    for field in Fields(attribute) {
        let Field { number, value: Value::Bytes(graph), .. } = field? else { continue };
        if !GRAPHS.contains(&number) {
            continue;
        }
        if depth == DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} graphs lie inside of one another"));
        }
        for part in Fields(graph) {
            let Field { number, value: Value::Bytes(part), .. } = part? else { continue };
            match number {
                1 => {
                    for field in Fields(part) {
                        match field? {
                            Field { number: 1, value: Value::Bytes(name), .. } => names.push(text(name)?),
                            Field { number: ATTRIBUTE, value: Value::Bytes(own), .. } => {
                                read_by(own, depth + 1, names)?;
                            }
                            _ => {}
                        }
                    }
                }
                12 => names.push(super::port(part)?.0),
                _ => {}
            }
        }
    }
    Ok(())
}

/// A node of the whole flow.
pub(super) struct Made {
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) bytes: Vec<u8>,
    /// An output of the graph depends on it.
    pub(super) is_needed: bool,
}

impl Made {
    pub(super) fn new(name: &str, operator: &str, inputs: &[&str], outputs: &[&str]) -> Made {
        let all = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let (bytes, is_needed) = (written(name, operator, inputs, outputs), false);
        Made { inputs: all(inputs), outputs: all(outputs), bytes, is_needed }
    }
}
