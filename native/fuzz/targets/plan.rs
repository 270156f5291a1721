//! Load plans of two small models on `echo`: one without episode memory, one with it, and changes of what is in them.

use serde_json::{Value, json};

/// Frame slots of each model.
pub const FRAMES_MAX: usize = 6;
/// Session slots of each replica of the model with memory.
pub const SLOTS: usize = 2;

/// What can be changed. Sizes of memory are not among these beyond what `VALUES` makes of them: an operator may ask for a terabyte.
const PLACES: [&str; 25] = [
    "/manifest/cameras",
    "/manifest/frames/first",
    "/manifest/frames/later",
    "/manifest/image/width",
    "/manifest/image/height",
    "/manifest/image/tokens",
    "/manifest/image/std/0",
    "/manifest/state/width",
    "/manifest/prompt/tokens_max",
    "/manifest/action/rows",
    "/manifest/action/width",
    "/manifest/action/columns/0/relative_to",
    "/manifest/action/columns/0/min",
    "/manifest/action/columns/0/max_jump",
    "/manifest/action/rotation6d",
    "/manifest/flow/steps",
    "/manifest/flow/shift",
    "/manifest/guidance",
    "/manifest/memory",
    "/manifest/memory/window",
    "/manifest/memory/first",
    "/manifest/memory/later",
    "/manifest/batch",
    "/manifest/export_id",
    "/device",
];

fn values() -> [Value; 16] {
    [
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(16),
        json!(17),
        json!(64),
        json!(65),
        json!(-1),
        json!(1.5),
        json!(null),
        json!("x"),
        json!([]),
        json!([0]),
        json!({}),
        json!({ "scale": 1.0, "apply": ["action"] }),
    ]
}

/// A plan, and whether nothing of it is changed; `next` gives bytes to choose by.
pub fn plan(mut next: impl FnMut() -> usize) -> (String, bool) {
    let memory = next() % 2 == 1;
    let mut plan = base(memory);
    plan["replicas"] = json!(1 + next() % 2);
    let changes = next() % 4;
    for _ in 0..changes {
        let (place, values) = (PLACES[next() % PLACES.len()], values());
        if let Some(value) = plan.pointer_mut(place) {
            *value = values[next() % values.len()].clone();
        }
    }
    (plan.to_string(), changes == 0)
}

fn base(memory: bool) -> Value {
    let file = |name: &str| format!("{}/bundle/{name}", env!("CARGO_MANIFEST_DIR"));
    let block = json!({ "name": "k", "role": "block", "from": null, "dtype": "f32", "shape": [1, 8, 2] });
    let graph =
        |name: &str| json!({ "file": name, "inputs": [], "outputs": if memory { json!([block]) } else { json!([]) } });
    let column = json!({ "name": "j", "norm": "quantile", "relative_to": 0, "min": -1.0, "max": 1.0, "max_jump": 2.0 });
    json!({
        "device": "echo",
        "replicas": 1,
        "threads": 1,
        "run_ms_max": 60_000,
        "slots": SLOTS,
        "files": {
            "tokenizer.json": file("tokenizer.json"),
            "norm.json": file("norm.json"),
            "a.onnx": "/nonexistent", "b.onnx": "/nonexistent", "c.onnx": "/nonexistent",
        },
        "manifest": {
            "export_id": "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
            "cameras": if memory { json!(["top"]) } else { json!(["top", "left"]) },
            "frames": { "first": 1, "later": if memory { 2 } else { 1 } },
            "image": {
                "width": 8, "height": 8, "resize": "pad", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "tokens": 4,
            },
            "state": { "columns": [{ "name": "j", "norm": "quantile" }, { "name": "k", "norm": "mean_std" }], "width": 2 },
            "prompt": { "tokens_max": 8, "pad_id": 0, "parts": [{ "kind": "instruction" }] },
            "action": {
                "rows": 3, "width": 2, "columns": [column, column], "rotation6d": [], "out_of_range": "clamp",
            },
            "flow": { "t_start": 0.0, "t_end": 1.0, "steps": 4, "shift": 1.0 },
            "guidance": null,
            "memory": if memory { json!({ "window": 4, "tokens": 4, "first": 1, "later": 2 }) } else { Value::Null },
            "batch": if memory { 1 } else { 2 },
            "graphs": {
                "prefill": graph("a.onnx"),
                "extend": if memory { graph("b.onnx") } else { Value::Null },
                "denoise": graph("c.onnx"),
            },
            "tokenizer": "tokenizer.json",
            "parity": { "file": "parity.json", "tolerance": 0.001 },
            "norm": "norm.json",
        },
    })
}
