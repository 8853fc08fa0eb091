//! Maximum over a sliding window of rounds or nanoseconds, in constant space and time.
//!
//! K. Nichols' windowed filter, as in the Linux kernel (`lib/win_minmax.c`). It keeps the best, second best and third best
//! value of ever younger parts of the window. It is exact if at least one value arrives per quarter of the window.

/// A windowed maximum. With [`core::cmp::Reverse`] values it is a windowed minimum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct WindowedMax<T> {
    window: u64,
    /// Time and value, best first, youngest last; `None` before the first value.
    best: Option<[(u64, T); 3]>,
}

impl<T: PartialOrd + Copy> WindowedMax<T> {
    /// Makes a filter that forgets values older than `window`.
    pub fn new(window: u64) -> Self {
        Self { window, best: None }
    }

    /// Changes the window: values older than `window` are forgotten from now on.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Returns the maximum as of the last update.
    pub fn get(&self) -> Option<T> {
        self.best.map(|best| best[0].1)
    }

    /// Forgets everything but `value`.
    pub fn reset(&mut self, at: u64, value: T) {
        self.best = Some([(at, value); 3]);
    }

    /// Adds a value seen at `at`. Times must not decrease.
    pub fn update(&mut self, at: u64, value: T) {
        let Some(best) = &mut self.best else { return self.reset(at, value) };
        debug_assert!(best.is_sorted_by_key(|(at, _)| *at) && best[2].0 <= at, "times decrease");
        if value >= best[0].1 || at.saturating_sub(best[2].0) > self.window {
            return self.reset(at, value);
        }
        if value >= best[1].1 {
            best[1] = (at, value);
            best[2] = (at, value);
        } else if value >= best[2].1 {
            best[2] = (at, value);
        }
        age(best, (at, value), self.window);
    }
}

/// Drops the best value once it has left the window, and keeps the second and third best from younger parts.
fn age<T: Copy>(best: &mut [(u64, T); 3], new: (u64, T), window: u64) {
    let age_of = |sample: (u64, T)| new.0.saturating_sub(sample.0);
    if age_of(best[0]) > window {
        *best = [best[1], best[2], new];
        if age_of(best[0]) > window {
            *best = [best[1], best[2], new];
        }
    } else if best[1].0 == best[0].0 && age_of(best[0]) > window / 4 {
        best[1] = new;
        best[2] = new;
    } else if best[2].0 == best[1].0 && age_of(best[0]) > window / 2 {
        best[2] = new;
    }
}

#[cfg(test)]
mod tests {
    use core::cmp::Reverse;

    use super::*;

    #[test]
    fn a_maximum_lasts_a_window_and_no_longer() {
        let mut filter = WindowedMax::new(10);
        assert_eq!(filter.get(), None);
        filter.update(0, 100);
        for round in 1..=10 {
            filter.update(round, 50);
            assert_eq!(filter.get(), Some(100), "round {round}");
        }
        filter.update(11, 50);
        assert_eq!(filter.get(), Some(50));
    }

    #[test]
    fn a_larger_value_takes_over_at_once() {
        let mut filter = WindowedMax::new(10);
        filter.update(0, 100);
        filter.update(1, 120);
        assert_eq!(filter.get(), Some(120));
    }

    #[test]
    fn the_second_best_follows() {
        let mut filter = WindowedMax::new(10);
        for (round, value) in [(0, 100), (4, 80), (6, 60), (9, 40), (11, 40)] {
            filter.update(round, value);
        }
        assert_eq!(filter.get(), Some(80));
    }

    #[test]
    fn silence_longer_than_the_window_empties_it() {
        let mut filter = WindowedMax::new(10);
        filter.update(0, 100);
        filter.update(30, 1);
        assert_eq!(filter.get(), Some(1));
    }

    #[test]
    fn reversed_it_is_a_minimum() {
        let mut filter = WindowedMax::new(u64::MAX);
        for (at, value) in [(0, 5), (1, 3), (1000, 7)] {
            filter.update(at, Reverse(value));
        }
        assert_eq!(filter.get(), Some(Reverse(3)));
        filter.reset(1001, Reverse(9));
        assert_eq!(filter.get(), Some(Reverse(9)));
    }
}
