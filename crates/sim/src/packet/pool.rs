//! Pool of packets: links carry small handles, and a segment is written once.
//!
//! A packet with its place fits one cache line: sending, transmission by a shared link and receiving access only this line.

use bentpipe_base::{
    EcnField, Extension, Flags, Instant, Probe, SackBlocks, SackRange, Segment, prefetch_item,
};

use crate::ids::PacketIndex;
use crate::packet::handle::PacketHandle;
use crate::packet::slab::{ChunkedSlab, Cursor};
use crate::scheduler::key::tie_break;
use crate::tuning::CHUNK;

/// The contents of a packet and where they are going.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketContents {
    /// The end that it is going to: a connection end, or a flow of plain packets.
    pub to: u32,
    /// Incarnation of that end, so that a packet for a former connection does not reach its successor.
    pub incarnation: u32,
    /// Departure from the sender.
    pub sent_at: Instant,
    /// The segment; of a plain packet only the length counts.
    pub segment: Segment,
}

/// A packet that waits at a shared link or on a channel. Packets are ordered as the events of their arrivals: by time and tie-break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    /// Arrival at the shared link or the channel.
    pub at: Instant,
    pub handle: PacketHandle,
    /// At a shared link the salt of the previous link, on a channel the index of the next packet in the queue.
    pub salt_or_next: u32,
    /// Next channel of the packet; [`NO_CHANNEL`] if the shared link does not lead to one.
    pub channel: u32,
}

impl Waiting {
    /// See [`PacketHandle::of_share`].
    #[inline]
    pub fn of_share(self, share: Option<u32>) -> Self {
        Self { handle: self.handle.of_share(share), ..self }
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let tie_break = |packet: &Self| tie_break(packet.at, packet.salt_or_next);
        self.at.cmp(&other.at).then_with(|| tie_break(self).cmp(&tie_break(other)))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// No channel.
pub(crate) const NO_CHANNEL: u32 = u32::MAX;

/// A segment with more bits in its sequence number, its acknowledgement number or its length is kept out of line. The first two differ, so that
/// a compiler does not shift both at once: they are written one by one, and a processor waits before it reads them as a whole.
const SEQ_BITS: u32 = 44;
const ACK_BITS: u32 = 48;
const LEN_BITS: u32 = u64::BITS - SEQ_BITS;
const MOST_LEN: u32 = (1 << LEN_BITS) - 1;
/// Destination of a released packet, in builds with assertions.
const RELEASED: u32 = u32::MAX;
const ECN_SHIFT: u32 = Traits::ECN.bits().trailing_zeros();
const SACK_BLOCKS_SHIFT: u32 = Traits::SACK_BLOCKS.bits().trailing_zeros();

bitflags::bitflags! {
    /// Optional parts of a segment.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Traits: u8 {
        const TIMESTAMPS = 0x01;
        const LOW_PRIORITY = 0x02;
        /// The bits of [`EcnField`].
        const ECN = 0x0c;
        /// The whole segment is out of line; the field of the window holds its place.
        const OUT_OF_LINE = 0x10;
        /// Number of SACK blocks out of line; the field of the length, which is zero, holds their place.
        const SACK_BLOCKS = 0xe0;
        const HAS_OUT_OF_LINE = Self::OUT_OF_LINE.bits() | Self::SACK_BLOCKS.bits();
    }
}

/// A stored packet in one cache line: the usual fields of a segment, and the place where the packet waits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Packed {
    /// The length in the low bits.
    seq_and_len: u64,
    /// Traits in the low 8 bits, and 8 of flags above them.
    ack_and_traits: u64,
    to: u32,
    incarnation: u32,
    timestamps: [u32; 2],
    window_or_out_of_line: u32,
    // Fields from here on describe where the packet waits: its handle without the index.
    position: u32,
    nature: u64,
    time: Instant,
    salt_or_next: u32,
    channel: u32,
}

const _: () = assert!(size_of::<Packed>() == 64);

impl Packed {
    fn traits(&self) -> Traits {
        Traits::from_bits_retain(self.ack_and_traits as u8)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.seq_and_len as u32 & MOST_LEN
    }

    #[inline(always)]
    fn out_of_line(&self) -> Option<OutOfLine> {
        let traits = self.traits();
        traits.intersects(Traits::HAS_OUT_OF_LINE).then(|| {
            if traits.contains(Traits::OUT_OF_LINE) {
                OutOfLine::Segment(self.window_or_out_of_line)
            } else {
                OutOfLine::SackBlocks(traits.bits() >> SACK_BLOCKS_SHIFT, self.len())
            }
        })
    }
}

/// Part of a packet that is out of line, and its place.
enum OutOfLine {
    /// This number of SACK blocks.
    SackBlocks(u8, u32),
    /// A whole segment, with fields that few segments have.
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
    /// Returns a place with undefined contents.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.items.push(T::default());
            self.items.len() as u32 - 1
        })
    }
}

