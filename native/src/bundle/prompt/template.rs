//! The texts and numbers of a prompt: the cleaned instruction in its template, and state values as tokens or text.

use crate::bundle::manifest::Scale;
use tokenizers::Tokenizer;

/// Turns a value of one state column into a token.
pub(super) struct StateColumn(pub(super) Scale);

/// Tokens of the numbers −1 to bins − 1, each after a space; `last` has the text that follows the state too.
pub(super) struct Numbers {
    pub(super) bins: u32,
    pub(super) plain: Vec<Vec<u32>>,
    pub(super) last: Vec<Vec<u32>>,
}

/// The text around the instruction, and its cleaning.
pub(super) struct Frame {
    pub(super) before: String,
    pub(super) after: String,
    /// `_` is a space, as openpi has it.
    pub(super) underscores: bool,
}

impl Frame {
    /// The whole text of an instruction.
    pub(super) fn around(&self, instruction: &str) -> String {
        let mut plain = String::with_capacity(self.before.len() + instruction.len() + self.after.len());
        plain.push_str(&self.before);
        let space = |c: char| c.is_whitespace() || (self.underscores && c == '_');
        for (index, word) in instruction.split(space).filter(|word| !word.is_empty()).enumerate() {
            if index > 0 {
                plain.push(' ');
            }
            plain.push_str(word);
        }
        plain.push_str(&self.after);
        plain
    }
}

impl Numbers {
    pub(super) fn new(tokenizer: &Tokenizer, bins: u32, tail: &str) -> Result<Numbers, String> {
        let table = |tail: &str| -> Result<Vec<Vec<u32>>, String> {
            let tokens = |bin: i64| tokens_of(tokenizer, &format!(" {bin}{tail}"));
            (-1..i64::from(bins)).map(tokens).collect::<Option<_>>().ok_or("a number cannot be tokenised".into())
        };
        Ok(Numbers { bins, plain: table("")?, last: table(tail)? })
    }

    /// Tokens of each column's number. A value below −1 is bin −1, as in openpi's `digitize`.
    pub(super) fn of<'a>(&'a self, columns: &'a [StateColumn], state: &'a [f32]) -> impl Iterator<Item = &'a [u32]> {
        columns.iter().zip(state).enumerate().map(|(index, (column, &value))| {
            let table = if index + 1 == columns.len() { &self.last } else { &self.plain };
            table[(column.digit(value, self.bins) + 1) as usize].as_slice()
        })
    }

    /// The pieces must give the tokens of the whole text. A tokenizer that merges across pieces is refused.
    pub(super) fn check(&self, tokenizer: &Tokenizer, frame: &Frame, tail: &str) -> Result<(), String> {
        for (sample, instruction) in ["fold the towel", "a", "Pick up 3 cubes, bitte schön!"].iter().enumerate() {
            let bins =
                [sample as i64 * 100 - 1, 7, i64::from(self.bins) - 1].map(|bin| bin.min(i64::from(self.bins) - 1));
            let framed = frame.around(instruction);
            let whole = format!("{framed} {} {} {}{tail}", bins[0], bins[1], bins[2]);
            let mut pieces = tokens_of(tokenizer, &framed).ok_or("the template cannot be tokenised")?;
            for (index, bin) in bins.iter().enumerate() {
                let table = if index + 1 == bins.len() { &self.last } else { &self.plain };
                pieces.extend(&table[(bin + 1) as usize]);
            }
            if tokens_of(tokenizer, &whole).as_ref() != Some(&pieces) {
                return Err(format!("the tokenizer joins parts of the template: {whole:?}"));
            }
        }
        Ok(())
    }
}

/// The tokens of a text; None if it cannot be tokenised. An empty text has no tokens, whatever a tokenizer puts before a text.
pub(super) fn tokens_of(tokenizer: &Tokenizer, text: &str) -> Option<Vec<u32>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    Some(tokenizer.encode(text, false).ok()?.get_ids().to_vec())
}

impl StateColumn {
    /// 0 to bins − 1; the middle of a tie goes to the even bin.
    pub(super) fn bin(&self, value: f32, bins: u32) -> u32 {
        let normal = self.0.model(value).clamp(-1.0, 1.0);
        ((normal + 1.0) / 2.0 * f64::from(bins - 1)).round_ties_even() as u32
    }

    /// −1 to bins − 1: how many of `bins` equal parts of [−1, 1) begin at or below the value, less one.
    pub(super) fn digit(&self, value: f32, bins: u32) -> i64 {
        let part = ((self.0.model(value) + 1.0) / 2.0 * f64::from(bins)).floor();
        part.clamp(-1.0, f64::from(bins) - 1.0) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_CLIP: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    #[test]
    fn a_state_value_becomes_the_nearest_bin_and_stays_inside() {
        let column = StateColumn(Scale::new(2.0, 1.0, NO_CLIP));
        for (value, bin) in [(-1.0, 0), (3.0, 255), (1.0, 128), (-100.0, 0), (100.0, 255), (1.0 + 2.0 / 255.0, 128)] {
            assert_eq!(column.bin(value, 256), bin, "value {value}");
        }
    }

    #[test]
    fn a_state_value_is_digitised_as_openpi_does_and_below_the_first_edge_it_is_minus_one() {
        let column = StateColumn(Scale::new(1.0, 0.0, NO_CLIP));
        for (value, bin) in
            [(-1.0, 0), (-1.001, -1), (-9.0, -1), (0.0, 128), (-0.001, 127), (0.9999, 255), (1.0, 255), (7.0, 255)]
        {
            assert_eq!(column.digit(value, 256), bin, "value {value}");
        }
    }

    #[test]
    fn an_instruction_is_trimmed_and_its_white_space_is_one_space_each() {
        let plain = Frame { before: String::new(), after: String::new(), underscores: false };
        assert_eq!(plain.around("  pick_up \n the\tcube "), "pick_up the cube");
        let openpi = Frame { before: "Task: ".into(), after: ", State:".into(), underscores: true };
        assert_eq!(openpi.around("  pick_up \n the\tcube "), "Task: pick up the cube, State:");
    }
}
