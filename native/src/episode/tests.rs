//! Slots of episode memory: what is kept, what is not, and that slots do not overlap.

use super::*;
use crate::replica::prove::ProofSlot;

/// Slots of one cache `[2, tokens, 3]`, window 5 of 2 tokens, first 1, later 2.
fn episodes(slots: usize) -> Episodes {
    let facts = MemoryFacts { window: 5, tokens: 2, first: 1, later: 2 };
    let cache = Cache {
        name: "k".into(),
        leads: 2,
        width: 3,
        committed: Block::locked(slots * 2 * 10 * 3).unwrap(),
        staged: Block::locked(slots * 2 * 4 * 3).unwrap(),
    };
    Episodes { facts, caches: vec![cache], slots: (0..slots).map(|_| Mutex::default()).collect() }
}

/// A run that writes `value` everywhere it may.
fn run(episodes: &mut Episodes, slot: usize, value: f32, keep: bool) -> Pass {
    assert!(episodes.take(slot));
    episodes.begin(slot);
    let pass = episodes.plan(slot).unwrap();
    let len = 2 * 4 * 3;
    episodes.caches[0].staged[slot * len..(slot + 1) * len].fill(value);
    episodes.stage(slot, pass);
    episodes.settle(slot, keep);
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
        assert_eq!(clean.look(0), other.look(1));
    }
    assert_eq!(other.look(1).unwrap().0, 1);
}

#[test]
fn a_slot_has_one_user_and_is_forgotten_when_it_has_none() {
    let mut episodes = episodes(2);
    run(&mut episodes, 0, 1.0, true);
    assert_eq!(episodes.held(), (1, 2 * 3 * 2 * 4));
    assert!(episodes.take(0));
    assert!(!episodes.take(0) && !episodes.forget(0) && episodes.look(0).is_none());
    episodes.settle(0, true);
    assert!(episodes.forget(0));
    assert_eq!((episodes.held(), episodes.plan(0).unwrap().entry), ((0, 0), Entry::First));
    assert_eq!(episodes.plan(2), None);
}

#[test]
fn slots_and_caches_do_not_overlap() {
    let mut episodes = episodes(3);
    for slot in 0..3 {
        run(&mut episodes, slot, slot as f32 + 1.0, true);
    }
    let digests: Vec<_> = (0..3).map(|slot| episodes.look(slot).unwrap().1).collect();
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    let before = digests[2];
    run(&mut episodes, 1, 50.0, true);
    run(&mut episodes, 1, 60.0, true);
    assert_eq!(episodes.look(2).unwrap().1, before);
}

/// A panic in the proof on one device must not have the next one refused.
#[test]
fn a_panic_in_a_proof_leaves_its_slot_free_and_empty() {
    let mut episodes = episodes(1);
    run(&mut episodes, 0, 1.0, true);
    let proof = || {
        let _slot = ProofSlot::of(&episodes).unwrap();
        assert!(episodes.take(0));
        episodes.stage(0, episodes.plan(0).unwrap());
        std::panic::resume_unwind(Box::new("in the run"));
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(proof)).is_err());
    assert_eq!(episodes.look(0).unwrap().0, 0);
    assert!(ProofSlot::of(&episodes).is_some());
}
