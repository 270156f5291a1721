//! The driver objects of a replica: registered host memory, its own stream, and the times of runs in it.
//!
//! The driver that the CPU plays counts what a real one refuses, and what only breaks later (`cuda/driver_host.h`).

use super::stage::{Count, Stage};
use super::{Of, Test};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tendon::core::memory::Block;
use tendon::gpu::CudaError;
use tendon::gpu::context::Context;
use tendon::gpu::stream::{Laps, Stream};

pub const TESTS: &[Test] = &[
    ("host::every_block_is_registered_once_and_unregistered_before_it_is_unmapped", Of::Host, blocks),
    ("host::a_range_that_another_has_a_page_of_is_refused", Of::Host, overlap),
    ("host::memory_that_the_driver_cannot_lock_stays_as_it_was", Of::Host, unlockable),
    ("host::a_thread_is_left_with_the_context_that_it_had", Of::Host, threads),
    ("host::a_thread_that_copies_is_in_the_context_until_it_leaves", Of::Host, entered),
    ("host::a_stream_and_its_context_live_as_long_as_what_uses_them", Of::Host, lifetimes),
    ("host::a_stream_that_the_driver_refuses_is_a_fault_with_its_words", Of::Host, no_stream),
    ("host::the_times_of_runs_are_added_up_once_they_have_ended", Of::Host, laps),
    ("host::a_time_that_is_not_known_is_none", Of::Host, unknown),
    ("host::a_time_that_is_read_before_its_end_is_refused", Of::Host, early),
    ("host::registered_memory_is_copied_and_a_run_is_timed", Of::Kernels, copied),
];

fn context(stage: &Stage) -> Arc<Context> {
    Context::open(&stage.driver, 0).expect("device 0")
}

/// The present counts of the driver, and its faults.
fn counts(stage: &Stage) -> [u64; 4] {
    [Count::Streams, Count::Events, Count::Registered, Count::Faults].map(|count| stage.count(count))
}

fn blocks(stage: &Stage) {
    let (before, ever) = (counts(stage), stage.count(Count::RegisteredEver));
    let context = context(stage);
    let mut alone = Block::locked(6000).expect("memory");
    // The blocks are neighbours in one mapping. Each has its own pages, since each is unmapped alone.
    let mut several: Vec<Block> = Block::several(5000, 3, true).expect("memory");
    let bytes = stage.count(Count::RegisteredBytes);
    for _ in 0..2 {
        context.register_block(&mut alone).expect("a registration");
        several.iter_mut().for_each(|block| context.register_block(block).expect("a registration"));
    }
    assert_eq!(stage.count(Count::RegisteredEver) - ever, 4, "twice is once");
    assert_eq!(stage.count(Count::RegisteredBytes) - bytes, 4 * 8192);
    assert_eq!((alone.registered_bytes(), several[1].registered_bytes()), (8192, 8192));
    alone.fill(7);
    drop(several.remove(1));
    assert_eq!(stage.count(Count::Registered) - before[2], 3);
    // The thread has no context, like one that closes the engine.
    std::thread::spawn(move || drop((alone, several))).join().expect("a thread");
    drop(context);
    assert_eq!(counts(stage), before);
}

fn overlap(stage: &Stage) {
    let (context, faults) = (context(stage), stage.count(Count::Faults));
    let block = Block::lazy(4 * 4096).expect("memory");
    let start = block.address();
    // SAFETY: whole pages of one mapping, which outlives what is registered; what overlaps is refused.
    let register =
        |page: usize, pages: usize| unsafe { context.register(start.add(page * 4096).cast::<c_void>(), pages * 4096) };
    let middle = register(1, 2).expect("a registration");
    for (page, pages) in [(1, 2), (0, 2), (2, 2), (0, 4)] {
        let Err(CudaError::Call(text)) = register(page, pages) else { panic!("pages {page} and on are registered") };
        assert!(text.contains("ALREADY_REGISTERED (712)"), "{text}");
    }
    let beside = [register(0, 1), register(3, 1)].map(|made| made.expect("a registration"));
    drop((middle, beside));
    drop(register(0, 4).expect("all of it, once the others are gone"));
    assert_eq!(stage.count(Count::Faults) - faults, 4);
    // SAFETY: not whole pages, which is refused.
    let uneven = unsafe { context.register(start.add(8).cast(), 4096) };
    assert!(uneven.is_err_and(|error| error.to_string().contains("INVALID_VALUE")));
}