/// A slab of packets. Packets added in succession for the same side of flows are neighbours.
#[derive(Debug, Default)]
pub(crate) struct PacketPool {
    packets: ChunkedSlab<Packed, CHUNK>,
    /// For packets to either side.
    cursors: [Cursor; 2],
    sack_lines: Slab<SackLine>,
    segments: Slab<Segment>,
    /// Departure of each packet from its sender.
    sent_at: Vec<Instant>,
}

impl PacketPool {
    /// Keeps a packet.
    #[inline]
    pub fn put(&mut self, contents: &PacketContents) -> PacketIndex {
        let index = self.packets.next(&mut self.cursors[(contents.to % 2) as usize]);
        if index as usize >= self.sent_at.len() {
            self.sent_at.resize(self.packets.places().len(), Instant::ZERO);
        }
        self.write(index, contents);
        index
    }

    #[inline(always)]
    fn write(&mut self, index: PacketIndex, contents: &PacketContents) {
        let segment = &contents.segment;
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
        traits |= Traits::from_bits_retain(segment.ecn.bits() << ECN_SHIFT);
        self.sent_at[index as usize] = contents.sent_at;
        let packed = &mut self.packets[index];
        packed.seq_and_len = segment.seq << LEN_BITS | u64::from(segment.len);
        let flags = u64::from(segment.flags.bits() as u8);
        packed.ack_and_traits = segment.ack << 16 | flags << 8 | u64::from(traits.bits());
        (packed.to, packed.incarnation) = (contents.to, contents.incarnation);
        packed.timestamps = segment.timestamps.map_or([0; 2], |(value, echo)| [value, echo]);
        packed.window_or_out_of_line = segment.window;
        if !is_usual || !segment.sack.is_empty() {
            self.put_out_of_line(index, segment, is_usual);
        }
    }

    /// Keeps the SACK blocks of an ACK that is usual otherwise out of line, or the whole segment.
    #[inline(never)]
    fn put_out_of_line(&mut self, index: PacketIndex, segment: &Segment, is_usual: bool) {
        let packed = &mut self.packets[index];
        if let SackBlocks::Held { len, blocks } = &segment.sack
            && is_usual
            && segment.len == 0
            && self.sack_lines.items.len() < MOST_LEN as usize
        {
            let place = self.sack_lines.place();
            self.sack_lines.items[place as usize].0 = *blocks;
            packed.seq_and_len |= u64::from(place);
            packed.ack_and_traits |= u64::from(len << SACK_BLOCKS_SHIFT);
        } else {
            let place = self.segments.place();
            self.segments.items[place as usize] = *segment;
            packed.window_or_out_of_line = place;
            packed.ack_and_traits |= u64::from(Traits::OUT_OF_LINE.bits());
        }
    }

    /// Copies the packet at `index` into `contents`, whose former value is ignored.
    #[inline(always)]
    pub fn read(&self, index: PacketIndex, contents: &mut PacketContents) {
        let packed = &self.packets[index];
        debug_assert_ne!(packed.to, RELEASED, "a released packet is not read");
        (contents.to, contents.incarnation) = (packed.to, packed.incarnation);
        contents.sent_at = self.sent_at[index as usize];
        let segment = &mut contents.segment;
        let traits = packed.traits();
        segment.seq = packed.seq_and_len >> LEN_BITS;
        segment.len = packed.len();
        segment.ack = packed.ack_and_traits >> 16;
        segment.window = packed.window_or_out_of_line;
        segment.flags = Flags::from_bits_retain((packed.ack_and_traits >> 8 & 0xff) as u16);
        segment.ecn = EcnField::of_bits(traits.bits() >> ECN_SHIFT);
        segment.low_priority = traits.contains(Traits::LOW_PRIORITY);
        segment.probe = Probe::No;
        let [value, echo] = packed.timestamps;
        segment.timestamps = traits.contains(Traits::TIMESTAMPS).then_some((value, echo));
        segment.syn_options = None;
        segment.extension = Extension::None;
        segment.sack.clear();
        if let Some(out_of_line) = packed.out_of_line() {
            self.read_out_of_line(out_of_line, segment);
        }
    }

    /// Copies the part that is out of line.
    #[inline(never)]
    fn read_out_of_line(&self, out_of_line: OutOfLine, segment: &mut Segment) {
        match out_of_line {
            OutOfLine::SackBlocks(len, place) => {
                let SackLine(blocks) = self.sack_lines.items[place as usize];
                (segment.len, segment.sack) = (0, SackBlocks::Held { len, blocks });
            }
            OutOfLine::Segment(place) => *segment = self.segments.items[place as usize],
        }
    }

    /// The packet at `index`.
    pub fn get(&self, index: PacketIndex) -> PacketContents {
        let mut contents = PacketContents::default();
        self.read(index, &mut contents);
        contents
    }

