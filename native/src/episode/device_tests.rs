//! Rows in the memory of a device, which the CPU plays here. A session has the same bits as on the host.

use super::tests::{lying, run, stage, with_capacity};
use super::*;
use crate::bundle::manifest::Role;
use crate::bundle::onnx::{copy_rows, finite, node, typed};
use crate::core::dtype::Dtype;
use crate::ort::home::Home as Memory;
use crate::ort::program::Program;
use crate::ort::runtime;
use crate::ort::session::OpenSession;
use crate::ort::turn::Turns;
use crate::ort::value::{Value, transfer};
use std::path::Path;

/// Bytes of the staged rows of a place.
const STAGED: usize = 2 * 4 * 3 * 4;

fn program(model: &[u8]) -> Result<Program, String> {
    let packaged = "../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1";
    let runtime = runtime::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged))?;
    let session = runtime.plain(1).and_then(|mut builder| builder.commit_from_memory(model));
    session.map(|session| Program::new(OpenSession::new(session, Turns::Free))).map_err(|error| error.to_string())
}

fn there(places: usize, parked: usize) -> Episodes {
    lying(Dtype::F32, places, parked, |episodes| {
        episodes.lie_on(Memory::HOST, program).unwrap();
        let rows = episodes.device().unwrap();
        (1..places).for_each(|_| rows.add().unwrap());
        assert_eq!(episodes.places(), 1);
        rows.offer(places);
        assert_eq!(episodes.places(), places);
    })
}

/// The replica's part of an inference that has the slot: it writes `value` to all staged rows.
fn begun(episodes: &Episodes, slot: usize, value: f32) -> Pass {
    let place = episodes.begin(slot).unwrap();
    let pass = episodes.plan(slot).unwrap();
    let staged = (episodes.address("k", Role::Block).unwrap().of)(place);
    let values = [value; STAGED / 4];
    // SAFETY: the staged rows of the place that this inference has.
    unsafe {
        let over = |start| Value::over(Memory::HOST, Turns::Free, start, Dtype::F32, &[values.len()]).unwrap();
        transfer(Turns::Free, &[(&over(values.as_ptr().cast_mut().cast()), &over(staged))]).unwrap();
    }
    stage(episodes, slot, pass).unwrap();
    pass
}

fn run_there(episodes: &Episodes, slot: usize, value: f32, keep: bool) -> Pass {
    assert!(episodes.take(slot));
    let pass = begun(episodes, slot, value);
    episodes.settle(slot, keep);
    pass
}

#[test]
fn an_episode_there_equals_one_on_the_host_over_windows_and_blocks_that_are_not_kept() {
    let (mut here, far) = (with_capacity(2, 0), there(2, 0));
    for step in 0..12 {
        let keep = step % 4 != 2;
        for slot in 0..2 {
            let value = (10 * slot + step) as f32;
            assert_eq!(run_there(&far, slot, value, keep), run(&mut here, slot, value, keep));
            assert_eq!(far.content(slot), here.content(slot), "step {step} of slot {slot}");
        }
    }
}

#[test]
fn an_episode_parked_between_every_two_steps_equals_one_that_never_was() {
    let (mut alone, shared) = (with_capacity(1, 0), there(1, 2));
    for step in 0..9 {
        let keep = step % 4 != 2;
        let expected = run(&mut alone, 0, step as f32, keep);
        for slot in 0..3 {
            assert_eq!(run_there(&shared, slot, step as f32, keep), expected, "step {step} of slot {slot}");
            assert_eq!(shared.content(slot), alone.content(0));
        }
        for slot in 0..3 {
            assert_eq!(shared.content(slot), alone.content(0), "parked or not");
        }
    }
    let Moves { parked, brought_back, .. } = &shared.moves;
    assert_eq!((parked.load(Ordering::Relaxed), brought_back.load(Ordering::Relaxed)), (26, 24));
    // Whole windows are parked.
    assert_eq!(shared.usage().parked_bytes, 2 * 2 * 10 * 3 * 4);
}

/// A failed inference keeps no block, and its values that are not finite reach no later inference.
#[test]
fn rows_that_are_not_finite_are_found_there_and_nothing_of_them_is_kept() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let (mut here, far) = (with_capacity(1, 0), there(1, 0));
        run(&mut here, 0, 1.0, true);
        run_there(&far, 0, 1.0, true);
        assert!(far.take(0));
        let place = far.begin(0).unwrap();
        let pass = far.plan(0).unwrap();
        let staged = (far.address("k", Role::Block).unwrap().of)(place);
        for at in [0, 5, STAGED / 4 - 1] {
            let mut values = [2.0; STAGED / 4];
            values[at] = bad;
            // SAFETY: the staged rows of the place that this inference has.
            unsafe {
                let over = |start| Value::over(Memory::HOST, Turns::Free, start, Dtype::F32, &[values.len()]).unwrap();
                transfer(Turns::Free, &[(&over(values.as_ptr().cast_mut().cast()), &over(staged))]).unwrap();
            }
            assert_eq!(stage(&far, 0, pass), Err("the rows for its memory are not finite".into()), "{bad} at {at}");
            assert_eq!(stage(&far, 0, pass), Ok(()), "they are zeroes then");
        }
        far.settle(0, false);
        assert_eq!(far.content(0), here.content(0));
    }
}

