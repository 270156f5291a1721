//! What is told of the slots of a replica.

use std::ops::AddAssign;
use std::sync::atomic::AtomicU64;

/// What slots hold.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Usage {
    /// Slots that are not empty, and their committed bytes.
    pub slots: usize,
    /// Bytes.
    pub bytes: usize,
    /// Of these, slots that are parked.
    pub parked: usize,
    /// Bytes that those take in host memory.
    pub parked_bytes: usize,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.slots += other.slots;
        self.bytes += other.bytes;
        self.parked += other.parked;
        self.parked_bytes += other.parked_bytes;
    }
}

/// What was moved so far.
#[derive(Default)]
pub struct Moves {
    /// Sessions that were parked.
    pub parked: AtomicU64,
    /// Sessions that were brought back.
    pub brought_back: AtomicU64,
    /// Microseconds of both.
    pub us: AtomicU64,
}
