//! The engine's `core`, as far as it is compiled here.

#[path = "../../src/core/active_batch.rs"]
pub mod active_batch;
#[path = "../../src/core/queue.rs"]
pub mod queue;
pub mod sync;
#[path = "../../src/core/ticket.rs"]
pub mod ticket;
