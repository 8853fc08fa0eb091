use std::collections::BTreeMap;

/// Set of numbers that arrive mostly in order. Its size is proportional to the number of
/// gaps.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, end)| number < *end)
    }

    /// Adds a number; returns true if it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        self.insert_range(number, number + 1)
    }

    /// Adds the numbers from `from` to below `end`; returns true if any is new.
    pub fn insert_range(&mut self, mut from: u64, mut end: u64) -> bool {
        if self.0.range(..=from).next_back().is_some_and(|(_, stop)| *stop >= end) {
            return false;
        }
        while let Some((&start, &stop)) = self.0.range(..=end).next_back().filter(|(_, stop)| **stop >= from)
        {
            self.0.remove(&start);
            (from, end) = (from.min(start), end.max(stop));
        }
        self.0.insert(from, end);
        true
    }

    /// Returns the first number missing from zero on.
    pub fn cumulative(&self) -> u64 {
        self.0.first_key_value().filter(|(from, _)| **from == 0).map_or(0, |(_, end)| *end)
    }

    /// Returns the ranges above [`cumulative`](Self::cumulative), with exclusive ends.
    pub fn above(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.range(1..).map(|(from, end)| (*from, *end))
    }

    /// Returns the missing ranges below `end`, with exclusive ends.
    pub fn gaps(&self, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let ends = [(end, end)];
        let held = self.0.range(..end).map(|(from, stop)| (*from, *stop)).chain(ends);
        let mut from = 0;
        held.filter_map(move |(start, stop)| {
            let gap = (from, start);
            from = stop;
            (gap.0 < gap.1).then_some(gap)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_together_whatever_their_order() {
        let mut ranges = Ranges::default();
        for number in [0, 1, 4, 6, 5] {
            assert!(ranges.insert(number), "{number}");
        }
        assert!(!ranges.insert(5) && ranges.contains(6) && !ranges.contains(7));
        assert_eq!(ranges.cumulative(), 2);
        assert_eq!(ranges.above().collect::<Vec<_>>(), [(4, 7)]);
        assert_eq!(ranges.gaps(9).collect::<Vec<_>>(), [(2, 4), (7, 9)]);
        assert_eq!(ranges.gaps(6).collect::<Vec<_>>(), [(2, 4)]);
        ranges.insert_range(1, 9);
        assert_eq!((ranges.cumulative(), ranges.above().count(), ranges.gaps(9).count()), (9, 0, 0));
        assert_eq!(Ranges::default().gaps(3).collect::<Vec<_>>(), [(0, 3)]);
    }

    #[test]
    fn a_range_takes_in_all_that_it_touches() {
        let mut ranges = Ranges::default();
        for (from, end) in [(10, 20), (30, 40), (50, 60), (20, 50)] {
            ranges.insert_range(from, end);
        }
        assert_eq!(ranges.above().collect::<Vec<_>>(), [(10, 60)]);
    }
}
