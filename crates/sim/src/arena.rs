//! The packets on their way: one slab, so that links carry small tickets and a segment is written once.

use bentpipe_base::Segment;

use crate::prefetch::prefetch_front;

/// Place of a packet's contents in the [`Arena`].
pub(crate) type Slot = u32;

/// The contents of a packet and where they are going. Aligned so that what every segment carries lies in two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Parcel {
    /// The end that it is going to: a connection end, or a flow of plain packets.
    pub to: u32,
    /// Incarnation of that end, so that nobody gets the mail of his predecessor.
    pub incarnation: u32,
    /// The segment; of a plain packet only the length counts.
    pub segment: Segment,
}

/// A slab of parcels. The slot released last is used first, because it is still in the cache.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    parcels: Vec<Parcel>,
    free: Vec<Slot>,
}

impl Arena {
    /// A slot for a new parcel; what it holds is left over from an earlier one.
    #[inline]
    pub fn take(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| self.grow())
    }

    #[cold]
    fn grow(&mut self) -> Slot {
        self.parcels.push(Parcel::default());
        (self.parcels.len() - 1) as Slot
    }

    /// Releases a slot.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// A second slot with the same contents.
    pub fn duplicate(&mut self, slot: Slot) -> Slot {
        let copy = self.take();
        self.parcels[copy as usize] = self.parcels[slot as usize];
        copy
    }

    /// The parcel in `slot`.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Parcel {
        &self.parcels[slot as usize]
    }

    /// Asks for the memory of what every segment carries.
    #[inline(always)]
    pub fn prefetch(&self, slot: Slot) {
        prefetch_front(&self.parcels[slot as usize], 2);
    }

    /// The parcel in `slot`, to be written.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Parcel {
        &mut self.parcels[slot as usize]
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.parcels.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_released_last_is_used_first() {
        let mut arena = Arena::default();
        let [a, b] = [arena.take(), arena.take()];
        arena.get_mut(a).incarnation = 7;
        let copy = arena.duplicate(a);
        assert_eq!((arena.get(copy).incarnation, arena.used()), (7, 3));
        arena.release(a);
        arena.release(b);
        assert_eq!((arena.take(), arena.used()), (b, 2));
    }
}
