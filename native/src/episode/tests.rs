//! Slots of episode memory: which blocks are kept, and that slots do not overlap.

use super::host::HostCache;
use super::layout::Cache;
use super::*;
use crate::core::dtype::Dtype;

/// Places of one cache `[2, tokens, 3]`, window 5 of 2 tokens, first 1, later 2.
fn episodes(places: usize) -> Episodes {
    with_capacity(places, 0)
}

pub(super) fn with_capacity(places: usize, parked: usize) -> Episodes {
    let episodes = of_type(Dtype::F32, places, parked);
    assert_eq!((episodes.slot_bytes(), episodes.len()), (2 * 2 * 7 * 3 * 4, places + parked));
    episodes
}

fn of_type(dtype: Dtype, places: usize, parked: usize) -> Episodes {
    lying(dtype, places, parked, |episodes| episodes.lie_on_host(None).unwrap())
}

pub(super) fn lying(dtype: Dtype, places: usize, parked: usize, lie: impl FnOnce(&Episodes)) -> Episodes {
    let facts = MemoryFacts { window: 5, tokens: 2, first: 1, later: 2 };
    let cache = Cache { name: "k".into(), leads: 2, width: 3, dtype };
    let layout = Layout { facts, caches: vec![cache] };
    let bytes = (parked * layout.bytes(7)) as u64;
    let limits = SessionLimits { places: Some(places), parked_bytes_max: Some(bytes) };
    let episodes = Episodes::over(Rows::new(layout, places), limits);
    lie(&episodes);
    assert_eq!(episodes.seat(0, 0), Ok(Seating { places, parked }));
    episodes
}

/// The rows of its one cache.
fn rows(episodes: &mut Episodes) -> &mut HostCache {
    &mut episodes.rows.host.get_mut().expect("rows on the host").0[0]
}

/// Ends the inference that has the slot.
pub(super) fn stage(episodes: &Episodes, slot: usize, pass: Pass) -> Result<(), String> {
    let Home::Place(place) = lock(&episodes.seats).slots[slot].home else { panic!("it has no place") };
    episodes.unfit(place, pass)?.map_or(Ok(()), Err)?;
    episodes.stage(slot, pass);
    Ok(())
}

/// Makes an inference that writes `value` to all staged rows.
pub(super) fn run(episodes: &mut Episodes, slot: usize, value: f32, keep: bool) -> Pass {
    let pass = computed(episodes, slot, value);
    episodes.settle(slot, keep);
    pass
}

/// Makes an inference that is not settled yet.
pub(super) fn computed(episodes: &mut Episodes, slot: usize, value: f32) -> Pass {
    assert!(episodes.take(slot));
    begun(episodes, slot, value)
}

/// The replica's part of an inference that has its slot.
pub(super) fn begun(episodes: &mut Episodes, slot: usize, value: f32) -> Pass {
    let place = episodes.begin(slot).unwrap();
    let pass = episodes.plan(slot).unwrap();
    let len = 2 * 4 * 3 * 4;
    for bytes in rows(episodes).staged[place * len..(place + 1) * len].chunks_exact_mut(4) {
        bytes.copy_from_slice(&value.to_ne_bytes());
    }
    stage(episodes, slot, pass).unwrap();
    pass
}

#[test]
fn a_window_fills_and_starts_anew() {
    let mut episodes = episodes(1);
    let passes: Vec<_> = (0..6).map(|step| run(&mut episodes, 0, step as f32, true)).collect();
    let pass = |entry, kept, written| Pass { entry, kept, written };
    assert_eq!(
        passes,
        [
            pass(Entry::First, 0, 1),
            pass(Entry::Later, 1, 2),
            pass(Entry::Later, 3, 2),
            pass(Entry::Reset, 0, 1),
            pass(Entry::Later, 1, 2),
            pass(Entry::Later, 3, 2),
        ]
    );
}

#[test]
fn what_is_not_kept_leaves_no_trace() {
    let mut clean = episodes(2);
    let mut other = episodes(2);
    for (value, keep) in [(1.0, true), (7.0, false), (2.0, true), (8.0, false), (3.0, true), (9.0, false), (4.0, true)]
    {
        run(&mut other, 1, value, keep);
        if keep {
            run(&mut clean, 0, value, true);
        }
        assert_eq!(clean.content(0), other.content(1));
    }
    assert_eq!(other.content(1).unwrap().0, 1);
}