    /// Replaces the packet at `index`.
    pub fn replace(&mut self, index: PacketIndex, contents: &PacketContents) {
        self.release_out_of_line(index);
        self.write(index, contents);
    }

    /// Destination of the packet at `index`: the end and its incarnation.
    #[inline]
    pub fn address(&self, index: PacketIndex) -> (u32, u32) {
        let packed = &self.packets[index];
        (packed.to, packed.incarnation)
    }

    /// Notes where a packet is.
    #[inline(always)]
    pub fn set_waiting(&mut self, way: Waiting) {
        let packed = &mut self.packets[way.handle.index()];
        (packed.position, packed.nature) = way.handle.without_index();
        (packed.time, packed.salt_or_next, packed.channel) = (way.at, way.salt_or_next, way.channel);
    }

    /// Place and arrival time of the packet at `index`.
    #[inline(always)]
    pub fn waiting(&self, index: PacketIndex) -> Waiting {
        let Packed { position, nature, time: at, salt_or_next, channel, .. } = self.packets[index];
        Waiting { at, handle: PacketHandle::with_index(index, (position, nature)), salt_or_next, channel }
    }

    /// Channel behind the shared link at which a packet waits; [`NO_CHANNEL`] without one.
    #[inline(always)]
    pub fn channel(&self, index: PacketIndex) -> u32 {
        self.packets[index].channel
    }

    /// Notes the index of the packet behind one in line.
    #[inline(always)]
    pub fn set_next(&mut self, index: PacketIndex, next: PacketIndex) {
        self.packets[index].salt_or_next = next;
    }

    /// Releases the part of a packet that is out of line, if there is one.
    #[inline(always)]
    fn release_out_of_line(&mut self, index: PacketIndex) {
        match self.packets[index].out_of_line() {
            None => {}
            Some(OutOfLine::SackBlocks(_, place)) => self.sack_lines.free.push(place),
            Some(OutOfLine::Segment(place)) => self.segments.free.push(place),
        }
    }

    /// Releases a packet.
    #[inline(always)]
    pub fn release(&mut self, index: PacketIndex) {
        debug_assert_ne!(self.packets[index].to, RELEASED, "a packet is released once");
        self.release_out_of_line(index);
        if cfg!(debug_assertions) {
            self.packets[index].to = RELEASED;
        }
        self.packets.release(index);
    }

    /// The index of a copy of a packet.
    pub fn duplicate(&mut self, index: PacketIndex) -> PacketIndex {
        let contents = self.get(index);
        self.put(&contents)
    }

    /// Asks for the memory of a packet, if there is one.
    #[inline(always)]
    pub fn prefetch(&self, index: PacketIndex) {
        prefetch_item(self.packets.places(), index as usize);
    }

    /// Places in use.
    pub fn used(&self) -> usize {
        self.packets.used(&self.cursors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Notice, ProbeTag, Snack, SynOptions};

    fn contents(to: u32) -> PacketContents {
        let segment = Segment { seq: 5, len: 960, ..Segment::default() };
        PacketContents { to, incarnation: 7, sent_at: Instant::from_nanos(9), segment }
    }

    #[test]
    fn slots_are_used_in_a_row_and_again() {
        let mut pool = PacketPool::default();
        let [a, other, b] = [2, 1, 4].map(|to| pool.put(&contents(to)));
        let copy = pool.duplicate(a);
        assert_eq!(
            (b, copy, other / CHUNK as u32),
            (a + 1, b + 1, 1),
            "those for the other side lie elsewhere"
        );
        assert_eq!((pool.address(copy), pool.used()), ((2, 7), 4));
        for _ in 0..10 * CHUNK {
            let index = pool.put(&contents(3));
            pool.release(index);
        }
        assert_eq!((pool.used(), pool.packets.places().len()), (4, 3 * CHUNK));
    }

    /// For any segment, index, and former value of the reader's copy.
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
            Segment { ecn: EcnField::L4s, ..plain },
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
        let mut pool = PacketPool::default();
        let mut out = PacketContents::default();
        for first in segments {
            for second in segments {
                let index = pool.put(&PacketContents { segment: first, ..contents(1) });
                pool.read(index, &mut out);
                assert_eq!((out.to, out.segment, out.sent_at), (1, first, Instant::from_nanos(9)));
                pool.replace(index, &PacketContents { segment: second, ..contents(2) });
                pool.read(index, &mut out);
                assert_eq!((out.to, out.segment), (2, second));
                assert_eq!(pool.get(index).segment, second);
                pool.release(index);
            }
        }
        assert_eq!((pool.used(), pool.packets.places().len()), (0, CHUNK));
        assert_eq!((pool.segments.items.len(), pool.segments.free.len()), (1, 1));
        assert_eq!((pool.sack_lines.items.len(), pool.sack_lines.free.len()), (1, 1));
    }
}
