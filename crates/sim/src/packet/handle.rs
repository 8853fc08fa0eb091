//! Packets as links carry them in the simulator.

use bentpipe_base::{EcnField, Segment};
use bentpipe_net::Packet;
use bentpipe_scenario::NodeId;

use crate::ids::PacketIndex;

bitflags::bitflags! {
    /// Properties of a packet that links and the far end need.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Marks: u8 {
        /// Queues may drop this packet first.
        const LOW_PRIORITY = 0x01;
        /// It carries payload.
        const DATA = 0x02;
        /// ECN-capable and L4S: ECT(1).
        const ECT_1 = EcnField::L4s.bits() << Self::ECN_SHIFT;
        /// A queue marked it: both bits of [`EcnField`].
        const CONGESTED = EcnField::Congested.bits() << Self::ECN_SHIFT;
        /// A packet of constant-bit-rate traffic: there is no segment.
        const PLAIN = 0x10;
        /// The second of two that duplication made of one.
        const COPY = 0x20;
        /// A plain packet for an agent of the flow; its contents name the agent.
        const AGENT = 0x40;
    }
}

/// A packet in the network: place of its contents, size, and present place.
///
/// It has two words, so that a handle stays in registers: memory that is written in parts and read as a whole stalls a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketHandle {
    /// The index in the low half, the position in the routes in the high one.
    place: u64,
    /// From the low bits: 17 bits of size, 16 of hosts, 24 of label and 7 of marks.
    nature: u64,
}

/// The high bits of an index name the share of the packet: one more than its number.
const SHARE_SHIFT: u32 = 28;

/// Maximum number of shares of a world.
pub(crate) const MOST_SHARES: u32 = (1 << (PacketIndex::BITS - SHARE_SHIFT)) - 1;

const SIZE_MASK: u64 = (1 << HOSTS_SHIFT) - 1;
const HOSTS_SHIFT: u32 = 17;
const LABEL_SHIFT: u32 = 33;
const LABEL_MASK: u64 = (1 << 24) - 1;
const MARKS_SHIFT: u32 = 57;

/// Flow and hosts of a packet, by which queues tell packets apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Label {
    /// Equal for all packets of one flow and direction, and independent of the rest of the world: 24 bits of it are packed.
    pub flow: u32,
    /// Low bits of the numbers of the sending and of the receiving host.
    pub hosts: [u8; 2],
}

impl Label {
    /// Those of both directions of a flow between two hosts.
    pub fn pair(name: &str, nodes: [NodeId; 2]) -> [Self; 2] {
        let [from, to] = nodes.map(|node| node as u8);
        let there = Self { flow: hash(name, ">"), hosts: [from, to] };
        [there, Self { flow: hash(name, "<"), hosts: [to, from] }]
    }
}

