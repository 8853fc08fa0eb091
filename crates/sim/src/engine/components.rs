//! Which of some things belong together.

/// Things by numbers, in sets that grow together (disjoint sets with path halving; Tarjan and van Leeuwen 1984). The smallest number of a set stands for it.
#[derive(Debug)]
pub(crate) struct Components {
    /// For each thing one with a smaller number in the same set, itself if there is none.
    parents: Vec<u32>,
}

impl Components {
    /// So many things, each in a set of its own.
    pub fn new(things: u32) -> Self {
        Self { parents: (0..things).collect() }
    }

    /// The smallest number in the set of a thing.
    pub fn first_of(&mut self, mut thing: u32) -> u32 {
        while self.parents[thing as usize] != thing {
            let parent = self.parents[thing as usize];
            self.parents[thing as usize] = self.parents[parent as usize];
            thing = parent;
        }
        thing
    }

    /// Two things are in the same set.
    pub fn unite(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first_of(one), self.first_of(other));
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// The smallest number in the set of each thing.
    pub fn firsts(&mut self) -> Vec<u32> {
        (0..self.parents.len() as u32).map(|thing| self.first_of(thing)).collect()
    }
}
