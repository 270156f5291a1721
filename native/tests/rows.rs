//! Rotations in a policy's own form, rows that are relative to the state's pose and velocities, against NumPy (`test/vectors/rows.py`); and
//! what is no rotation, no pose or too far away.

use serde_json::{Value, json};
use tendon::bundle::manifest::{Manifest, NormStats};
use tendon::core::rotation::Form;
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

/// All else is as small as it can be.
fn manifest(states: usize, action: &Value) -> Manifest {
    let columns: Vec<Value> = (0..states).map(|at| json!({ "name": format!("s{at}"), "norm": "none" })).collect();
    let graph = json!({ "file": "g", "inputs": [], "outputs": [] });
    let manifest = json!({
        "export_id": "0", "cameras": ["top"], "frames": { "first": 1, "later": 1 },
        "image": { "width": 8, "height": 8, "resize": "stretch", "mean": [0, 0, 0], "std": [1, 1, 1], "tokens": 1 },
        "state": { "columns": columns, "width": states },
        "prompt": { "tokens_max": 8, "pad_id": 0, "parts": [] },
        "action": action,
        "flow": { "t_start": 1, "t_end": 0, "steps": 1, "shift": 1 },
        "guidance": null, "memory": null, "batch": 1,
        "graphs": { "prefill": graph, "denoise": graph },
        "tokenizer": "t", "norm": "n", "parity": { "file": "p", "tolerance": 1 },
    });
    serde_json::from_value(manifest).expect("a manifest")
}

fn encoder(action: &Value, stats: &Value) -> Encoder {
    let manifest = manifest(20, action);
    manifest.check().expect("a good manifest");
    let stats: NormStats = serde_json::from_value(json!({ "state": {}, "action": stats })).expect("statistics");
    Encoder::new(&manifest, &stats.action).expect("an encoder")
}

#[test]
fn rows_in_every_form_absolute_and_relative_to_a_pose_are_numpys() {
    let cases = cases();
    let state = floats(&cases["state"]);
    let rows = cases["rows"].as_array().expect("cases");
    assert_eq!(rows.len(), 9);
    for case in rows {
        let (latent, expected) = (flat(&case["latent"]), flat(&case["expected"]));
        let mut values = vec![9.0; expected.len()];
        let clamped = encoder(&case["action"], &case["stats"]).encode(&latent, &state, &mut values);
        assert_eq!(clamped, Ok(case["clamped"].as_u64().expect("a count") as u32), "{}", case["name"]);
        for (at, (value, expected)) in values.iter().zip(&expected).enumerate() {
            assert!((value - expected).abs() < 2e-6, "{}, value {at}: {value}, expected {expected}", case["name"]);
        }
    }
}

#[test]
fn a_state_is_read_in_every_form_as_numpy_does() {
    let cases = cases();
    let state = floats(&cases["state"]);
    for case in cases["read"].as_array().expect("cases") {
        let mut read = Vec::new();
        let mut from = 0;
        for rotation in case["rotations"].as_array().expect("rotations") {
            let at = rotation["at"].as_u64().expect("a column") as usize;
            let form: Form = serde_json::from_value(rotation["form"].clone()).expect("a form");
            let near = serde_json::from_value(rotation["near"].clone()).unwrap_or(form.usual_near());
            read.extend(&state[from..at]);
            read.extend(&form.read(&state[at..], near).expect("a rotation")[..form.values()]);
            from = at + 6;
        }
        read.extend(&state[from..]);
        let expected = floats(&case["expected"]);
        assert_eq!(read.len(), expected.len());
        for (value, expected) in read.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{value}, expected {expected} in {read:?}, {case}");
        }
    }
}

