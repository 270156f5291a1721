//! The texts and numbers of a prompt: the cleaned instruction in its template, and state values as tokens or text.

use crate::bundle::manifest::{Clean, Scale};
use tokenizers::Tokenizer;

/// Numbers that a template may have, as `src/bundle/manifest-facts.ts` bounds them.
const BINS_MAX: u32 = 4096;

/// Turns a value of one state column into a token.
pub(super) struct StateColumn(pub(super) Scale);

/// Tokens of the numbers −1 to bins − 1, each after a space; `last` has the text that follows the state too.
pub(super) struct Numbers {
    /// The value at which each number from 0 on begins.
    edges: Vec<f64>,
    plain: Vec<Vec<u32>>,
    last: Vec<Vec<u32>>,
}

/// The text around the instruction, and its cleaning.
pub(super) struct Frame {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) clean: Vec<Clean>,
}

impl Frame {
    /// The whole text of an instruction.
    pub(super) fn around(&self, instruction: &str) -> String {
        let cleaned = self.clean.iter().fold(instruction.to_owned(), |text, step| step.of(&text));
        [&self.before, &cleaned, &self.after].into_iter().map(String::as_str).collect()
    }
}

/// White space as Python's `str.isspace` has it: Unicode's, and four separators among the control characters.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

impl Clean {
    fn of(self, text: &str) -> String {
        match self {
            Clean::Strip => text.trim_matches(is_space).into(),
            Clean::Underscores => text.replace('_', " "),
            Clean::Newlines => text.replace('\n', " "),
            Clean::Words => text.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "),
            Clean::EndNewline if text.ends_with('\n') => text.into(),
            Clean::EndNewline => format!("{text}\n"),
        }
    }
}

impl Numbers {
    /// Reads the tokens of each number behind the text of an empty instruction, because a tokenizer may put a space before a text.
    pub(super) fn new(tokenizer: &Tokenizer, frame: &Frame, bins: u32, tail: &str) -> Result<Numbers, String> {
        if !(1..=BINS_MAX).contains(&bins) {
            return Err(format!("the template has {bins} bins, expected 1 to {BINS_MAX}"));
        }
        let before = frame.around("");
        let start = tokens_of(tokenizer, &before).ok_or("the template cannot be tokenised")?;
        let table = |tail: &str| -> Option<Vec<Vec<u32>>> {
            let tokens = |bin: i64| tokens_of(tokenizer, &format!("{before} {bin}{tail}"));
            (-1..i64::from(bins)).map(|bin| tokens(bin)?.strip_prefix(start.as_slice()).map(<[u32]>::to_vec)).collect()
        };
        let joined = || format!("the tokenizer joins the numbers of the state and {before:?}");
        let step = 2.0 / f64::from(bins);
        let edges = (0..bins).map(|bin| f64::from(bin) * step - 1.0).collect();
        let numbers = Numbers { edges, plain: table("").ok_or_else(joined)?, last: table(tail).ok_or_else(joined)? };
        numbers.check(tokenizer, frame, tail).map(|()| numbers)
    }

