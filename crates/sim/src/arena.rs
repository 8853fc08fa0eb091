//! The packets on their way: one slab, so that links carry small tickets and a segment is written once.

use bentpipe_base::{EcnField, Extension, Flags, Probe, SackBlocks, Segment, SynOptions, prefetch};

use crate::paging::{Cursor, Pages};

/// Place of a packet's contents in the [`Arena`].
pub(crate) type Slot = u32;

/// The contents of a packet and where they are going.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parcel {
    /// The end that it is going to: a connection end, or a flow of plain packets.
    pub to: u32,
    /// Incarnation of that end, so that nobody gets the mail of his predecessor.
    pub incarnation: u32,
    /// The segment; of a plain packet only the length counts.
    pub segment: Segment,
}

/// Slots on a page: as many bytes as on one of the processor's.
const PAGE: usize = 64;

/// No enclosure.
const NONE: u32 = u32::MAX;

/// A parcel as it is kept: what every segment carries in one cache line, and a word that tells where the rest is.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Packed {
    to: u32,
    incarnation: u32,
    seq: u64,
    ack: u64,
    len: u32,
    window: u32,
    timestamps: Option<(u32, u32)>,
    probe: Probe,
    flags: Flags,
    ecn: EcnField,
    low_priority: bool,
    enclosure: u32,
}

const _: () = assert!(size_of::<Packed>() == 64);

/// What few segments carry.
#[derive(Clone, Copy, Debug)]
// Two lines of the cache.
#[repr(C, align(64))]
struct Enclosure {
    sack: SackBlocks,
    extension: Extension,
    syn_options: Option<SynOptions>,
}

const _: () = assert!(size_of::<Enclosure>() == 128);

/// A slab of parcels. Those that are put down one after the other lie in a row; of enclosures, of which there are few, the place released last
/// is used first.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    parcels: Pages<Packed, PAGE>,
    cursor: Cursor,
    enclosures: Vec<Enclosure>,
    free_enclosures: Vec<u32>,
}

impl Arena {
    /// Keeps a parcel.
    #[inline]
    pub fn put(&mut self, parcel: &Parcel) -> Slot {
        let packed = self.pack(parcel);
        self.parcels.put(&mut self.cursor, packed)
    }

    #[inline]
    fn pack(&mut self, parcel: &Parcel) -> Packed {
        let segment = &parcel.segment;
        let is_bare = segment.sack.is_empty()
            && matches!(segment.extension, Extension::None)
            && segment.syn_options.is_none();
        let enclosure = if is_bare { NONE } else { self.enclose(segment) };
        Packed {
            to: parcel.to,
            incarnation: parcel.incarnation,
            seq: segment.seq,
            ack: segment.ack,
            len: segment.len,
            window: segment.window,
            timestamps: segment.timestamps,
            probe: segment.probe,
            flags: segment.flags,
            ecn: segment.ecn,
            low_priority: segment.low_priority,
            enclosure,
        }
    }

    #[inline(never)]
    fn enclose(&mut self, segment: &Segment) -> u32 {
        let &Segment { syn_options, extension, sack, .. } = segment;
        let enclosure = Enclosure { syn_options, extension, sack };
        match self.free_enclosures.pop() {
            Some(place) => {
                self.enclosures[place as usize] = enclosure;
                place
            }
            None => {
                self.enclosures.push(enclosure);
                self.enclosures.len() as u32 - 1
            }
        }
    }

    /// Copies the parcel in `slot` to a place of the caller's, whatever it held.
    #[inline]
    pub fn read(&self, slot: Slot, parcel: &mut Parcel) {
        let packed = &self.parcels[slot];
        (parcel.to, parcel.incarnation) = (packed.to, packed.incarnation);
        let segment = &mut parcel.segment;
        (segment.seq, segment.ack) = (packed.seq, packed.ack);
        (segment.len, segment.window) = (packed.len, packed.window);
        segment.timestamps = packed.timestamps;
        segment.probe = packed.probe;
        segment.flags = packed.flags;
        segment.ecn = packed.ecn;
        segment.low_priority = packed.low_priority;
        if packed.enclosure == NONE {
            segment.syn_options = None;
            segment.extension = Extension::None;
            segment.sack.clear();
        } else {
            let Enclosure { syn_options, extension, sack } = self.enclosures[packed.enclosure as usize];
            (segment.syn_options, segment.extension, segment.sack) = (syn_options, extension, sack);
        }
    }

