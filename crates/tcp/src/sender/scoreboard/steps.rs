//! Counter of loop iterations, by which a test shows that the work per ACK is independent of the window.

/// Counts one iteration of a loop over the window.
pub(super) fn count_step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

#[cfg(test)]
thread_local! {
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