/// 32-bit FNV-1a: spreads names.
pub(crate) fn hash(name: &str, direction: &str) -> u32 {
    let bytes = name.bytes().chain(direction.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl PacketHandle {
    /// Placeholder for no packet.
    pub const NOTHING: Self = Self { place: 0, nature: 0 };

    /// For the packet at `index` whose route begins at `position`.
    #[inline]
    pub fn new((index, position): (PacketIndex, u32), size: u32, label: Label, marks: Marks) -> Self {
        let (size, flow) = (u64::from(size), u64::from(label.flow) & LABEL_MASK);
        assert!(size <= SIZE_MASK, "payload and headers have 16 bits each");
        let hosts = u64::from(u16::from_le_bytes(label.hosts));
        Self {
            place: u64::from(index) | u64::from(position) << 32,
            nature: size
                | hosts << HOSTS_SHIFT
                | flow << LABEL_SHIFT
                | u64::from(marks.bits()) << MARKS_SHIFT,
        }
    }

    /// All but the index.
    #[inline(always)]
    pub fn without_index(self) -> (u32, u64) {
        ((self.place >> 32) as u32, self.nature)
    }

    /// A handle of the packet at an index, with this position and nature.
    #[inline(always)]
    pub fn with_index(index: PacketIndex, (position, nature): (u32, u64)) -> Self {
        Self { place: u64::from(index) | u64::from(position) << 32, nature }
    }

    /// Index of the contents in the pool.
    #[inline]
    pub fn index(self) -> PacketIndex {
        self.place as PacketIndex
    }

    /// Names other contents.
    pub fn set_index(&mut self, index: PacketIndex) {
        self.place = self.place >> 32 << 32 | u64::from(index);
    }

    /// The same handle with the share that the packet belongs to; `None` within its own share.
    #[inline]
    pub fn of_share(mut self, share: Option<u32>) -> Self {
        let index = self.index() & ((1 << SHARE_SHIFT) - 1);
        assert!(share.is_none() || index == self.index(), "no share has so many packets");
        self.set_index(index | share.map_or(0, |share| share + 1) << SHARE_SHIFT);
        self
    }

    /// The handle after a move from the thread of one share to that of another.
    pub fn moved(self, from: u32, to: u32) -> Self {
        let home = self.share().unwrap_or(from);
        self.of_share(None).of_share(Some(home).filter(|home| *home != to))
    }

    /// Share of the packet, if the handle names one.
    #[inline]
    pub fn share(self) -> Option<u32> {
        (self.index() >> SHARE_SHIFT).checked_sub(1)
    }

    /// Position in the routes of the hop that it has taken.
    #[inline]
    pub fn position(self) -> usize {
        (self.place >> 32) as usize
    }

    /// Takes the next hop.
    #[inline]
    pub fn advance(&mut self) {
        self.place += 1 << 32;
    }

    /// Takes the last hop back.
    pub fn go_back(&mut self) {
        self.place -= 1 << 32;
    }

    /// Bytes on the wire.
    #[inline]
    pub fn size(self) -> u32 {
        (self.nature & SIZE_MASK) as u32
    }

    /// Properties.
    #[inline]
    pub fn marks(self) -> Marks {
        Marks::from_bits_retain((self.nature >> MARKS_SHIFT) as u8)
    }

    #[inline]
    pub fn has(self, mark: Marks) -> bool {
        self.marks().contains(mark)
    }

    pub fn set_marks(&mut self, marks: Marks) {
        self.nature = self.nature << 7 >> 7 | u64::from(marks.bits()) << MARKS_SHIFT;
    }

    pub fn mark(&mut self, mark: Marks) {
        self.set_marks(self.marks() | mark);
    }
}

impl Marks {
    const ECN_SHIFT: u32 = 2;

    /// Marks of a segment that is about to leave.
    #[inline]
    pub fn of(segment: &Segment) -> Self {
        let mut marks = Self::empty();
        marks.set(Self::LOW_PRIORITY, segment.low_priority);
        marks.set(Self::DATA, segment.len > 0);
        marks | Self::from_bits_retain(segment.ecn.bits() << Self::ECN_SHIFT)
    }
}

impl Packet for PacketHandle {
    #[inline]
    fn size(&self) -> u32 {
        (*self).size()
    }

    #[inline]
    fn low_priority(&self) -> bool {
        self.has(Marks::LOW_PRIORITY)
    }

    #[inline]
    fn flow(&self) -> u64 {
        self.nature >> LABEL_SHIFT & LABEL_MASK
    }

    #[inline]
    fn hosts(&self) -> [u64; 2] {
        ((self.nature >> HOSTS_SHIFT) as u16).to_le_bytes().map(u64::from)
    }

    #[inline]
    fn is_data(&self) -> bool {
        self.has(Marks::DATA)
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.marks().intersects(Marks::CONGESTED)
    }

    #[inline]
    fn is_l4s(&self) -> bool {
        self.has(Marks::ECT_1)
    }

    #[inline]
    fn mark_congested(&mut self) {
        self.mark(Marks::CONGESTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { flow: 0xab12_3456, hosts: [0xfe, 0x81] };

    #[test]
    fn a_handle_keeps_what_it_was_given() {
        let mut handle = PacketHandle::new((u32::MAX, 7), 131_071, LABEL, Marks::DATA | Marks::AGENT);
        handle.set_index(5);
        handle.advance();
        handle.mark(Marks::CONGESTED);
        assert_eq!((handle.index(), handle.position(), handle.size()), (5, 8, 131_071));
        assert_eq!(
            (handle.flow(), handle.marks()),
            (0x12_3456, Marks::DATA | Marks::AGENT | Marks::CONGESTED)
        );
        handle.go_back();
        handle.set_marks(Marks::COPY);
        assert_eq!((handle.position(), handle.flow(), handle.marks()), (7, 0x12_3456, Marks::COPY));
        assert_eq!((handle.size(), handle.hosts()), (131_071, [0xfe, 0x81]));
    }
}
