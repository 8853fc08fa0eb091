//! What an algorithm of a test was told, line by line.

use std::cell::RefCell;

thread_local! {
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(vec![]) };
}

/// What was noted since the last call.
pub fn told() -> Vec<String> {
    TOLD.with_borrow_mut(std::mem::take)
}

/// Notes a line.
pub fn note(line: String) {
    TOLD.with_borrow_mut(|told| told.push(line));
}
