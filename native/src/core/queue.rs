//! A bounded queue between threads in which accounts alternate. It allocates only when it is made.
//!
//! Every item belongs to a turn, a number per account. Each round has one item of each turn, in the order of arrival: an account
//! with 64 queued items delays the next item of another one by a single item. Items of one turn are first in, first out.

use crate::core::sync::{Condvar, Mutex, lock};
use std::collections::VecDeque;
use std::sync::PoisonError;

struct Entry<T> {
    round: u64,
    turn: u32,
    item: T,
}

pub struct Waiting<T> {
    items: VecDeque<Entry<T>>,
    /// The current round, and the turns that were served in it.
    round: u64,
    served: Vec<u32>,
    bound: usize,
}

struct Inner<T> {
    waiting: Waiting<T>,
    closed: bool,
}

pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

impl<T> Queue<T> {
    /// A queue for at most `bound` items.
    pub fn new(bound: usize) -> Queue<T> {
        let inner = Inner { waiting: Waiting::new(bound), closed: false };
        Queue { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    /// Appends the item to its turn; returns it if the queue is full or closed.
    pub fn push(&self, turn: u32, item: T) -> Result<(), T> {
        let mut inner = lock(&self.inner);
        if inner.closed {
            return Err(item);
        }
        inner.waiting.push(turn, item)?;
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next item; None once the queue is closed and empty.
    pub fn pop(&self) -> Option<T> {
        self.pop_unless(|| false)
    }

    /// Waits for the next item; None also for a consumer that leaves, which `wake` has look again. Another consumer takes the item that
    /// this one may have been woken for.
    fn pop_unless(&self, leaves: impl Fn() -> bool) -> Option<T> {
        let mut inner = lock(&self.inner);
        loop {
            if leaves() {
                drop(inner);
                self.changed.notify_one();
                return None;
            }
            if let Some(item) = inner.waiting.next() {
                return Some(item);
            }
            if inner.closed {
                return None;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for an item, then moves all queued ones, at most `most`, to `taken`. False if the queue is closed and empty, or if the
    /// consumer leaves.
    pub fn take(&self, taken: &mut Vec<T>, most: usize, leaves: impl Fn() -> bool) -> bool {
        taken.clear();
        let Some(first) = self.pop_unless(leaves) else { return false };
        taken.push(first);
        let mut inner = lock(&self.inner);
        while taken.len() < most {
            let Some(item) = inner.waiting.next() else { break };
            taken.push(item);
        }
        true
    }

    /// Has every waiting consumer check whether it leaves.
    pub fn wake(&self) {
        // A consumer holds the lock from its check to its wait, so it does not miss this.
        drop(lock(&self.inner));
        self.changed.notify_all();
    }

    /// Removes an item that no consumer has taken yet.
    pub fn remove(&self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        lock(&self.inner).waiting.remove(wanted)
    }

    /// Refuses producers; consumers take what is queued and then end.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.changed.notify_all();
    }
}

impl<T> Waiting<T> {
    /// Nothing, with room for `bound` items.
    pub fn new(bound: usize) -> Waiting<T> {
        Waiting { items: VecDeque::with_capacity(bound), round: 0, served: Vec::with_capacity(bound), bound }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Appends the item to its turn; returns it if there is no room.
    pub fn push(&mut self, turn: u32, item: T) -> Result<(), T> {
        if self.items.len() == self.bound {
            return Err(item);
        }
        let first = self.round + u64::from(self.served.contains(&turn));
        let behind = self.items.iter().filter(|entry| entry.turn == turn).map(|entry| entry.round + 1).max();
        let round = behind.map_or(first, |round| round.max(first));
        self.items.push_back(Entry { round, turn, item });
        Ok(())
    }

    fn remove(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let index = self.items.iter().position(|entry| wanted(&entry.item))?;
        let Entry { round, turn, item } = self.items.remove(index)?;
        // Later items of its turn move up by a round, so that the removal costs them nothing.
        self.items
            .iter_mut()
            .filter(|entry| entry.turn == turn && entry.round > round)
            .for_each(|entry| entry.round -= 1);
        Some(item)
    }

    /// The oldest item of the earliest round.
    pub fn next(&mut self) -> Option<T> {
        let earliest = self.items.iter().map(|entry| entry.round).min()?;
        let index = self.items.iter().position(|entry| entry.round == earliest)?;
        let Entry { round, turn, item } = self.items.remove(index)?;
        if round > self.round {
            self.round = round;
            self.served.clear();
        }
        // Never grows the vector, which would allocate. A turn that does not fit may be served once too early, nothing worse.
        if !self.served.contains(&turn) && self.served.len() < self.served.capacity() {
            self.served.push(turn);
        }
        Some(item)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn all(queue: &Queue<&'static str>, count: usize) -> Vec<&'static str> {
        (0..count).map(|_| queue.pop().unwrap()).collect()
    }

    #[test]
    fn inside_a_turn_it_keeps_order_and_its_bound() {
        let queue = Queue::new(2);
        assert_eq!(queue.push(7, "one"), Ok(()));
        assert_eq!(queue.push(7, "two"), Ok(()));
        assert_eq!(queue.push(8, "three"), Err("three"));
        assert_eq!(all(&queue, 2), ["one", "two"]);
    }

    #[test]
    fn a_turn_with_many_items_delays_another_by_one() {
        let queue = Queue::new(16);
        ["a1", "a2", "a3", "a4"].into_iter().for_each(|item| queue.push(1, item).unwrap());
        queue.push(2, "b1").unwrap();
        assert_eq!(all(&queue, 2), ["a1", "b1"]);
        queue.push(2, "b2").unwrap();
        queue.push(3, "c1").unwrap();
        assert_eq!(all(&queue, 5), ["c1", "a2", "b2", "a3", "a4"]);
    }

    #[test]
    fn a_turn_that_always_has_one_item_does_not_starve_the_others() {
        let queue = Queue::new(16);
        ["a1", "a2", "a3"].into_iter().for_each(|item| queue.push(1, item).unwrap());
        let mut order = Vec::new();
        for _ in 0..3 {
            queue.push(2, "b").unwrap();
            order.extend(all(&queue, 2));
        }
        assert_eq!(order, ["a1", "b", "a2", "b", "a3", "b"]);
    }

    #[test]
    fn what_waits_together_is_taken_together_up_to_the_bound() {
        let queue = Queue::new(8);
        (0..5).for_each(|item| queue.push(0, item).unwrap());
        let mut taken = Vec::with_capacity(4);
        assert!(queue.take(&mut taken, 4, || false));
        assert_eq!(taken, [0, 1, 2, 3]);
        assert!(queue.take(&mut taken, 4, || false));
        assert_eq!(taken, [4]);
    }

    #[test]
    fn an_item_is_taken_back_only_while_it_waits() {
        let queue = Queue::new(4);
        (1..=3).for_each(|item| queue.push(0, item).unwrap());
        assert_eq!((queue.remove(|&item| item == 2), queue.remove(|&item| item == 2)), (Some(2), None));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(3)));
    }

    #[test]
    fn those_behind_an_item_that_is_taken_back_move_up() {
        let queue = Queue::new(128);
        (0..64).for_each(|item| queue.push(1, item).unwrap());
        assert_eq!(queue.pop(), Some(0));
        (1..63).for_each(|taken| assert_eq!(queue.remove(|&item| item == taken), Some(taken)));
        (100..164).for_each(|item| queue.push(2, item).unwrap());
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(100), Some(63), Some(101)));
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_then_ends() {
        let queue = Queue::new(2);
        queue.push(0, 1).unwrap();
        queue.close();
        assert_eq!(queue.push(0, 2), Err(2));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), None));
    }

    #[test]
    fn a_consumer_that_leaves_takes_nothing_and_leaves_what_waits_to_the_others() {
        let queue = Queue::new(2);
        queue.push(0, 1).unwrap();
        let mut taken = Vec::with_capacity(4);
        assert!(!queue.take(&mut taken, 4, || true));
        assert!(taken.is_empty());
        assert!(queue.take(&mut taken, 4, || false));
        assert_eq!(taken, [1]);
    }

    #[test]
    fn a_consumer_that_waits_is_woken_to_leave() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let (queue, leaves) = (Queue::<u32>::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| queue.take(&mut Vec::new(), 1, || leaves.load(Ordering::Acquire)));
            leaves.store(true, Ordering::Release);
            queue.wake();
            assert!(!waits.join().expect("a consumer"));
        });
    }
}
