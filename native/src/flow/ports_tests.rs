//! Manifests with random changes of ports: the host gives an error, or tensors that every inference can write.

use super::inputs::Inputs;
use super::pictures::blacken;
use super::roles::{Owner, Roles, video};
use crate::bundle::manifest::{Manifest, Port, Role};
use crate::ort::tensor::Tensor;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ROLES: [&str; 12] = [
    "images",
    "tokens",
    "token_mask",
    "image_mask",
    "state",
    "latent",
    "video_latent",
    "time",
    "cache",
    "memory_length",
    "velocity",
    "video_velocity",
];
const DTYPES: [&str; 7] = ["f32", "f16", "bf16", "i32", "i64", "u8", "bool"];

/// One with an input of almost each role.
pub(super) fn manifest() -> Value {
    let port = |name: &str, role: &str, dtype: &str, shape: Value| json!({ "name": name, "role": role, "from": null, "dtype": dtype, "shape": shape });
    let mut manifest: Value = serde_json::from_str(include_str!("../../tests/manifest.json")).expect("JSON");
    manifest["cameras"] = json!(["top", "left"]);
    manifest["image"] =
        json!({ "width": 4, "height": 2, "resize": "pad", "mean": [0, 0, 0], "std": [1, 1, 1], "tokens": 3 });
    manifest["state"]["width"] = json!(2);
    manifest["prompt"]["tokens_max"] = json!(6);
    for (name, size) in [("rows", 3), ("width", 2), ("prefix", 2)] {
        manifest["action"][name] = json!(size);
    }
    manifest["flow"]["steps"] = json!(2);
    manifest["batch"] = json!(2);
    manifest["graphs"] = json!({
        "prefill": {
            "file": "p",
            "inputs": [
                port("images", "images", "f32", json!(["batch", 2, 3, 2, 4])),
                port("tokens", "tokens", "i64", json!(["batch", "prompt"])),
                port("mask", "token_mask", "bool", json!(["batch", "prompt"])),
                port("seen", "image_mask", "bool", json!(["batch", 2])),
            ],
            "outputs": [port("cache", "cache", "f16", json!(["batch", "prefix", 2]))],
        },
        "denoise": {
            "file": "d",
            "inputs": [
                port("x", "latent", "f32", json!(["batch", 3, 2])),
                json!({ "name": "t", "role": "time", "from": null, "dtype": "i64", "shape": ["batch", 3], "buckets": 1000 }),
                port("z", "video_latent", "f32", json!(["batch", 4])),
                port("cache", "cache", "f16", json!(["batch", "prefix", 2])),
                port("state", "state", "f32", json!(["batch", 2])),
            ],
            "outputs": [
                port("v", "velocity", "f32", json!(["batch", 3, 2])),
                port("w", "video_velocity", "f32", json!(["batch", 4])),
            ],
        },
    });
    manifest
}

/// One of its ports, with a field changed.
fn change(manifest: &mut Value, draw: &mut impl FnMut(usize) -> usize) {
    let (graph, side) = [("prefill", "inputs"), ("denoise", "inputs"), ("denoise", "outputs")][draw(3)];
    let ports = manifest["graphs"][graph][side].as_array_mut().expect("ports");
    let at = draw(ports.len());
    let port = &mut ports[at];
    match draw(8) {
        0 | 1 => {
            port["role"] = json!(ROLES[draw(ROLES.len())]);
            // Inputs for the pictures of some views are black.
            if port["role"] == "images" {
                port["cameras"] = json!(["top"]);
            }
        }
        2 | 3 => port["dtype"] = json!(DTYPES[draw(DTYPES.len())]),
        4 => {
            let sizes =
                [json!("batch"), json!("prompt"), json!("prefix"), json!(0), json!(1), json!(2), json!(3), json!(4)];
            port["shape"] = (0..draw(4)).map(|_| sizes[draw(sizes.len())].clone()).collect();
        }
        5 => {
            port["cameras"] =
                [json!(["top"]), json!(["left", "right"]), json!([]), json!(["top", "top"])][draw(4)].clone()
        }
        6 => {
            port["buckets"] = [json!(null), json!(0), json!(u32::MAX)][draw(3)].clone();
        }
        _ => {
            let copy = port.clone();
            ports.push(copy);
        }
    }
}

