//! The pool of the packets on their way: links carry small handles, and a segment is written once.

use bentpipe_base::{EcnField, Extension, Flags, Probe, Segment};

use crate::ids::PacketIndex;

/// The contents of a packet and where they are going.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketContents {
    /// The end that it is going to: a connection end, or a flow of plain packets.
    pub to: u32,
    /// Incarnation of that end, so that a packet for a connection that is gone does not reach its successor.
    pub incarnation: u32,
    /// The segment; of a plain packet only the length counts.
    pub segment: Segment,
}

/// A segment with more bits in its sequence number, its acknowledgement number or its length is kept out of line. The first two differ, so that
/// a compiler does not shift both at once: they are written one by one, and a processor waits before it reads them as a whole.
const SEQ_BITS: u32 = 44;
const ACK_BITS: u32 = 48;
const LEN_BITS: u32 = u64::BITS - SEQ_BITS;
const MOST_LEN: u32 = (1 << LEN_BITS) - 1;

bitflags::bitflags! {
    /// What there is about a segment.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Traits: u8 {
        const TIMESTAMPS = 0x01;
        const LOW_PRIORITY = 0x02;
        const ECN_CAPABLE = 0x04;
        const CONGESTED = 0x08;
    }
}

/// A packet as it is kept: what nearly every segment carries is packed.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedPacket {
    /// The length in the low bits.
    seq_and_len: u64,
    /// Traits in the low 8 bits, and 8 of flags above them.
    ack_and_traits: u64,
    to: u32,
    incarnation: u32,
    timestamps: [u32; 2],
    window: u32,
    /// The segment, if it carries what few do.
    rare: Option<Box<Segment>>,
}

const _: () = assert!(size_of::<PackedPacket>() <= 48);

impl PackedPacket {
    #[inline]
    fn new(contents: &PacketContents) -> Self {
        let PacketContents { to, incarnation, segment } = contents;
        let is_small = segment.seq >> SEQ_BITS == 0
            && segment.ack >> ACK_BITS == 0
            && segment.len >> LEN_BITS == 0
            && segment.flags.bits() <= 0xff;
        let is_usual = segment.probe == Probe::No
            && segment.syn_options.is_none()
            && matches!(segment.extension, Extension::None)
            && segment.sack.is_empty();
        let mut traits = Traits::empty();
        traits.set(Traits::TIMESTAMPS, segment.timestamps.is_some());
        traits.set(Traits::LOW_PRIORITY, segment.low_priority);
        traits.set(Traits::ECN_CAPABLE, segment.ecn != EcnField::NotCapable);
        traits.set(Traits::CONGESTED, segment.ecn == EcnField::Congested);
        let low_bits = u64::from(traits.bits()) | u64::from(segment.flags.bits()) << 8;
        let (value, echo) = segment.timestamps.unwrap_or_default();
        Self {
            seq_and_len: segment.seq << LEN_BITS | u64::from(segment.len),
            ack_and_traits: segment.ack << 16 | low_bits,
            to: *to,
            incarnation: *incarnation,
            timestamps: [value, echo],
            window: segment.window,
            rare: (!(is_small && is_usual)).then(|| Box::new(*segment)),
        }
    }

    /// Copies the packet to a place of the caller's, whatever it held.
    #[inline]
    fn read(&self, contents: &mut PacketContents) {
        (contents.to, contents.incarnation) = (self.to, self.incarnation);
        let segment = &mut contents.segment;
        if let Some(rare) = &self.rare {
            *segment = **rare;
            return;
        }
        let traits = Traits::from_bits_retain(self.ack_and_traits as u8);
        segment.seq = self.seq_and_len >> LEN_BITS;
        segment.len = self.seq_and_len as u32 & MOST_LEN;
        segment.ack = self.ack_and_traits >> 16;
        segment.window = self.window;
        segment.flags = Flags::from_bits_retain((self.ack_and_traits >> 8 & 0xff) as u16);
        segment.ecn = match () {
            () if traits.contains(Traits::CONGESTED) => EcnField::Congested,
            () if traits.contains(Traits::ECN_CAPABLE) => EcnField::Capable,
            () => EcnField::NotCapable,
        };
        segment.low_priority = traits.contains(Traits::LOW_PRIORITY);
        segment.probe = Probe::No;
        let [value, echo] = self.timestamps;
        segment.timestamps = traits.contains(Traits::TIMESTAMPS).then_some((value, echo));
        segment.syn_options = None;
        segment.extension = Extension::None;
        segment.sack.clear();
    }

