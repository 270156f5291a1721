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

/// One state column's way from robot units to a token.
struct StateColumn {
    scale: f64,
    offset: f64,
}

/// The prompt of one model.
pub struct Prompt {
    tokenizer: Tokenizer,
    parts: Vec<PromptPart>,
    pad_id: u32,
    tokens_max: usize,
    /// Tokens left for the instruction.
    text_tokens_max: usize,
    /// No text of more bytes can fit.
    text_bytes_max: usize,
    columns: Vec<StateColumn>,
    cache: Mutex<HashMap<Box<str>, Arc<[u32]>>>,
}

impl Prompt {
    /// Reads the tokenizer; the error is a sentence.
    pub fn load(manifest: &mut Manifest, stats: &ColumnStats, tokenizer: &Path) -> Result<Prompt, String> {
        let mut tokenizer =
            Tokenizer::from_file(tokenizer).map_err(|error| format!("the tokenizer cannot be read: {error}"))?;
        // An instruction that spells out a special token must not become one.
        tokenizer.set_encode_special_tokens(true);
        let parts = std::mem::take(&mut manifest.prompt.parts);
        let columns = (manifest.state.columns.iter().enumerate())
            .map(|(index, column)| {
                let (scale, offset) = stats.affine(column.norm, index)?;
                Some(StateColumn { scale, offset })
            })
            .collect::<Option<Vec<_>>>()
            .ok_or("norm.json lacks statistics that a state column needs")?;
        let fixed: usize = (parts.iter())
            .map(|part| match part {
                PromptPart::Token { .. } => 1,
                PromptPart::Instruction => 0,
                PromptPart::StateTokens { .. } => columns.len(),
            })
            .sum();
        let tokens_max = manifest.prompt.tokens_max;
        let text_tokens_max = tokens_max.checked_sub(fixed).ok_or("the prompt has no room for its fixed tokens")?;
        let longest = tokenizer.get_vocab(true).keys().map(String::len).max().unwrap_or(1);
        Ok(Prompt {
            tokenizer,
            parts,
            pad_id: manifest.prompt.pad_id,
            tokens_max,
            text_tokens_max,
            text_bytes_max: text_tokens_max * longest,
            columns,
            cache: Mutex::new(HashMap::with_capacity(CACHE_ENTRIES_MAX)),
        })
    }

    /// The instruction's tokens, or None when they do not fit. Trims it and takes each run of white space as one space.
    pub fn instruction(&self, text: &str) -> Option<Arc<[u32]>> {
        if let Some(tokens) = lock(&self.cache).get(text) {
            return Some(tokens.clone());
        }
        if text.len() > self.text_bytes_max * 2 {
            // Even with every second byte white space it could not fit; this bounds the work below.
            return None;
        }
        let mut plain = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !plain.is_empty() {
                plain.push(' ');
            }
            plain.push_str(word);
        }
        if plain.len() > self.text_bytes_max {
            return None;
        }
        let encoding = self.tokenizer.encode(plain, false).ok()?;
        if encoding.len() > self.text_tokens_max {
            return None;
        }
        let tokens: Arc<[u32]> = encoding.get_ids().into();
        let mut cache = lock(&self.cache);
        if cache.len() == CACHE_ENTRIES_MAX {
            cache.clear();
        }
        cache.insert(text.into(), tokens.clone());
        Some(tokens)
    }

    /// Tokens of a whole prompt with an instruction of `text` tokens, padding not counted.
    pub fn len(&self, text: usize) -> usize {
        self.tokens_max - self.text_tokens_max + text
    }

    /// Writes one row: `tokens` i64 and `mask` (1 where a token stands), both `tokens_max` long.
    pub fn write(&self, instruction: &[u32], state: &[f32], tokens: &mut [i64], mask: &mut [u8]) {
        let mut at = 0;
        let mut put = |id: u32| {
            tokens[at] = i64::from(id);
            at += 1;
        };
        for part in &self.parts {
            match *part {
                PromptPart::Token { id } => put(id),
                PromptPart::Instruction => instruction.iter().for_each(|&id| put(id)),
                PromptPart::StateTokens { base, bins } => {
                    for (column, &value) in self.columns.iter().zip(state) {
                        put(base + column.bin(value, bins));
                    }
                }
            }
        }
        tokens[at..].fill(i64::from(self.pad_id));
        mask[..at].fill(1);
        mask[at..].fill(0);
    }
}

impl StateColumn {
    /// 0 to bins − 1; the middle of a tie goes to the even bin.
    fn bin(&self, value: f32, bins: u32) -> u32 {
        let normal = ((f64::from(value) - self.offset) / self.scale).clamp(-1.0, 1.0);
        ((normal + 1.0) / 2.0 * f64::from(bins - 1)).round_ties_even() as u32
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
}
