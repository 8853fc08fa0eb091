//! What links carry in the simulator.

use bentpipe_base::{EcnField, Segment};
use bentpipe_net::Packet;

use crate::arena::Slot;

bitflags::bitflags! {
    /// What links and the far end must know of a packet. A word, so that tickets have no padding and are copied in whole pieces.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Marks: u32 {
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

/// A packet on its way: where its contents lie, how large it is and which link it is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    /// The contents.
    pub slot: Slot,
    /// Bytes on the wire.
    pub size: u32,
    /// The end that it is going to: a connection end, or a flow of plain packets.
    pub to: u32,
    /// Position in the routes of the link that it is on.
    pub position: u32,
    /// Equal for all packets of one flow and direction, and independent of the rest of the world.
    pub label: u32,
    /// Properties.
    pub marks: Marks,
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
        self.size
    }

    #[inline]
    fn low_priority(&self) -> bool {
        self.marks.contains(Marks::LOW_PRIORITY)
    }

    #[inline]
    fn flow(&self) -> u64 {
        u64::from(self.label)
    }

    #[inline]
    fn is_data(&self) -> bool {
        self.marks.contains(Marks::DATA)
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.marks.contains(Marks::ECN_CAPABLE)
    }

    #[inline]
    fn mark_congested(&mut self) {
        self.marks |= Marks::CONGESTED;
    }
}

const _: () = assert!(size_of::<Ticket>() <= 24, "tickets are copied at every hop");