#[test]
fn a_slot_has_one_user_and_is_forgotten_when_it_has_none() {
    let mut episodes = episodes(2);
    run(&mut episodes, 0, 1.0, true);
    assert_eq!(episodes.usage(), Usage { slots: 1, bytes: 2 * 3 * 2 * 4, ..Usage::default() });
    assert!(episodes.take(0));
    assert!(!episodes.take(0) && !episodes.forget(0) && episodes.content(0).is_none());
    episodes.settle(0, true);
    assert!(episodes.forget(0));
    assert_eq!((episodes.usage(), episodes.plan(0).unwrap().entry), (Usage::default(), Entry::First));
    assert_eq!(episodes.plan(2), None);
}

#[test]
fn values_of_two_bytes_take_half_of_the_memory_and_are_kept_whole() {
    let mut half = of_type(Dtype::F16, 2, 0);
    let mut place = 0;
    for _ in 0..2 {
        assert!(half.take(1));
        place = half.begin(1).unwrap();
        for (at, byte) in rows(&mut half).staged[place * 48..][..48].iter_mut().enumerate() {
            *byte = at as u8;
        }
        stage(&half, 1, half.plan(1).unwrap()).unwrap();
        half.settle(1, true);
    }
    assert_eq!(half.begin(1), Ok(place));
    assert_eq!(half.usage(), Usage { slots: 1, bytes: 3 * 2 * 3 * 2 * 2, ..Usage::default() });
    // Each lead has a frame of 2 tokens, then two of them, of 6 bytes a token.
    let kept = |lead: u8| (0..12).chain(0..24).map(move |at| lead * 24 + at);
    let expected = |lead: u8| kept(lead).chain(std::iter::repeat_n(0, 24));
    assert_eq!(
        rows(&mut half).committed[place * 120..][..120].to_vec(),
        expected(0).chain(expected(1)).collect::<Vec<_>>()
    );
}

/// A mask hides rows by a weight of 0, and 0 times infinity is NaN, also for rows of another session.
#[test]
fn rows_that_are_not_finite_are_never_committed() {
    let mut episodes = episodes(1);
    for bad in [f32::NAN, f32::NEG_INFINITY] {
        run(&mut episodes, 0, 1.0, true);
        let before = episodes.content(0);
        assert!(episodes.take(0));
        let place = episodes.begin(0).unwrap();
        let pass = episodes.plan(0).unwrap();
        // The last value that the inference has written in the second lead.
        let (lead, last) = (4 * 3 * 4, (pass.written * 2 * 3 - 1) * 4);
        let staged = &mut rows(&mut episodes).staged[place * 2 * lead..][..2 * lead];
        staged.fill(0);
        staged[lead + last..][..4].copy_from_slice(&bad.to_ne_bytes());
        assert_eq!(stage(&episodes, 0, pass), Err("the rows of k for its memory are not finite".into()));
        episodes.settle(0, true);
        assert_eq!(episodes.content(0), before);
        assert!(episodes.forget(0));
    }
    // Rows behind the valid ones belong to the next inference.
    assert!(episodes.take(0));
    let place = episodes.begin(0).unwrap();
    let pass = episodes.plan(0).unwrap();
    let written = pass.written * 2 * 3 * 4;
    rows(&mut episodes).staged[place * 96..][..48].fill(0);
    rows(&mut episodes).staged[place * 96 + written..][..4].copy_from_slice(&f32::NAN.to_ne_bytes());
    assert_eq!(stage(&episodes, 0, pass), Ok(()));
}

#[test]
fn slots_and_caches_do_not_overlap() {
    let mut episodes = episodes(3);
    for slot in 0..3 {
        run(&mut episodes, slot, slot as f32 + 1.0, true);
    }
    let digests: Vec<_> = (0..3).map(|slot| episodes.content(slot).unwrap().1).collect();
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    let before = digests[2];
    run(&mut episodes, 1, 50.0, true);
    run(&mut episodes, 1, 60.0, true);
    assert_eq!(episodes.content(2).unwrap().1, before);
}

/// A panic in the proof on one device does not spoil the proof on the next.
#[test]
fn a_panic_in_a_proof_leaves_its_slot_free_and_empty() {
    let mut episodes = episodes(1);
    run(&mut episodes, 0, 1.0, true);
    let proof = || {
        let _slot = ProofSlot::of(&episodes).unwrap();
        assert!(episodes.take(0));
        episodes.begin(0).unwrap();
        stage(&episodes, 0, episodes.plan(0).unwrap()).unwrap();
        std::panic::resume_unwind(Box::new("in the run"));
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(proof)).is_err());
    assert_eq!(episodes.content(0).unwrap().0, 0);
    assert!(ProofSlot::of(&episodes).is_some());
}
