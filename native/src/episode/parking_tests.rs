//! Parked sessions keep their rows, whenever they leave their place and come back, and also when they are dropped meanwhile.

use super::tests::{begun, computed, run, stage, with_capacity};
use super::*;

/// Bytes of latent frames in the memories of these tests.
fn bytes(frames: usize) -> usize {
    2 * 3 * 2 * 4 * frames
}

#[test]
fn an_episode_parked_between_every_two_steps_equals_one_that_never_was() {
    let (mut alone, mut shared) = (with_capacity(1, 0), with_capacity(1, 2));
    for step in 0..9 {
        let keep = step % 4 != 2;
        let expected = run(&mut alone, 0, step as f32, keep);
        for slot in 0..3 {
            assert_eq!(run(&mut shared, slot, step as f32, keep), expected, "step {step} of slot {slot}");
            assert_eq!(shared.content(slot), alone.content(0));
        }
    }
    for slot in 0..3 {
        assert_eq!(shared.content(slot), alone.content(0), "parked or not");
    }
    let Moves { parked, brought_back, .. } = &shared.moves;
    assert_eq!((parked.load(Ordering::Relaxed), brought_back.load(Ordering::Relaxed)), (26, 24));
}

#[test]
fn the_session_that_was_idle_for_the_longest_leaves_and_one_with_a_run_does_not() {
    let mut episodes = with_capacity(3, 1);
    for slot in [2, 0, 1] {
        run(&mut episodes, slot, slot as f32, true);
    }
    let where_is = |episodes: &Episodes, slot: usize| match lock(&episodes.seats).slots[slot].home {
        Home::Place(_) => "place",
        Home::Parked { .. } => "parked",
        Home::Nowhere => "nowhere",
    };
    // An inference has slot 2, which was used first. So slot 0 goes.
    assert!(episodes.take(2));
    run(&mut episodes, 3, 3.0, true);
    let all: Vec<_> = (0..4).map(|slot| where_is(&episodes, slot)).collect();
    assert_eq!(all, ["parked", "place", "place", "place"]);
    // A settlement is a use too, so slot 1 goes now.
    episodes.settle(2, false);
    run(&mut episodes, 0, 0.0, true);
    assert_eq!((where_is(&episodes, 1), where_is(&episodes, 2)), ("parked", "place"));
}

/// The block of the one place's session is computed and waits for its settlement while others run.
#[test]
fn a_run_that_waits_for_its_settlement_is_parked_with_its_block() {
    for keep in [true, false] {
        for steps in 0..6 {
            let (mut alone, mut shared) = (with_capacity(1, 0), with_capacity(1, 1));
            for step in 0..steps {
                run(&mut alone, 0, step as f32, true);
                run(&mut shared, 0, step as f32, true);
            }
            run(&mut alone, 0, 7.0, keep);
            computed(&mut shared, 0, 7.0);
            run(&mut shared, 1, 50.0, true);
            assert!(shared.content(0).is_none(), "its run has it still");
            shared.settle(0, keep);
            assert_eq!(shared.content(0), alone.content(0), "parked, {steps} steps, kept: {keep}");
            run(&mut alone, 0, 8.0, true);
            run(&mut shared, 0, 8.0, true);
            assert_eq!(shared.content(0), alone.content(0), "back, {steps} steps, kept: {keep}");
        }
    }
}

/// Both inferences are admitted to one place: the second takes the place of the first, whose session is queued behind it.
#[test]
fn two_runs_that_want_the_same_place_get_it_one_after_the_other() {
    let mut episodes = with_capacity(1, 1);
    run(&mut episodes, 0, 1.0, true);
    run(&mut episodes, 1, 2.0, true);
    let (zero, one) = (episodes.content(0), episodes.content(1));
    assert!(episodes.take(0) && episodes.take(1));
    episodes.begin(0).unwrap();
    episodes.begin(1).unwrap();
    episodes.settle(0, false);
    episodes.settle(1, false);
    assert_eq!((episodes.content(0), episodes.content(1)), (zero, one));
}

