//! The packets on their way: one slab, so that links carry small tickets and a segment is written once.
//!
//! A packet lies in one line of the cache, with where it is: whoever sends it, lets it through a junction or takes it in touches nothing else
//! of it.

use bentpipe_base::{
    EcnField, Extension, Flags, Instant, Probe, SackBlocks, SackRange, Segment, prefetch, prefetch_item,
};

use crate::paging::{Cursor, Pages};
use crate::ticket::Ticket;

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

/// Slots on a page: what some flows send in a row. Measured.
const PAGE: usize = 256;

/// Where a packet is that has gone ahead of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    /// When it comes to the junction that it waits at, or to the lane that it is in line for.
    pub time: Instant,
    pub ticket: Ticket,
    /// Of one that waits at a junction the salt of its link, of one in line the slot of the one behind it.
    pub salt_or_next: u32,
    /// The lane behind the junction that it waits at; [`NO_LANE`] if it goes elsewhere.
    pub lane: u32,
}

/// As many packets fit into the caches close to a processor.
const FEW: usize = 16 * PAGE;

/// No lane.
pub(crate) const NO_LANE: u32 = u32::MAX;

/// A segment with more bits in its sequence number, its acknowledgement number or its length is enclosed. The first two differ, so that
/// a compiler does not shift both at once: they are written one by one, and a processor waits before it reads them as a whole.
const SEQ_BITS: u32 = 44;
const ACK_BITS: u32 = 48;
const LEN_BITS: u32 = u64::BITS - SEQ_BITS;
const MOST_LEN: u32 = (1 << LEN_BITS) - 1;
const SACK_BLOCKS_SHIFT: u32 = Traits::SACK_BLOCKS.bits().trailing_zeros();

bitflags::bitflags! {
    /// What there is about a segment.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Traits: u8 {
        const TIMESTAMPS = 0x01;
        const LOW_PRIORITY = 0x02;
        const ECN_CAPABLE = 0x04;
        const CONGESTED = 0x08;
        /// The whole segment is enclosed; instead of the window stands where.
        const ENCLOSED = 0x10;
        /// So many SACK blocks are enclosed; instead of the length, which is nothing, stands where.
        const SACK_BLOCKS = 0xe0;
        const ENCLOSES = Self::ENCLOSED.bits() | Self::SACK_BLOCKS.bits();
    }
}

/// A parcel as it is kept, in one line of the cache: what nearly every segment carries, and the packet's way.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Kept {
    /// The length in the low bits.
    seq_and_len: u64,
    /// Traits in the low 8 bits, and 8 of flags above them.
    ack_and_traits: u64,
    to: u32,
    incarnation: u32,
    timestamps: [u32; 2],
    window_or_enclosure: u32,
    // From here on the way: of the ticket all but the slot.
    position: u32,
    nature: u64,
    time: Instant,
    salt_or_next: u32,
    lane: u32,
}

const _: () = assert!(size_of::<Kept>() == 64);

impl Kept {
    fn traits(&self) -> Traits {
        Traits::from_bits_retain(self.ack_and_traits as u8)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.seq_and_len as u32 & MOST_LEN
    }

    #[inline(always)]
    fn enclosed(&self) -> Option<Enclosed> {
        let traits = self.traits();
        traits.intersects(Traits::ENCLOSES).then(|| {
            if traits.contains(Traits::ENCLOSED) {
                Enclosed::Segment(self.window_or_enclosure)
            } else {
                Enclosed::SackBlocks(traits.bits() >> SACK_BLOCKS_SHIFT, self.len())
            }
        })
    }
}

/// What is enclosed with a packet, and where.
enum Enclosed {
    /// So many SACK blocks.
    SackBlocks(u8, u32),
    /// The segment, which carries what few do.
    Segment(u32),
}

/// The SACK blocks of an ACK, in one line of the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct SackLine([SackRange; 4]);

const _: () = assert!(size_of::<SackLine>() == 64);

/// A slab of things that few packets have. The place released last is used first.
#[derive(Debug, Default)]
struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// A place, with whatever lies there.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.items.push(T::default());
            self.items.len() as u32 - 1
        })
    }
}

/// A slab of packets. Those that are put down one after the other for the same side of flows lie in a row.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    packets: Pages<Kept, PAGE>,
    /// For packets to either side.
    cursors: [Cursor; 2],
    sack_lines: Slab<SackLine>,
    segments: Slab<Segment>,
}

impl Arena {
    /// Keeps a parcel.
    #[inline]
    pub fn put(&mut self, parcel: &Parcel) -> Slot {
        let slot = self.packets.next(&mut self.cursors[(parcel.to % 2) as usize]);
        self.write(slot, parcel);
        slot
    }