/// The next session of a place finds zeroes.
#[test]
fn a_session_finds_none_of_the_rows_of_another_one_that_had_its_place() {
    let far = there(1, 1);
    let whole = |write: bool, values: &mut [f32]| {
        let start = (far.address("k", Role::Memory).unwrap().of)(0);
        // SAFETY: the committed rows of the place, whose owner has no run.
        unsafe {
            let over = |start| Value::over(Memory::HOST, Turns::Free, start, Dtype::F32, &[60]).unwrap();
            let (host, device) = (over(values.as_mut_ptr().cast()), over(start));
            transfer(Turns::Free, &[if write { (&host, &device) } else { (&device, &host) }]).unwrap();
        }
    };
    let mut rows = [0.0; 2 * 10 * 3];
    let behind = |rows: &[f32]| rows.chunks(30).all(|lead| lead[6..].iter().all(|&value| value == 0.0));
    for parked in [false, true] {
        run_there(&far, 0, 1.0, true);
        run_there(&far, 0, 1.0, true);
        whole(true, &mut [f32::NAN; 60]);
        // It ends, or is parked before the other one comes.
        assert!(parked || far.forget(0));
        run_there(&far, 1, 2.0, true);
        assert!(far.take(1) && far.begin(1) == Ok(0));
        far.settle(1, false);
        whole(false, &mut rows);
        assert!(rows[..6] == [2.0; 6] && behind(&rows), "{rows:?}");
        assert!(far.forget(1) && (!parked || far.forget(0)));
    }
}

#[test]
fn a_run_that_waits_for_its_settlement_is_parked_with_its_block() {
    for keep in [true, false] {
        for steps in 0..6 {
            let (mut alone, shared) = (with_capacity(1, 0), there(1, 1));
            for step in 0..steps {
                run(&mut alone, 0, step as f32, true);
                run_there(&shared, 0, step as f32, true);
            }
            run(&mut alone, 0, 7.0, keep);
            assert!(shared.take(0));
            begun(&shared, 0, 7.0);
            run_there(&shared, 1, 50.0, true);
            shared.settle(0, keep);
            assert_eq!(shared.content(0), alone.content(0), "parked, {steps} steps, kept: {keep}");
            run(&mut alone, 0, 8.0, true);
            run_there(&shared, 0, 8.0, true);
            assert_eq!(shared.content(0), alone.content(0), "back, {steps} steps, kept: {keep}");
        }
    }
}

#[test]
fn rows_that_are_no_whole_words_and_graphs_that_are_refused_leave_the_memory_where_it_was() {
    let odd = lying(Dtype::F16, 1, 0, |episodes| {
        let refused = episodes.lie_on(Memory::HOST, program).unwrap_err();
        assert_eq!(refused, "a row of k is no whole number of 32-bit words");
        episodes.lie_on_host(Some(refused)).unwrap();
    });
    assert!(!odd.is_on_device() && odd.refusal().is_some_and(|text| text.contains("32-bit")));
    let refused = there(1, 0).lie_on(Memory::HOST, |_| Err("no kernel".into()));
    assert_eq!(refused, Err("no kernel".into()));
    // A device that moves nothing is refused before a session lies there.
    let names = copy_rows::names(0, 2);
    let still = node("still", "Identity", &[&names.committed], &[&names.kept]);
    let [committed, staged, kept] = [names.committed, names.staged, names.kept].map(|name| (name, 6));
    let idle = typed(&[committed, staged, (names.to, 7)], &[kept], &[still]);
    // A device that finds no bad value is refused too.
    let finite::Names { values, sum } = finite::names(Dtype::F32).unwrap();
    let nodes = [
        node("shape", "Shape", &["f32_0"], &["shape"]),
        node("zeroes", "ConstantOfShape", &["shape"], &["zeroes"]),
        node("add", "ReduceSum", &["zeroes"], &[&sum]),
    ];
    let blind = typed(&[(format!("{values}0"), 1)], &[(sum, 1)], &nodes);
    for (in_place_of, by, reason) in [
        (copy_rows::model(&[2]), idle, "it does not copy rows as it is told"),
        (finite::finite(&[Dtype::F32]), blind, "it does not tell that a row is not finite"),
    ] {
        let open = |model: &[u8]| program(if model == in_place_of { &by } else { model });
        assert_eq!(there(1, 0).lie_on(Memory::HOST, open), Err(reason.into()));
    }
}
