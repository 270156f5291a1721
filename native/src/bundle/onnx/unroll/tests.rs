//! Flows of a few nodes, as one graph.

use super::*;
use crate::bundle::onnx::{F32, I64, graph_with, node, typed};
use crate::flow::euler;
use crate::ort::runtime;
use std::path::Path;

/// v = tanh(x · mask + sin(t) + z), w = v · mask. The mask and what comes of it alone are the same in every step.
fn step() -> Vec<u8> {
    let nodes = [
        node("mask", "Sigmoid", &["c"], &["mask"]),
        node("seen", "Mul", &["mask", "mask"], &["seen"]),
        node("time", "Sin", &["t"], &["s"]),
        node("masked", "Mul", &["x", "seen"], &["xm"]),
        node("timed", "Add", &["xm", "s"], &["xt"]),
        node("both", "Add", &["xt", "z"], &["xz"]),
        node("act", "Tanh", &["xz"], &["v"]),
        node("film", "Mul", &["v", "mask"], &["w"]),
    ];
    graph_with(&["x", "z", "t", "c"], &["v", "w"], &nodes)
}

const STEPS: [(f32, f32); 3] = [(1.0, -0.3), (0.7, -0.3), (0.4, -0.4)];
const LATER: [f32; 3] = [-0.3, -0.3, -0.4];

fn latent<'a>(name: &'a str, velocity: &'a str, read: bool) -> Latent<'a> {
    Latent { name, velocity, branches: 1, guide: None, read }
}

/// The time of `STEPS`, f32 [1].
fn time() -> Time<'static> {
    let values = STEPS.iter().map(|(t, _)| t.to_le_bytes().to_vec()).collect();
    Time { name: "t", kind: F32, values }
}

