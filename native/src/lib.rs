//! The native engine of tendon: JPEG frames and a joint state in, one chunk of motion out.

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod abi;
pub mod episode;
pub mod flow;
pub mod gpu;
pub mod model;

pub mod ort {
    //! ONNX Runtime.
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

pub mod image {
    //! JPEG.
    pub mod decode_queue;
    pub mod frame;
    pub mod jpeg;
    pub mod resize;
}

pub mod bundle {
    //! A bundle.
    pub mod manifest;
    pub mod onnx;
    pub mod prompt;
    pub mod shapes;
    pub mod weights;
}

pub mod http {
    //! HTTP.
    pub mod body;
    pub mod connections;
}

pub mod core {
    //! Core.
    pub mod active_batch;
    pub mod allocator;
    pub mod completion;
    pub mod device;
    pub mod dtype;
    pub mod fault;
    pub mod layout;
    pub mod memory;
    pub mod queue;
    pub mod rehearsal;
    pub mod room;
    pub mod rotation;
    pub mod status;
    pub mod sync;
    pub mod thread;
    pub mod ticket;
}
