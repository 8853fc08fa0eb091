//! Calls received by an algorithm of a test, one line each.

use std::cell::RefCell;

thread_local! {
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(vec![]) };
}

/// Returns the lines since the last call.
pub fn told() -> Vec<String> {
    TOLD.with_borrow_mut(std::mem::take)
}

/// Adds a line.
pub fn note(line: String) {
    TOLD.with_borrow_mut(|told| told.push(line));
}
