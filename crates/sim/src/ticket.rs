//! What links carry in the simulator.

use bentpipe_base::{EcnField, Segment};
use bentpipe_net::Packet;

use crate::arena::Slot;

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
        /// A plain packet for an agent of the flow: which one stands in its parcel.
        const AGENT = 0x40;
    }
}

/// A packet on its way: where its contents lie, how large it is and where it is.
///
/// Two words, so that a ticket travels in registers: memory that is written in pieces and read as a whole makes a processor wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    /// Slot in the low half, position in the high one.
    place: u64,
    /// Size in the low half, above it 24 bits of label and 8 of marks.
    nature: u64,
}

const LABEL_SHIFT: u32 = 32;
const LABEL_MASK: u64 = (1 << 24) - 1;
const MARKS_SHIFT: u32 = 56;

impl Ticket {
    /// Stands where there is none.
    pub const NOTHING: Self = Self { place: 0, nature: 0 };

    /// For a parcel in `slot` whose route begins at `position`; `label` is equal for all packets of one flow and direction, and
    /// independent of the rest of the world: 24 bits of it are kept.
    #[inline]
    pub fn new((slot, position): (Slot, u32), size: u32, label: u32, marks: Marks) -> Self {
        let label = u64::from(label) & LABEL_MASK;
        Self {
            place: u64::from(slot) | u64::from(position) << 32,
            nature: u64::from(size) | label << LABEL_SHIFT | u64::from(marks.bits()) << MARKS_SHIFT,
        }
    }

    /// All but the slot.
    #[inline(always)]
    pub fn without_slot(self) -> (u32, u64) {
        ((self.place >> 32) as u32, self.nature)
    }

    /// With a slot.
    #[inline(always)]
    pub fn with_slot(slot: Slot, (position, nature): (u32, u64)) -> Self {
        Self { place: u64::from(slot) | u64::from(position) << 32, nature }
    }

    /// The contents.
    #[inline]
    pub fn slot(self) -> Slot {
        self.place as Slot
    }

    /// Names other contents.
    pub fn set_slot(&mut self, slot: Slot) {
        self.place = self.place >> 32 << 32 | u64::from(slot);
    }

    /// Position in the routes of the step that it has taken.
    #[inline]
    pub fn position(self) -> usize {
        (self.place >> 32) as usize
    }

    /// Takes the next step.
    #[inline]
    pub fn step_on(&mut self) {
        self.place += 1 << 32;
    }

    /// Has not taken the last step.
    pub fn step_back(&mut self) {
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

impl Packet for Ticket {
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
    fn a_ticket_keeps_what_was_written_on_it() {
        let mut ticket = Ticket::new((u32::MAX, 7), u32::MAX, 0xab12_3456, Marks::DATA | Marks::AGENT);
        ticket.set_slot(5);
        ticket.step_on();
        ticket.mark(Marks::CONGESTED);
        assert_eq!((ticket.slot(), ticket.position(), ticket.size()), (5, 8, u32::MAX));
        assert_eq!(
            (ticket.flow(), ticket.marks()),
            (0x12_3456, Marks::DATA | Marks::AGENT | Marks::CONGESTED)
        );
        ticket.step_back();
        ticket.set_marks(Marks::COPY);
        assert_eq!((ticket.position(), ticket.flow(), ticket.marks()), (7, 0x12_3456, Marks::COPY));
    }
}