/// The part of `Network::new` before graphs are bound, then the writes of an inference.
fn written(manifest: &Manifest) -> Result<(), String> {
    let most = manifest.extent(manifest.batch, manifest.prompt_max());
    let graphs = &manifest.graphs;
    let all = [(Owner::Prefill, &graphs.prefill.inputs), (Owner::Prefill, &graphs.prefill.outputs)].into_iter();
    let step = graphs.denoise.as_ref().expect("a flow step");
    let all = all.chain([(Owner::Denoise, &step.inputs), (Owner::Denoise, &step.outputs)]);
    let ports: Vec<(Owner, &Port)> = all
        .flat_map(|(owner, ports)| ports.iter().map(move |port| (owner, port)))
        .filter(|(_, port)| port.from.is_none() && port.role != Role::Block)
        .collect();
    let owned =
        ports.iter().map(|(owner, port)| Ok((*owner, Tensor::new(port, most)?))).collect::<Result<Vec<_>, String>>()?;
    let at = Roles::find(manifest, most.batch, &owned)?;
    let (owners, mut tensors): (Vec<Owner>, Vec<Tensor>) = owned.into_iter().unzip();
    blacken(manifest, &ports, &mut tensors);
    let mut inputs = Inputs::new(manifest, most.batch, &ports, &mut tensors)?;
    let owned: Vec<(Owner, Tensor)> = owners.into_iter().zip(tensors).collect();
    let moved = video(manifest, &owned)?;
    let mut tensors: Vec<Tensor> = owned.into_iter().map(|(_, tensor)| tensor).collect();
    for row in 0..most.batch {
        for one in &at.prefill {
            let pixels = tensors[one.tensor].bytes();
            let len = pixels.len() / most.batch;
            pixels[row * len..][..len][one.first..][..one.bytes].fill(1);
        }
        inputs.prompt(&mut tensors, Owner::Prefill, (row, 0), |tokens, mask| {
            tokens.fill(1);
            mask[..4].fill(1);
            4
        });
        inputs.set_prefix(row, 2);
        at.states.iter().for_each(|&at| tensors[at].floats().fill(1.0));
    }
    inputs.lengths(&mut tensors, 1, 1);
    inputs.time(&mut tensors, 0.5, 0.0);
    for at in [at.latent]
        .into_iter()
        .chain(at.velocity)
        .chain(moved.into_iter().flat_map(|(latent, velocity)| [latent, velocity]))
    {
        tensors[at].floats().fill(0.0);
    }
    Ok(())
}

#[test]
fn ports_that_are_changed_at_random_are_refused_or_can_be_written() {
    let read = |value: &Value| serde_json::from_value::<Manifest>(value.clone()).expect("a manifest");
    let whole = read(&manifest());
    assert_eq!(whole.check().and_then(|()| written(&whole)), Ok(()));
    let mut random = 1_u64;
    let mut draw = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % most
    };
    let (mut good, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut changed = manifest();
        for _ in 0..1 + draw(3) {
            change(&mut changed, &mut draw);
        }
        let manifest = read(&changed);
        let outcome = catch_unwind(AssertUnwindSafe(|| manifest.check().and_then(|()| written(&manifest))));
        match outcome {
            Ok(Ok(())) => good += 1,
            Ok(Err(_)) => refused += 1,
            Err(_) => panic!("a panic on the graphs {}", changed["graphs"]),
        }
    }
    assert!(good > 200 && refused > 200, "{good} are good, {refused} are refused");
}
