//! Whether a model makes its chunk by a flow, or gives it with one graph.

use super::{Manifest, Role};

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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Manifest;
    use serde_json::{Value, json};

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
