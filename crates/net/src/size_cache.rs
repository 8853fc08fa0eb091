/// Remembers a value that depends on the packet size only, for the few sizes that traffic consists of.
#[derive(Clone, Debug)]
pub(crate) struct SizeCache<T> {
    slots: [Option<(u32, T)>; 8],
}

impl<T: Copy> SizeCache<T> {
    pub fn new() -> Self {
        Self { slots: [None; 8] }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.slots = [None; 8];
    }

    /// The value for `size`, computed only when it is not remembered.
    #[inline]
    pub fn get(&mut self, size: u32, compute: impl FnOnce() -> T) -> T {
        // Fibonacci hashing: the top three bits choose the slot.
        let slot = &mut self.slots[(size.wrapping_mul(0x9e37_79b1) >> 29) as usize];
        match slot {
            Some((cached, value)) if *cached == size => *value,
            _ => slot.insert((size, compute())).1,
        }
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
