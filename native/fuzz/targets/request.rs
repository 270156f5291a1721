//! Requests for observations, without their frames.

use tendon_fuzzed::abi::rehearsals::tendon_rehearse;
use tendon_fuzzed::core::fault::Fault;
use tendon_fuzzed::core::layout::{NO_SLOT, NO_STEP, ObserveRequest};

/// The faults that neither hang nor panic: a panic ends the fuzzer, caught or not.
const FAULTS: [Fault; 4] = [Fault::None, Fault::Die, Fault::Device, Fault::Feed];
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
    match if next().is_multiple_of(16) { FAULTS[next() % FAULTS.len()] } else { Fault::None } {
        Fault::Die => rehearse(r#"{"fault":"die"}"#),
        Fault::Feed => rehearse(r#"{"fault":"feed"}"#),
        fault => request.fault = fault as u32,
    }
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

fn rehearse(plan: &str) {
    // SAFETY: the text lives through the call.
    assert_eq!(unsafe { tendon_rehearse(plan.as_ptr(), plan.len() as u32) }, 0, "a plan");
}
