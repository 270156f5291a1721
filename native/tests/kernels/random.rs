//! Numbers that are the same in every run.

/// xorshift64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() >> 11) as usize % end
    }

    /// A number from -1 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// About normal, never 0.
    pub fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| (self.unit() * 3.0) as f32).collect()
    }
}