fn unlockable(stage: &Stage) {
    let (before, context) = (counts(stage), context(stage));
    stage.set("cpu_register_left", 4096);
    let mut block = Block::locked(6000).expect("memory");
    assert_eq!(context.register_block(&mut block), Err(CudaError::Unlockable(8192)));
    assert_eq!(CudaError::Unlockable(8192).to_string(), "cuMemHostRegister: no room to page-lock 8192 bytes more");
    assert_eq!(block.registered_bytes(), 0);
    block.fill(3);
    assert!(block.iter().all(|&value| value == 3));
    let mut less = Block::locked(4000).expect("memory");
    context.register_block(&mut less).expect("room for a page");
    drop((block, less));
    stage.set("cpu_register_left", usize::MAX);
    assert_eq!(counts(stage), before);
}

fn threads(stage: &Stage) {
    let before = counts(stage);
    let set = stage.count(Count::ContextsSet);
    let context = context(stage);
    let mut laps = Laps::new(&Stream::new(&context).expect("a stream"), 1).expect("events");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It has registered and let go of memory, and has no context still.
            let mut block = Block::locked(1).expect("memory");
            context.register_block(&mut block).expect("a registration");
            drop(block);
            laps.begin();
            laps.end();
            assert_eq!(laps.take_ms(), None, "no event without a context");
            context.enter().expect("a context");
            for _ in 0..3 {
                laps.begin();
                laps.end();
                assert!(laps.take_ms().is_some_and(|ms| ms >= 0.0));
            }
        });
    });
    assert_eq!(stage.count(Count::ContextsSet) - set, 1, "one call for a thread, not for each run");
    drop(laps);
    let after = counts(stage);
    // The event that it tried.
    assert_eq!((&after[..3], after[3]), (&before[..3], before[3] + 1));
}

fn entered(stage: &Stage) {
    let faults = stage.count(Count::Faults);
    let stream = Stream::new(&context(stage)).expect("a stream");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outer = stream.context().entered().expect("a context");
            drop(stream.context().entered().expect("the same again"));
            stream.wait().expect("in the context still");
            drop(outer);
            assert!(stream.wait().is_err(), "it has left");
        });
    });
    assert_eq!(stage.count(Count::Faults) - faults, 1);
}

fn lifetimes(stage: &Stage) {
    let (before, contexts) = (counts(stage), stage.count(Count::Contexts));
    let stream = Stream::new(&context(stage)).expect("a stream");
    // A session keeps the stream.
    let kept = stream.clone();
    let laps = Laps::new(&stream, 3).expect("events");
    assert_ne!(stream.address(), 0);
    assert_eq!(stage.count(Count::Contexts) - contexts, 1);
    drop(stream);
    let [streams, events, ..] = counts(stage);
    assert_eq!((streams - before[0], events - before[1]), (1, 6));
    drop(laps);
    assert_eq!(counts(stage)[..2], [before[0] + 1, before[1]], "of a session that is open still");
    drop(kept);
    assert_eq!((counts(stage), stage.count(Count::Contexts)), (before, contexts));
}

fn no_stream(stage: &Stage) {
    let before = counts(stage);
    stage.set("cpu_streams_refused", 1);
    assert!(matches!(Stream::new(&context(stage)).err(), Some(CudaError::OutOfMemory(_))));
    stage.set("cpu_streams_refused", 0);
    assert_eq!(counts(stage), before);
}

fn laps_of(stage: &Stage, runs: usize) -> Laps {
    let context = context(stage);
    context.enter().expect("a context");
    Laps::new(&Stream::new(&context).expect("a stream"), runs).expect("events")
}