    #[inline(always)]
    fn write(&mut self, slot: Slot, parcel: &Parcel) {
        let segment = &parcel.segment;
        let is_usual = matches!(segment.extension, Extension::None)
            && segment.syn_options.is_none()
            && segment.probe == Probe::No
            && segment.seq >> SEQ_BITS == 0
            && segment.ack >> ACK_BITS == 0
            && segment.len >> LEN_BITS == 0
            && segment.flags.bits() >> 8 == 0;
        let mut traits = Traits::empty();
        traits.set(Traits::TIMESTAMPS, segment.timestamps.is_some());
        traits.set(Traits::LOW_PRIORITY, segment.low_priority);
        traits.set(Traits::ECN_CAPABLE, segment.ecn == EcnField::Capable);
        traits.set(Traits::CONGESTED, segment.ecn == EcnField::Congested);
        let kept = &mut self.packets[slot];
        kept.seq_and_len = segment.seq << LEN_BITS | u64::from(segment.len);
        let flags = u64::from(segment.flags.bits() as u8);
        kept.ack_and_traits = segment.ack << 16 | flags << 8 | u64::from(traits.bits());
        (kept.to, kept.incarnation) = (parcel.to, parcel.incarnation);
        kept.timestamps = segment.timestamps.map_or([0; 2], |(value, echo)| [value, echo]);
        kept.window_or_enclosure = segment.window;
        if !is_usual || !segment.sack.is_empty() {
            self.enclose(slot, segment, is_usual);
        }
    }

    /// Encloses the SACK blocks of an ACK that is usual otherwise, or the segment.
    #[inline(never)]
    fn enclose(&mut self, slot: Slot, segment: &Segment, is_usual: bool) {
        let kept = &mut self.packets[slot];
        if let SackBlocks::Held { len, blocks } = &segment.sack
            && is_usual
            && segment.len == 0
            && self.sack_lines.items.len() < MOST_LEN as usize
        {
            let place = self.sack_lines.place();
            self.sack_lines.items[place as usize].0 = *blocks;
            kept.seq_and_len |= u64::from(place);
            kept.ack_and_traits |= u64::from(len << SACK_BLOCKS_SHIFT);
        } else {
            let place = self.segments.place();
            self.segments.items[place as usize] = *segment;
            kept.window_or_enclosure = place;
            kept.ack_and_traits |= u64::from(Traits::ENCLOSED.bits());
        }
    }

    /// Copies the parcel in `slot` to a place of the caller's, whatever it held.
    #[inline(always)]
    pub fn read(&self, slot: Slot, parcel: &mut Parcel) {
        let kept = &self.packets[slot];
        (parcel.to, parcel.incarnation) = (kept.to, kept.incarnation);
        let segment = &mut parcel.segment;
        let traits = kept.traits();
        segment.seq = kept.seq_and_len >> LEN_BITS;
        segment.len = kept.len();
        segment.ack = kept.ack_and_traits >> 16;
        segment.window = kept.window_or_enclosure;
        segment.flags = Flags::from_bits_retain((kept.ack_and_traits >> 8 & 0xff) as u16);
        segment.ecn = match () {
            () if traits.contains(Traits::CONGESTED) => EcnField::Congested,
            () if traits.contains(Traits::ECN_CAPABLE) => EcnField::Capable,
            () => EcnField::NotCapable,
        };
        segment.low_priority = traits.contains(Traits::LOW_PRIORITY);
        segment.probe = Probe::No;
        let [value, echo] = kept.timestamps;
        segment.timestamps = traits.contains(Traits::TIMESTAMPS).then_some((value, echo));
        segment.syn_options = None;
        segment.extension = Extension::None;
        segment.sack.clear();
        if let Some(enclosed) = kept.enclosed() {
            self.unfold(enclosed, segment);
        }
    }

