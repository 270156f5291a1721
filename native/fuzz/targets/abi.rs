//! Sequences of calls of the C ABI on `echo`, with good, stale, foreign and senseless arguments. No call may crash or panic (a panic ends
//! the fuzzer, caught or not). Each accepted call has one completion, no other call has one, and no slot is lost.

#![no_main]

mod caller;
mod completions;
mod plan;
mod request;

use caller::Caller;
use libfuzzer_sys::fuzz_target;

/// Calls at most; more find nothing new.
const CALLS_MAX: usize = 96;

fuzz_target!(|input: &[u8]| {
    let mut caller = Caller::open(input);
    let tidy = !caller.byte().is_multiple_of(4);
    for _ in 0..CALLS_MAX {
        if caller.ended() {
            break;
        }
        caller.call();
    }
    if tidy {
        caller.tidy();
    }
    caller.close();
});