/// The time of the work on the processor.
fn work(ms: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(ms) {
        std::hint::spin_loop();
    }
}

fn laps(stage: &Stage) {
    let before = counts(stage);
    let mut laps = laps_of(stage, 3);
    let records = stage.count(Count::Records);
    for runs in [3_u64, 1, 2] {
        let whole = Instant::now();
        for _ in 0..runs {
            // The host's work between two runs is in none of them.
            work(2);
            laps.begin();
            work(3);
            laps.end();
        }
        let most = 1000.0 * whole.elapsed().as_secs_f32() - (2 * runs) as f32;
        let ms = laps.take_ms().expect("times");
        assert!(ms >= (3 * runs) as f32 - 0.01 && ms <= most + 0.01, "{runs} runs: {ms} of {most} ms");
    }
    assert_eq!(stage.count(Count::Records) - records, 12, "two events for a run");
    drop(laps);
    assert_eq!(counts(stage), before);
}

fn unknown(stage: &Stage) {
    let before = counts(stage);
    let mut laps = laps_of(stage, 1);
    assert_eq!(laps.take_ms(), None, "no run");
    let run = |laps: &mut Laps| {
        laps.begin();
        laps.end();
    };
    run(&mut laps);
    run(&mut laps);
    assert_eq!(laps.take_ms(), None, "more runs than events");
    laps.begin();
    assert_eq!(laps.take_ms(), None, "a run that has failed");
    laps.begin();
    laps.clear();
    run(&mut laps);
    assert!(laps.take_ms().is_some());
    assert_eq!(laps.take_ms(), None, "once");
    drop(laps);
    assert_eq!(counts(stage), before);
}

/// The played driver would have refused it.
fn early(stage: &Stage) {
    type Create = unsafe extern "C" fn(*mut *mut c_void, u32) -> i32;
    type Elapsed = unsafe extern "C" fn(*mut f32, *mut c_void, *mut c_void) -> i32;
    let (context, before) = (context(stage), counts(stage));
    context.enter().expect("a context");
    let stream = Stream::new(&context).expect("a stream");
    let library = &stage.library;
    // SAFETY: the signatures of driver_host.h, out pointers, and live events of a live stream.
    unsafe {
        let create = library.get::<Create>("cuEventCreate").expect("a call");
        let destroy = library.get::<unsafe extern "C" fn(*mut c_void) -> i32>("cuEventDestroy_v2").expect("a call");
        let record = library.get::<unsafe extern "C" fn(*mut c_void, usize) -> i32>("cuEventRecord").expect("a call");
        let elapsed = library.get::<Elapsed>("cuEventElapsedTime").expect("a call");
        let (mut begin, mut end, mut ms) = (std::ptr::null_mut(), std::ptr::null_mut(), 0.0);
        assert_eq!((create(&mut begin, 0), create(&mut end, 0)), (0, 0));
        assert_eq!((record(begin, stream.address()), record(end, stream.address())), (0, 0));
        assert_eq!(elapsed(&mut ms, begin, end), 600, "not ready");
        stream.wait().expect("its end");
        assert_eq!((elapsed(&mut ms, begin, end), elapsed(&mut ms, end, begin)), (0, 1));
        assert_eq!((destroy(begin), destroy(end)), (0, 0));
    }
    drop(stream);
    assert_eq!(counts(stage)[3] - before[3], 2);
}

fn copied(stage: &Stage) {
    let mut block = Block::locked(20_000).expect("memory");
    let mut laps = laps_of(stage, 1);
    context(stage).register_block(&mut block).expect("a registration");
    block.floats_mut().iter_mut().enumerate().for_each(|(at, value)| *value = at as f32);
    laps.begin();
    let memory = stage.device.copy_of(block.floats()).expect("memory of the device");
    laps.end();
    assert_eq!(memory.read::<f32>(5000), Ok(block.floats().to_vec()));
    assert!(laps.take_ms().is_some_and(|ms| (0.0..10_000.0).contains(&ms)));
}
