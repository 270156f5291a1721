//! Rows that a chunk continues: the robot still executes them, and the flow keeps them in place.

use super::Encoder;

impl Encoder {
    /// The number of rows of `prefix`; the error is a sentence about a row that no chunk could have had.
    pub fn prefix_rows(&self, prefix: &[f32]) -> Result<usize, String> {
        for (row, values) in prefix.chunks(self.columns.len()).enumerate() {
            for (column, value) in self.columns.iter().zip(values) {
                if !(column.min..=column.max).contains(value) {
                    let (name, min, max) = (&column.name, column.min, column.max);
                    return Err(format!("row {row} of the prefix, {name} is {value}, expected {min} to {max}"));
                }
            }
        }
        Ok(prefix.len() / self.columns.len())
    }

    /// Writes the rows of `prefix` over the first rows of `latent` (`rows × width`), normalised and relative to `state`, with zeros as
    /// padding: the inverse of `convert`.
    pub fn latent_of(&self, prefix: &[f32], state: &[f32], latent: &mut [f32]) {
        let count = self.columns.len();
        let rows = prefix.chunks_exact(count).zip(self.scales.chunks_exact(count));
        for ((from, scales), to) in rows.zip(latent.chunks_exact_mut(self.width)) {
            to.fill(0.0);
            for (((column, scale), &value), x) in self.columns.iter().zip(scales).zip(from).zip(to) {
                let base = column.relative_to.map_or(0.0, |index| f64::from(state[index]));
                *x = scale.model_of(f64::from(value) - base) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::encoder;

    #[test]
    fn what_is_encoded_comes_back_as_it_was_with_zeros_behind_its_columns() {
        let latent = [1.0, 0.5, 9.0, -1.0, 0.25, 9.0];
        let (state, mut values, mut back) = ([7.0, 0.125], [0.0; 4], [5.0; 6]);
        encoder(true).encode(&[], &latent, &state, &mut values).expect("rows");
        encoder(true).latent_of(&values, &state, &mut back);
        assert_eq!(back, [1.0, 0.5, 0.0, -1.0, 0.25, 0.0]);
        // One row of two: the second is noise, which stays.
        back = [5.0; 6];
        encoder(true).latent_of(&values[..2], &state, &mut back);
        assert_eq!(back, [1.0, 0.5, 0.0, 5.0, 5.0, 5.0]);
    }

    #[test]
    fn a_prefix_that_no_chunk_could_have_had_is_refused() {
        let refusal = |prefix: &[f32]| encoder(true).prefix_rows(prefix).unwrap_err();
        assert_eq!(encoder(true).prefix_rows(&[2.0, -2.0]), Ok(1));
        assert_eq!(refusal(&[0.0, 0.0, 0.0, 2.5]), "row 1 of the prefix, delta is 2.5, expected -2 to 2");
        assert_eq!(refusal(&[f32::NAN, 0.0]), "row 0 of the prefix, joint is NaN, expected -2 to 2");
    }

    #[test]
    fn continued_rows_are_returned_as_given_and_the_first_new_one_is_judged_by_the_last_of_them() {
        let mut limited = encoder(false);
        limited.columns[0].jump = Some((0, 0.5));
        limited.columns[1].max_step = Some(0.5);
        // The state is far away: the arm has moved on. Row 1 is 0.5 · 0.5 + 0.25 = 0.5.
        let (latent, state) = ([0.0, 0.0, 0.0, 0.5, 0.0, 0.0], [9.0, 0.0]);
        let mut values = [0.0; 4];
        assert_eq!(limited.encode(&[0.3, 0.1], &latent, &state, &mut values), Ok(0));
        assert_eq!(values, [0.3, 0.1, 0.5, 0.0]);
        let refusal = |prefix: &[f32]| limited.encode(prefix, &latent, &state, &mut [0.0; 4]).unwrap_err();
        assert_eq!(
            refusal(&[-0.25, 0.1]),
            "row 1, joint is 0.5, 0.750 from the -0.25 of the row that it continues, max_jump is 0.5"
        );
        assert_eq!(refusal(&[0.3, 0.75]), "row 1, delta is 0, 0.750 from 0.75 in the row before, max_step is 0.5");
    }
}
