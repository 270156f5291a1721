//! What waits for the decode threads, a lane per device: the frames of one device never wait behind those of another one. Each thread
//! belongs to a lane and takes from there first; when its own lane is empty it takes from the others, so that two devices have no fewer
//! threads between them than one. It allocates only when it is made.

use crate::core::queue::Waiting;
use crate::core::sync::{Condvar, Mutex, lock};
use std::sync::PoisonError;

/// Lanes that there are; devices beyond them share.
pub const LANES_MAX: usize = 8;

struct Inner<T> {
    lanes: [Waiting<T>; LANES_MAX],
    /// Lanes that something has been put into: threads are divided among these.
    used: usize,
    /// With fewer threads than these, where the next one begins: none belongs to a lane then, and no lane waits for another to be empty.
    turn: usize,
    threads: usize,
    closed: bool,
}

/// Many producers, many consumers.
pub struct Lanes<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

impl<T> Lanes<T> {
    /// Each lane has room for `bound` items, which so many threads take.
    pub fn new(bound: usize, threads: usize) -> Lanes<T> {
        let lanes = std::array::from_fn(|_| Waiting::new(bound));
        Lanes { inner: Mutex::new(Inner { lanes, used: 1, turn: 0, threads, closed: false }), changed: Condvar::new() }
    }

    /// Appends the item to its turn in the shortest of these lanes; returns it if that is full, or all are closed.
    pub fn push(&self, among: &[usize], turn: u32, item: T) -> Result<(), T> {
        let mut inner = lock(&self.inner);
        let lane = among.iter().map(|lane| lane % LANES_MAX).min_by_key(|&lane| inner.lanes[lane].len());
        let (false, Some(lane)) = (inner.closed, lane) else { return Err(item) };
        inner.used = inner.used.max(lane + 1);
        inner.lanes[lane].push(turn, item)?;
        drop(inner);
        // Whichever thread wakes: it takes from every lane.
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next item of the thread's own lane, or else of another one; None once closed and empty.
    pub fn pop(&self, thread: usize) -> Option<T> {
        let mut inner = lock(&self.inner);
        loop {
            if let Some(item) = inner.next(thread) {
                return Some(item);
            }
            if inner.closed {
                return None;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Items that wait in a lane.
    pub fn waiting(&self, lane: usize) -> usize {
        lock(&self.inner).lanes[lane % LANES_MAX].len()
    }

    /// Refuses producers; consumers take what waits and then end.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.changed.notify_all();
    }
}

impl<T> Inner<T> {
    fn next(&mut self, thread: usize) -> Option<T> {
        let used = self.used;
        let first = if self.threads < used { self.turn } else { thread };
        let offset = (0..used).find(|offset| self.lanes[(first + offset) % used].len() > 0)?;
        self.turn = (first + offset + 1) % used;
        self.lanes[(first + offset) % used].next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Lanes<&'static str> {
        let lanes = Lanes::new(4, 4);
        for (lane, item) in [(0, "a1"), (0, "a2"), (1, "b1"), (0, "a3")] {
            lanes.push(&[lane], 7, item).expect("room");
        }
        lanes
    }

    #[test]
    fn a_thread_takes_from_its_own_lane_first_and_then_from_the_others() {
        let lanes = filled();
        assert_eq!([1, 1, 0, 1].map(|thread| lanes.pop(thread)), [Some("b1"), Some("a1"), Some("a2"), Some("a3")]);
    }

    #[test]
    fn with_fewer_threads_than_lanes_no_lane_waits_until_another_is_empty() {
        let lanes = Lanes::new(9, 1);
        for (lane, item) in [(0, "a1"), (0, "a2"), (0, "a3"), (1, "b1"), (1, "b2"), (2, "c1")] {
            lanes.push(&[lane], 7, item).expect("room");
        }
        let taken = [0; 6].map(|thread| lanes.pop(thread).expect("an item"));
        assert_eq!(taken, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn with_one_lane_every_thread_takes_in_order() {
        let lanes = Lanes::new(4, 4);
        ["a", "b", "c"].into_iter().for_each(|item| lanes.push(&[0], 7, item).expect("room"));
        assert_eq!([3, 0, 1].map(|thread| lanes.pop(thread)), [Some("a"), Some("b"), Some("c")]);
    }

    #[test]
    fn an_item_of_several_devices_waits_in_the_shortest_lane() {
        let lanes = filled();
        lanes.push(&[0, 1], 7, "both").expect("room");
        assert_eq!((lanes.waiting(0), lanes.waiting(1)), (3, 2));
    }

    #[test]
    fn a_lane_has_its_bound_and_closed_lanes_give_what_they_have() {
        let lanes = Lanes::new(1, 4);
        assert_eq!([lanes.push(&[0], 0, 1), lanes.push(&[0], 0, 2), lanes.push(&[1], 0, 3)], [Ok(()), Err(2), Ok(())]);
        lanes.close();
        assert_eq!(lanes.push(&[2], 0, 4), Err(4));
        assert_eq!([lanes.pop(1), lanes.pop(1), lanes.pop(1)], [Some(3), Some(1), None]);
    }
}
