//! Tokenizers of each published kind, as import makes them (`src/bundle/import`), and prompts of publishers, against the ids of the publishers'
//! libraries: `test/vectors/tokens.py`.

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use tendon::bundle::manifest::{ColumnStats, Manifest};
use tendon::bundle::prompt::Prompt;

const TOKENS_MAX: usize = 4096;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../test/vectors/text/encodings.json")).expect("JSON")
}

fn tokenizer(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../test/vectors/text", &format!("{name}.tokenizer.json")].iter().collect()
}

fn prompt(name: &str, parts: Value, columns: usize) -> Result<Prompt, String> {
    let mut manifest: Value = serde_json::from_str(include_str!("manifest.json")).expect("JSON");
    let columns: Vec<Value> =
        (0..columns).map(|index| json!({ "name": format!("s{index}"), "norm": "none" })).collect();
    manifest["prompt"] = json!({ "tokens_max": TOKENS_MAX, "pad_id": 0, "parts": parts });
    manifest["state"] = json!({ "columns": columns, "width": columns.len() });
    let mut manifest: Manifest = serde_json::from_value(manifest).expect("a manifest");
    Prompt::load(&mut manifest, &ColumnStats::default(), Some(&tokenizer(name)))
}

fn as_it_is() -> Value {
    json!([{ "kind": "template", "text": "{instruction}", "clean": [] }])
}

fn numbers<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).expect("numbers")
}

fn each(kinds: &Value) -> impl Iterator<Item = (&String, Prompt, &Value)> {
    let kinds: &Map<String, Value> = kinds.as_object().expect("tokenizers");
    kinds.iter().map(|(name, case)| (name, prompt(name, as_it_is(), 1).expect(name), case))
}

#[test]
fn every_text_has_the_ids_of_the_publishers_library() {
    for (name, prompt, case) in each(&vectors()["tokenizers"]) {
        let (texts, ids) = (case["texts"].as_array().expect("texts"), case["ids"].as_array().expect("ids"));
        assert!(texts.len() > 100 && texts.len() == ids.len());
        for (text, ids) in texts.iter().zip(ids) {
            let text = text.as_str().expect("a text");
            let found = prompt.instruction(text).expect("tokens");
            assert_eq!(found.to_vec(), numbers::<u32>(ids), "{name}: {text:?}");
        }
    }
}

#[test]
fn no_text_becomes_a_special_token_or_a_mark() {
    for (name, prompt, case) in each(&vectors()["tokenizers"]) {
        let file = std::fs::read_to_string(tokenizer(name)).expect("a file");
        let file: Value = serde_json::from_str(&file).expect("JSON");
        let vocabulary = &file["model"]["vocab"];
        let added = file["added_tokens"].as_array().expect("added tokens");
        for mark in case["marks"].as_array().expect("marks").iter().filter_map(Value::as_str) {
            let tokens = prompt.instruction(mark).expect("tokens");
            for text in ["<loc0001>", "<image>", "<tool>", "<|im_start|>"] {
                let id = vocabulary[text].as_u64().or_else(|| {
                    added.iter().find(|token| token["content"] == text).and_then(|token| token["id"].as_u64())
                });
                let made = id.is_some_and(|id| tokens.iter().any(|&token| u64::from(token) == id));
                assert!(!made, "{name}: {mark:?} became {text}");
            }
        }
    }
}

#[test]
fn a_tokenizer_that_makes_a_mark_of_its_text_is_refused() {
    let file = std::fs::read_to_string(tokenizer("smollm")).expect("a file");
    let mut file: Value = serde_json::from_str(&file).expect("JSON");
    for token in file["added_tokens"].as_array_mut().expect("added tokens") {
        token["special"] = json!(token["content"] != "<tool>");
    }
    let open = std::env::temp_dir().join(format!("tendon-open-{}.tokenizer.json", std::process::id()));
    std::fs::write(&open, file.to_string()).expect("written");
    let mut manifest: Manifest = serde_json::from_str(include_str!("manifest.json")).expect("a manifest");
    let refusal = Prompt::load(&mut manifest, &ColumnStats::default(), Some(&open)).err().expect("a refusal");
    std::fs::remove_file(&open).expect("removed");
    assert!(refusal.contains("of the text \"<tool>\", which an instruction may have"), "{refusal}");
}

#[test]
fn a_prompt_has_the_tokens_of_the_publishers_own_code() {
    let template = |text: &str, bins: Option<u32>, clean: &[&str]| match bins {
        Some(bins) => json!({ "kind": "template", "text": text, "bins": bins, "clean": clean }),
        None => json!({ "kind": "template", "text": text, "clean": clean }),
    };
    let (bos, newline) = (json!({ "kind": "token", "id": 2 }), json!({ "kind": "token", "id": 4 }));
    let cleaned = ["strip", "underscores", "newlines"];
    let pi05 = template("Task: {instruction}, State: {state};\nAction: ", Some(256), &cleaned);
    let forms = [
        ("openpi pi05", json!([bos, pi05])),
        ("lerobot pi05", json!([bos, pi05])),
        ("openpi pi0", json!([bos, template("{instruction}", None, &cleaned), newline])),
        ("lerobot pi0", json!([bos, template("{instruction}", None, &["end_newline"])])),
    ];
    let vectors = vectors();
    for (form, parts) in forms {
        let prompt = prompt("gemma", parts, 6).expect(form);
        let cases: Vec<&Value> =
            vectors["prompts"].as_array().expect("prompts").iter().filter(|case| case["form"] == form).collect();
        assert!(cases.len() > 5, "{form}");
        for case in cases {
            let text = case["instruction"].as_str().expect("a text");
            let state: Vec<f32> = numbers(&case["state"]);
            let (mut tokens, mut mask) = (vec![9; TOKENS_MAX], vec![9; TOKENS_MAX]);
            let instruction = prompt.instruction(text).expect("tokens");
            let count = prompt.write(&instruction, &state, &mut tokens, &mut mask);
            assert_eq!(tokens[..count], numbers::<i64>(&case["ids"]), "{form}: {text:?} {state:?}");
            assert_eq!(prompt.len(instruction.len(), Some(&state)), count);
        }
    }
}