    /// Copies what is enclosed.
    #[inline(never)]
    fn unfold(&self, enclosed: Enclosed, segment: &mut Segment) {
        match enclosed {
            Enclosed::SackBlocks(len, place) => {
                let SackLine(blocks) = self.sack_lines.items[place as usize];
                (segment.len, segment.sack) = (0, SackBlocks::Held { len, blocks });
            }
            Enclosed::Segment(place) => *segment = self.segments.items[place as usize],
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
        self.release_enclosed(slot);
        self.write(slot, parcel);
    }

    /// Where the parcel in `slot` is going: the end and its incarnation.
    #[inline]
    pub fn address(&self, slot: Slot) -> (u32, u32) {
        let kept = &self.packets[slot];
        (kept.to, kept.incarnation)
    }

    /// Notes where a packet is.
    #[inline(always)]
    pub fn set_way(&mut self, way: Way) {
        let kept = &mut self.packets[way.ticket.slot()];
        (kept.position, kept.nature) = way.ticket.without_slot();
        (kept.time, kept.salt_or_next, kept.lane) = (way.time, way.salt_or_next, way.lane);
    }

    /// Where the packet in `slot` is.
    #[inline(always)]
    pub fn way(&self, slot: Slot) -> Way {
        let Kept { position, nature, time, salt_or_next, lane, .. } = self.packets[slot];
        Way { time, ticket: Ticket::with_slot(slot, (position, nature)), salt_or_next, lane }
    }

    /// The lane that a packet goes to behind the junction that it waits at; [`NO_LANE`] if it goes elsewhere.
    #[inline(always)]
    pub fn lane(&self, slot: Slot) -> u32 {
        self.packets[slot].lane
    }

    /// Notes the slot of the packet behind one in line.
    #[inline(always)]
    pub fn set_next(&mut self, slot: Slot, next: Slot) {
        self.packets[slot].salt_or_next = next;
    }

    /// Releases what is enclosed with a packet, if there is something.
    #[inline(always)]
    fn release_enclosed(&mut self, slot: Slot) {
        match self.packets[slot].enclosed() {
            None => {}
            Some(Enclosed::SackBlocks(_, place)) => self.sack_lines.free.push(place),
            Some(Enclosed::Segment(place)) => self.segments.free.push(place),
        }
    }

    /// Releases a slot.
    #[inline(always)]
    pub fn release(&mut self, slot: Slot) {
        self.release_enclosed(slot);
        self.packets.release(slot);
    }

    /// A second slot with the same contents.
    pub fn duplicate(&mut self, slot: Slot) -> Slot {
        let parcel = self.get(slot);
        self.put(&parcel)
    }

    /// True if the caches close to a processor do not hold all of it, so that it pays to ask for memory ahead.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.packets.places().len() > FEW
    }

    /// Asks for the memory of a packet, if there is one.
    #[inline(always)]
    pub fn prefetch(&self, slot: Slot) {
        prefetch_item(self.packets.places(), slot as usize);
    }

    /// Asks for the memory of some packets that may lie in a row, as far as there are so many slots.
    #[inline(always)]
    pub fn prefetch_row(&self, first: Slot, count: u32) {
        if let Some(packets) = self.packets.places().get(first as usize..(first + count) as usize) {
            prefetch(packets);
        }
    }

    /// Asks for the memory of what few packets carry, if the one in `slot` does, which is at hand: whoever it belongs to, or did.
    #[inline(always)]
    pub fn prefetch_enclosed(&self, slot: Slot) {
        match self.packets.places().get(slot as usize).and_then(Kept::enclosed) {
            None => {}
            Some(Enclosed::SackBlocks(_, place)) => prefetch_item(&self.sack_lines.items, place as usize),
            Some(Enclosed::Segment(place)) => prefetch_item(&self.segments.items, place as usize),
        }
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.packets.used(&self.cursors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Notice, ProbeTag, Snack, SynOptions};

    fn parcel(to: u32) -> Parcel {
        Parcel { to, incarnation: 7, segment: Segment { seq: 5, len: 960, ..Segment::default() } }
    }

    #[test]
    fn slots_are_used_in_a_row_and_again() {
        let mut arena = Arena::default();
        let [a, other, b] = [2, 1, 4].map(|to| arena.put(&parcel(to)));
        let copy = arena.duplicate(a);
        assert_eq!(
            (b, copy, other / PAGE as u32),
            (a + 1, b + 1, 1),
            "those for the other side lie elsewhere"
        );
        assert_eq!((arena.address(copy), arena.used()), ((2, 7), 4));
        for _ in 0..10 * PAGE {
            let slot = arena.put(&parcel(3));
            arena.release(slot);
        }
        assert_eq!((arena.used(), arena.packets.places().len()), (4, 3 * PAGE));
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
            Segment { sack, len: 0, window: 9, ecn: EcnField::Congested, ..plain },
            Segment { sack: SackBlocks::Missing(Snack::default()), len: 0, ..plain },
            Segment { syn_options: Some(SynOptions { mss: Some(960), ..SynOptions::default() }), ..plain },
            Segment { extension: Extension::Notice(Notice::Spoilt(77)), ..plain },
            Segment { seq: 1 << SEQ_BITS, ..plain },
            Segment { ack: u64::MAX, ecn: EcnField::Capable, ..plain },
            Segment {
                seq: (1 << SEQ_BITS) - 1,
                ack: 77,
                len: (1 << LEN_BITS) - 1,
                window: u32::MAX,
                flags: Flags::all(),
                ..plain
            },
            Segment { len: 1 << LEN_BITS, ..plain },
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
        assert_eq!((arena.used(), arena.packets.places().len()), (0, PAGE));
        assert_eq!((arena.segments.items.len(), arena.segments.free.len()), (1, 1));
        assert_eq!((arena.sack_lines.items.len(), arena.sack_lines.free.len()), (1, 1));
    }
}
