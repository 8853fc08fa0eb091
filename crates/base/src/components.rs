//! Connected components of numbered items.

use alloc::vec;
use alloc::vec::Vec;

/// Numbered items in disjoint sets that can be united (path halving; Tarjan and van Leeuwen 1984). The smallest number of a set
/// represents it.
#[derive(Debug)]
pub struct Components {
    /// For each item a smaller number in the same set, or itself if it is the smallest.
    parents: Vec<u32>,
}

impl Components {
    /// Makes `things` items, each in a separate set.
    pub fn new(things: u32) -> Self {
        Self { parents: (0..things).collect() }
    }

    /// Returns the smallest number in the set of an item.
    pub fn first_of(&mut self, mut thing: u32) -> u32 {
        while self.parents[thing as usize] != thing {
            let parent = self.parents[thing as usize];
            self.parents[thing as usize] = self.parents[parent as usize];
            thing = parent;
        }
        thing
    }

    /// Unites the sets of two items.
    pub fn unite(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first_of(one), self.first_of(other));
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// Divides the sets among at most `most` shards of about equal weight. Returns the shard of each item, and the number of
    /// shards.
    pub fn divide(&mut self, weights: &[u64], most: u32) -> (Vec<u32>, u32) {
        let firsts = self.firsts();
        let mut together = vec![0; weights.len()];
        firsts.iter().zip(weights).for_each(|(first, weight)| together[*first as usize] += weight);
        let sets = together.iter().filter(|weight| **weight > 0).count() as u64;
        let count = u64::from(most).min(sets).max(1);
        let all = together.iter().sum::<u64>().max(1);
        let (mut before, mut shares) = (0, vec![0; weights.len()]);
        for (thing, first) in firsts.into_iter().enumerate() {
            if first as usize == thing {
                shares[thing] = (before * count / all) as u32;
                before += together[thing];
            }
            shares[thing] = shares[first as usize];
        }
        (shares, count as u32)
    }

    /// Returns the smallest number in the set of each item.
    pub fn firsts(&mut self) -> Vec<u32> {
        (0..self.parents.len() as u32).map(|thing| self.first_of(thing)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_about_the_same_weight_and_whole_sets() {
        let mut components = Components::new(6);
        components.unite(4, 1);
        components.unite(5, 4);
        assert_eq!(components.firsts(), [0, 1, 2, 3, 1, 1]);
        assert_eq!(components.divide(&[2, 1, 2, 1, 1, 1], 2), (vec![0, 0, 1, 1, 0, 0], 2));
        assert_eq!(components.divide(&[1; 6], 9).1, 4);
    }
}
