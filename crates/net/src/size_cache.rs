/// Remembers a value that depends on the packet size only, for the few sizes that traffic consists of.
#[derive(Clone, Debug)]
pub(crate) struct SizeCache<T> {
    slots: [(u32, T); 2],
}

impl<T: Copy + Default> SizeCache<T> {
    pub fn new() -> Self {
        Self { slots: [(0, T::default()); 2] }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.slots = [(0, T::default()); 2];
    }

    /// The value for `size`, computed only when it is not remembered.
    #[inline]
    pub fn get(&mut self, size: u32, compute: impl FnOnce() -> T) -> T {
        // Data packets and ACKs: the one that was not asked for last gives way.
        if self.slots[0].0 != size {
            self.slots.swap(0, 1);
            if self.slots[0].0 != size {
                self.slots[0] = (size, compute());
            }
        }
        self.slots[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_once_per_size_until_cleared() {
        let mut cache = SizeCache::new();
        assert_eq!(cache.get(1500, || 1), 1);
        assert_eq!(cache.get(40, || 2), 2);
        assert_eq!(cache.get(1500, || 3), 1);
        cache.clear();
        assert_eq!(cache.get(1500, || 4), 4);
    }

    #[test]
    fn colliding_sizes_replace_each_other() {
        let mut cache = SizeCache::new();
        for size in (0..100).chain(0..100) {
            assert_eq!(cache.get(size, || size * 2), size * 2);
        }
    }
}
