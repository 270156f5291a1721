//! Times of every type, in a step and in the graph of all steps.

use super::*;
use crate::bundle::onnx::wire::{Field, Fields, Value as Wire};
use crate::bundle::onnx::{graph_with, node};
use crate::flow::inputs::Inputs;
use crate::flow::ports_tests;
use crate::flow::roles::Owner;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A manifest whose step has a latent x, the inputs `told` beside it, and a velocity v.
fn manifest(batch: usize, times: &[Value]) -> Manifest {
    let mut manifest = ports_tests::manifest();
    let port = |name: &str, role: &str| json!({ "name": name, "role": role, "from": null, "dtype": "f32", "shape": ["batch", 3, 2] });
    let inputs: Vec<Value> = [port("x", "latent")].iter().chain(times).cloned().collect();
    manifest["graphs"]["denoise"]["inputs"] = json!(inputs);
    manifest["graphs"]["denoise"]["outputs"] = json!([port("v", "velocity")]);
    // Times that no f32 holds, and buckets that lie far from one another.
    manifest["flow"] = json!({ "t_start": 0.97, "t_end": 0.03, "steps": 7, "shift": 3 });
    manifest["batch"] = json!(batch);
    manifest["action"]["prefix"] = json!(0);
    serde_json::from_value(manifest).expect("a manifest")
}

fn time(name: &str, dtype: &str, shape: Value, buckets: Option<u32>) -> Value {
    json!({ "name": name, "role": "time", "from": null, "dtype": dtype, "shape": shape, "buckets": buckets })
}

/// All steps of a graph that adds its times to x.
fn whole(manifest: &Manifest, name: &str) -> Result<Vec<u8>, String> {
    let mut nodes = Vec::new();
    let mut last = String::from("x");
    let step = manifest.graphs.denoise.as_ref().expect("a flow step");
    for (index, port) in step.inputs.iter().skip(1).enumerate() {
        let next = format!("sum{index}");
        nodes.push(node(&format!("add{index}"), "Add", &[&last, &port.name], &[&next]));
        last = next;
    }
    nodes.push(node("act", "Tanh", &[&last], &["v"]));
    let inputs: Vec<&str> = step.inputs.iter().map(|port| port.name.as_str()).collect();
    let path = std::env::temp_dir().join(format!("tendon-whole-{name}-{}.onnx", std::process::id()));
    std::fs::write(&path, graph_with(&inputs, &["v"], &nodes)).expect("a file");
    let made = Whole::of(manifest, &path).map(|whole| {
        assert!(whole.spec.inputs.iter().all(|port| port.role != Role::Time));
        whole.model
    });
    std::fs::remove_file(path).expect("removed");
    made
}

/// The constants of a model by their names: type, dimensions and bytes.
fn constants(model: &[u8]) -> HashMap<String, (u64, Vec<u64>, Vec<u8>)> {
    let of = |message, wanted| {
        Fields(message).filter_map(move |field| match field.expect("a field") {
            Field { number, value: Wire::Bytes(bytes), .. } if number == wanted => Some(bytes),
            _ => None,
        })
    };
    let mut found = HashMap::new();
    for tensor in of(model, 7).flat_map(|graph| of(graph, 5)) {
        let (mut name, mut kind, mut dims, mut raw) = (String::new(), 0, Vec::new(), Vec::new());
        for field in Fields(tensor) {
            match field.expect("a field") {
                Field { number: 1, value: Wire::Number(dim), .. } => dims.push(dim),
                Field { number: 2, value: Wire::Number(number), .. } => kind = number,
                Field { number: 8, value: Wire::Bytes(text), .. } => name = String::from_utf8_lossy(text).into(),
                Field { number: 9, value: Wire::Bytes(bytes), .. } => raw = bytes.to_vec(),
                _ => {}
            }
        }
        found.insert(name, (kind, dims, raw));
    }
    found
}

#[test]
fn the_graph_of_all_steps_has_the_times_to_the_bit_that_each_step_is_told() {
    let types = [("f32", None, 1), ("f32", Some(1000), 1), ("i64", Some(1000), 7)];
    for (dtype, buckets, kind) in types {
        let manifest = manifest(2, &[time("t", dtype, json!([1]), buckets)]);
        let model = whole(&manifest, "times").expect("one graph");
        let found = constants(&model);
        let flow = manifest.flow.as_ref().expect("a flow");
        let port = &manifest.graphs.denoise.as_ref().expect("a flow step").inputs[1];
        let mut tensors = [Tensor::new(port, manifest.extent(2, 6)).expect("memory")];
        let inputs = Inputs::new(&manifest, 2, &[(Owner::Denoise, port)], &mut tensors).expect("inputs");
        let mut distinct = Vec::new();
        for step in 0..flow.steps {
            inputs.time(&mut tensors, flow.time(step), flow.time(flow.steps));
            let value = tensors[0].bytes().to_vec();
            let (own, dims, raw) = &found[&format!("t##{step}")];
            assert_eq!((*own, &dims[..], raw), (kind, &[1][..], &value), "{dtype} step {step}");
            distinct.push(value);
        }
        distinct.dedup();
        // Else nothing would be told apart here.
        assert_eq!(distinct.len(), 7);
    }
}

#[test]
fn a_step_may_be_told_its_time_in_several_inputs() {
    let times = [time("t", "f32", json!([1]), None), time("bucket", "i64", json!([1]), Some(50))];
    let model = whole(&manifest(2, &times), "several").expect("one graph");
    let found = constants(&model);
    assert!(found.contains_key("t##6") && found.contains_key("bucket##6"));
}

#[test]
fn a_step_that_is_told_of_rows_which_the_chunk_continues_cannot_be_put_into_one_graph() {
    let refused =
        whole(&manifest(2, &[time("t", "f32", json!(["batch", 3]), None)]), "refused").expect_err("a refusal");
    assert_eq!(refused, "it is told more of a step than a time that all rows have");
    let refused = whole(&manifest(2, &[time("t", "f16", json!([1]), None)]), "half").expect_err("a refusal");
    assert_eq!(refused, "t is no time: it is F16");
}
