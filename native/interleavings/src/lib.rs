//! Compiles the engine's queue, tickets and active batch with loom's primitives, and explores how threads may interleave in them.
//!
//! `cargo test --release -p tendon-interleavings`; `cargo test --workspace` includes it. It is a crate apart, so that the engine's
//! dependencies are not built a second time with another flag.

// Only its tests are built.
#![cfg(test)]
// The engine calls what the tests do not.
#![allow(dead_code)]

mod core;
#[path = "../../src/image/frame/state.rs"]
mod frame;

mod tests;
