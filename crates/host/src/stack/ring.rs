//! Bytes of a stream by their position: what is sent and not yet acknowledged, or received and not yet read.

/// Bytes of positions `[start, start + capacity)` of a stream. Grows as needed, gives its memory back on request.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// A power of two long, or empty.
    bytes: Box<[u8]>,
    /// First position that is still wanted.
    start: u64,
    /// One past the last position ever put since `start`.
    end: u64,
}

/// Smallest allocation.
const LEAST: usize = 4096;

impl Ring {
    /// An empty ring whose stream goes on at `start`.
    pub fn at(start: u64) -> Self {
        Self { bytes: Box::default(), start, end: start }
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that it would hold if it had to keep everything below `end`.
    pub fn capacity_for(&self, end: u64) -> usize {
        let wanted = end.saturating_sub(self.start) as usize;
        if wanted <= self.bytes.len() { self.bytes.len() } else { wanted.next_power_of_two().max(LEAST) }
    }

    /// Puts bytes at a position; what lies below `start` is left out.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        let skip = self.start.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (at, bytes) = (at + skip as u64, &bytes[skip..]);
        let end = at + bytes.len() as u64;
        self.grow(end);
        self.end = self.end.max(end);
        let (first, second) = self.split(at, bytes.len());
        let (head, tail) = bytes.split_at(first.len());
        self.bytes[first].copy_from_slice(head);
        self.bytes[second].copy_from_slice(tail);
    }

    /// Room for the bytes of `[at, at + len)` in two pieces, to be [put](Self::put) by writing there; what lies below `start` has none.
    /// Holes read as what stood in this memory before.
    pub fn space(&mut self, at: u64, len: usize) -> (&mut [u8], &mut [u8]) {
        self.grow(at + len as u64);
        let (first, second) = self.split(at, len);
        let (below, above) = self.bytes.split_at_mut(first.start);
        (&mut above[..first.len()], &mut below[second])
    }

    /// Bytes up to `end` were written into their [space](Self::space).
    pub fn filled(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    /// The bytes of `[at, at + len)` in two pieces; shorter where they were let go, or never put.
    pub fn get(&self, at: u64, len: usize) -> (&[u8], &[u8]) {
        if at < self.start {
            return (&[], &[]);
        }
        let len = (self.end.saturating_sub(at) as usize).min(len);
        let (first, second) = self.split(at, len);
        (&self.bytes[first], &self.bytes[second])
    }

    /// Lets go of everything below `to`.
    pub fn release(&mut self, to: u64) {
        self.start = self.start.max(to);
        self.end = self.end.max(self.start);
    }

    /// Gives the memory back if nothing is kept.
    pub fn trim(&mut self) {
        if self.start == self.end {
            self.bytes = Box::default();
        }
    }

    fn split(&self, at: u64, len: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        if self.bytes.is_empty() {
            return (0..0, 0..0);
        }
        let from = at as usize & (self.bytes.len() - 1);
        let first = len.min(self.bytes.len() - from);
        (from..from + first, 0..len - first)
    }

    fn grow(&mut self, end: u64) {
        let capacity = self.capacity_for(end);
        if capacity == self.bytes.len() {
            return;
        }
        let mut grown =
            Self { bytes: vec![0; capacity].into_boxed_slice(), start: self.start, end: self.start };
        let (first, second) = self.get(self.start, (self.end - self.start) as usize);
        grown.put(self.start, first);
        grown.put(self.start + first.len() as u64, second);
        *self = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(at: u64, len: usize) -> Vec<u8> {
        (at..at + len as u64).map(|position| ((position * 7) >> 3) as u8).collect()
    }

    fn read(ring: &Ring, at: u64, len: usize) -> Vec<u8> {
        let (first, second) = ring.get(at, len);
        [first, second].concat()
    }

    #[test]
    fn bytes_come_back_across_wraps_and_growth() {
        let mut ring = Ring::at(1);
        let (mut written, mut released) = (1, 1);
        for step in 0..2000_u64 {
            let len = (step * 977 % 3000) as usize;
            ring.put(written, &pattern(written, len));
            written += len as u64;
            let kept = (written - released) as usize;
            assert_eq!(read(&ring, released, kept), pattern(released, kept));
            released += (kept as u64).min(step * 613 % 3100);
            ring.release(released);
        }
        assert!(ring.capacity() <= 1 << 19, "{}", ring.capacity());
        ring.release(written);
        ring.trim();
        assert_eq!(ring.capacity(), 0);
        assert!(read(&ring, 1, 10).is_empty(), "what was let go is gone");
    }

    #[test]
    fn holes_are_filled_later() {
        let mut ring = Ring::at(1);
        ring.put(5001, &pattern(5001, 1000));
        ring.put(1, &pattern(1, 5000));
        assert_eq!(read(&ring, 1, 6000), pattern(1, 6000));
        ring.release(3000);
        ring.put(2500, &pattern(2500, 1000));
        assert_eq!(read(&ring, 3000, 500), pattern(3000, 500));
    }
}
