//! The layout of the ABI as JSON, which the library reports, and as the TypeScript file.

use crate::core::fault::Fault;
use crate::core::layout::{CONSTANTS, STRUCTS};
use crate::core::status::Status;
use crate::core::ticket::Kind;
use crate::http::body::scan::Form;

/// The layout as one line of JSON, reported by the library itself.
pub fn json() -> String {
    let structs: serde_json::Map<String, serde_json::Value> = STRUCTS
        .iter()
        .map(|layout| {
            let fields: serde_json::Map<String, serde_json::Value> =
                layout.fields.iter().map(|field| (field.name.into(), field.offset.into())).collect();
            (layout.name.into(), serde_json::json!({ "size": layout.size, "fields": fields }))
        })
        .collect();
    let constants: serde_json::Map<String, serde_json::Value> =
        CONSTANTS.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    serde_json::json!({ "structs": structs, "constants": constants }).to_string()
}

/// The text of `src/engine/abi.ts`.
pub fn typescript() -> String {
    let mut text = String::from(
        "/** Generated from native/src/core/layout.rs by `cargo run --bin abi`; a test compares it with the library. Do not edit. */\n\n",
    );
    for (name, value) in CONSTANTS {
        text += &format!("export const {name} = {value};\n");
    }
    text += "\n";
    text += &table(
        "STATUS",
        "Result codes of every call: 0 is success, a positive number a ticket.",
        Status::NAMES,
        |of| of as i32,
    );
    text += &table("KIND", "Ticket kinds.", Kind::NAMES, |of| of as i32);
    text += &table("FAULT", "What goes wrong with an inference on purpose.", Fault::NAMES, |of| of as i32);
    text += &table("BODY_TEXT", "The form of a long string of a body.", Form::NAMES, |of| of as i32);
    text += "/** Sizes and offsets in bytes; a field is a u32 where nothing else is said. */\n";
    for layout in STRUCTS {
        let wide = layout.fields.iter().all(|field| field.kind == "u64");
        if wide {
            text += "/** Every field is a u64. */\n";
        }
        text += &format!("export const {} = {{\n  size: {},\n", layout.name, layout.size);
        for field in layout.fields {
            let element = field.kind.strip_prefix('[').and_then(|array| array.split(';').next());
            let kind = element.map_or(field.kind.into(), |element| format!("{element}[]"));
            if !wide && kind != "u32" {
                text += &format!("  /** {kind} */\n");
            }
            text += &format!("  {}: {},\n", field.name, field.offset);
        }
        text += "} as const;\n\n";
    }
    text.pop();
    text
}

/// An object with a number for each name.
fn table<T: Copy>(name: &str, about: &str, names: &[(&str, T)], number: impl Fn(T) -> i32) -> String {
    let lines: String = names.iter().map(|&(name, value)| format!("  {name}: {},\n", number(value))).collect();
    format!("/** {about} */\nexport const {name} = {{\n{lines}}} as const;\n\n")
}
