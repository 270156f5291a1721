//! The memory that the slots of a replica use.

use std::ops::AddAssign;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Usage {
    /// Slots that are not empty, and their committed bytes.
    pub slots: usize,
    pub bytes: usize,
    pub parked: usize,
    /// Bytes of the parked sessions in host memory.
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

#[derive(Default)]
pub struct Moves {
    pub parked: AtomicU64,
    pub brought_back: AtomicU64,
    /// Microseconds of both.
    pub us: AtomicU64,
}
