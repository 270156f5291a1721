//! The last error that ONNX Runtime logged on this thread, because its status texts never name a missing file. Models are loaded side by
//! side: with the error of another thread a good device could be taken for lost.

use std::cell::RefCell;

thread_local! {
    static LOGGED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Replaces the message.
pub(super) fn keep(message: &str) {
    LOGGED.with_borrow_mut(|logged| message.clone_into(logged));
}

pub(super) fn forget() {
    LOGGED.with_borrow_mut(String::clear);
}

/// The last message; empty without one.
pub(super) fn last() -> String {
    LOGGED.with_borrow(String::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_another_load_is_not_told_as_the_reason_of_this_one() {
        keep("mine");
        std::thread::spawn(|| {
            assert_eq!(last(), "");
            keep("CUDA failure 700: an illegal memory access was encountered");
        })
        .join()
        .expect("it does not panic");
        assert_eq!(last(), "mine");
        forget();
        assert_eq!(last(), "");
    }
}
