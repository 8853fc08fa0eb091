use bentpipe_base::Segment;

use crate::outbox::Fragment;
use crate::stp;

/// Header bytes of an upper-layer unit: connection, sequence number, flags, length.
pub(super) const UNIT_HEADER: u32 = 12;

/// Bytes of a segment without data or options, which answers a packet of an unknown association.
const RESET: u32 = 40;

/// Unit of the upper layer from host to host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// DATA unit.
    Data {
        /// Position of its first byte.
        seq: u64,
        /// Content of the unit.
        fragment: Fragment,
    },
    /// FIN unit: no data follows.
    Fin {
        /// Position of the end.
        seq: u64,
    },
    /// UACK unit: the destination's application has all data below `next`.
    Confirm {
        /// First missing position.
        next: u64,
        /// True if the FIN has arrived as well.
        fin: bool,
    },
}

impl Unit {
    /// Returns the size within the lower layer in bytes.
    pub(super) fn bytes(&self) -> u32 {
        UNIT_HEADER + if let Self::Data { fragment, .. } = self { fragment.bytes } else { 0 }
    }
}

/// Packet of the lower layer.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// Number of its association; later ones have larger numbers.
    pub(super) generation: u64,
    pub(super) content: Content,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Content {
    /// TCP segment, with its header bytes and the units that end within it, keyed by end position.
    Tcp { segment: Segment, header: u32, units: Vec<(u64, Unit)> },
    /// STP packet of the association in the opener's direction or the reverse one. A data packet carries its unit.
    Stp { from_opener: bool, pdu: stp::Pdu, unit: Option<Unit> },
    /// Reset: the association is unknown here.
    Reset,
}

impl Pdu {
    /// Returns the size on the wire in bytes, IP header included.
    pub(crate) fn bytes(&self) -> u32 {
        match &self.content {
            Content::Tcp { segment, header, .. } => header + segment.len,
            Content::Stp { pdu, .. } => pdu.bytes(),
            Content::Reset => RESET,
        }
    }

    /// True if it carries payload.
    pub(crate) fn is_data(&self) -> bool {
        match &self.content {
            Content::Tcp { segment, .. } => segment.len > 0,
            Content::Stp { pdu, .. } => matches!(pdu, stp::Pdu::Data { .. }),
            Content::Reset => false,
        }
    }
}
