//! Prints the layout: as JSON, which the library reports, and as the TypeScript file.

use crate::core::layout::{CONSTANTS, STRUCTS};

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
    text += "\n/** Result codes of every call: 0 is success, a positive number a ticket. */\nexport const STATUS = {\n";
    for (name, value) in crate::core::status::Status::NAMES {
        text += &format!("  {name}: {},\n", *value as i32);
    }
    text += "} as const;\n\n/** Ticket kinds. */\nexport const KIND = {\n";
    for (name, value) in crate::core::ticket::Kind::NAMES {
        text += &format!("  {name}: {},\n", *value as u32);
    }
    text += "} as const;\n\n/** What goes wrong with an inference on purpose. */\nexport const FAULT = {\n";
    for (name, value) in crate::core::fault::Fault::NAMES {
        text += &format!("  {name}: {},\n", *value as u32);
    }
    text += "} as const;\n\n/** How a long string of a body is given. */\nexport const BODY_TEXT = {\n";
    for (name, value) in crate::http::body::scan::Form::NAMES {
        text += &format!("  {name}: {},\n", *value as u32);
    }
    text += "} as const;\n\n/** Sizes and offsets in bytes; a field is a u32 where nothing else is said. */\n";
    for layout in STRUCTS {
        text += &format!("export const {} = {{\n  size: {},\n", layout.name, layout.size);
        for field in layout.fields {
            if field.kind != "u32" {
                text += &format!("  /** {} */\n", field.kind);
            }
            text += &format!("  {}: {},\n", field.name, field.offset);
        }
        text += "} as const;\n\n";
    }
    text.pop();
    text
}
