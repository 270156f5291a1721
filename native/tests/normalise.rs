//! Normalisation of state and action columns against the published formulas, written here anew as NumPy would compute them.
//!
//! - `quantile`, `mean_std` with epsilon 1e-6: openpi `src/openpi/transforms.py`, Normalize and Unnormalize:
//!   (x − q01) / (q99 − q01 + 1e-6) · 2 − 1 and (x + 1) / 2 · (q99 − q01 + 1e-6) + q01; (x − mean) / (std + 1e-6) and x · (std + 1e-6) + mean.
//! - `min_max` without epsilon: Isaac-GR00T `gr00t/data/utils.py`, normalize_values_minmax: 2 · (x − min) / (max − min) − 1, and
//!   unnormalize_values_minmax: (clip(x, −1, 1) + 1) / 2 · (max − min) + min, of min and max [columns] or [rows, columns].
//! - `mean_std` without epsilon: LeRobot `src/lerobot/processor/normalize_processor.py`, inverse: x · std + mean.

use serde_json::{Value, json};
use tendon::bundle::manifest::{Manifest, NormStats};
use tendon::flow::encoder::Encoder;

const ROWS: usize = 3;
const COLUMNS: usize = 3;

/// The smallest manifest, with `columns` of actions [ROWS, columns].
fn manifest(columns: &[Value]) -> Manifest {
    let columns: Vec<Value> = (columns.iter().enumerate())
        .map(|(index, how)| {
            let mut column = json!({ "name": format!("a{index}"), "relative_to": null, "min": -1e6, "max": 1e6 });
            column.as_object_mut().expect("an object").extend(how.as_object().expect("an object").clone());
            column
        })
        .collect();
    let mut manifest: Value = serde_json::from_str(include_str!("manifest.json")).expect("JSON");
    manifest["action"] =
        json!({ "rows": ROWS, "width": COLUMNS, "columns": columns, "rotation6d": [], "out_of_range": "clamp" });
    serde_json::from_value(manifest).expect("a manifest")
}

fn stats(action: Value) -> NormStats {
    serde_json::from_value(json!({ "state": {}, "action": action })).expect("statistics")
}

/// The rows of a latent, and the error of an encoder that cannot be made.
fn rows(columns: &[Value], action: Value, latent: &[f32]) -> Result<Vec<f32>, String> {
    let encoder = Encoder::new(&manifest(columns), &stats(action).action)?;
    let mut values = vec![0.0; ROWS * COLUMNS];
    encoder.encode(&[], latent, &[0.0], &mut values).map(|_| values)
}

#[test]
fn a_chunk_has_up_to_128_rows() {
    let mut manifest = manifest(&vec![json!({ "norm": "none" }); COLUMNS]);
    manifest.action.rows = 128;
    assert_eq!(manifest.check(), Ok(()));
    manifest.action.rows = 129;
    assert_eq!(manifest.check(), Err("rows is 129, expected 1 to 128".into()));
}

/// Values in and out of −1 to 1.
const LATENT: [f32; ROWS * COLUMNS] = [-1.0, 0.3, 1.0, -0.25, 2.5, -3.0, 0.999, -1.5, 0.0];

fn expect_rows(found: Result<Vec<f32>, String>, reference: impl Fn(f64, usize, usize) -> f64) {
    let found = found.expect("rows");
    for (at, (&value, &x)) in found.iter().zip(&LATENT).enumerate() {
        let expected = reference(f64::from(x), at / COLUMNS, at % COLUMNS) as f32;
        let close = (value - expected).abs() <= 4.0 * f32::EPSILON * expected.abs().max(1.0);
        assert!(close, "row {}, column {}: {value}, expected {expected}", at / COLUMNS, at % COLUMNS);
    }
}

const LOW: [f64; COLUMNS] = [-0.9, 0.5, 2.0];
const HIGH: [f64; COLUMNS] = [0.7, 0.6, 9.5];

#[test]
fn quantiles_and_deviations_are_openpis_with_its_epsilon_or_a_declared_one() {
    for (epsilon, declared) in
        [(1e-6, json!({})), (1e-6, json!({ "epsilon": 1e-6 })), (0.25, json!({ "epsilon": 0.25 }))]
    {
        let with = |norm: &str| {
            let mut column = declared.clone();
            column["norm"] = json!(norm);
            vec![column; COLUMNS]
        };
        expect_rows(rows(&with("quantile"), json!({ "q01": LOW, "q99": HIGH }), &LATENT), |x, _, c| {
            (x + 1.0) / 2.0 * (HIGH[c] - LOW[c] + epsilon) + LOW[c]
        });
        let deviation = [0.5, 2.0, 0.0];
        expect_rows(rows(&with("mean_std"), json!({ "mean": LOW, "std": deviation }), &LATENT), |x, _, c| {
            x * (deviation[c] + epsilon) + LOW[c]
        });
    }
}

