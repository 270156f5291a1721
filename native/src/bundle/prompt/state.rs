//! The state as the policy has it: the wire's values, but rotations in the policy's own form.

use crate::bundle::manifest::State;
use crate::core::layout::STATE_VALUES_MAX;
use crate::core::rotation::Form;

/// Room for the policy's values.
pub(super) type Room = [f32; STATE_VALUES_MAX];

/// The rotations of a state.
pub(super) struct Reader {
    rotations: Vec<(usize, Form, [f64; 4])>,
    names: Vec<String>,
}

impl Reader {
    pub(super) fn new(state: &State) -> Reader {
        let mut rotations = state.rotations.clone();
        rotations.sort_by_key(|rotation| rotation.at);
        let names = rotations.iter().map(|rotation| state.columns[rotation.at].name.clone()).collect();
        let near = |form: Form, near: Option<[f64; 4]>| near.unwrap_or(form.usual_near());
        let rotations = rotations.iter().map(|one| (one.at, one.form, near(one.form, one.near))).collect();
        Reader { rotations, names }
    }

    /// Refuses a state with what is no rotation; the error is a sentence.
    pub(super) fn check(&self, state: &[f32]) -> Result<(), String> {
        for (&(at, form, near), name) in self.rotations.iter().zip(&self.names) {
            if form.read(&state[at..at + 6], near).is_none() {
                return Err(format!("the state's {name} begins no rotation"));
            }
        }
        Ok(())
    }

    /// The policy's values, in robot units. Zeros for what is no rotation.
    pub(super) fn read<'a>(&self, state: &'a [f32], room: &'a mut Room) -> &'a [f32] {
        if self.rotations.is_empty() {
            return state;
        }
        let (mut from, mut to) = (0, 0);
        for &(at, form, near) in &self.rotations {
            room[to..to + at - from].copy_from_slice(&state[from..at]);
            to += at - from;
            let values = form.read(&state[at..at + 6], near).unwrap_or_default();
            room[to..to + form.values()].copy_from_slice(&values[..form.values()]);
            to += form.values();
            from = at + 6;
        }
        let rest = state.len() - from;
        room[to..to + rest].copy_from_slice(&state[from..]);
        &room[..to + rest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reader(rotations: serde_json::Value) -> Reader {
        let columns: Vec<_> = (0..14).map(|at| json!({ "name": format!("c{at}"), "norm": "none" })).collect();
        Reader::new(
            &serde_json::from_value(json!({ "columns": columns, "rotations": rotations, "width": 14 }))
                .expect("a state"),
        )
    }

    const STATE: [f32; 14] = [7.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 8.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0];

    #[test]
    fn rotations_stand_in_the_policys_form_and_order_between_the_other_values() {
        let half = 0.5_f32.sqrt();
        let mut room = [0.0; STATE_VALUES_MAX];
        assert_eq!(reader(json!([])).read(&STATE, &mut room), STATE);
        // None, and a quarter turn about z.
        let forms = json!([{ "at": 8, "form": "quaternion_xyzw" }, { "at": 1, "form": "quaternion_wxyz" }]);
        let read = reader(forms).read(&STATE, &mut room).to_vec();
        assert_eq!(read, [7.0, 1.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, half, half]);
        let rows = json!([{ "at": 8, "form": "rotation6d_rows" }]);
        assert_eq!(reader(rows).read(&STATE, &mut room)[8..], [0.0, -1.0, 0.0, 1.0, 0.0, 0.0]);
        let near = json!([{ "at": 8, "form": "quaternion_wxyz", "near": [-1, 0, 0, 0] }]);
        assert_eq!(reader(near).read(&STATE, &mut room)[8..], [-half, 0.0, 0.0, -half]);
    }

    #[test]
    fn what_is_no_rotation_is_told_and_read_as_zeros() {
        let reader = reader(json!([{ "at": 1, "form": "quaternion_wxyz" }]));
        assert_eq!(reader.check(&STATE), Ok(()));
        for (at, value) in [(1, 0.0), (2, f32::NAN), (5, 0.0)] {
            let mut state = STATE;
            state[at] = value;
            assert_eq!(reader.check(&state), Err("the state's c1 begins no rotation".into()));
            assert_eq!(reader.read(&state, &mut [1.0; STATE_VALUES_MAX])[1..5], [0.0; 4]);
        }
    }
}
