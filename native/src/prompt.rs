//! The prompt: instruction and state to the fixed row of tokens that the prefill graph takes.

use crate::manifest::{ColumnStats, Manifest, PromptPart};
use crate::sync::lock;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokenizers::Tokenizer;

/// Tokenised instructions that are kept. A robot repeats its instruction with every observation, so that a warm look-up
/// allocates nothing; when the table is full it starts anew.
const CACHE_ENTRIES_MAX: usize = 1024;
/// An instruction with its white space, before it is cleaned.
const RAW_BYTES_MAX: usize = 64 << 10;

/// One state column's way from robot units to a token.
struct StateColumn {
    scale: f64,
    offset: f64,
}

/// A part of the prompt, ready to be written.
enum Part {
    Token(u32),
    /// The instruction's tokens, and those of the text around it.
    Instruction,
    StateTokens {
        base: u32,
        bins: u32,
    },
    StateText(Numbers),
}

/// Tokens of the numbers −1 to bins − 1, each with a space before it; the last one of a row with the text behind it.
struct Numbers {
    bins: u32,
    plain: Vec<Vec<u32>>,
    last: Vec<Vec<u32>>,
}

/// The text around the instruction, and how it is cleaned.
struct Frame {
    before: String,
    after: String,
    /// `_` is a space, as openpi has it.
    underscores: bool,
}

/// The prompt of one model.
pub struct Prompt {
    tokenizer: Tokenizer,
    parts: Vec<Part>,
    frame: Frame,
    pad_id: u32,
    /// Tokens left for the instruction, whatever the state.
    text_tokens_max: usize,
    /// No text of more bytes can fit.
    text_bytes_max: usize,
    columns: Vec<StateColumn>,
    /// The tokens of no instruction, for the unconditional branch.
    empty: Arc<[u32]>,
    cache: Mutex<HashMap<Box<str>, Arc<[u32]>>>,
}

impl Prompt {
    /// Reads the tokenizer; the error is a sentence.
    pub fn load(manifest: &mut Manifest, stats: &ColumnStats, tokenizer: &Path) -> Result<Prompt, String> {
        let mut tokenizer =
            Tokenizer::from_file(tokenizer).map_err(|error| format!("the tokenizer cannot be read: {error}"))?;
        // An instruction that spells out a special token must not become one.
        tokenizer.set_encode_special_tokens(true);
        // What does not fit is refused, never cut, and we pad ourselves: files of others may ask for both.
        tokenizer.with_truncation(None).map_err(|error| format!("the tokenizer keeps its truncation: {error}"))?;
        tokenizer.with_padding(None);
        let columns = (manifest.state.columns.iter().enumerate())
            .map(|(index, column)| {
                let (scale, offset) = stats.affine(column.norm, index)?;
                Some(StateColumn { scale, offset })
            })
            .collect::<Option<Vec<_>>>()
            .ok_or("norm.json lacks statistics that a state column needs")?;
        let mut frame = Frame { before: String::new(), after: String::new(), underscores: false };
        let mut parts = Vec::new();
        for part in std::mem::take(&mut manifest.prompt.parts) {
            match part {
                PromptPart::Token { id } => parts.push(Part::Token(id)),
                PromptPart::Instruction => parts.push(Part::Instruction),
                PromptPart::StateTokens { base, bins } => parts.push(Part::StateTokens { base, bins }),
                PromptPart::Template { text, bins } => {
                    let (before, rest) = text.split_once("{instruction}").ok_or("the template has no {instruction}")?;
                    let (after, tail) =
                        rest.split_once(" {state}").ok_or("the template has no {state} after a space")?;
                    frame = Frame { before: before.into(), after: after.into(), underscores: true };
                    let numbers = Numbers::new(&tokenizer, bins, tail)?;
                    numbers.check(&tokenizer, &frame, tail)?;
                    parts.extend([Part::Instruction, Part::StateText(numbers)]);
                }
            }
        }
        let fixed: usize = parts.iter().map(|part| part.most(columns.len())).sum();
        let tokens_max = manifest.prompt.tokens_max;
        let text_tokens_max = tokens_max.checked_sub(fixed).ok_or("the prompt has no room for its fixed tokens")?;
        let longest = tokenizer.get_vocab(true).keys().map(String::len).max().unwrap_or(1);
        let mut prompt = Prompt {
            tokenizer,
            parts,
            frame,
            pad_id: manifest.prompt.pad_id,
            text_tokens_max,
            text_bytes_max: text_tokens_max * longest,
            columns,
            empty: Arc::new([]),
            cache: Mutex::new(HashMap::with_capacity(CACHE_ENTRIES_MAX)),
        };
        prompt.empty = prompt.instruction("").ok_or("the prompt has no room for its fixed text")?;
        Ok(prompt)
    }

    /// The instruction's tokens with those of the text around it, or None when they do not fit. Trims it and takes each run
    /// of white space as one space.
    pub fn instruction(&self, text: &str) -> Option<Arc<[u32]>> {
        if text.len() > RAW_BYTES_MAX.max(2 * self.text_bytes_max) {
            // However much of it is white space; this bounds the work below.
            return None;
        }
        if let Some(tokens) = lock(&self.cache).get(text) {
            return Some(tokens.clone());
        }
        let plain = self.frame.around(text);
        if plain.len() > self.text_bytes_max {
            return None;
        }
        let tokens = tokens_of(&self.tokenizer, &plain)?;
        if tokens.len() > self.text_tokens_max {
            return None;
        }
        let tokens: Arc<[u32]> = tokens.into();
        let mut cache = lock(&self.cache);
        if cache.len() == CACHE_ENTRIES_MAX {
            cache.clear();
        }
        cache.insert(text.into(), tokens.clone());
        Some(tokens)
    }

