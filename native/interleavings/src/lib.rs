//! Compiles the engine's queue, tickets and running batch with loom's primitives, and explores how threads may interleave in them.
//!
//! `cargo test --release -p tendon-interleavings`; `cargo test --workspace` has it too. A crate of its own, so that the engine's
//! many dependencies are not built a second time with another flag.

// Nothing of it is built but by its tests.
#![cfg(test)]
// What the tests do not call, the engine does.
#![allow(dead_code)]

#[path = "../../src/frame/state.rs"]
mod frame;
#[path = "../../src/queue.rs"]
mod queue;
#[path = "../../src/running.rs"]
mod running;
mod sync;
#[path = "../../src/ticket.rs"]
mod ticket;

mod tests;
