//! The native engine of tendon: JPEG frames and a joint state in, one chunk of motion out.
//!
//! Everything is behind the C ABI of `abi.rs`; no tensor crosses it. In the order of one observation:
//!
//! 1. `jpeg/`, `resize.rs`, `frame.rs`, `pool.rs`, `lanes.rs`: JPEG bytes → normalised tensor in page-locked memory, one job per frame.
//! 2. `run.rs`, `model.rs`, `replica.rs`: result slots, the queue, and the thread that owns a replica; queued runs are batched.
//! 3. `prompt.rs`, `graph.rs`, `runtime.rs`, `flow.rs`, `noise.rs`, `episode.rs`: tokens, ONNX Runtime with bound buffers, the flow loop,
//!    episode memory. `room.rs`: how many sessions there is memory for. `weights.rs`: what the replicas of a model share. `webgpu.rs`, `adapters.rs`: the provider that needs no vendor's
//!    files, and whether it would find a GPU.
//!    `running.rs`, `watch.rs`: what a replica works on, and the thread that takes it out when it does not end. `devices.rs`: which replicas
//!    a device has over all models, and what follows when it is lost or drained.
//!    `provider.rs`, `assignment.rs`, `shapes.rs`, `driver.rs`, `engines.rs`: what a provider is told, which nodes it runs, the GPU's driver,
//!    the engines that TensorRT keeps.
//! 4. `chunk.rs`: model values → robot units, finite, inside their ranges, in the result slot that the caller reads.
//!
//! Beside it `cuda.rs`: our own kernels for NVIDIA GPUs. With `own_kernels` they do the flow's update of 3. and all of 4. there. Of the same
//! driver `card.rs`: what a replica there asks of it beside ONNX Runtime, registered memory and a stream whose events tell times.
//! Beside it `connections.rs`: the connections of this process, for the server above.
//! Beside it, `body.rs`: JSON bodies of requests are checked, and their images decoded from base64, before JavaScript looks at them.
//!
//! Not here: sessions, steps, money, sockets. `engine.rs` has the tables behind the tickets of the ABI.
//!
//! `unsafe` is used in eighteen places, each with its reason: `abi.rs` and `abi/` (pointers of the caller), `jpeg/turbo.rs`
//! (libjpeg-turbo), `memory.rs` (page-locked and registered pages), `allocator.rs` (the counter), `graph.rs` and `graph/` (ONNX Runtime's
//! raw binding and record, memory of a device), `flow.rs` (what it is bound to), `episode.rs` and `episode/` (rows of one place),
//! `runtime.rs` (one environment variable), `runtime/preload.rs` (libraries of a GPU), `driver.rs` and `cuda/` (the driver's calls),
//! `engines.rs` (TensorRT's version), `adapters.rs` (Vulkan), `thread.rs` (scheduling), `connections.rs` (socket options),
//! `resize.rs` (AVX2), `weights.rs` (mapped files).

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod abi;
mod adapters;
mod allocator;
mod assignment;
pub mod body;
mod card;
pub mod chunk;
mod completion;
mod connections;
pub mod cuda;
mod devices;
mod driver;
mod engine;
mod engines;
mod episode;
pub mod euler;
mod fault;
mod flow;
pub mod frame;
mod graph;
pub mod jpeg;
mod lanes;
pub mod layout;
pub mod manifest;
pub mod memory;
mod model;
pub mod noise;
mod onnx;
mod parity;
mod pool;
mod prompt;
mod provider;
mod queue;
mod rehearsal;
mod replica;
pub mod resize;
mod room;
pub mod rotation;
mod run;
mod running;
mod runtime;
mod shapes;
mod status;
mod sync;
mod thread;
mod ticket;
mod watch;
mod webgpu;
mod weights;
