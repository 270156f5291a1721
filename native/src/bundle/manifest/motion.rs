//! The meaning of rows: rotations, and columns that are relative to the state.

use super::Manifest;

impl Manifest {
    /// Refuses rotations and columns beyond the end of rows or state.
    pub(super) fn check_motion(&self) -> Result<(), String> {
        let (state, action) = (&self.state, &self.action);
        let starts = &action.rotation6d;
        let apart = |(at, one): (usize, &usize)| starts[at + 1..].iter().all(|other| one.abs_diff(*other) >= 6);
        let inside = |start: &usize| start.saturating_add(6) <= action.columns.len();
        if !(starts.iter().all(inside) && starts.iter().enumerate().all(apart)) {
            return Err("a rotation6d reaches over the end of the action columns, or into another".into());
        }
        for column in &action.columns {
            if column.relative_to.is_some_and(|index| index >= state.columns.len()) {
                return Err(format!("action column {} is relative to a state column that is not there", column.name));
            }
        }
        Ok(())
    }
}
