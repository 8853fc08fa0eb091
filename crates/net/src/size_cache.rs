/// Cache of a value that depends only on the packet size, for the few sizes of typical traffic.
#[derive(Clone, Debug)]
pub(crate) struct SizeCache<T> {
    /// Two arrays, because pairs of a number and a larger value would have padding.
    sizes: [u32; 2],
    values: [T; 2],
}

impl<T: Copy + Default> SizeCache<T> {
    pub fn new() -> Self {
        Self { sizes: [0; 2], values: [T::default(); 2] }
    }

    /// Clears the cache.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns the value for `size`, computed only if it is not cached.
    #[inline]
    pub fn get(&mut self, size: u32, compute: impl FnOnce() -> T) -> T {
        // One entry for data packets and one for ACKs; the entry not used last is replaced.
        if self.sizes[0] != size {
            self.sizes.swap(0, 1);
            self.values.swap(0, 1);
            if self.sizes[0] != size {
                (self.sizes[0], self.values[0]) = (size, compute());
            }
        }
        self.values[0]
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