    /// The parcel in `slot`.
    pub fn get(&self, slot: Slot) -> Parcel {
        let mut parcel = Parcel::default();
        self.read(slot, &mut parcel);
        parcel
    }

    /// Replaces the parcel in `slot`.
    pub fn replace(&mut self, slot: Slot, parcel: &Parcel) {
        self.release_enclosure(slot);
        self.parcels[slot] = self.pack(parcel);
    }

    /// Where the parcel in `slot` is going: the end and its incarnation.
    #[inline]
    pub fn address(&self, slot: Slot) -> (u32, u32) {
        let packed = &self.parcels[slot];
        (packed.to, packed.incarnation)
    }

    #[inline]
    fn release_enclosure(&mut self, slot: Slot) {
        let enclosure = self.parcels[slot].enclosure;
        if enclosure != NONE {
            self.free_enclosures.push(enclosure);
        }
    }

    /// Releases a slot.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        self.release_enclosure(slot);
        self.parcels.release(slot);
    }

    /// A second slot with the same contents.
    pub fn duplicate(&mut self, slot: Slot) -> Slot {
        let parcel = self.get(slot);
        self.put(&parcel)
    }

    /// Asks for the memory of a parcel.
    #[inline(always)]
    pub fn prefetch(&self, slot: Slot) {
        prefetch(&self.parcels[slot]);
    }

    /// Asks for the memory of what few segments carry, if this one does; its parcel is at hand.
    #[inline(always)]
    pub fn prefetch_enclosure(&self, slot: Slot) {
        if let Some(enclosure) = self.enclosures.get(self.parcels[slot].enclosure as usize) {
            prefetch(enclosure);
        }
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.parcels.used(&[self.cursor])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Notice, ProbeTag, SackRange};

    fn parcel(to: u32) -> Parcel {
        Parcel { to, incarnation: 7, segment: Segment { seq: 5, len: 960, ..Segment::default() } }
    }

    #[test]
    fn slots_are_used_in_a_row_and_again() {
        let mut arena = Arena::default();
        let [a, b] = [1, 2].map(|to| arena.put(&parcel(to)));
        let copy = arena.duplicate(a);
        assert_eq!((b, copy, arena.address(copy), arena.used()), (a + 1, b + 1, (1, 7), 3));
        for _ in 0..10 * PAGE {
            let slot = arena.put(&parcel(3));
            arena.release(slot);
        }
        assert_eq!((arena.used(), arena.parcels.places().len()), (3, 2 * PAGE));
    }

    /// Whatever a segment carries, and whatever the slot and the reader's place held before.
    #[test]
    fn a_segment_comes_out_as_it_was_put_in() {
        let mut sack = SackBlocks::EMPTY;
        sack.push(SackRange { start: 10, end: 20 });
        let plain = Segment { seq: 1, ack: 2, len: 3, window: 4, flags: Flags::ACK, ..Segment::default() };
        let segments = [
            plain,
            Segment {
                timestamps: Some((8, 9)),
                probe: Probe::Probe(ProbeTag(3)),
                low_priority: true,
                ..plain
            },
            Segment { sack, ecn: EcnField::Congested, ..plain },
            Segment { syn_options: Some(SynOptions { mss: Some(960), ..SynOptions::default() }), ..plain },
            Segment { extension: Extension::Notice(Notice::Spoilt(77)), ..plain },
            Segment::default(),
        ];
        let mut arena = Arena::default();
        let mut out = Parcel::default();
        for first in segments {
            for second in segments {
                let slot = arena.put(&Parcel { segment: first, ..parcel(1) });
                arena.read(slot, &mut out);
                assert_eq!((out.to, out.segment), (1, first));
                arena.replace(slot, &Parcel { segment: second, ..parcel(2) });
                arena.read(slot, &mut out);
                assert_eq!((out.to, out.segment), (2, second));
                assert_eq!(arena.get(slot).segment, second);
                arena.release(slot);
            }
        }
        assert_eq!((arena.used(), arena.parcels.places().len()), (0, PAGE));
        assert_eq!((arena.enclosures.len(), arena.free_enclosures.len()), (1, 1));
    }
}