/// One pose of nine columns that is relative to the state's first nine; two rows.
fn pose(form: Option<&str>, limits: &Value) -> Value {
    let columns: Vec<Value> = (0..9)
        .map(|at| {
            let mut column =
                json!({ "name": format!("a{at}"), "norm": "none", "relative_to": null, "min": -9, "max": 9 });
            column.as_object_mut().expect("an object").extend(limits.as_object().expect("limits").clone());
            column
        })
        .collect();
    let rotations: Vec<Value> = form.iter().map(|form| json!({ "at": 3, "form": form })).collect();
    json!({
        "rows": 2, "width": 9, "columns": columns, "rotation6d": [3], "rotations": rotations, "out_of_range": "clamp",
        "poses": [{ "position": 0, "rotation": 3, "state_position": 0, "state_rotation": 3 }],
    })
}

/// At (1, 2, 3), turned by a quarter about z.
fn at() -> Vec<f32> {
    [&[1.0, 2.0, 3.0, 0.0, 2.0, 0.0, -2.0, 0.0, 0.0][..], &[0.0; 11]].concat()
}

const STAY: [f32; 9] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

fn encode(action: &Value, latent: &[f32], state: &[f32]) -> Result<Vec<f32>, String> {
    let mut values = vec![0.0; 18];
    encoder(action, &json!({})).encode(latent, state, &mut values).map(|_| values)
}

#[test]
fn a_relative_pose_is_composed_with_the_states_and_not_column_by_column() {
    let mut moved = STAY;
    moved[0] = 0.5;
    let rows = encode(&pose(None, &json!({})), &[STAY, moved].concat(), &at()).expect("rows");
    assert_eq!(rows[..9], [1.0, 2.0, 3.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]);
    // Its x is the state's y.
    assert_eq!(rows[9..12], [1.0, 2.5, 3.0]);
}

#[test]
fn what_is_no_rotation_no_pose_and_no_number_is_told_and_never_sent() {
    let told = |form: Option<&str>, change: &dyn Fn(&mut [f32], &mut [f32])| {
        let (mut latent, mut state) = ([STAY, STAY].concat(), at());
        change(&mut latent, &mut state);
        encode(&pose(form, &json!({})), &latent, &state).expect_err("a refusal")
    };
    for form in [None, Some("rotation6d_rows"), Some("quaternion_wxyz"), Some("quaternion_xyzw")] {
        assert_eq!(told(form, &|latent, _| latent[12..18].fill(0.0)), "row 1, a3 begins no rotation");
        let second = |latent: &mut [f32], bad| latent[9 + 4] = bad;
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(told(form, &|latent, _| second(latent, bad)), "row 1, a4 is not a finite number");
            // A state that is no rotation, and one that is nowhere.
            assert_eq!(told(form, &|_, state| state[4] = bad), "row 0, a0 begins no pose");
            assert_eq!(told(form, &|_, state| state[1] = bad), "row 0, a0 begins no pose");
        }
        assert_eq!(told(form, &|_, state| state[3..9].fill(1.0)), "row 0, a0 begins no pose");
        let far = |latent: &mut [f32], state: &mut [f32]| (latent[9], state[1]) = (f32::MAX, f32::MAX);
        assert_eq!(told(form, &far), "row 1, a0 begins no pose");
    }
    let parallel = |latent: &mut [f32], _: &mut [f32]| latent[6..9].copy_from_slice(&[2.0, 1e-4, 0.0]);
    assert_eq!(told(None, &parallel), "row 0, a3 begins no rotation");
    assert_eq!(told(Some("rotation6d_rows"), &parallel), "row 0, a3 begins no rotation");
}

#[test]
fn jumps_steps_and_ranges_of_a_pose_are_those_of_absolute_values() {
    let run = |limits: Value, change: &[(usize, f32)]| {
        let mut latent = [STAY, STAY].concat();
        change.iter().for_each(|&(at, value)| latent[at] = value);
        encode(&pose(None, &limits), &latent, &at())
    };
    // The state's rotation is as long as 2 and is compared as a direction: standing still is no jump.
    assert!(run(json!({ "max_jump": 0.01, "max_step": 0.01 }), &[]).is_ok());
    let jump = run(json!({ "max_jump": 0.4 }), &[(0, 0.5)]).expect_err("a jump");
    assert_eq!(jump, "row 0, a1 is 2.5, 0.500 from the state's 2, max_jump is 0.4");
    let step = run(json!({ "max_step": 0.4 }), &[(9, 0.5)]).expect_err("a step");
    assert_eq!(step, "row 1, a1 is 2.5, 0.500 from 2 in the row before, max_step is 0.4");
    let turn = run(json!({ "max_step": 0.5 }), &[(12, 0.0), (13, 1.0), (15, -1.0), (16, 0.0)]).expect_err("a turn");
    assert!(turn.starts_with("row 1, a3 is -1, 1.000 from 0 in the row before"), "{turn}");
    let rows = run(json!({ "max": 2.25 }), &[(9, 0.5)]).expect("rows");
    assert_eq!(rows[9..12], [1.0, 2.25, 2.25]);
}

