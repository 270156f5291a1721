//! The native engine of tendon: JPEG frames and a joint state in, one chunk of motion out.
//!
//! An observation passes these stations:
//!
//! 1. `abi`: reads the caller's pointers and finds the model of a ticket. No tensor crosses the ABI.
//! 2. `image`, `model/decode_pool.rs`: JPEG → RGB → resized, normalised tensor in page-locked memory, one job per frame.
//! 3. `model/inference.rs`, `core/queue.rs`: a result slot, then the queue of a replica, in which accounts alternate.
//! 4. `model/replica/`: the replica's thread takes all waiting inferences as one batch and fills the bound tensors.
//! 5. `ort`: prefill or extend, images and prompt → keys and values; `episode` has those of a session.
//! 6. `flow`: the Euler steps of the denoise graph, then latent → robot units, checked, in the result slot.
//!
//! Modules import their own folder and the folders below it in this list; `http` imports `core` alone. `test/native-folders.test.ts` checks
//! it.

#![deny(unsafe_op_in_unsafe_fn)]

/// The C ABI and the tables behind its tickets.
pub mod abi;
/// A loaded model: its replicas, result slots, queues, devices and watchdog.
mod model;

/// One network on one device: bound inputs, flow steps, chunk decode.
pub mod flow;

/// Episode memory: the rows of sessions, on the host or a device.
mod episode;

/// ONNX Runtime: sessions, bindings, device memory, execution providers.
mod ort {
    pub mod assignment;
    pub mod device_memory;
    pub mod driver_device;
    pub mod engine_cache;
    pub mod environment;
    pub mod graph;
    pub mod home;
    pub mod initializers;
    pub mod mirrors;
    pub mod program;
    pub mod provider;
    pub mod runtime;
    pub mod session;
    pub mod tensor;
    pub mod terminator;
    pub mod turn;
    pub mod value;
    pub mod webgpu;
    pub mod weight_store;
}

/// The NVIDIA driver, our CUDA kernels, and Vulkan's list of adapters.
pub mod gpu;

/// JPEG decode and resize into frame slots.
pub mod image {
    pub mod decode_queue;
    pub mod frame;
    pub mod jpeg;
    pub mod resize;
}

/// A bundle on disk: manifest, tokenizer, ONNX files, mapped weights.
pub mod bundle {
    pub mod manifest;
    pub mod onnx;
    pub mod prompt;
    pub mod shapes;
    pub mod weights;
}

/// Request bodies and TCP connections of the HTTP server.
pub mod http {
    pub mod body;
    pub mod connections;
}

/// Tickets, queues, memory, status codes and the structs of the ABI.
pub mod core {
    pub mod active_batch;
    pub mod allocator;
    pub mod completion;
    pub mod device;
    pub mod dtype;
    pub mod fault;
    pub mod layout;
    pub mod lost;
    pub mod memory;
    pub(crate) mod queue;
    pub mod rehearsal;
    pub(crate) mod room;
    pub mod rotation;
    pub(crate) mod status;
    pub mod sync;
    pub mod thread;
    pub mod ticket;
}
