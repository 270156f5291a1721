//! Checks on a device whether the staged rows of a place are finite, without a copy of them.

use super::device::name;
use super::finite::is_finite;
use super::layout::Layout;
use crate::bundle::onnx::finite::{self, Names};
use crate::core::dtype::Dtype;
use crate::core::memory::Block;
use crate::ort::device_memory::DeviceBlock;
use crate::ort::home::Home;
use crate::ort::program::Program;
use crate::ort::value::{Value, transfer_one};
use std::ffi::{CString, c_void};

/// The program is dropped before the memory that it is bound to. None if all rows are integers.
pub(super) struct FiniteCheck {
    program: Option<Program>,
    home: Home,
    /// The sum of each type of values.
    sums: Vec<Sum>,
}

struct Sum {
    name: CString,
    dtype: Dtype,
    there: Value,
    /// The host's value for it, at the begin of `bits`. It is made once, so that a check makes nothing.
    here: Value,
    bits: Block,
    _block: DeviceBlock,
}

impl FiniteCheck {
    /// `open` makes a session of a graph on the device. The error is a sentence: the device cannot check.
    pub(super) fn new(
        layout: &Layout,
        home: Home,
        open: impl Fn(&[u8]) -> Result<Program, String>,
    ) -> Result<FiniteCheck, String> {
        let dtypes: Vec<Dtype> = layout.caches.iter().map(|cache| cache.dtype).collect();
        let mut sums = Vec::new();
        if dtypes.iter().all(|&dtype| finite::names(dtype).is_none()) {
            return Ok(FiniteCheck { program: None, home, sums });
        }
        let program = open(&finite::finite(&dtypes))?;
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16].into_iter().filter(|dtype| dtypes.contains(dtype)) {
            let Some(Names { sum, .. }) = finite::names(dtype) else { continue };
            let block = program.block(home, size_of::<u32>())?;
            // SAFETY: the block is kept beside it.
            let there = unsafe { Value::over(home, home.turns, block.address(), dtype, &[1]) }?;
            let bits = Block::lazy(size_of::<u32>())?;
            // SAFETY: as above.
            let here = unsafe { Value::over(Home::HOST, home.turns, bits.address().cast(), dtype, &[1]) }?;
            sums.push(Sum { name: name(&sum), dtype, there, here, bits, _block: block });
        }
        Ok(FiniteCheck { program: Some(program), home, sums })
    }

    /// Binds staged rows at these addresses, one for each cache; returns the number for `is_finite`.
    ///
    /// # Safety
    /// The rows live as long as this, or until the number is not used any more.
    pub(super) unsafe fn bind(&mut self, layout: &Layout, staged: &[*mut c_void]) -> Result<usize, String> {
        let Some(program) = &mut self.program else { return Ok(0) };
        let mut inputs = Vec::new();
        for (at, (cache, &start)) in layout.caches.iter().zip(staged).enumerate() {
            let Some(Names { values, .. }) = finite::names(cache.dtype) else { continue };
            let (_, bytes) = layout.place_bytes(cache);
            // SAFETY: the caller's.
            let rows =
                unsafe { Value::over(self.home, self.home.turns, start, cache.dtype, &[bytes / cache.dtype.bytes()]) }?;
            inputs.push((name(&format!("{values}{at}")), rows));
        }
        let inputs: Vec<(CString, &Value)> = inputs.iter().map(|(name, value)| (name.clone(), value)).collect();
        let outputs: Vec<(CString, &Value)> = self.sums.iter().map(|sum| (sum.name.clone(), &sum.there)).collect();
        // SAFETY: the caller's; the sums are kept as long as the program.
        unsafe { program.bind(&inputs, &outputs) }
    }

    /// Whether all staged rows that were bound are finite.
    ///
    /// # Safety
    /// No thread writes to the rows meanwhile.
    pub(super) unsafe fn is_finite(&mut self, bound: usize) -> Result<bool, String> {
        let Some(program) = &mut self.program else { return Ok(true) };
        // SAFETY: the caller's.
        unsafe { program.run(bound, &[]) }?;
        for Sum { dtype, there, here, bits, .. } in &self.sums {
            // SAFETY: both are used here alone.
            unsafe { transfer_one(self.home.turns, there, here) }?;
            if !is_finite(&bits[..dtype.bytes()], *dtype) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
