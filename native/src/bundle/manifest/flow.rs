//! The times of a flow, and whether a model has one or gives its chunk with one graph.

use super::{Manifest, Role};
use serde::Deserialize;

#[derive(Deserialize, Clone)]
pub struct Flow {
    pub t_start: f64,
    pub t_end: f64,
    pub steps: u32,
    pub shift: f64,
    /// Times 0 to `steps`, as a publisher counts them; None: equal steps.
    pub times: Option<Vec<f32>>,
}

impl Flow {
    /// Time `index` of 0 to `steps`: the listed one, or of equal steps, shifted as Wan's flow matching does, s(t) = shift · t / (1 + (shift − 1) · t).
    pub fn time(&self, index: u32) -> f64 {
        if let Some(times) = &self.times {
            return f64::from(times[index as usize]);
        }
        let t = self.t_start + f64::from(index) * (self.t_end - self.t_start) / f64::from(self.steps);
        self.shift * t / (1.0 + (self.shift - 1.0) * t)
    }

    /// The time of a step for the graph, and the difference to the next time.
    pub fn step(&self, index: u32) -> (f32, f32) {
        let (t, next) = (self.time(index), self.time(index + 1));
        (t as f32, (next - t) as f32)
    }

    /// Refuses a list that is not in order, or of another length.
    pub(super) fn check_times(&self) -> Result<(), String> {
        let Some(times) = &self.times else { return Ok(()) };
        let falls = self.t_end < self.t_start;
        let ordered = times.is_sorted_by(|one, next| if falls { one > next } else { one < next });
        if times.len() != self.steps as usize + 1 || !ordered || !times.iter().all(|time| time.is_finite()) {
            return Err(format!("the flow lists {} times, expected {} in order", times.len(), self.steps + 1));
        }
        Ok(())
    }
}

impl Manifest {
    /// Refuses steps without a graph, a graph without steps, and what only a flow can do.
    pub(super) fn check_flow(&self) -> Result<(), String> {
        let graphs = &self.graphs;
        if self.flow.is_some() != graphs.denoise.is_some() {
            return Err("a denoise graph is there exactly when the model has a flow".into());
        }
        let Some(flow) = &self.flow else {
            let gives = graphs.prefill.outputs.iter().any(|port| port.role == Role::Actions);
            return match (self.memory.is_some(), self.action.prefix, gives) {
                (true, ..) => Err("a model with memory has a flow".into()),
                (_, 1.., _) => Err("a chunk continues rows only by a flow".into()),
                (.., false) => Err("neither a flow nor the prefill graph gives the chunk".into()),
                _ => Ok(()),
            };
        };
        if !(1..=1000).contains(&flow.steps) {
            return Err(format!("flow steps is {}, expected 1 to 1000", flow.steps));
        }
        if flow.shift < 1.0 {
            return Err(format!("the flow shift is {}, expected at least 1", flow.shift));
        }
        flow.check_times()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn flow(times: Option<Vec<f32>>) -> Flow {
        Flow { t_start: 1.0, t_end: 0.0, steps: 2, shift: 1.0, times }
    }

    #[test]
    fn listed_times_are_taken_as_they_are_and_equal_steps_without_them() {
        assert_eq!([0, 1, 2].map(|index| flow(None).time(index)), [1.0, 0.5, 0.0]);
        let listed = flow(Some(vec![1.0, 0.7, 0.1]));
        assert_eq!(listed.time(1), f64::from(0.7_f32));
        assert_eq!(listed.step(1), (0.7, (f64::from(0.1_f32) - f64::from(0.7_f32)) as f32));
    }

    #[test]
    fn a_list_of_times_is_refused_that_is_short_or_out_of_order_or_not_finite() {
        assert_eq!(flow(Some(vec![1.0, 0.7, 0.1])).check_times(), Ok(()));
        for times in [vec![], vec![1.0, 0.5], vec![1.0, 0.5, 0.5], vec![0.0, 0.5, 1.0], vec![1.0, f32::NAN, 0.0]] {
            let refusal = flow(Some(times.clone())).check_times().unwrap_err();
            assert_eq!(refusal, format!("the flow lists {} times, expected 3 in order", times.len()));
        }
    }

    fn check(change: impl FnOnce(&mut Value)) -> Result<(), String> {
        let mut manifest: Value = serde_json::from_str(include_str!("../../../tests/manifest.json")).expect("JSON");
        manifest["flow"] = Value::Null;
        manifest["prompt"] = Value::Null;
        manifest["action"]["rows"] = json!(2);
        manifest["graphs"]["denoise"] = Value::Null;
        manifest["tokenizer"] = Value::Null;
        let actions = json!({ "name": "actions", "role": "actions", "dtype": "f32", "shape": ["batch", 2, 1] });
        manifest["graphs"]["prefill"]["outputs"] = json!([actions]);
        change(&mut manifest);
        serde_json::from_value::<Manifest>(manifest).expect("a manifest").check()
    }

    #[test]
    fn a_model_without_a_flow_gives_its_chunk_with_one_graph_and_continues_no_rows() {
        assert_eq!(check(|_| {}), Ok(()));
        let refused = |change: fn(&mut Value), expected: &str| {
            assert!(check(change).is_err_and(|text| text.contains(expected)), "{expected}");
        };
        refused(|m| m["graphs"]["denoise"] = m["graphs"]["prefill"].clone(), "exactly when the model has a flow");
        refused(|m| m["graphs"]["prefill"]["outputs"] = json!([]), "neither a flow nor the prefill graph");
        refused(|m| m["action"]["prefix"] = json!(1), "continues rows only by a flow");
        refused(|m| m["tokenizer"] = json!("tokenizer.json"), "exactly when the model reads a prompt");
    }
}
