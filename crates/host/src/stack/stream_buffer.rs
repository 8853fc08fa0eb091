//! Send or receive buffer: data of a stream by position, unacknowledged or unread.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};

/// Data of a stream from a position on, in chunks. Only chunks with data use memory: a single byte far ahead uses one chunk.
#[derive(Debug, Default)]
pub(super) struct StreamBuffer {
    /// Chunks, keyed by number: first position divided by [`CHUNK`].
    chunks: BTreeMap<u64, Chunk>,
    /// Free chunks for reuse, so that a steady stream makes no allocation.
    spare: Vec<Chunk>,
    /// First position not yet released.
    start: u64,
    /// One past the last position ever stored since `start`.
    end: u64,
}

type Chunk = Box<[u8]>;

/// Size of a chunk in bytes (chosen: a page).
pub(super) const CHUNK: usize = 4096;
/// Maximum number of free chunks kept until memory is trimmed. At least as many as are in use are kept, because a fast stream
/// reuses them at once.
const MOST_SPARE: usize = 64;

/// Maximum number of pieces passed at a time (chosen).
const MOST_PIECES: usize = 64;

/// Returns a chunk to write to.
fn fresh(spare: &mut Vec<Chunk>) -> Chunk {
    spare.pop().unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice())
}

/// Returns chunk number and offset of a position.
fn place(position: u64) -> (u64, usize) {
    (position / CHUNK as u64, (position % CHUNK as u64) as usize)
}

/// Splits `[at, at + len)` by chunks: number, offset and length.
fn pieces(at: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (number, offset) = place(at + done as u64);
        let piece = (len - done).min(CHUNK - offset);
        done += piece;
        (piece > 0).then_some((number, offset, piece))
    })
}

impl StreamBuffer {
    /// Makes an empty buffer whose stream continues at `start`.
    pub fn at(start: u64) -> Self {
        Self { start, end: start, ..Self::default() }
    }

    /// Returns the memory held in bytes.
    pub fn capacity(&self) -> usize {
        (self.chunks.len() + self.spare.len()) * CHUNK
    }

    /// Returns the bytes by which the memory would grow if `[from, end)` were stored.
    pub fn growth(&self, from: u64, end: u64) -> usize {
        let from = from.max(self.start);
        if from >= end {
            return 0;
        }
        let (first, last) = (place(from).0, place(end - 1).0);
        let there = self.chunks.range(first..=last).count() + self.spare.len();
        ((last - first + 1) as usize).saturating_sub(there) * CHUNK
    }

    /// Returns the bytes that can be stored from `at` on, after all stored data, with at most `spare` bytes of further memory.
    pub fn room(&self, at: u64, spare: usize) -> usize {
        let (number, offset) = place(at);
        let begun = usize::from(self.chunks.contains_key(&number));
        ((begun + self.spare.len() + spare / CHUNK) * CHUNK).saturating_sub(offset)
    }

