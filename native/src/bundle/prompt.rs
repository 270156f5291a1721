//! The prompt: instruction and state as the fixed row of tokens that the prefill graph reads.

mod template;

use self::template::{Frame, Numbers, StateColumn, tokens_of};
use crate::bundle::manifest::{Clean, ColumnStats, Manifest, PromptPart};
use crate::core::sync::lock;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokenizers::Tokenizer;

/// Instructions in the cache of tokenised ones, so that a repeated instruction allocates nothing. A full cache is emptied.
const CACHE_ENTRIES_MAX: usize = 1024;
/// Bytes of an instruction before its white space is reduced.
const RAW_BYTES_MAX: usize = 64 << 10;

/// A part of the prompt, ready to be written.
enum Part {
    Token(u32),
    /// The tokens of the instruction and of the text around it.
    Instruction,
    StateTokens {
        base: u32,
        bins: u32,
    },
    StateText(Numbers),
}

pub struct Prompt {
    /// None: the model reads no instruction, and any counts as no token.
    tokenizer: Option<Tokenizer>,
    parts: Vec<Part>,
    frame: Frame,
    pad_id: u32,
    /// Tokens left for the instruction, whatever the state.
    text_tokens_max: usize,
    /// Bytes of a text that can fit.
    text_bytes_max: usize,
    columns: Vec<StateColumn>,
    /// The tokens of an empty instruction, for the unconditional branch.
    empty: Arc<[u32]>,
    cache: Mutex<HashMap<Box<str>, Arc<[u32]>>>,
}

