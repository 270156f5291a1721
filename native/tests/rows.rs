//! Rows with rotations, statistics of each row and clips, against NumPy (`test/vectors/rows.py`); and what is no rotation.

use serde_json::{Value, json};
use tendon::bundle::manifest::{Manifest, NormStats};
use tendon::flow::encoder::Encoder;

fn cases() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../test/vectors/rows/cases.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the cases")).expect("JSON")
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().expect("a list").iter().map(|value| value.as_f64().expect("a number") as f32).collect()
}

fn flat(value: &Value) -> Vec<f32> {
    value.as_array().expect("rows").iter().flat_map(floats).collect()
}

/// The smallest manifest, with these states and this action.
fn manifest(states: usize, action: &Value) -> Manifest {
    let columns: Vec<Value> = (0..states).map(|at| json!({ "name": format!("s{at}"), "norm": "none" })).collect();
    let mut manifest: Value = serde_json::from_str(include_str!("manifest.json")).expect("JSON");
    manifest["state"] = json!({ "columns": columns, "width": states });
    manifest["action"] = action.clone();
    serde_json::from_value(manifest).expect("a manifest")
}

fn encoder(action: &Value, stats: &Value) -> Encoder {
    let manifest = manifest(20, action);
    manifest.check().expect("a good manifest");
    let stats: NormStats = serde_json::from_value(json!({ "state": {}, "action": stats })).expect("statistics");
    Encoder::new(&manifest, &stats.action).expect("an encoder")
}

#[test]
fn rows_are_numpys() {
    let cases = cases();
    let state = floats(&cases["state"]);
    let rows = cases["rows"].as_array().expect("cases");
    assert_eq!(rows.len(), 1);
    for case in rows {
        let (latent, expected) = (flat(&case["latent"]), flat(&case["expected"]));
        let mut values = vec![9.0; expected.len()];
        let clamped = encoder(&case["action"], &case["stats"]).encode(&[], &latent, &state, &mut values);
        assert_eq!(clamped, Ok(case["clamped"].as_u64().expect("a count") as u32), "{}", case["name"]);
        for (at, (value, expected)) in values.iter().zip(&expected).enumerate() {
            assert!((value - expected).abs() < 2e-6, "{}, value {at}: {value}, expected {expected}", case["name"]);
        }
    }
}

/// Two rows of one rotation.
fn rotation() -> Value {
    let columns: Vec<Value> = (0..6)
        .map(|at| json!({ "name": format!("a{at}"), "norm": "none", "relative_to": null, "min": -9, "max": 9 }))
        .collect();
    json!({ "rows": 2, "width": 6, "columns": columns, "rotation6d": [0], "out_of_range": "clamp" })
}

const STAY: [f32; 6] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

#[test]
fn what_is_no_rotation_and_no_number_is_told_and_never_sent() {
    let refusal = |change: &dyn Fn(&mut [f32])| {
        let mut latent = [STAY, STAY].concat();
        change(&mut latent);
        encoder(&rotation(), &json!({})).encode(&[], &latent, &[0.0; 20], &mut [0.0; 12]).expect_err("a refusal")
    };
    assert_eq!(refusal(&|latent| latent[6..].fill(0.0)), "row 1, a0 begins no rotation");
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(refusal(&|latent| latent[6 + 4] = bad), "row 1, a4 is not a finite number");
    }
    let parallel = |latent: &mut [f32]| latent[3..6].copy_from_slice(&[2.0, 1e-4, 0.0]);
    assert_eq!(refusal(&parallel), "row 0, a0 begins no rotation");
}

#[test]
fn what_reaches_over_the_columns_is_refused_before_a_row_is_made() {
    let refused = |starts: Value| {
        let mut action = rotation();
        action["rotation6d"] = starts;
        manifest(20, &action).check().expect_err("a refusal")
    };
    for far in [json!(1), json!(64), json!(usize::MAX), json!(usize::MAX - 5)] {
        assert!(refused(json!([far])).contains("reaches over the end"));
    }
    assert!(refused(json!([0, 0])).contains("into another"));
}
