//! Sequences of calls of the C ABI on `echo`, with good, stale, foreign and senseless arguments. Whatever is called: no crash, no
//! panic (the fuzzer ends with one, caught or not), one completion for each accepted call and none for any other, no slot lost.

#![no_main]

mod caller;
mod completions;
mod plan;
mod request;

use caller::Caller;
use libfuzzer_sys::fuzz_target;

/// More calls find nothing that these do not.
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
