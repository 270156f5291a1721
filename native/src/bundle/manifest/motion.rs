//! What rows mean: rotations in a policy's own form, poses that are relative to the current one, velocities.

use super::Manifest;
use crate::core::rotation::Form;
use serde::Deserialize;

/// Six columns of the wire's rotation6d that the policy has in another form.
#[derive(Deserialize, Clone, Copy)]
#[allow(missing_docs)]
pub struct Rotation {
    pub at: usize,
    pub form: Form,
    pub near: Option<[f64; 4]>,
}

/// Columns of the rows, and those of the state that they are relative to as a rigid transform.
#[derive(Deserialize, Clone, Copy)]
#[allow(missing_docs)]
pub struct Pose {
    pub position: usize,
    pub rotation: usize,
    pub state_position: usize,
    pub state_rotation: usize,
}

impl Pose {
    /// The state column that a column of the pose is compared with.
    pub fn state_of(&self, column: usize) -> Option<usize> {
        let within = |start: usize, count: usize| (start..start + count).contains(&column).then(|| column - start);
        let position = within(self.position, 3).map(|at| self.state_position + at);
        position.or_else(|| within(self.rotation, 6).map(|at| self.state_rotation + at))
    }
}

/// For each of the policy's values the column whose normalisation it has; `rotations` of `columns` columns.
pub fn sources(columns: usize, rotations: &[Rotation]) -> impl Iterator<Item = usize> {
    (0..columns).filter(|&column| {
        // The last columns of six whose policy has four.
        !rotations
            .iter()
            .any(|one| (one.at.saturating_add(one.form.values())..one.at.saturating_add(6)).contains(&column))
    })
}

impl Manifest {
    /// Refuses what reaches over the end of rows or state, and what contradicts itself.
    pub(super) fn check_motion(&self) -> Result<(), String> {
        let (state, action) = (&self.state, &self.action);
        let apart = |starts: &[usize], columns: usize| {
            let apart = |(at, one): (usize, &usize)| starts[at + 1..].iter().all(|other| one.abs_diff(*other) >= 6);
            starts.iter().all(|start| start.saturating_add(6) <= columns) && starts.iter().enumerate().all(apart)
        };
        if !apart(&action.rotation6d, action.columns.len()) {
            return Err("a rotation6d reaches over the end of the action columns, or into another".into());
        }
        let read: Vec<usize> = state.rotations.iter().map(|rotation| rotation.at).collect();
        if !apart(&read, state.columns.len()) {
            return Err("a rotation reaches over the end of the state columns, or into another".into());
        }
        let turned: Vec<usize> = action.rotations.iter().map(|rotation| rotation.at).collect();
        if !apart(&turned, action.columns.len()) || turned.iter().any(|at| !action.rotation6d.contains(at)) {
            return Err("a rotation of an action is not one of rotation6d, or is given twice".into());
        }
        let bad =
            |near: [f64; 4]| !(near.iter().all(|value| value.is_finite()) && near.iter().any(|value| *value != 0.0));
        if state.rotations.iter().filter_map(|rotation| rotation.near).any(bad) {
            return Err("what a rotation of the state is near to has no direction".into());
        }
        for Pose { position, rotation, state_position, state_rotation } in &action.poses {
            let fits = position.saturating_add(3) <= action.columns.len()
                && action.rotation6d.contains(rotation)
                && state_position.saturating_add(3) <= state.columns.len()
                && state_rotation.saturating_add(6) <= state.columns.len();
            if !fits {
                return Err("a pose reaches over the end of the action or state columns, or has no rotation6d".into());
            }
        }
        for (index, column) in action.columns.iter().enumerate() {
            if column.relative_to.is_some_and(|index| index >= state.columns.len()) {
                return Err(format!("action column {} is relative to a state column that is not there", column.name));
            }
            let turned = |start: &usize| (*start..start + 6).contains(&index);
            let moved = |pose: &Pose| pose.state_of(index).is_some();
            if column.velocity && (action.rotation6d.iter().any(turned) || action.poses.iter().any(moved)) {
                return Err(format!("action column {} is a velocity in a rotation or a pose", column.name));
            }
            if column.velocity && (column.relative_to.is_none() || action.hz == 0) {
                return Err(format!("action column {} is a velocity without a start or a time", column.name));
            }
        }
        Ok(())
    }
}