    /// The same packet for another end.
    pub fn to_end(self, to: u32) -> Self {
        Self { to, ..self }
    }
}

/// A slab of packets. The place released last is used first.
#[derive(Debug, Default)]
pub(crate) struct PacketPool {
    packets: Vec<PackedPacket>,
    free: Vec<PacketIndex>,
}

impl PacketPool {
    /// Keeps a packet.
    #[inline]
    pub fn put(&mut self, contents: &PacketContents) -> PacketIndex {
        self.insert(PackedPacket::new(contents))
    }

    /// Keeps a packet of another pool.
    #[inline]
    pub fn insert(&mut self, packet: PackedPacket) -> PacketIndex {
        match self.free.pop() {
            Some(index) => {
                self.packets[index as usize] = packet;
                index
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as PacketIndex - 1
            }
        }
    }

    /// Takes out a packet for another pool.
    #[inline]
    pub fn take(&mut self, index: PacketIndex) -> PackedPacket {
        self.free.push(index);
        std::mem::take(&mut self.packets[index as usize])
    }

    /// Copies the packet at `index` to a place of the caller's, whatever it held.
    #[inline]
    pub fn read(&self, index: PacketIndex, contents: &mut PacketContents) {
        self.packets[index as usize].read(contents);
    }

    /// The packet at `index`.
    pub fn get(&self, index: PacketIndex) -> PacketContents {
        let mut contents = PacketContents::default();
        self.read(index, &mut contents);
        contents
    }

    /// Replaces the packet at `index`.
    pub fn replace(&mut self, index: PacketIndex, contents: &PacketContents) {
        self.packets[index as usize] = PackedPacket::new(contents);
    }

    /// Where the packet at `index` is going: the end and its incarnation.
    #[inline]
    pub fn address(&self, index: PacketIndex) -> (u32, u32) {
        let PackedPacket { to, incarnation, .. } = self.packets[index as usize];
        (to, incarnation)
    }

    /// Releases a packet.
    #[inline]
    pub fn release(&mut self, index: PacketIndex) {
        self.packets[index as usize].rare = None;
        self.free.push(index);
    }

    /// The index of a copy of a packet.
    pub fn duplicate(&mut self, index: PacketIndex) -> PacketIndex {
        self.insert(self.packets[index as usize].clone())
    }

    /// Places in use.
    pub fn used(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Notice, ProbeTag, SackBlocks, SackRange, Snack, SynOptions};

    fn contents(to: u32) -> PacketContents {
        PacketContents { to, incarnation: 7, segment: Segment { seq: 5, len: 960, ..Segment::default() } }
    }

    #[test]
    fn the_place_released_last_is_used_first() {
        let mut pool = PacketPool::default();
        let [a, b] = [2, 1].map(|to| pool.put(&contents(to)));
        let copy = pool.duplicate(a);
        assert_eq!((pool.address(copy), pool.used()), ((2, 7), 3));
        pool.release(b);
        let taken = pool.take(a);
        assert_eq!((pool.insert(taken.to_end(5)), pool.used()), (a, 2));
        assert_eq!((pool.address(a), pool.put(&contents(3))), ((5, 7), b));
    }

    /// Whatever a segment carries, and whatever the index and the reader's place held before.
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
        let mut pool = PacketPool::default();
        let mut out = PacketContents::default();
        for first in segments {
            for second in segments {
                let index = pool.put(&PacketContents { segment: first, ..contents(1) });
                pool.read(index, &mut out);
                assert_eq!((out.to, out.segment), (1, first));
                pool.replace(index, &PacketContents { segment: second, ..contents(2) });
                pool.read(index, &mut out);
                assert_eq!((out.to, out.segment), (2, second));
                assert_eq!(pool.get(index).segment, second);
                pool.release(index);
            }
        }
        assert_eq!((pool.used(), pool.packets.len()), (0, 1));
    }
}
