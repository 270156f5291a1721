//! The structs and constants of the ABI. The TypeScript file is generated from them.
//!
//! `cargo run --bin abi` prints `src/engine/abi.ts`; a test on each side compares it with the library.

pub use chunk::ChunkResult;

use crate::core::ticket::Ticket;
use std::mem::{offset_of, size_of};

/// Increased when a struct, a constant or a call changes.
pub const ABI_VERSION: u32 = 12;

/// Frames that one observation may carry.
pub const OBSERVATION_FRAMES_MAX: usize = 16;
/// Values of one state vector.
pub const STATE_VALUES_MAX: usize = 64;
/// Values (rows × columns) of one chunk.
pub const CHUNK_VALUES_MAX: usize = 2048;
/// Models loaded at once; with `FRAMES_MAX` it fits into the index of a ticket.
pub const MODELS_MAX: usize = 16;
/// Frame slots of one model.
pub const FRAMES_MAX: usize = 4096;
/// Bytes of one JPEG.
pub const JPEG_BYTES_MAX: usize = 262_144;
/// Pixels along one edge of a JPEG.
pub const JPEG_EDGE_MAX: u32 = 4096;
/// Bytes of one error text, its end included.
pub const ERROR_TEXT_BYTES: usize = 512;
/// The value of `ObserveRequest.slot` for no memory slot.
pub const NO_SLOT: u32 = u32::MAX;
/// The value of `ObserveRequest.fail_step` for no failure.
pub const NO_STEP: u32 = u32::MAX;

/// A field of an ABI struct: name, offset in bytes, type.
pub struct Field {
    /// The name in Rust.
    pub name: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// The type in Rust: a number, or an array of numbers.
    pub kind: &'static str,
}

/// The layout of an ABI struct.
pub struct Struct {
    /// The name in Rust.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// In the order of declaration.
    pub fields: &'static [Field],
}

macro_rules! abi_struct {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $ty:tt,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }
        impl $name {
            /// The layout that `abi.ts` is generated from.
            pub const LAYOUT: Struct = Struct {
                name: stringify!($name),
                size: size_of::<$name>(),
                fields: &[$(Field { name: stringify!($field), offset: offset_of!($name, $field), kind: stringify!($ty) },)*],
            };
        }
    };
}

mod chunk;

abi_struct! {
    /// Bounds fixed when the engine is opened. Owned by the caller, read during `tendon_open` only.
    OpenOptions {
        /// Must equal `ABI_VERSION`.
        abi_version: u32,
        /// Threads that decode JPEGs, at least 1.
        decode_threads: u32,
        /// Result slots: inferences that are queued, running or to be read; 1 to 65,535.
        chunks_max: u32,
        /// Frame slots of each model, 1 to 4,096; a model with large tensors has fewer.
        frames_max: u32,
    }
}

abi_struct! {
    /// One observation. Owned by the caller, read during `tendon_observe` only.
    ObserveRequest {
        /// Model ticket.
        model: f64,
        /// Frame tickets, camera-major, oldest first. They belong to the inference once the call has succeeded.
        frames: [f64; 16],
        /// Memory slot, or `NO_SLOT`.
        slot: u32,
        /// Zero-based chunk index in the session.
        step: u32,
        /// Low and high half of the seed.
        seed_low: u32,
        /// High half.
        seed_high: u32,
        /// A number per account: queued inferences of different numbers alternate.
        turn: u32,
        /// The flow step before which a drill has the inference fail, or `NO_STEP`.
        fail_step: u32,
        /// The `Fault` of a drill.
        fault: u32,
        /// Number of frames.
        frames_len: u32,
        /// Number of state values.
        state_len: u32,
        /// Rows of the prefix.
        prefix_rows: u32,
        /// The model's state vector in robot units.
        state: [f32; 64],
        /// Rows that the chunk continues, row-major in robot units: they are still being executed.
        prefix: [f32; 2048],
    }
}

abi_struct! {
    /// Counters since the engine was opened. Owned by the caller, written during `tendon_stats`.
    Stats {
        /// Heap allocations by this library.
        allocations: u64,
        /// Heap allocations during the last batch; `u64::MAX` if they are not counted.
        runtime_allocations_last: u64,
        /// Frames decoded.
        frames_decoded: u64,
        /// Frames refused.
        frames_refused: u64,
        /// Inferences that gave a chunk.
        chunks_run: u64,
        /// Inferences that failed.
        chunks_failed: u64,
        /// Inferences that were cancelled.
        chunks_cancelled: u64,
        /// Values clamped.
        values_clamped: u64,
        /// Bytes that episode memories hold, parked ones among them.
        memory_bytes_held: u64,
        /// Bytes of host memory that parked sessions take.
        parked_bytes_held: u64,
        /// Times that a session was parked.
        sessions_parked: u64,
        /// Times that a session was brought back.
        sessions_brought_back: u64,
        /// Microseconds that replicas spent on parking and bringing back.
        parking_us: u64,
        /// Panics that were caught; each has failed a request.
        panics: u64,
        /// Page-locked bytes of tensor memory.
        locked_bytes: u64,
        /// Bytes of tensor memory.
        tensor_bytes: u64,
        /// Free frame slots, over all models.
        frames_free: u64,
        /// Free result slots.
        chunks_free: u64,
        /// Session slots whose memory is not empty.
        slots_held: u64,
        /// Replicas, over all models.
        replicas: u64,
        /// Replicas that take no more work.
        replicas_out: u64,
        /// Session slots whose memory is parked.
        slots_parked: u64,
    }
}