    /// Tokens of each column's number. A value below −1 is bin −1, as in openpi's `digitize`.
    pub(super) fn of<'a>(&'a self, columns: &'a [StateColumn], state: &'a [f32]) -> impl Iterator<Item = &'a [u32]> {
        columns.iter().zip(state).enumerate().map(|(index, (column, &value))| {
            let table = if index + 1 == columns.len() { &self.last } else { &self.plain };
            table[column.digit(value, &self.edges)].as_slice()
        })
    }

    /// Tokens of the longest state of this number of columns.
    pub(super) fn most(&self, columns: usize) -> usize {
        let most = |table: &[Vec<u32>]| table.iter().map(Vec::len).max().unwrap_or(0);
        columns.saturating_sub(1) * most(&self.plain) + most(&self.last)
    }

    /// The pieces must give the tokens of the whole text, of every number in both orders. A tokenizer that merges across pieces is refused.
    fn check(&self, tokenizer: &Tokenizer, frame: &Frame, tail: &str) -> Result<(), String> {
        let up: Vec<usize> = (0..self.plain.len()).collect();
        let down: Vec<usize> = up.iter().rev().copied().collect();
        for (instruction, places) in [("fold the towel", &up), ("a", &down), ("Pick up 3 cubes, bitte schön!", &up)] {
            let framed = frame.around(instruction);
            let state: String = places.iter().map(|&place| format!(" {}", place as i64 - 1)).collect();
            let mut pieces = tokens_of(tokenizer, &framed).ok_or("the template cannot be tokenised")?;
            for (index, &place) in places.iter().enumerate() {
                let table = if index + 1 == places.len() { &self.last } else { &self.plain };
                pieces.extend(&table[place]);
            }
            if tokens_of(tokenizer, &format!("{framed}{state}{tail}")).as_ref() != Some(&pieces) {
                return Err(format!("the tokenizer joins parts of the template: {framed:?}, its state and {tail:?}"));
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
        let above = self.0.rounded(self.0.model(value).clamp(-1.0, 1.0) + 1.0);
        self.0.rounded(above / 2.0 * f64::from(bins - 1)).round_ties_even() as u32
    }

    /// How many bins begin at or below the value.
    pub(super) fn digit(&self, value: f32, edges: &[f64]) -> usize {
        let value = self.0.model(value);
        edges.partition_point(|edge| *edge <= value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::manifest::ColumnStats;
    use serde_json::{Map, Value, json};

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
        let edges: Vec<f64> = (0..256).map(|bin| f64::from(bin) / 128.0 - 1.0).collect();
        for (value, bin) in [(-1.0, 0), (-1.001, -1), (-9.0, -1), (0.0, 128), (-1e-30, 127), (0.9999, 255), (7.0, 255)]
        {
            assert_eq!(column.digit(value, &edges) as i64 - 1, bin, "value {value}");
        }
    }

    #[test]
    fn an_instruction_is_cleaned_step_by_step() {
        let cleaned = |clean: &[Clean], text: &str| {
            Frame { before: "<".into(), after: ">".into(), clean: clean.to_vec() }.around(text)
        };
        let text = "  pick_up \n the\tcube_ ";
        assert_eq!(cleaned(&[], text), format!("<{text}>"));
        assert_eq!(cleaned(&[Clean::Words], text), "<pick_up the cube_>");
        assert_eq!(cleaned(&[Clean::Underscores, Clean::Words], text), "<pick up the cube>");
        let openpi = [Clean::Strip, Clean::Underscores, Clean::Newlines];
        assert_eq!(cleaned(&openpi, text), "<pick up   the\tcube >");
        assert_eq!(cleaned(&openpi, "\u{1c}\u{a0}a\r\nb\u{3000}"), "<a\r b>");
        assert_eq!(cleaned(&[Clean::EndNewline], "a "), "<a \n>");
        assert_eq!(cleaned(&[Clean::EndNewline], "a\n"), "<a\n>");
    }

    /// States, bins and rows of columns as `test/vectors/norms.py` has them from the publishers.
    #[test]
    fn a_value_is_normalised_digitised_and_brought_back_bit_for_bit_as_by_its_publisher() {
        let text = include_str!("../../../../test/vectors/text/norms.json");
        let vectors: Value = serde_json::from_str(text).expect("JSON");
        let edges: Vec<f64> = (0..256).map(|bin| f64::from(bin) / 128.0 - 1.0).collect();
        for case in vectors["cases"].as_array().expect("cases") {
            let name = format!("{} {} {}", case["publisher"], case["how"], case["stats"]);
            let one = |(name, value): (&String, &Value)| (name.clone(), json!([value]));
            let lists: Map<String, Value> = case["stats"].as_object().expect("statistics").iter().map(one).collect();
            let stats: ColumnStats = serde_json::from_value(lists.into()).expect("statistics");
            let how = serde_json::from_value(case["how"].clone()).expect("a normalisation");
            let column = StateColumn(stats.state(how, 0).expect("a scale"));
            let numbers = |key: &str| -> Vec<f64> { serde_json::from_value(case[key].clone()).expect("numbers") };
            for ((x, model), bin) in numbers("x").into_iter().zip(numbers("model")).zip(numbers("bins")) {
                assert_eq!(column.0.model(x as f32), model, "{name}: {x}");
                assert_eq!(column.digit(x as f32, &edges) as f64 - 1.0, bin, "{name}: {x}");
            }
            for (y, robot) in numbers("y").into_iter().zip(numbers("robot")) {
                assert_eq!(column.0.robot(y as f32), robot, "{name}: {y}");
            }
        }
    }
}
