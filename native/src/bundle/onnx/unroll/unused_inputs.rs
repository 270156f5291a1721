//! Inputs of a graph that no node reads.

use super::{GRAPH, Graph};
use crate::bundle::onnx::wire::{Field, Fields, Value};
use std::collections::HashSet;

/// Their names. `model` is a ModelProto.
pub fn unused_inputs(model: &[u8]) -> Result<HashSet<String>, String> {
    let mut found = HashSet::new();
    for field in Fields(model) {
        let Field { number: GRAPH, value: Value::Bytes(graph), .. } = field? else { continue };
        let Graph { nodes, inputs, outputs, .. } = Graph::read(graph)?;
        let read: HashSet<&str> =
            nodes.iter().flat_map(|node| node.inputs.iter().chain(&node.captured)).chain(&outputs).copied().collect();
        found.extend(inputs.iter().filter(|input| !read.contains(input.0)).map(|input| input.0.to_string()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::onnx::{graph_with, node};

    #[test]
    fn an_input_is_unread_if_no_node_takes_it_and_it_is_no_output() {
        let nodes = [node("sum", "Add", &["a", "b"], &["y"])];
        let model = graph_with(&["a", "b", "c", "z"], &["y", "z"], &nodes);
        assert_eq!(unused_inputs(&model), Ok(HashSet::from(["c".to_string()])));
        assert!(unused_inputs(b"\x3a\x05no").is_err());
    }
}
