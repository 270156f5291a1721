//! The times of a flow.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
