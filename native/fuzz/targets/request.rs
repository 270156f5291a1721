//! Requests for observations, without their frames.

use tendon_fuzzed::core::layout::{NO_SLOT, NO_STEP, ObserveRequest};

/// Those of `Fault` that neither hang nor panic: the fuzzer ends with a panic, caught or not.
const FAULTS: [u32; 4] = [0, 3, 4, 6];
/// Columns of the state in the models of `plan.rs`.
const COLUMNS: [u32; 2] = [2, 9];

/// A request to a model; `next` gives bytes to choose by.
pub fn request(model: f64, mut next: impl FnMut() -> usize) -> ObserveRequest {
    // SAFETY: the request is plain numbers.
    let mut request: ObserveRequest = unsafe { std::mem::zeroed() };
    request.model = model;
    request.slot = [NO_SLOT, 0, 1, 2, 3, 4][next() % 6];
    request.turn = next() as u32 % 3;
    request.fail_step = if next().is_multiple_of(8) { next() as u32 } else { NO_STEP };
    request.fault = if next().is_multiple_of(16) { FAULTS[next() % FAULTS.len()] } else { 0 };
    request.state_len = match next() {
        byte if byte.is_multiple_of(16) => next() as u32,
        byte => COLUMNS[byte % 2],
    };
    let numbers = [0.5, f32::NAN, f32::INFINITY, -1e30];
    request.state[0] = numbers[next() % 4];
    // Axes of the pose in the state, so that its rotation is one.
    (request.state[3], request.state[7]) = (1.0, 1.0);
    let prefix = next();
    if prefix.is_multiple_of(4) {
        request.prefix_rows = [1, 2, 3, u32::MAX][prefix / 4 % 4];
        request.prefix[1] = numbers[prefix / 16 % 4];
    }
    request
}
