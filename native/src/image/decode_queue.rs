//! Frames that wait for the decode threads, in a queue per device: the frames of one device never wait behind those of another. Each thread
//! belongs to a queue and takes from it first. When that is empty it takes from the others, so no thread is idle while a frame waits. It
//! allocates only when it is made.

use crate::core::queue::Waiting;
use crate::core::sync::{Condvar, Mutex, lock};
use std::sync::PoisonError;

/// The number of queues; devices beyond them share.
pub const QUEUES_MAX: usize = 8;

struct Inner<T> {
    queues: [Waiting<T>; QUEUES_MAX],
    /// Queues that have been used: threads are divided among these.
    queue_count: usize,
    /// The first queue for the next item if there are fewer threads than queues. No thread belongs to a queue then, and no queue waits for
    /// another to be empty.
    turn: usize,
    threads: usize,
    closed: bool,
}

pub struct DecodeQueue<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

impl<T> DecodeQueue<T> {
    /// Each queue has room for `bound` items; `threads` threads take them.
    pub fn new(bound: usize, threads: usize) -> DecodeQueue<T> {
        let queues = std::array::from_fn(|_| Waiting::new(bound));
        DecodeQueue {
            inner: Mutex::new(Inner { queues, queue_count: 1, turn: 0, threads, closed: false }),
            changed: Condvar::new(),
        }
    }

    /// Appends the item to its turn in the shortest of these queues; returns it if that is full, or all are closed.
    pub fn push(&self, candidates: &[usize], turn: u32, item: T) -> Result<(), T> {
        let mut inner = lock(&self.inner);
        let queue = candidates.iter().map(|queue| queue % QUEUES_MAX).min_by_key(|&queue| inner.queues[queue].len());
        let (false, Some(queue)) = (inner.closed, queue) else { return Err(item) };
        inner.queue_count = inner.queue_count.max(queue + 1);
        inner.queues[queue].push(turn, item)?;
        drop(inner);
        // Any thread may wake, since each takes from every queue.
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next item of the thread's own queue, or else of another; None once closed and empty.
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

    /// Items that wait in a queue.
    pub fn waiting(&self, queue: usize) -> usize {
        lock(&self.inner).queues[queue % QUEUES_MAX].len()
    }

    /// Refuses producers; consumers take what waits and then end.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.changed.notify_all();
    }
}

impl<T> Inner<T> {
    fn next(&mut self, thread: usize) -> Option<T> {
        let queue_count = self.queue_count;
        let first = if self.threads < queue_count { self.turn } else { thread };
        let offset = (0..queue_count).find(|offset| self.queues[(first + offset) % queue_count].len() > 0)?;
        self.turn = (first + offset + 1) % queue_count;
        self.queues[(first + offset) % queue_count].next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> DecodeQueue<&'static str> {
        let queues = DecodeQueue::new(4, 4);
        for (queue, item) in [(0, "a1"), (0, "a2"), (1, "b1"), (0, "a3")] {
            queues.push(&[queue], 7, item).expect("room");
        }
        queues
    }

    #[test]
    fn a_thread_takes_from_its_own_lane_first_and_then_from_the_others() {
        let queues = filled();
        assert_eq!([1, 1, 0, 1].map(|thread| queues.pop(thread)), [Some("b1"), Some("a1"), Some("a2"), Some("a3")]);
    }

    #[test]
    fn with_fewer_threads_than_lanes_no_lane_waits_until_another_is_empty() {
        let queues = DecodeQueue::new(9, 1);
        for (queue, item) in [(0, "a1"), (0, "a2"), (0, "a3"), (1, "b1"), (1, "b2"), (2, "c1")] {
            queues.push(&[queue], 7, item).expect("room");
        }
        let taken = [0; 6].map(|thread| queues.pop(thread).expect("an item"));
        assert_eq!(taken, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn with_one_lane_every_thread_takes_in_order() {
        let queues = DecodeQueue::new(4, 4);
        ["a", "b", "c"].into_iter().for_each(|item| queues.push(&[0], 7, item).expect("room"));
        assert_eq!([3, 0, 1].map(|thread| queues.pop(thread)), [Some("a"), Some("b"), Some("c")]);
    }

    #[test]
    fn an_item_of_several_devices_waits_in_the_shortest_lane() {
        let queues = filled();
        queues.push(&[0, 1], 7, "both").expect("room");
        assert_eq!((queues.waiting(0), queues.waiting(1)), (3, 2));
    }

    #[test]
    fn a_lane_has_its_bound_and_closed_lanes_give_what_they_have() {
        let queues = DecodeQueue::new(1, 4);
        assert_eq!(
            [queues.push(&[0], 0, 1), queues.push(&[0], 0, 2), queues.push(&[1], 0, 3)],
            [Ok(()), Err(2), Ok(())]
        );
        queues.close();
        assert_eq!(queues.push(&[2], 0, 4), Err(4));
        assert_eq!([queues.pop(1), queues.pop(1), queues.pop(1)], [Some(3), Some(1), None]);
    }
}