    /// Stores bytes at a position; those below `start` are dropped.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        let skip = self.start.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (at, mut rest) = (at + skip as u64, &bytes[skip..]);
        self.end = self.end.max(at + rest.len() as u64);
        for (number, offset, len) in pieces(at, rest.len()) {
            let Self { chunks, spare, .. } = self;
            let chunk = chunks.entry(number).or_insert_with(|| fresh(spare));
            let (piece, behind) = rest.split_at(len);
            chunk[offset..offset + len].copy_from_slice(piece);
            rest = behind;
        }
    }

    /// Lets `fill` write up to `len` bytes after the end, into at most [`MOST_PIECES`] pieces; `fill` returns the number of
    /// bytes.
    pub fn fill(&mut self, len: usize, fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> usize) -> usize {
        let (first, offset) = place(self.end);
        let len = len.min(MOST_PIECES * CHUNK - offset);
        for (number, ..) in pieces(self.end, len) {
            let Self { chunks, spare, .. } = self;
            chunks.entry(number).or_insert_with(|| fresh(spare));
        }
        let rooms = self.chunks.range_mut(first..).zip(pieces(self.end, len));
        let mut rooms: Vec<IoSliceMut<'_>> = rooms
            .map(|((_, chunk), (_, offset, len))| IoSliceMut::new(&mut chunk[offset..offset + len]))
            .collect();
        let filled = fill(&mut rooms).min(len);
        self.end += filled as u64;
        filled
    }

    /// Returns the bytes of `[at, at + len)` in pieces, at most the first [`MOST_PIECES`].
    pub fn get(&self, at: u64, len: usize) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::new();
        self.visit(at, len.min((MOST_PIECES - 1) * CHUNK), |piece| slices.push(IoSlice::new(piece)));
        slices
    }

    /// Passes the bytes of `[at, at + len)` to `take` in pieces, with zeros for missing data. Stops at the end, and passes
    /// nothing if `at` was released.
    pub fn visit<'a>(&'a self, at: u64, len: usize, mut take: impl FnMut(&'a [u8])) {
        static NOTHING: [u8; CHUNK] = [0; CHUNK];
        if at < self.start {
            return;
        }
        let len = (self.end.saturating_sub(at)).min(len as u64) as usize;
        for (number, offset, len) in pieces(at, len) {
            let chunk = self.chunks.get(&number).map_or(&NOTHING[..], |chunk| chunk);
            take(&chunk[offset..offset + len]);
        }
    }

    /// True if `[at, at + len)` lies between the released data and the end.
    pub fn holds(&self, at: u64, len: usize) -> bool {
        self.start <= at && at + len as u64 <= self.end
    }

    /// Appends the bytes of `[at, at + len)` to `out`, as [`visit`](Self::visit) passes them.
    pub fn append_to(&self, at: u64, len: usize, out: &mut Vec<u8>) {
        self.visit(at, len, |piece| out.extend_from_slice(piece));
    }

    /// Fills `into` with the bytes from `at` on.
    pub fn read(&self, at: u64, into: &mut [u8]) {
        let mut rest = &mut *into;
        self.visit(at, rest.len(), |piece| {
            let (head, behind) = std::mem::take(&mut rest).split_at_mut(piece.len());
            head.copy_from_slice(piece);
            rest = behind;
        });
    }

    /// Overwrites `[from, end)` with zeros.
    pub fn blank(&mut self, from: u64, end: u64) {
        self.end = self.end.max(end);
        let (first, last) = (place(from).0, place(end).0);
        for (number, chunk) in self.chunks.range_mut(first..=last) {
            let begin = number * CHUNK as u64;
            let from = from.saturating_sub(begin).min(CHUNK as u64) as usize;
            let end = end.saturating_sub(begin).min(CHUNK as u64) as usize;
            chunk[from..end].fill(0);
        }
    }

    /// Releases all data below `to`.
    pub fn release(&mut self, to: u64) {
        self.start = self.start.max(to);
        self.end = self.end.max(self.start);
        let (wanted, _) = place(self.start);
        while let Some(first) = self.chunks.first_entry().filter(|first| *first.key() < wanted) {
            let chunk = first.remove();
            if self.spare.len() < MOST_SPARE.max(self.chunks.len()) {
                self.spare.push(chunk);
            }
        }
    }

    /// Frees unused memory.
    pub fn trim(&mut self) {
        self.spare = Vec::new();
        if self.start == self.end {
            self.chunks = BTreeMap::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(at: u64, len: usize) -> Vec<u8> {
        (at..at + len as u64).map(|position| ((position * 7) >> 3) as u8).collect()
    }

    fn read(buffer: &StreamBuffer, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        buffer.append_to(at, len, &mut bytes);
        bytes
    }

    #[test]
    fn bytes_come_back_across_chunks_and_growth() {
        let mut buffer = StreamBuffer::at(1);
        let (mut written, mut released) = (1, 1);
        for step in 0..2000_u64 {
            let len = (step * 977 % 3000) as usize;
            let (before, growth) = (buffer.capacity(), buffer.growth(written, written + len as u64));
            assert!(buffer.room(written, growth) >= len);
            assert!(growth == 0 || buffer.room(written, growth - 1) < len);
            buffer.put(written, &pattern(written, len));
            assert_eq!(buffer.capacity(), before + growth);
            written += len as u64;
            let kept = (written - released) as usize;
            assert_eq!(read(&buffer, released, kept), pattern(released, kept));
            let mut copy = vec![0; kept];
            buffer.read(released, &mut copy);
            assert_eq!(copy, pattern(released, kept));
            released += (kept as u64).min(step * 613 % 3100);
            buffer.release(released);
            assert!(buffer.capacity() <= kept + (MOST_SPARE + 2) * CHUNK, "{}", buffer.capacity());
        }
        buffer.release(written);
        buffer.trim();
        assert_eq!(buffer.capacity(), 0);
        assert!(read(&buffer, 1, 10).is_empty(), "what was released is gone");
    }

    #[test]
    fn holes_are_filled_later() {
        let mut buffer = StreamBuffer::at(1);
        buffer.put(5001, &pattern(5001, 1000));
        buffer.put(1, &pattern(1, 5000));
        assert_eq!(read(&buffer, 1, 6000), pattern(1, 6000));
        buffer.release(3000);
        buffer.put(2500, &pattern(2500, 1000));
        assert_eq!(read(&buffer, 3000, 500), pattern(3000, 500));
    }

    #[test]
    fn a_byte_far_ahead_costs_a_chunk() {
        let mut buffer = StreamBuffer::at(1);
        assert_eq!(buffer.growth(1 << 30, (1 << 30) + 1), CHUNK);
        buffer.put(1 << 30, &[7]);
        assert_eq!(buffer.capacity(), CHUNK);
        assert_eq!(read(&buffer, (1 << 30) - 2, 5), [0, 0, 7]);
    }

    /// A reused chunk must not reveal its old content.
    #[test]
    fn what_is_blanked_reads_as_zeros() {
        let mut buffer = StreamBuffer::at(0);
        buffer.put(0, &[9; 3 * CHUNK]);
        buffer.release(3 * CHUNK as u64);
        let at = 4 * CHUNK as u64;
        buffer.put(at + 100, &[1; 2 * CHUNK]);
        buffer.blank(at - 10, at + 150);
        assert_eq!(read(&buffer, at - 10, 160), [0; 160]);
        assert_eq!(read(&buffer, at + 150, 50), [1; 50]);
    }
}
