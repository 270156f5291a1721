//! The inputs of chunk decode, and the times of the steps: one block of host memory, and the same on the device.

use crate::core::memory::Block;
use crate::gpu::device::{Device, Memory};
use crate::gpu::{Address, CudaError};
use std::sync::Arc;

/// Each part begins at a multiple of this, so that any type can be read there.
const ALIGNMENT: usize = 256;

pub(super) struct DecodeInputs {
    pub(super) host: Block,
    pub(super) device: Memory,
    /// The start of each part: states `[batch, state values]` f32, prefixes `[batch, values of a prefix]` f32, continued rows and continued
    /// values `[batch]` u32, and the table of times.
    parts: [usize; 5],
    states: usize,
    prefix: usize,
    columns: usize,
}

const STATES: usize = 0;
const PREFIXES: usize = 1;
const PREFIX_ROWS: usize = 2;
const PREFIX_VALUES: usize = 3;
const TABLE: usize = 4;

impl DecodeInputs {
    /// Makes parts for a batch of states, prefixes of `prefix` values in rows of `columns`, and a table of `table` bytes.
    pub(super) fn new(
        device: &Arc<Device>,
        (batch, states): (usize, usize),
        (prefix, columns): (usize, usize),
        table: usize,
    ) -> Result<DecodeInputs, CudaError> {
        let mut end = 0;
        let parts = [4 * batch * states, 4 * batch * prefix, 4 * batch, 4 * batch, table].map(|bytes| {
            let start = end;
            end += bytes.next_multiple_of(ALIGNMENT);
            start
        });
        let host = Block::locked(end).map_err(CudaError::Call)?;
        Ok(DecodeInputs { host, device: device.memory(end)?, parts, states, prefix, columns })
    }

    fn write(&mut self, part: usize, at: usize, words: impl Iterator<Item = u32>) {
        let to = self.host[self.parts[part] + 4 * at..].chunks_exact_mut(4);
        to.zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    }

    /// Writes the state and the continued rows of row `row` of the batch.
    pub(super) fn set_row(&mut self, row: usize, state: &[f32], prefix: &[f32]) {
        let bits = |value: &f32| value.to_bits();
        self.write(STATES, row * self.states, state.iter().take(self.states).map(bits));
        self.write(PREFIXES, row * self.prefix, prefix.iter().map(bits));
        self.write(PREFIX_ROWS, row, std::iter::once((prefix.len() / self.columns) as u32));
    }

    pub(super) fn set_prefix(&mut self, row: usize, values: usize) {
        self.write(PREFIX_VALUES, row, std::iter::once(values as u32));
    }

    pub(super) fn table(&mut self) -> &mut [u8] {
        &mut self.host[self.parts[TABLE]..]
    }

    /// Puts a copy of all parts into the device's stream. The host's block must not change until the copy is done.
    pub(super) fn send(&self, device: &Device) -> Result<(), CudaError> {
        let from = self.host.address().cast_const().cast();
        // SAFETY: as many bytes on both sides, which live as long as each other.
        unsafe { device.stream().copy_in(self.device.address(), from, self.host.len()) }
    }

    fn address(&self, part: usize) -> Address {
        self.device.address() + self.parts[part] as Address
    }

    pub(super) fn states(&self) -> Address {
        self.address(STATES)
    }

    pub(super) fn prefixes(&self) -> Address {
        self.address(PREFIXES)
    }

    /// On the device; 0 where chunks continue no rows.
    pub(super) fn prefix_rows_address(&self) -> Address {
        if self.prefix == 0 { 0 } else { self.address(PREFIX_ROWS) }
    }

    /// On the device; 0 where chunks continue no rows.
    pub(super) fn prefix_values(&self) -> Address {
        if self.prefix == 0 { 0 } else { self.address(PREFIX_VALUES) }
    }

    pub(super) fn table_address(&self) -> Address {
        self.address(TABLE)
    }
}