#[test]
fn what_is_parked_is_as_long_as_what_is_committed_and_free_when_it_is_dropped() {
    let mut episodes = with_capacity(1, 2);
    run(&mut episodes, 0, 1.0, true);
    run(&mut episodes, 1, 1.0, true);
    run(&mut episodes, 1, 2.0, true);
    run(&mut episodes, 2, 1.0, true);
    assert_eq!(episodes.usage(), Usage { slots: 3, bytes: bytes(5), parked: 2, parked_bytes: bytes(4) });
    assert!(episodes.forget(1));
    assert_eq!(episodes.usage(), Usage { slots: 2, bytes: bytes(2), parked: 1, parked_bytes: bytes(1) });
    // A slot that was dropped while parked belongs to a new session, which finds nothing.
    assert_eq!(run(&mut episodes, 1, 5.0, true).entry, Entry::First);
    episodes.forget(0);
    episodes.forget(1);
    episodes.forget(2);
    assert_eq!(episodes.usage(), Usage::default());
    // The same number of sessions as before finds a place: no place and no block is lost.
    for _ in 0..20 {
        for slot in 0..3 {
            run(&mut episodes, slot, 1.0, true);
        }
        (0..3).for_each(|slot| assert!(episodes.forget(slot)));
        episodes.give_back();
    }
}

#[test]
fn blocks_that_nobody_uses_go_back_to_the_system() {
    let mut episodes = with_capacity(1, 3);
    for slot in 0..4 {
        run(&mut episodes, slot, 9.0, true);
    }
    (0..2).for_each(|slot| assert!(episodes.forget(slot)));
    let nine = 9.0_f32.to_ne_bytes();
    let has_nine = |block: &&Block| block.chunks_exact(4).any(|bytes| bytes == nine);
    let nines = |episodes: &Episodes| episodes.blocks.get().unwrap().iter().filter(has_nine).count();
    assert_eq!(nines(&episodes), 3);
    episodes.give_back();
    // One session is parked, and the next exchange takes one block.
    assert_eq!(nines(&episodes), 2);
    assert!(episodes.forget(2));
    episodes.give_back();
    assert_eq!(nines(&episodes), 0);
}

/// The test uses the seats alone, because a move has no middle for one thread.
#[test]
fn a_session_that_is_dropped_while_it_moves_gives_place_and_block_back() {
    let mut seats = Seats::new(1);
    seats.lay_out(1, 1);
    let place = seats.free_place().unwrap();
    assert!(seats.enter(0).is_none() && seats.entered(0, place));
    seats.slots[0].frames = 3;
    // It is dropped while its rows go to their block; its next session comes at once.
    let leaving = seats.leave();
    seats.forget(0);
    seats.slots[0].taken = true;
    assert!(seats.slots[0].moving);
    seats.left(leaving);
    assert!(matches!(seats.slots[0].home, Home::Nowhere) && seats.slots[0].taken && seats.parked == 0);
    assert!(seats.enter(1).is_none() && seats.entered(1, place));
    // It is dropped while its rows come back, by others who had ended its inference.
    let leaving = seats.leave();
    seats.left(leaving);
    assert!(seats.enter(1).is_some());
    seats.forget(1);
    assert!(!seats.entered(1, place));
    assert_eq!((seats.free_place(), seats.parked), (Some(place), 0));
    assert!(seats.cool().is_some());
}

/// A device may refuse a copy.
#[test]
fn a_session_that_could_not_be_copied_is_where_it_was_and_what_was_dropped_meanwhile_is_free() {
    let mut seats = Seats::new(1);
    seats.lay_out(1, 1);
    let place = seats.free_place().unwrap();
    assert!(seats.enter(0).is_none() && seats.entered(0, place));
    let pending = Some(Write { from: 1, frames: 2 });
    (seats.slots[0].frames, seats.slots[0].pending) = (3, pending);
    // The copy to its block fails: its kept block stays pending.
    let leaving = seats.leave();
    let left = leaving.pending;
    seats.stayed(leaving, left);
    assert!(matches!(seats.slots[0].home, Home::Place(0)) && !seats.slots[0].moving);
    assert_eq!((seats.slots[0].pending, seats.parked, seats.free_place()), (pending, 0, None));
    // The copy back fails.
    let leaving = seats.leave();
    seats.left(leaving);
    seats.enter(0);
    seats.turned_back(0, place);
    assert!(matches!(seats.slots[0].home, Home::Parked { .. }) && !seats.slots[0].moving);
    assert_eq!((seats.parked, seats.free_place()), (1, Some(place)));
    // It is dropped during either.
    seats.enter(0);
    seats.forget(0);
    seats.turned_back(0, place);
    assert!(matches!(seats.slots[0].home, Home::Nowhere));
    assert_eq!((seats.parked, seats.free_place()), (0, Some(place)));
    assert!(seats.enter(1).is_none() && seats.entered(1, place));
    let leaving = seats.leave();
    seats.forget(1);
    seats.stayed(leaving, None);
    assert_eq!((seats.parked, seats.free_place()), (0, Some(place)));
    // Its blocks come back too: as many can be parked as before.
    assert_eq!((0..4).filter(|_| seats.cool().is_some()).count(), 1);
}