#[test]
fn min_max_is_groots_with_its_clip_and_without_one_or_with_an_epsilon_the_same_line() {
    let clipped = json!({ "norm": "min_max", "epsilon": 0, "clip": { "min": -1, "max": 1 } });
    let statistics = json!({ "min": LOW, "max": HIGH });
    expect_rows(rows(&vec![clipped; COLUMNS], statistics.clone(), &LATENT), |x, _, c| {
        (x.clamp(-1.0, 1.0) + 1.0) / 2.0 * (HIGH[c] - LOW[c]) + LOW[c]
    });
    let open = json!({ "norm": "min_max", "epsilon": 0.125 });
    expect_rows(rows(&vec![open; COLUMNS], statistics, &LATENT), |x, _, c| {
        (x + 1.0) / 2.0 * (HIGH[c] - LOW[c] + 0.125) + LOW[c]
    });
}

#[test]
fn a_table_has_statistics_of_its_own_for_each_row_and_may_stand_beside_a_list() {
    let low: Vec<[f64; COLUMNS]> = (0..ROWS).map(|row| LOW.map(|low| low - row as f64)).collect();
    let high: Vec<[f64; COLUMNS]> = (0..ROWS).map(|row| HIGH.map(|high| high + 2.0 * row as f64)).collect();
    let columns = [
        json!({ "norm": "min_max", "epsilon": 0, "clip": { "min": -1, "max": 1 } }),
        json!({ "norm": "mean_std", "epsilon": 0 }),
        json!({ "norm": "none" }),
    ];
    let statistics = json!({ "min": low, "max": high, "mean": LOW, "std": high });
    expect_rows(rows(&columns, statistics, &LATENT), |x, row, column| match column {
        0 => (x.clamp(-1.0, 1.0) + 1.0) / 2.0 * (high[row][0] - low[row][0]) + low[row][0],
        1 => x * high[row][1] + LOW[1],
        _ => x,
    });
}

#[test]
fn a_state_is_normalised_by_the_same_line_and_clipped_behind_it() {
    let how = |value: Value| {
        let column = manifest(&[value]).action.columns.remove(0);
        column.normalisation
    };
    let mut norm = stats(json!({})).state;
    norm.min = serde_json::from_value(json!([0.0, -2.0])).expect("a list");
    norm.max = serde_json::from_value(json!([1.0, 6.0])).expect("a list");
    for (robot, model) in [(-2.0, -1.0), (2.0, 0.0), (6.0, 1.0), (4.0, 0.5), (14.0, 3.0), (-10.0, -3.0)] {
        let scale = norm.state(how(json!({ "norm": "min_max", "epsilon": 0 })), 1).expect("a scale");
        assert_eq!(scale.model(robot), 2.0 * (f64::from(robot) + 2.0) / 8.0 - 1.0);
        assert_eq!((scale.model(robot), scale.robot(model as f32)), (model, f64::from(robot)));
        let clip = json!({ "norm": "min_max", "epsilon": 0, "clip": { "min": -1, "max": 1 } });
        let scale = norm.state(how(clip), 1).expect("a scale");
        assert_eq!(scale.model(robot), model.clamp(-1.0, 1.0));
        let epsilon = norm.state(how(json!({ "norm": "min_max", "epsilon": 0.5 })), 1).expect("a scale");
        assert!((epsilon.model(robot) - (2.0 * (f64::from(robot) + 2.0) / 8.5 - 1.0)).abs() < 1e-12);
    }
}

#[test]
fn statistics_that_are_missing_or_useless_are_refused_with_the_columns_name() {
    let refused = |how: Value, action: Value, expected: &str| {
        let refusal = rows(&vec![how; COLUMNS], action, &LATENT).expect_err(expected);
        assert!(refusal.contains("action column a") && refusal.contains(expected), "{refusal}, expected {expected}");
    };
    refused(json!({ "norm": "min_max" }), json!({ "min": LOW }), "lacks max of column 0");
    refused(json!({ "norm": "min_max" }), json!({ "min": LOW, "max": [1, 2] }), "lacks max of column 2");
    let two = json!({ "min": LOW, "max": [HIGH, HIGH] });
    refused(json!({ "norm": "min_max" }), two, "another number of rows");
    refused(json!({ "norm": "min_max", "epsilon": 0 }), json!({ "min": LOW, "max": LOW }), "by 0 from");
    refused(json!({ "norm": "mean_std", "epsilon": 0 }), json!({ "mean": LOW, "std": [1, 0, 1] }), "column 1 by 0");
    refused(json!({ "norm": "none", "clip": { "min": 1, "max": 1 } }), json!({}), "is 1 to 1, expected a range");
}