impl Prompt {
    /// Reads the tokenizer; the error is a sentence.
    pub fn load(manifest: &mut Manifest, stats: &ColumnStats, tokenizer: Option<&Path>) -> Result<Prompt, String> {
        let state = &manifest.state;
        let columns = (state.columns.iter().enumerate())
            .map(|(index, column)| {
                let scale = stats.state(column.normalisation, index);
                scale.map(StateColumn).map_err(|error| format!("state column {}: {error}", column.name))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let mut frame = Frame { before: String::new(), after: String::new(), clean: vec![Clean::Words] };
        let (Some(facts), Some(tokenizer)) = (&mut manifest.prompt, tokenizer) else {
            return Ok(Prompt {
                tokenizer: None,
                parts: Vec::new(),
                frame,
                pad_id: 0,
                text_tokens_max: 0,
                text_bytes_max: 0,
                columns,
                empty: Arc::new([]),
                cache: Mutex::default(),
            });
        };
        let mut tokenizer =
            Tokenizer::from_file(tokenizer).map_err(|error| format!("the tokenizer cannot be read: {error}"))?;
        // The text of a special token in an instruction must not become that token.
        tokenizer.set_encode_special_tokens(true);
        // Truncation and padding of the file are switched off: an instruction that does not fit is refused, and `write` pads.
        tokenizer.with_truncation(None).map_err(|error| format!("the tokenizer keeps its truncation: {error}"))?;
        tokenizer.with_padding(None);
        let mut parts = Vec::new();
        for part in std::mem::take(&mut facts.parts) {
            match part {
                PromptPart::Token { id } => parts.push(Part::Token(id)),
                PromptPart::Instruction => parts.push(Part::Instruction),
                PromptPart::StateTokens { base, bins } => parts.push(Part::StateTokens { base, bins }),
                PromptPart::Template { text, bins, clean } => {
                    let (before, rest) = text.split_once("{instruction}").ok_or("the template has no {instruction}")?;
                    let (after, tail) = match (rest.split_once(" {state}"), bins) {
                        (Some((after, tail)), Some(bins)) => (after, Some((bins, tail))),
                        (None, None) => (rest, None),
                        _ => return Err("the template has {state} after a space, or bins, but not both".into()),
                    };
                    let clean = clean.unwrap_or_else(|| vec![Clean::Underscores, Clean::Words]);
                    frame = Frame { before: before.into(), after: after.into(), clean };
                    parts.push(Part::Instruction);
                    if let Some((bins, tail)) = tail {
                        parts.push(Part::StateText(Numbers::new(&tokenizer, &frame, bins, tail)?));
                    }
                }
            }
        }
        check_special(&tokenizer)?;
        let fixed: usize = parts.iter().map(|part| part.most(columns.len())).sum();
        let text_tokens_max =
            facts.tokens_max.checked_sub(fixed).ok_or("the prompt has no room for its fixed tokens")?;
        let longest = tokenizer.get_vocab(true).keys().map(String::len).max().unwrap_or(1);
        let mut prompt = Prompt {
            tokenizer: Some(tokenizer),
            parts,
            frame,
            pad_id: facts.pad_id,
            text_tokens_max,
            text_bytes_max: text_tokens_max * longest,
            columns,
            empty: Arc::new([]),
            cache: Mutex::new(HashMap::with_capacity(CACHE_ENTRIES_MAX)),
        };
        prompt.empty = prompt.instruction("").ok_or("the prompt has no room for its fixed text")?;
        Ok(prompt)
    }

    /// Bytes of UTF-8 beyond which an instruction is refused unread.
    pub fn raw_bytes_max(&self) -> usize {
        RAW_BYTES_MAX.max(2 * self.text_bytes_max)
    }

    /// The tokens of the instruction, cleaned, and of the text around it, or None if they do not fit.
    pub fn instruction(&self, text: &str) -> Option<Arc<[u32]>> {
        if text.len() > self.raw_bytes_max() {
            // An instruction of white space is refused too: this bounds the work below.
            return None;
        }
        let Some(tokenizer) = &self.tokenizer else { return Some(self.empty.clone()) };
        if let Some(tokens) = lock(&self.cache).get(text) {
            return Some(tokens.clone());
        }
        let plain = self.frame.around(text);
        if plain.len() > self.text_bytes_max {
            return None;
        }
        let tokens = tokens_of(tokenizer, &plain)?;
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

    pub fn empty(&self) -> &[u32] {
        &self.empty
    }

    /// Tokens of a whole prompt with an instruction of `text` tokens, without padding. Without a state it is the most that any state needs.
    pub fn len(&self, text: usize, state: Option<&[f32]>) -> usize {
        let parts = self.parts.iter().map(|part| match (part, state) {
            (Part::StateText(numbers), Some(state)) => numbers.of(&self.columns, state).map(<[u32]>::len).sum(),
            _ => part.most(self.columns.len()),
        });
        text + parts.sum::<usize>()
    }

    /// Writes one row: `tokens` i64 and `mask` (1 for a token), both `tokens_max` long. Returns the number of tokens.
    pub fn write(&self, instruction: &[u32], state: &[f32], tokens: &mut [i64], mask: &mut [u8]) -> usize {
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
        at
    }

    /// Writes the normalised state, then zeros.
    pub fn write_state(&self, state: &[f32], to: &mut [f32]) {
        to.fill(0.0);
        for ((column, &value), to) in self.columns.iter().zip(state).zip(to) {
            *to = column.0.model(value) as f32;
        }
    }
}

impl Part {
    /// Tokens besides the instruction's, at most.
    fn most(&self, columns: usize) -> usize {
        match self {
            Part::Token(_) => 1,
            Part::Instruction => 0,
            Part::StateTokens { .. } => columns,
            Part::StateText(numbers) => numbers.most(columns),
        }
    }
}

/// Refuses a tokenizer that makes a special or added token of its text in an instruction, but for white space and single characters.
fn check_special(tokenizer: &Tokenizer) -> Result<(), String> {
    for (id, token) in tokenizer.get_added_tokens_decoder() {
        let text = &token.content;
        let is_literal = text.chars().all(|c| c.is_whitespace() || c == '▁') || text.chars().nth(1).is_none();
        if !is_literal && tokens_of(tokenizer, text).is_none_or(|tokens| tokens.contains(&id)) {
            return Err(format!("the tokenizer makes token {id} of the text {text:?}, which an instruction may have"));
        }
    }
    Ok(())
}