fn flow<'a>(times: &'a [Time<'a>], latents: &'a [Latent<'a>]) -> Loop<'a> {
    Loop { times, steps: &LATER, latents }
}

/// The whole flow, told one time as f32 [1].
fn whole(model: &[u8], latents: &[Latent<'_>]) -> Result<Vec<u8>, String> {
    unroll(model, &flow(&[time()], latents))
}

/// Names of the nodes of a model, in order.
fn names(model: &[u8]) -> Vec<String> {
    let graph = Fields(model).find_map(|field| match field.expect("a field") {
        Field { number: GRAPH, value: Value::Bytes(graph), .. } => Some(graph),
        _ => None,
    });
    let graph = Graph::read(graph.expect("a graph")).expect("a graph");
    graph.nodes.iter().map(|node| node.name.to_string()).collect()
}

fn refusal(model: &[u8], latents: &[Latent<'_>]) -> String {
    whole(model, latents).expect_err("a refusal")
}

/// Outputs of one run on a CPU.
fn run(model: &[u8], inputs: &[(&str, &[f32])]) -> Vec<Vec<f32>> {
    let packaged = "../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1";
    let runtime = runtime::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged)).expect("ONNX Runtime");
    let mut session = runtime.plain(1).expect("options").commit_from_memory(model).expect("a session");
    let inputs: Vec<(String, ort::value::Tensor<f32>)> = inputs
        .iter()
        .map(|(name, values)| {
            (name.to_string(), ort::value::Tensor::from_array(([values.len()], values.to_vec())).expect("a tensor"))
        })
        .collect();
    let outputs = session.run(inputs).expect("a run");
    outputs.values().map(|value| value.try_extract_tensor::<f32>().expect("floats").1.to_vec()).collect()
}

#[test]
fn all_steps_as_one_graph_are_the_steps_of_the_host_to_the_bit() {
    let (noise, film, mask) = ([0.3, -1.7, 0.9, 2.2], [0.1, 0.4, -0.6, 1.0], [0.5, -0.5, 3.0, 0.0]);
    let (mut x, mut z) = (noise, film);
    for (t, dt) in STEPS {
        let velocities = run(&step(), &[("x", &x), ("z", &z), ("t", &[t; 4]), ("c", &mask)]);
        euler::advance(&mut x, &velocities[0], 1, None, dt);
        euler::advance(&mut z, &velocities[1], 1, None, dt);
    }
    let latents = [latent("x", "v", true), latent("z", "w", true)];
    let whole = whole(&step(), &latents).expect("unrolled");
    assert_eq!(run(&whole, &[("x", &noise), ("z", &film), ("c", &mask)]), [x, z]);
}

/// v = x · (i + (j · n)), the times i and j as f32. i is [], j one value for each of the four rows of x, which the product with n needs.
fn integer_times() -> Vec<u8> {
    // Its attribute: to = f32.
    let to = bytes(5, &[&bytes(1, b"to")[..], &[0x18, 1, 0xA0, 0x01, 2]].concat());
    let cast = |name: &str, from: &str, to_name: &str| [node(name, "Cast", &[from], &[to_name]), to.clone()].concat();
    let nodes = [
        cast("one", "i", "a"),
        cast("each", "j", "b"),
        node("scaled", "Mul", &["b", "n"], &["c"]),
        node("both", "Add", &["a", "c"], &["s"]),
        node("act", "Mul", &["x", "s"], &["v"]),
    ];
    let inputs = [("x".into(), F32), ("n".into(), F32), ("i".into(), I64), ("j".into(), I64)];
    typed(&inputs, &[("v".into(), F32)], &nodes)
}

#[test]
fn times_may_be_integers_and_there_may_be_several() {
    let (noise, weights) = ([0.3, -1.7, 0.9, 2.2], [0.5, 0.25, -0.5, 0.125]);
    let (first, second) = ([900_i64, 640, 3], [-7_i64, 40, 1_000_000]);
    let mut x = noise;
    for (step, (i, j)) in first.into_iter().zip(second).enumerate() {
        let velocity: Vec<f32> = x.iter().zip(weights).map(|(x, weight)| x * (i as f32 + weight * j as f32)).collect();
        euler::advance(&mut x, &velocity, 1, None, LATER[step]);
    }
    let time = |name, values: [i64; 3]| Time {
        name,
        kind: I64,
        values: values.map(|value| value.to_le_bytes().to_vec()).to_vec(),
    };
    let times = [time("i", first), time("j", second)];
    let model = unroll(&integer_times(), &flow(&times, &[latent("x", "v", true)])).expect("unrolled");
    assert_eq!(run(&model, &[("x", &noise), ("n", &weights)]), [x]);
}

#[test]
fn what_is_the_same_in_every_step_is_there_once_and_what_nobody_reads_not_at_all() {
    let latents = [latent("x", "v", true), latent("z", "w", false)];
    let names = names(&whole(&step(), &latents).expect("unrolled"));
    let count =
        |name: &str| names.iter().filter(|own| *own == name || own.starts_with(&format!("{name}{MARK}"))).count();
    assert_eq!([count("mask"), count("seen"), count("masked"), count("act")], [1, 1, 3, 3]);
    // The last velocity of the film moves a film that is not read.
    assert_eq!(count("film"), 2);
}

#[test]
fn a_graph_whose_steps_cannot_be_put_into_one_is_refused_in_words() {
    let latents = [latent("x", "v", true)];
    let with = |nodes: &[Vec<u8>]| graph_with(&["x", "t"], &["v"], nodes);
    let tanh = || node("act", "Tanh", &["y"], &["v"]);
    assert!(refusal(&with(&[tanh(), node("late", "Neg", &["x"], &["y"])]), &latents).contains("act stands before y"));
    assert!(refusal(&with(&[node("dice", "RandomNormalLike", &["x"], &["v"])]), &latents).contains("random numbers"));
    assert!(refusal(&with(&[node("n##1", "Neg", &["x"], &["v"])]), &latents).contains("##"));
    // An attribute with a graph that has one node, which reads x.
    let inner = bytes(5, &bytes(6, &bytes(1, &node("inner", "Neg", &["x"], &["i"]))));
    let branching = [node("if", "If", &["t"], &["v"]), inner].concat();
    assert!(refusal(&with(&[branching]), &latents).contains("if has a subgraph that reads what changes"));
    let mut deep = node("inner", "Neg", &["c"], &["i"]);
    for _ in 0..20 {
        deep = [node("if", "If", &["c"], &["i"]), bytes(5, &bytes(6, &bytes(1, &deep)))].concat();
    }
    assert!(refusal(&with(&[deep]), &latents).contains("inside of one another"));
    assert!(refusal(&step(), &[latent("y", "v", true)]).contains("no input y"));
    assert!(refusal(&step(), &[latent("x", "y", true)]).contains("no output y"));
    assert!(refusal(&[step(), step()].concat(), &latents).contains("more than one graph"));
    assert!(refusal(&[], &latents).contains("no graph"));
}

#[test]
fn a_graph_of_its_own_that_reads_what_does_not_change_is_no_hindrance() {
    let inner = bytes(5, &bytes(6, &bytes(1, &node("inner", "Neg", &["seen"], &["i"]))));
    let branching = [node("if", "If", &["flag"], &["y"]), inner].concat();
    let nodes = [node("seen", "Neg", &["c"], &["seen"]), branching, node("add", "Add", &["x", "y"], &["v"])];
    let latents = [latent("x", "v", true)];
    let whole = whole(&graph_with(&["x", "t", "c", "flag"], &["v"], &nodes), &latents).expect("unrolled");
    assert_eq!(names(&whole)[..2], ["seen", "if"]);
}

#[test]
fn garbage_is_an_error_or_another_graph_and_never_a_panic() {
    let latents = [latent("x", "v", true), latent("z", "w", false)];
    let model = step();
    for len in 0..model.len() {
        let _ = whole(&model[..len], &latents);
    }
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize % below
    };
    for _ in 0..20_000 {
        let mut broken = model.clone();
        for _ in 0..=random(4) {
            let at = random(broken.len());
            broken[at] = random(256) as u8;
        }
        if random(4) == 0 {
            let (from, len) = (random(broken.len()), random(40));
            let part: Vec<u8> = broken[from..(from + len).min(model.len())].to_vec();
            broken.splice(from..from, part);
        }
        let _ = whole(&broken, &latents);
    }
}
