use bentpipe_base::Segment;

use crate::outbox::Fragment;
use crate::stp;

/// Header of a unit of the upper layer: connection, sequence number, flags, length.
pub(super) const UNIT_HEADER: u32 = 12;

/// A segment without data or options: what answers a packet of an association that is not known.
const RESET: u32 = 40;

/// What the upper layer sends from host to host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// DATA.
    Data {
        /// Position of its first byte.
        seq: u64,
        /// What it carries.
        fragment: Fragment,
    },
    /// FIN: nothing follows.
    Fin {
        /// Position of the end.
        seq: u64,
    },
    /// UACK: the destination's application has everything below.
    Confirm {
        /// First position that is missing.
        next: u64,
        /// The FIN has come as well.
        fin: bool,
    },
}

impl Unit {
    /// Size within the lower layer.
    pub(super) fn bytes(&self) -> u32 {
        UNIT_HEADER + if let Self::Data { fragment, .. } = self { fragment.bytes } else { 0 }
    }
}

/// A packet of the lower layer.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// The association that it belongs to: the later, the greater.
    pub(super) generation: u64,
    pub(super) content: Content,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Content {
    /// TCP, with its headers' bytes and the units that end within it, by where they do.
    Tcp { segment: Segment, header: u32, units: Vec<(u64, Unit)> },
    /// STP: of the association by which the opener of the hop sends, or of the other; a data packet with its unit.
    Stp { from_opener: bool, pdu: stp::Pdu, unit: Option<Unit> },
    /// Nothing is known of the association here.
    Reset,
}

impl Pdu {
    /// Size on the wire from the IP header on.
    pub(crate) fn bytes(&self) -> u32 {
        match &self.content {
            Content::Tcp { segment, header, .. } => header + segment.len,
            Content::Stp { pdu, .. } => pdu.bytes(),
            Content::Reset => RESET,
        }
    }

    /// Whether it carries payload.
    pub(crate) fn is_data(&self) -> bool {
        match &self.content {
            Content::Tcp { segment, .. } => segment.len > 0,
            Content::Stp { pdu, .. } => matches!(pdu, stp::Pdu::Data { .. }),
            Content::Reset => false,
        }
    }
}
