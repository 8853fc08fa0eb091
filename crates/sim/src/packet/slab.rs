//! A chunked slab: items are stored in succession, chunk by chunk.
//!
//! Items that are stored together are neighbours, so reading them accesses few cache lines and few chunks. A chunk without used items
//! is the next to be written, while it is still in a cache.

use std::ops::{Index, IndexMut};

/// Place of the next item; the beginning of a chunk if a new one is needed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(u32);

/// Chunks of `CHUNK` places, and their items.
#[derive(Debug)]
pub(crate) struct ChunkedSlab<T, const CHUNK: usize> {
    items: Vec<T>,
    /// Number of places of each chunk that are in use or not yet given out.
    needed: Vec<u32>,
    /// Chunks of which none is.
    free: Vec<u32>,
}

impl<T, const CHUNK: usize> Default for ChunkedSlab<T, CHUNK> {
    fn default() -> Self {
        Self { items: Vec::new(), needed: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy + Default, const CHUNK: usize> ChunkedSlab<T, CHUNK> {
    /// Returns the next place of a cursor for a new item.
    #[inline(always)]
    pub fn next(&mut self, cursor: &mut Cursor) -> u32 {
        if cursor.0.is_multiple_of(CHUNK as u32) {
            cursor.0 = self.open_chunk();
        }
        let place = cursor.0;
        cursor.0 += 1;
        place
    }

    /// Opens a chunk; returns its first place.
    #[inline(never)]
    fn open_chunk(&mut self) -> u32 {
        let chunk = self.free.pop().unwrap_or_else(|| {
            self.needed.push(0);
            self.items.resize(self.needed.len() * CHUNK, T::default());
            self.needed.len() as u32 - 1
        });
        self.needed[chunk as usize] = CHUNK as u32;
        chunk * CHUNK as u32
    }

    /// The item in a place is not needed any more.
    #[inline(always)]
    pub fn release(&mut self, place: u32) {
        let chunk = place / CHUNK as u32;
        let needed = &mut self.needed[chunk as usize];
        *needed -= 1;
        if *needed == 0 {
            self.free.push(chunk);
        }
    }

    /// All places, used or not.
    #[inline(always)]
    pub fn places(&self) -> &[T] {
        &self.items
    }

    /// Places in use, if these cursors are all there are.
    pub fn used(&self, cursors: &[Cursor]) -> usize {
        let open = |Cursor(next): &Cursor| next.next_multiple_of(CHUNK as u32) - next;
        let needed: usize = self.needed.iter().map(|needed| *needed as usize).sum();
        needed - cursors.iter().map(open).sum::<u32>() as usize
    }
}

impl<T, const CHUNK: usize> Index<u32> for ChunkedSlab<T, CHUNK> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: u32) -> &T {
        &self.items[place as usize]
    }
}

impl<T, const CHUNK: usize> IndexMut<u32> for ChunkedSlab<T, CHUNK> {
    #[inline(always)]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Rng;
    use std::collections::BTreeMap;

    /// Places are unique, neighbours are in one chunk, and released places are used again.
    #[test]
    fn places_are_given_out_in_a_row_and_once() {
        let mut rng = Rng::stream(1, "paging");
        let mut chunks = ChunkedSlab::<u64, 8>::default();
        let mut cursors = [Cursor::default(); 3];
        let mut last = [None; 3];
        let (mut used, mut most) = (BTreeMap::new(), 0);
        for hop in 0..20_000 {
            // The share of hops that take a place alternates between 3 and 7 of 10.
            if rng.below(10) < 3 + hop / 2_500 % 2 * 4 {
                let who = rng.below(3) as usize;
                let place = chunks.next(&mut cursors[who]);
                chunks[place] = hop;
                assert!(used.insert(place, hop).is_none() && (place as usize) < chunks.places().len());
                assert!(place.is_multiple_of(8) || last[who] == Some(place - 1));
                last[who] = Some(place);
            } else if let Some((&place, &item)) =
                used.iter().nth(rng.below(used.len().max(1) as u64) as usize)
            {
                assert_eq!(chunks[place], item);
                used.remove(&place);
                chunks.release(place);
            }
            assert_eq!(chunks.used(&cursors), used.len());
            most = most.max(used.len());
        }
        used.into_keys().for_each(|place| chunks.release(place));
        // Only the chunks of the cursors are still in use.
        assert!(chunks.needed.len() - chunks.free.len() <= cursors.len());
        // With random releases, one place in use may hold a chunk.
        assert!(most > 100 && chunks.places().len() < 8 * most);
    }

    #[test]
    fn the_page_released_last_is_given_out_first() {
        let mut chunks = ChunkedSlab::<(), 2>::default();
        let mut cursor = Cursor::default();
        let places: Vec<u32> = (0..6).map(|_| chunks.next(&mut cursor)).collect();
        [0, 1, 4, 5, 2].into_iter().for_each(|place: usize| chunks.release(places[place]));
        assert_eq!([0; 4].map(|_| chunks.next(&mut cursor)), [4, 5, 0, 1]);
    }
}