#[test]
fn both_signs_of_a_quaternion_are_the_same_bits_in_every_row() {
    let action = pose(Some("quaternion_xyzw"), &json!({ "max_step": 0.02 }));
    let row = |sign: f32| [0.1, 0.2, 0.3, 0.11 * sign, -0.42 * sign, 0.31 * sign, 0.9 * sign, 0.0, 0.0];
    let rows = encode(&action, &[row(1.0), row(-1.0)].concat(), &at()).expect("no step between the two");
    assert_eq!(rows[..9].iter().map(|value| value.to_bits()).collect::<Vec<_>>(), {
        rows[9..].iter().map(|value| value.to_bits()).collect::<Vec<_>>()
    });
}

#[test]
fn a_velocity_begins_at_the_state_and_one_that_is_no_number_is_told() {
    let column = |velocity: bool, max_jump: f64| json!({ "name": "j", "norm": "none", "relative_to": 2, "velocity": velocity, "min": -9, "max": 9, "max_jump": max_jump });
    let action = |columns: Value, hz: u32| json!({ "rows": 3, "hz": hz, "width": 1, "columns": columns, "rotation6d": [], "out_of_range": "fail" });
    let run = |action: &Value, latent: [f32; 3]| {
        let mut values = vec![0.0; 3];
        encoder(action, &json!({})).encode(&latent, &at(), &mut values).map(|_| values)
    };
    let good = action(json!([column(true, 0.5)]), 4);
    assert_eq!(run(&good, [1.0, 2.0, -4.0]), Ok(vec![3.25, 3.75, 2.75]));
    assert_eq!(run(&good, [0.0, f32::NAN, 0.0]), Err("row 1, j is not a finite number".into()));
    assert_eq!(run(&good, [4.0, 0.0, 0.0]), Err("row 0, j is 4, 1.000 from the state's 3, max_jump is 0.5".into()));
    assert_eq!(run(&good, [0.0, 0.0, 36.0]), Err("row 2, j is 12, outside -9 to 9".into()));
    // Not a velocity: each row from the state.
    assert_eq!(run(&action(json!([column(false, 5.0)]), 4), [1.0, 2.0, -4.0]), Ok(vec![4.0, 5.0, -1.0]));
    assert!(manifest(20, &action(json!([column(true, 0.5)]), 0)).check().is_err());
}

#[test]
fn what_reaches_over_the_columns_is_refused_before_a_row_is_made() {
    let refused = |place: &str, value: Value| {
        let mut action = pose(Some("quaternion_wxyz"), &json!({}));
        *action.pointer_mut(place).expect("a place") = value;
        manifest(20, &action).check().expect_err(place)
    };
    for far in [json!(4), json!(64), json!(usize::MAX), json!(usize::MAX - 5)] {
        assert!(refused("/rotation6d", json!([far])).contains("reaches over the end"));
        refused("/rotations/0/at", far.clone());
        assert!(refused("/poses/0/rotation", far).contains("has no rotation6d"));
    }
    for far in [json!(18), json!(usize::MAX)] {
        assert!(refused("/poses/0/position", far.clone()).contains("a pose reaches over"));
        assert!(refused("/poses/0/state_position", far.clone()).contains("a pose reaches over"));
        assert!(refused("/poses/0/state_rotation", far).contains("a pose reaches over"));
    }
    assert!(refused("/rotation6d", json!([3, 3])).contains("into another"));
}