abi_struct! {
    /// A change of one connection. Owned by the caller, written during `tendon_watch_read` only.
    ConnectionNote {
        /// The kernel's cookie of the socket, never used again.
        cookie: u64,
        /// Bytes received so far, read by the server or not.
        received: u64,
        /// The peer's address in network order, IPv4 in the form of IPv6; 0 when the connection is gone.
        address: [u32; 4],
        /// The peer's.
        port: u32,
        /// Its descriptor.
        fd: u32,
        /// 1 when the connection is gone.
        gone: u32,
        /// Always 0.
        reserved: u32,
    }
}

abi_struct! {
    /// Bounds of a body, and the wanted forms of its strings. Owned by the caller, read during `tendon_body_scan` only.
    BodyRules {
        /// Levels of arrays and objects.
        depth_max: u32,
        /// Arrays, objects and scalars.
        values_max: u32,
        /// A longer string goes into the table.
        string_bytes_max: u32,
        /// The same for a string with an escape that it needs.
        escaped_bytes_max: u32,
        /// Bytes of a JPEG that is decoded from its data URL.
        image_bytes_max: u32,
        /// 1: the strings of the table are unescaped, and no image is decoded.
        texts: u32,
    }
}

abi_struct! {
    /// The result of a body's scan. Owned by the caller, written during `tendon_body_result`; the addresses are valid until
    /// `tendon_body_free`.
    BodyResult {
        /// The body.
        bytes: u64,
        /// The body's JSON with placeholders, UTF-8.
        skeleton: u64,
        /// `BodyText` of each placeholder.
        table: u64,
        /// Texts of one byte a unit.
        narrow: u64,
        /// Texts of two bytes a unit.
        wide: u64,
        /// Files of images.
        images: u64,
        /// Bytes.
        bytes_len: u32,
        /// Bytes.
        skeleton_len: u32,
        /// Entries.
        table_len: u32,
        /// Bytes.
        narrow_len: u32,
        /// Units.
        wide_len: u32,
        /// Bytes.
        images_len: u32,
        /// 1 when a key is a placeholder.
        keys: u32,
        /// Microseconds of the scan.
        scan_us: u32,
    }
}

abi_struct! {
    /// A string behind a placeholder.
    BodyText {
        /// Its form, one of `BODY_TEXT`.
        form: u32,
        /// Its start there (`body::scan::Form`).
        start: u32,
        /// Its length there.
        len: u32,
        /// Its length in UTF-16 units.
        units: u32,
        /// 1 if it is blank and images are wanted.
        blank: u32,
        /// Bytes of a JPEG by the length of its base64.
        jpeg_len: u32,
        /// The start of a decoded JPEG in the images.
        image: u32,
        /// Bytes of the decoded JPEG.
        image_len: u32,
    }
}

/// Every struct, in the order of `abi.ts`.
pub const STRUCTS: [&Struct; 8] = [
    &OpenOptions::LAYOUT,
    &ObserveRequest::LAYOUT,
    &ChunkResult::LAYOUT,
    &Stats::LAYOUT,
    &ConnectionNote::LAYOUT,
    &BodyRules::LAYOUT,
    &BodyResult::LAYOUT,
    &BodyText::LAYOUT,
];

/// The constants for the other side.
pub const CONSTANTS: [(&str, u64); 12] = [
    ("ABI_VERSION", ABI_VERSION as u64),
    ("OBSERVATION_FRAMES_MAX", OBSERVATION_FRAMES_MAX as u64),
    ("STATE_VALUES_MAX", STATE_VALUES_MAX as u64),
    ("CHUNK_VALUES_MAX", CHUNK_VALUES_MAX as u64),
    ("MODELS_MAX", MODELS_MAX as u64),
    ("JPEG_BYTES_MAX", JPEG_BYTES_MAX as u64),
    ("JPEG_EDGE_MAX", JPEG_EDGE_MAX as u64),
    ("ERROR_TEXT_BYTES", ERROR_TEXT_BYTES as u64),
    ("NO_SLOT", NO_SLOT as u64),
    ("NO_STEP", NO_STEP as u64),
    ("TICKET_KIND_STEP", Ticket::KIND_STEP),
    ("TICKET_INDEX_COUNT", Ticket::INDEX_COUNT),
];

const _: () = assert!((MODELS_MAX * FRAMES_MAX) as u64 == Ticket::INDEX_COUNT);
const _: () = assert!(size_of::<[f64; OBSERVATION_FRAMES_MAX]>() == 128);
const _: () = assert!(size_of::<[f32; STATE_VALUES_MAX]>() == 256);
const _: () = assert!(size_of::<[f32; CHUNK_VALUES_MAX]>() == 8192);
