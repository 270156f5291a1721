//! The native engine of tendon: JPEG frames and a joint state in, one chunk of motion out.
//!
//! Everything is behind the C ABI of `abi.rs`; no tensor crosses it. In the order of one observation:
//!
//! 1. `jpeg/`, `resize.rs`, `frame.rs`, `pool.rs`: JPEG bytes → normalised tensor in page-locked memory, one job per frame.
//! 2. `run.rs`, `model.rs`, `replica.rs`: result slots, the queue, and the thread that owns a replica; queued runs are batched.
//! 3. `prompt.rs`, `graph.rs`, `runtime.rs`, `flow.rs`, `noise.rs`, `episode.rs`: tokens, ONNX Runtime with bound buffers, the flow loop,
//!    episode memory. `weights.rs`: what the replicas of a model share.
//!    `running.rs`, `watch.rs`: what a replica works on, and the thread that takes it out when it does not end.
//! 4. `chunk.rs`: model values → robot units, finite, inside their ranges, in the result slot that the caller reads.
//!
//! Beside it `connections.rs`: the connections of this process, for the server above.
//! Beside it, `body.rs`: JSON bodies of requests are checked, and their images decoded from base64, before JavaScript looks at them.
//!
//! Not here: sessions, steps, money, sockets. `engine.rs` has the tables behind the tickets of the ABI.
//!
//! `unsafe` is used in twelve places, each with its reason: `abi.rs` and `abi/` (pointers of the caller), `jpeg/turbo.rs`
//! (libjpeg-turbo), `memory.rs` (page-locked pages), `allocator.rs` (the counter), `graph.rs` (ONNX Runtime's raw
//! binding), `flow.rs` (what it is bound to), `episode.rs` (rows of one slot), `runtime.rs` (one environment variable),
//! `thread.rs` (scheduling), `connections.rs` (socket options), `resize.rs` (AVX2), `weights.rs` (mapped files).

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod abi;
mod allocator;
pub mod body;
pub mod chunk;
mod completion;
mod connections;
mod engine;
mod episode;
mod fault;
mod flow;
pub mod frame;
mod graph;
pub mod jpeg;
pub mod layout;
pub mod manifest;
mod memory;
mod model;
pub mod noise;
mod parity;
mod pool;
mod prompt;
mod queue;
mod rehearsal;
mod replica;
pub mod resize;
mod run;
mod running;
mod runtime;
mod status;
mod sync;
mod thread;
mod ticket;
mod watch;
mod weights;
