//! Packet handles: links carry them in the simulator.

use bentpipe_base::{EcnField, Segment};
use bentpipe_net::Packet;

use crate::ids::PacketIndex;

bitflags::bitflags! {
    /// What links and the far end must know of a packet.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Marks: u8 {
        /// Queues may sacrifice it for others.
        const LOW_PRIORITY = 0x01;
        /// It carries payload.
        const DATA = 0x02;
        /// It may be marked instead of dropped.
        const ECN_CAPABLE = 0x04;
        /// A queue marked it.
        const CONGESTED = 0x08;
        /// A packet of constant-bit-rate traffic: there is no segment.
        const PLAIN = 0x10;
        /// The second of two that duplication made of one.
        const COPY = 0x20;
        /// A plain packet for an agent of the flow. Its contents name the agent.
        const AGENT = 0x40;
    }
}

/// A packet on its way: where its contents lie, how large it is and where it is.
///
/// Two words, so that a handle travels in registers: memory that is written in pieces and read as a whole makes a processor wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PacketHandle {
    /// The index in the low half, the position in the routes in the high one.
    place: u64,
    /// Size in the low half, above it 24 bits of label and 8 of marks.
    nature: u64,
}

const LABEL_SHIFT: u32 = 32;
const LABEL_MASK: u64 = (1 << 24) - 1;
const MARKS_SHIFT: u32 = 56;

impl PacketHandle {
    /// For the packet at `index` whose route begins at `position`; `label` is equal for all packets of one flow and direction, and
    /// independent of the rest of the world: 24 bits of it are packed.
    #[inline]
    pub fn new((index, position): (PacketIndex, u32), size: u32, label: u32, marks: Marks) -> Self {
        let label = u64::from(label) & LABEL_MASK;
        Self {
            place: u64::from(index) | u64::from(position) << 32,
            nature: u64::from(size) | label << LABEL_SHIFT | u64::from(marks.bits()) << MARKS_SHIFT,
        }
    }

    /// The same packet at another index and another position in the routes.
    #[inline]
    pub fn at(self, (index, position): (PacketIndex, u32)) -> Self {
        Self { place: u64::from(index) | u64::from(position) << 32, ..self }
    }

    /// Where the contents lie in the pool.
    #[inline]
    pub fn index(self) -> PacketIndex {
        self.place as PacketIndex
    }

    /// Names other contents.
    pub fn set_index(&mut self, index: PacketIndex) {
        self.place = self.place >> 32 << 32 | u64::from(index);
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
        self.nature as u32
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
        self.nature = self.nature << 8 >> 8 | u64::from(marks.bits()) << MARKS_SHIFT;
    }

    pub fn mark(&mut self, mark: Marks) {
        self.set_marks(self.marks() | mark);
    }
}

impl Marks {
    /// Of a segment that is about to leave.
    #[inline]
    pub fn of(segment: &Segment) -> Self {
        let mut marks = Self::empty();
        marks.set(Self::LOW_PRIORITY, segment.low_priority);
        marks.set(Self::DATA, segment.len > 0);
        marks.set(Self::ECN_CAPABLE, segment.ecn != EcnField::NotCapable);
        marks
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
    fn is_data(&self) -> bool {
        self.has(Marks::DATA)
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.has(Marks::ECN_CAPABLE)
    }

    #[inline]
    fn mark_congested(&mut self) {
        self.mark(Marks::CONGESTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_keeps_what_it_was_given() {
        let mut handle = PacketHandle::new((u32::MAX, 7), u32::MAX, 0xab12_3456, Marks::DATA | Marks::AGENT);
        handle.set_index(5);
        handle.advance();
        handle.mark(Marks::CONGESTED);
        assert_eq!((handle.index(), handle.position(), handle.size()), (5, 8, u32::MAX));
        assert_eq!(
            (handle.flow(), handle.marks()),
            (0x12_3456, Marks::DATA | Marks::AGENT | Marks::CONGESTED)
        );
        handle.go_back();
        handle.set_marks(Marks::COPY);
        assert_eq!((handle.position(), handle.flow(), handle.marks()), (7, 0x12_3456, Marks::COPY));
    }
}
