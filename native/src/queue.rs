//! A bounded queue between threads that allocates only when it is made.

use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

struct Inner<T> {
    items: VecDeque<T>,
    closed: bool,
}

/// First in, first out; many producers, many consumers.
pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    waiting: Condvar,
    bound: usize,
}

impl<T> Queue<T> {
    /// A queue for at most `bound` items.
    pub fn new(bound: usize) -> Queue<T> {
        Queue {
            inner: Mutex::new(Inner { items: VecDeque::with_capacity(bound), closed: false }),
            waiting: Condvar::new(),
            bound,
        }
    }

    /// Appends the item; gives it back when the queue is full or closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut inner = lock(&self.inner);
        if inner.closed || inner.items.len() == self.bound {
            return Err(item);
        }
        inner.items.push_back(item);
        drop(inner);
        self.waiting.notify_one();
        Ok(())
    }

    /// Waits for the next item; None once the queue is closed and empty.
    pub fn pop(&self) -> Option<T> {
        let mut inner = lock(&self.inner);
        loop {
            if let Some(item) = inner.items.pop_front() {
                return Some(item);
            }
            if inner.closed {
                return None;
            }
            inner = self.waiting.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for an item, then moves all that wait, at most `most`, into `taken`. False once closed and empty.
    pub fn take(&self, taken: &mut Vec<T>, most: usize) -> bool {
        taken.clear();
        let Some(first) = self.pop() else { return false };
        taken.push(first);
        let mut inner = lock(&self.inner);
        while taken.len() < most {
            let Some(item) = inner.items.pop_front() else { break };
            taken.push(item);
        }
        true
    }

    /// Lets consumers take what is there and then end; producers are refused.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.waiting.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_order_and_its_bound() {
        let queue = Queue::new(2);
        assert_eq!(queue.push(1), Ok(()));
        assert_eq!(queue.push(2), Ok(()));
        assert_eq!(queue.push(3), Err(3));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(2)));
    }

    #[test]
    fn what_waits_together_is_taken_together_up_to_the_bound() {
        let queue = Queue::new(8);
        (0..5).for_each(|item| queue.push(item).unwrap());
        let mut taken = Vec::with_capacity(4);
        assert!(queue.take(&mut taken, 4));
        assert_eq!(taken, [0, 1, 2, 3]);
        assert!(queue.take(&mut taken, 4));
        assert_eq!(taken, [4]);
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_then_ends() {
        let queue = Queue::new(2);
        queue.push(1).unwrap();
        queue.close();
        assert_eq!(queue.push(2), Err(2));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), None));
    }
}