    /// The tokens of no instruction.
    pub fn empty(&self) -> &[u32] {
        &self.empty
    }

    /// Tokens of a whole prompt with an instruction of `text` tokens, padding not counted. Without a state: the most that one
    /// can take.
    pub fn len(&self, text: usize, state: Option<&[f32]>) -> usize {
        let parts = self.parts.iter().map(|part| match (part, state) {
            (Part::StateText(numbers), Some(state)) => numbers.of(&self.columns, state).map(<[u32]>::len).sum(),
            _ => part.most(self.columns.len()),
        });
        text + parts.sum::<usize>()
    }

    /// Writes one row: `tokens` i64 and `mask` (1 where a token stands), both `tokens_max` long.
    pub fn write(&self, instruction: &[u32], state: &[f32], tokens: &mut [i64], mask: &mut [u8]) {
        let mut at = 0;
        let mut put = |id: u32| {
            tokens[at] = i64::from(id);
            at += 1;
        };
        for part in &self.parts {
            match part {
                Part::Token(id) => put(*id),
                Part::Instruction => instruction.iter().for_each(|&id| put(id)),
                Part::StateTokens { base, bins } => {
                    for (column, &value) in self.columns.iter().zip(state) {
                        put(base + column.bin(value, *bins));
                    }
                }
                Part::StateText(numbers) => {
                    numbers.of(&self.columns, state).flatten().for_each(|&id| put(id));
                }
            }
        }
        tokens[at..].fill(i64::from(self.pad_id));
        mask[..at].fill(1);
        mask[at..].fill(0);
    }

    /// Writes the normalised state, then zeros.
    pub fn write_state(&self, state: &[f32], to: &mut [f32]) {
        to.fill(0.0);
        for ((column, &value), to) in self.columns.iter().zip(state).zip(to) {
            *to = column.normal(value) as f32;
        }
    }
}

impl Part {
    /// Tokens beside the instruction's, at most.
    fn most(&self, columns: usize) -> usize {
        match self {
            Part::Token(_) => 1,
            Part::Instruction => 0,
            Part::StateTokens { .. } => columns,
            Part::StateText(numbers) => {
                let most = |table: &[Vec<u32>]| table.iter().map(Vec::len).max().unwrap_or(0);
                columns.saturating_sub(1) * most(&numbers.plain) + most(&numbers.last)
            }
        }
    }
}

impl Frame {
    /// The text that is tokenised as one.
    fn around(&self, instruction: &str) -> String {
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
    fn new(tokenizer: &Tokenizer, bins: u32, tail: &str) -> Result<Numbers, String> {
        let table = |tail: &str| -> Result<Vec<Vec<u32>>, String> {
            let tokens = |bin: i64| tokens_of(tokenizer, &format!(" {bin}{tail}"));
            (-1..i64::from(bins)).map(tokens).collect::<Option<_>>().ok_or("a number cannot be tokenised".into())
        };
        Ok(Numbers { bins, plain: table("")?, last: table(tail)? })
    }

    /// Tokens of each column's number. Not clamped: what is below −1 is bin −1, as openpi's `digitize` has it.
    fn of<'a>(&'a self, columns: &'a [StateColumn], state: &'a [f32]) -> impl Iterator<Item = &'a [u32]> {
        columns.iter().zip(state).enumerate().map(|(index, (column, &value))| {
            let table = if index + 1 == columns.len() { &self.last } else { &self.plain };
            table[(column.digit(value, self.bins) + 1) as usize].as_slice()
        })
    }

    /// Piece by piece must give what the whole text gives; a tokenizer that joins across the pieces is refused.
    fn check(&self, tokenizer: &Tokenizer, frame: &Frame, tail: &str) -> Result<(), String> {
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

/// None when it cannot be tokenised; an empty text has no tokens, whatever a tokenizer puts before a text.
fn tokens_of(tokenizer: &Tokenizer, text: &str) -> Option<Vec<u32>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    Some(tokenizer.encode(text, false).ok()?.get_ids().to_vec())
}

impl StateColumn {
    fn normal(&self, value: f32) -> f64 {
        (f64::from(value) - self.offset) / self.scale
    }

    /// 0 to bins − 1; the middle of a tie goes to the even bin.
    fn bin(&self, value: f32, bins: u32) -> u32 {
        let normal = self.normal(value).clamp(-1.0, 1.0);
        ((normal + 1.0) / 2.0 * f64::from(bins - 1)).round_ties_even() as u32
    }

    /// −1 to bins − 1: how many of `bins` equal parts of [−1, 1) begin at or below the value, less one.
    fn digit(&self, value: f32, bins: u32) -> i64 {
        let part = ((self.normal(value) + 1.0) / 2.0 * f64::from(bins)).floor();
        part.clamp(-1.0, f64::from(bins) - 1.0) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_value_becomes_the_nearest_bin_and_stays_inside() {
        let column = StateColumn { scale: 2.0, offset: 1.0 };
        for (value, bin) in [(-1.0, 0), (3.0, 255), (1.0, 128), (-100.0, 0), (100.0, 255), (1.0 + 2.0 / 255.0, 128)] {
            assert_eq!(column.bin(value, 256), bin, "value {value}");
        }
    }

    #[test]
    fn a_state_value_is_digitised_as_openpi_does_and_below_the_first_edge_it_is_minus_one() {
        let column = StateColumn { scale: 1.0, offset: 0.0 };
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
