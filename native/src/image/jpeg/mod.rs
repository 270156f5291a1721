//! JPEG: bounds from the headers before any work (`header.rs`), pixels from libjpeg-turbo (`turbo.rs`).

mod header;
mod turbo;

pub use header::{Header, inspect};
pub use turbo::{Decoder, Library};
