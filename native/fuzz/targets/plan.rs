//! Load plans of three small models on `echo`, and changes of them: one without episode memory, one with it, and one whose rows have a
//! rotation. Graphs are not opened, so of ports only the manifest's checks run.

use serde_json::{Value, json};

/// Frame slots of each model.
pub const FRAMES_MAX: usize = 6;
/// Session slots of each replica of the model with memory.
pub const SLOTS: usize = 2;

/// The values that can be changed. `VALUES` bounds sizes of memory, since an operator may ask for a terabyte.
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

/// The optional parts of a manifest and the fields of ports: the object, the field, and right and wrong values of it as JSON.
const FIELDS: [(&str, &str, &str); 39] = [
    ("", "compute", r#"["f16", "bf16", "f32", "i64", "f64", null, 1]"#),
    ("", "weight_files", r#"[["w.bin"], ["norm.json"], [1], "w.bin"]"#),
    ("/image", "place", r#"["top_left", "centre", "bottom_right", "left", 1]"#),
    ("/image", "resize", r#"["pad", "stretch", "crop", "none"]"#),
    ("/prompt", "buckets", r#"[[4], [2, 4], [4, 2], [0], [8], [9], [-1], 4]"#),
    (
        "/prompt",
        "parts",
        r#"[[], [{"kind": "token", "id": 4294967295}], [{"kind": "state_tokens", "base": 3, "bins": 256}], [{"kind": "state_tokens",
        "base": 4294967295, "bins": 0}], [{"kind": "template", "text": "{instruction} {state}", "bins": 1}], [{"kind": "template", "text": "{",
        "bins": 4294967295}], [{"kind": "template", "text": "{instruction}", "clean": ["strip", "end_newline"]}], [{"kind": "poem"}]]"#,
    ),
    ("/flow", "times", r#"[[1, 0], [0, 1], [1], [1, 0.5, 0], [], [1, 1e300], "x"]"#),
    ("/state/columns/0", "norm", r#"["none", "quantile", "mean_std", "min_max", "log"]"#),
    ("/state/columns/0", "clip", r#"[{"min": -1, "max": 1}, {"min": 1, "max": -1}, {"min": 0}, 1]"#),
    ("/state/columns/0", "epsilon", r#"[0, 1e-8, -1, 1e308, "x"]"#),
    ("/state/columns/0", "epsilon_rule", r#"["added", "zero_range", "at_least", "never"]"#),
    ("/action/columns/0", "epsilon_rule", r#"["added", "zero_range", "at_least", null]"#),
    ("/action", "prefix", r#"[0, 1, 2, 3, 64, 18446744073709551615, -1]"#),
    ("/action", "rotation6d", r#"[[], [0], [3], [3, 4], [0, 6], [18446744073709551615]]"#),
    ("/action", "out_of_range", r#"["clamp", "fail", "wrap"]"#),
    ("/action/columns/0", "norm", r#"["none", "quantile", "mean_std", "min_max", "log"]"#),
    ("/action/columns/0", "clip", r#"[{"min": -1, "max": 1}, {"min": 1, "max": -1}, null]"#),
    ("/action/columns/0", "relative_to", r#"[0, 1, 8, 9, null]"#),
    ("/action/columns/0", "max_step", r#"[0.5, 0, -1, 1e308, null]"#),
    ("/graphs/prefill/inputs/0", "role", ROLES),
    ("/graphs/prefill/inputs/0", "dtype", DTYPES),
    ("/graphs/prefill/inputs/0", "shape", SHAPES),
    ("/graphs/prefill/inputs/0", "cameras", r#"[["top"], ["top", "right"], ["right"], [], ["top", "top"], [0], null]"#),
    ("/graphs/prefill/inputs/1", "role", ROLES),
    ("/graphs/prefill/inputs/1", "dtype", DTYPES),
    ("/graphs/prefill/inputs/1", "shape", SHAPES),
    ("/graphs/prefill/inputs/1", "cameras", r#"[["top"], ["right"], []]"#),
    ("/graphs/prefill/outputs/0", "role", ROLES),
    ("/graphs/prefill/outputs/0", "dtype", DTYPES),
    ("/graphs/prefill/outputs/0", "shape", SHAPES),
    ("/graphs/denoise/inputs/0", "role", ROLES),
    ("/graphs/denoise/inputs/0", "from", r#"["k", "cache", "t", "nothing", "", null, 1]"#),
    ("/graphs/denoise/inputs/0", "dtype", DTYPES),
    ("/graphs/denoise/inputs/0", "shape", SHAPES),
    ("/graphs/denoise/inputs/1", "role", ROLES),
    ("/graphs/denoise/inputs/1", "buckets", r#"[1, 1000, 0, 4294967295, -1, null]"#),
    ("/graphs/denoise/inputs/1", "dtype", DTYPES),
    ("/graphs/denoise/inputs/1", "from", r#"["k", "cache", "nothing", null]"#),
    ("/graphs/denoise/outputs/0", "role", ROLES),
];

const ROLES: &str = r#"["images", "tokens", "token_mask", "image_mask", "constant", "state",
    "latent", "video_latent", "time", "cache", "block", "block_length", "memory", "memory_length",
    "velocity", "video_velocity", "timestep"]"#;
const DTYPES: &str = r#"["f32", "f16", "bf16", "i32", "i64", "u8", "bool", "f64"]"#;
const SHAPES: &str = r#"[[], [1], ["batch", "prompt"], ["batch", "prefix"], ["batch", 2, 3, 8, 8], [1, 8, 8, 3], [1, 8, 2], [1, 8, 0], [2, 8, 2],
    [18446744073709551615, 8, 2], [4294967296, 8, 4294967296], [268435456, 8, 1], ["rows"], [-1], "batch"]"#;

/// A plan, and whether it is unchanged; `next` gives bytes to choose by.
pub fn plan(mut next: impl FnMut() -> usize) -> (String, bool) {
    let kind = [Kind::Plain, Kind::Memory, Kind::Turned][next() % 3];
    let mut plan = base(kind);
    plan["replicas"] = json!(1 + next() % 2);
    let changes = next() % 4;
    for _ in 0..changes {
        let place = next() % (PLACES.len() + FIELDS.len());
        if let Some((object, field, values)) = place.checked_sub(PLACES.len()).map(|field| FIELDS[field]) {
            let values: Vec<Value> = serde_json::from_str(values).expect("values of a field");
            if let Some(Value::Object(object)) = plan.pointer_mut(&format!("/manifest{object}")) {
                object.insert(field.into(), values[next() % values.len()].clone());
            }
            continue;
        }
        let values = values();
        if let Some(value) = plan.pointer_mut(PLACES[place]) {
            *value = values[next() % values.len()].clone();
        }
    }
    (plan.to_string(), changes == 0)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Memory,
    /// Rows with a rotation.
    Turned,
}

fn base(kind: Kind) -> Value {
    let file = |name: &str| format!("{}/bundle/{name}", env!("CARGO_MANIFEST_DIR"));
    let (memory, turned) = (kind == Kind::Memory, kind == Kind::Turned);
    let port = |name: &str, role: &str, dtype: &str, shape: Value| json!({ "name": name, "role": role, "from": null, "dtype": dtype, "shape": shape });
    let cache = || {
        if memory {
            port("k", "block", "f32", json!([1, 8, 2]))
        } else {
            port("cache", "cache", "f16", json!(["batch", "prefix", 2]))
        }
    };
    let reads = || {
        json!([
            port("images", "images", "u8", json!(["batch", 2, 8, 8, 3])),
            port("tokens", "tokens", "i64", json!(["batch", "prompt"]))
        ])
    };
    let reader = |name: &str| json!({ "file": name, "inputs": reads(), "outputs": [cache()] });
    let step = json!({
        "file": "c.onnx",
        "inputs": [cache(), port("t", "time", "f32", json!([1])), port("x_t", "latent", "f32", json!(["batch", 3, 2]))],
        "outputs": [port("v_t", "velocity", "f32", json!(["batch", 3, 2]))],
    });
    let column = json!({ "name": "j", "norm": "quantile", "relative_to": if turned { Value::Null } else { json!(0) }, "min": -1.0, "max": 1.0, "max_jump": if turned { Value::Null } else { json!(2.0) } });
    let columns = if turned { 9 } else { 2 };
    let states: Vec<Value> = (0..columns)
        .map(|at| json!({ "name": format!("s{at}"), "norm": if at == 0 { "quantile" } else { "mean_std" } }))
        .collect();
    json!({
        "device": "echo",
        "replicas": 1,
        "threads": 1,
        "inferenceMsMax": 60_000,
        "slots": SLOTS,
        "files": {
            "tokenizer.json": file("tokenizer.json"),
            "norm.json": file(if turned { "rotation.json" } else { "norm.json" }),
            "a.onnx": "/nonexistent", "b.onnx": "/nonexistent", "c.onnx": "/nonexistent",
        },
        "manifest": {
            "export_id": "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
            "cameras": if memory { json!(["top"]) } else { json!(["top", "left"]) },
            "frames": { "first": 1, "later": if memory { 2 } else { 1 } },
            "image": {
                "width": 8, "height": 8, "resize": "pad", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "tokens": 4,
            },
            "state": { "columns": states, "width": columns },
            "prompt": { "tokens_max": 8, "pad_id": 0, "parts": [{ "kind": "instruction" }] },
            "action": {
                "rows": 3, "width": columns, "columns": vec![column; columns], "prefix": 2,
                "rotation6d": if turned { json!([3]) } else { json!([]) }, "out_of_range": "clamp",
            },
            "flow": { "t_start": 0.0, "t_end": 1.0, "steps": 4, "shift": 1.0 },
            "guidance": null,
            "memory": if memory { json!({ "window": 4, "tokens": 4, "first": 1, "later": 2 }) } else { Value::Null },
            "batch": if memory { 1 } else { 2 },
            "graphs": {
                "prefill": reader("a.onnx"),
                "extend": if memory { reader("b.onnx") } else { Value::Null },
                "denoise": step,
            },
            "tokenizer": "tokenizer.json",
            "parity": { "file": "parity.json", "tolerance": 0.001 },
            "norm": "norm.json",
        },
    })
}
