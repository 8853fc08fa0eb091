//! Numbers of places in memory, given out in a row page by page.
//!
//! What belongs together, because it is put down together, so lies together: whoever fetches it later reads few lines of the cache, and has
//! few addresses translated. A page that nobody needs any more is the next to be given out, while a cache still holds it.

/// Where one who puts things down goes on: at the beginning of a page if he needs a new one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(u32);

/// Which of the places on pages of so many are needed.
#[derive(Debug, Default)]
pub(crate) struct Paging<const PAGE: usize> {
    /// Of each page, how many places are in use or still to be given out.
    needed: Vec<u32>,
    /// Pages of which none is.
    free: Vec<u32>,
}

impl<const PAGE: usize> Paging<PAGE> {
    /// The next place of one who puts things down.
    #[inline(always)]
    pub fn take(&mut self, cursor: &mut Cursor) -> u32 {
        if cursor.0.is_multiple_of(PAGE as u32) {
            cursor.0 = self.open_page();
        }
        cursor.0 += 1;
        cursor.0 - 1
    }

    #[inline(never)]
    fn open_page(&mut self) -> u32 {
        let page = self.free.pop().unwrap_or_else(|| {
            self.needed.push(0);
            self.needed.len() as u32 - 1
        });
        self.needed[page as usize] = PAGE as u32;
        page * PAGE as u32
    }

    /// What lay in a place is not needed any more.
    #[inline(always)]
    pub fn release(&mut self, place: u32) {
        let page = place / PAGE as u32;
        let needed = &mut self.needed[page as usize];
        *needed -= 1;
        if *needed == 0 {
            self.free.push(page);
        }
    }

    /// Pages of which some places are in use or still to be given out.
    #[cfg(test)]
    pub fn pages_in_use(&self) -> usize {
        self.needed.len() - self.free.len()
    }

    /// So many places there are.
    #[inline(always)]
    pub fn places(&self) -> usize {
        self.needed.len() * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Rng;
    use std::collections::BTreeSet;

    /// No place has two owners, neighbours follow each other on a page, and what is released is used again.
    #[test]
    fn places_are_given_out_in_a_row_and_once() {
        let mut rng = Rng::stream(1, "paging");
        let mut paging = Paging::<8>::default();
        let mut cursors = [Cursor::default(); 3];
        let mut last = [None; 3];
        let (mut used, mut most) = (BTreeSet::new(), 0);
        for step in 0..20_000 {
            // More is used at times, and less at others.
            if rng.below(10) < 3 + step / 2_500 % 2 * 4 {
                let who = rng.below(3) as usize;
                let place = paging.take(&mut cursors[who]);
                assert!(used.insert(place) && (place as usize) < paging.places());
                assert!(place.is_multiple_of(8) || last[who] == Some(place - 1));
                last[who] = Some(place);
            } else if let Some(&place) = used.iter().nth(rng.below(used.len().max(1) as u64) as usize) {
                used.remove(&place);
                paging.release(place);
            }
            most = most.max(used.len());
        }
        used.into_iter().for_each(|place| paging.release(place));
        // Only the pages that are being given out are still needed.
        assert!(paging.pages_in_use() <= cursors.len());
        // With random releases, one place in use may hold a page.
        assert!(most > 100 && paging.places() < 8 * most);
    }

    #[test]
    fn the_page_released_last_is_given_out_first() {
        let mut paging = Paging::<2>::default();
        let mut cursor = Cursor::default();
        let places: Vec<u32> = (0..6).map(|_| paging.take(&mut cursor)).collect();
        [0, 1, 4, 5, 2].into_iter().for_each(|place: usize| paging.release(places[place]));
        assert_eq!([0; 4].map(|_| paging.take(&mut cursor)), [4, 5, 0, 1]);
    }
}
