//! Memory in which things are put down in a row, page by page.
//!
//! What belongs together, because it is put down together, so lies together: whoever fetches it later reads few lines of the cache, and has
//! few addresses translated. A page on which nothing is needed any more is the next to be written, while a cache still holds it.

use std::ops::{Index, IndexMut};

/// Where one who puts things down goes on: at the beginning of a page if he needs a new one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(u32);

/// Pages of so many places, and what lies there.
#[derive(Debug)]
pub(crate) struct Pages<T, const PAGE: usize> {
    items: Vec<T>,
    /// Of each page, how many places are in use or still to be given out.
    needed: Vec<u32>,
    /// Pages of which none is.
    free: Vec<u32>,
}

impl<T, const PAGE: usize> Default for Pages<T, PAGE> {
    fn default() -> Self {
        Self { items: Vec::new(), needed: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy + Default, const PAGE: usize> Pages<T, PAGE> {
    /// The next place of a cursor, where something is to be put down.
    #[inline(always)]
    pub fn next(&mut self, cursor: &mut Cursor) -> u32 {
        if cursor.0.is_multiple_of(PAGE as u32) {
            cursor.0 = self.open_page();
        }
        let place = cursor.0;
        cursor.0 += 1;
        place
    }

    /// Opens a page; returns its first place.
    #[inline(never)]
    fn open_page(&mut self) -> u32 {
        let page = self.free.pop().unwrap_or_else(|| {
            self.needed.push(0);
            self.items.resize(self.needed.len() * PAGE, T::default());
            self.needed.len() as u32 - 1
        });
        self.needed[page as usize] = PAGE as u32;
        page * PAGE as u32
    }

    /// What lies in a place is not needed any more.
    #[inline(always)]
    pub fn release(&mut self, place: u32) {
        let page = place / PAGE as u32;
        let needed = &mut self.needed[page as usize];
        *needed -= 1;
        if *needed == 0 {
            self.free.push(page);
        }
    }

    /// All places, used or not.
    #[inline(always)]
    pub fn places(&self) -> &[T] {
        &self.items
    }

    /// Places in use, if these cursors are all there are.
    pub fn used(&self, cursors: &[Cursor]) -> usize {
        let open = |Cursor(next): &Cursor| next.next_multiple_of(PAGE as u32) - next;
        let needed: usize = self.needed.iter().map(|needed| *needed as usize).sum();
        needed - cursors.iter().map(open).sum::<u32>() as usize
    }
}

impl<T, const PAGE: usize> Index<u32> for Pages<T, PAGE> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: u32) -> &T {
        &self.items[place as usize]
    }
}

impl<T, const PAGE: usize> IndexMut<u32> for Pages<T, PAGE> {
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

    /// No place has two owners, neighbours follow each other on a page, and what is released is used again.
    #[test]
    fn places_are_given_out_in_a_row_and_once() {
        let mut rng = Rng::stream(1, "paging");
        let mut pages = Pages::<u64, 8>::default();
        let mut cursors = [Cursor::default(); 3];
        let mut last = [None; 3];
        let (mut used, mut most) = (BTreeMap::new(), 0);
        for step in 0..20_000 {
            // More is used at times, and less at others.
            if rng.below(10) < 3 + step / 2_500 % 2 * 4 {
                let who = rng.below(3) as usize;
                let place = pages.next(&mut cursors[who]);
                pages[place] = step;
                assert!(used.insert(place, step).is_none() && (place as usize) < pages.places().len());
                assert!(place.is_multiple_of(8) || last[who] == Some(place - 1));
                last[who] = Some(place);
            } else if let Some((&place, &item)) =
                used.iter().nth(rng.below(used.len().max(1) as u64) as usize)
            {
                assert_eq!(pages[place], item);
                used.remove(&place);
                pages.release(place);
            }
            assert_eq!(pages.used(&cursors), used.len());
            most = most.max(used.len());
        }
        used.into_keys().for_each(|place| pages.release(place));
        // Only the pages that are being given out are still needed.
        assert!(pages.needed.len() - pages.free.len() <= cursors.len());
        // With random releases, one place in use may hold a page.
        assert!(most > 100 && pages.places().len() < 8 * most);
    }

    #[test]
    fn the_page_released_last_is_given_out_first() {
        let mut pages = Pages::<(), 2>::default();
        let mut cursor = Cursor::default();
        let places: Vec<u32> = (0..6).map(|_| pages.next(&mut cursor)).collect();
        [0, 1, 4, 5, 2].into_iter().for_each(|place: usize| pages.release(places[place]));
        assert_eq!([0; 4].map(|_| pages.next(&mut cursor)), [4, 5, 0, 1]);
    }
}