/// One thread makes observations, settlements and ends while the replica moves rows. A session has what it wrote itself.
#[test]
fn sessions_that_come_and_go_beside_the_moves_find_their_own_rows() {
    use std::sync::mpsc;
    let episodes = with_capacity(2, 4);
    let (submit, queue) = mpsc::channel::<(usize, f32)>();
    let (sender, done) = mpsc::channel::<usize>();
    std::thread::scope(|scope| {
        let shared = &episodes;
        scope.spawn(move || {
            for (slot, value) in queue {
                let place = shared.begin(slot).unwrap();
                let pass = shared.plan(slot).unwrap();
                let cache = &shared.rows.host.get().unwrap().0[0];
                for index in 0..2 * 4 * 3 {
                    // SAFETY: the staged rows of the place that this thread has for its run.
                    unsafe { cache.staged.address().cast::<f32>().add(place * 24 + index).write(value) };
                }
                stage(shared, slot, pass).unwrap();
                sender.send(slot).unwrap();
            }
        });
        let mut alone: Vec<Episodes> = (0..6).map(|_| with_capacity(1, 0)).collect();
        let mut random = 1_u64;
        let mut draw = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        let mut values = [0.0_f32; 6];
        let mut running = [false; 6];
        let mut under_way = 0;
        for round in 0..4000 {
            let slot = draw(6) as usize;
            if running[slot] {
                continue;
            }
            if draw(8) == 0 {
                assert!(shared.forget(slot));
                assert!(alone[slot].forget(0));
                continue;
            }
            values[slot] = round as f32;
            assert!(shared.take(slot));
            running[slot] = true;
            submit.send((slot, values[slot])).unwrap();
            under_way += 1;
            let waits = draw(3) as usize;
            while under_way > waits {
                let slot = done.recv().unwrap();
                let keep = draw(4) > 0;
                run(&mut alone[slot], 0, values[slot], keep);
                shared.settle(slot, keep);
                running[slot] = false;
                under_way -= 1;
                if under_way == 0 {
                    shared.give_back();
                    assert_eq!(shared.content(slot), alone[slot].content(0), "round {round}");
                }
            }
        }
        drop(submit);
    });
    assert!(episodes.moves.brought_back.load(Ordering::Relaxed) > 100);
}

#[test]
fn a_run_whose_session_has_a_place_moves_nothing() {
    let mut episodes = with_capacity(2, 2);
    for step in 0..6 {
        computed(&mut episodes, 0, step as f32);
        episodes.settle(0, true);
        assert!(episodes.take(1));
        begun(&mut episodes, 1, step as f32);
        episodes.settle(1, true);
    }
    let Moves { parked, brought_back, us } = &episodes.moves;
    assert_eq!([parked, brought_back, us].map(|counter| counter.load(Ordering::Relaxed)), [0; 3]);
}

/// A device may fail to copy and go on.
#[test]
fn a_block_that_is_settled_while_its_session_fails_to_be_parked_is_kept() {
    let (settled, carried) = (Write { from: 1, frames: 2 }, Write { from: 0, frames: 1 });
    for (meanwhile, left, pending) in [(Some(settled), None, settled), (None, Some(carried), carried)] {
        let mut seats = Seats::new(1);
        seats.lay_out(1, 1);
        let place = seats.free_place().expect("a place");
        assert!(seats.enter(0).is_none() && seats.entered(0, place));
        let leaving = seats.leave();
        seats.slots[0].pending = meanwhile;
        seats.stayed(leaving, left);
        assert_eq!(seats.slots[0].pending, Some(pending));
    }
}
