use bentpipe_base::Instant;

use crate::IP_HEADER;
use crate::outbox::Fragment;
use crate::tcp_end::Loaded;

/// Bytes of the primary block and the payload block's header (RFC 5050 section 4.5), with identifiers of typical length.
const BLOCKS: u32 = 60;
/// Payload bytes of an administrative record (RFC 5050 section 6.1): a signal or status report with its bundle's identity.
const RECORD: u32 = 40;
/// Bytes of the UDP header and of an LTP segment header (RFC 5326 section 3) with numbers of typical length.
const SEGMENT_HEADER: u32 = 8 + 14;
/// Bytes of a checkpoint's serial numbers.
const CHECKPOINT: u32 = 4;
/// Maximum overhead of a segment in bytes.
pub(super) const SEGMENT_OVERHEAD: u32 = IP_HEADER + SEGMENT_HEADER + CHECKPOINT;
/// Bytes of a report segment without claims, and of each claim.
const REPORT: u32 = 8 + 20;
const CLAIM: u32 = 6;

/// Identity of a bundle. RFC 5050 uses the source and a creation timestamp with sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// Agent that created it, by its position on the path; the source is 0.
    pub source: u8,
    /// Number at its creator.
    pub number: u64,
}

/// A bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bundle {
    /// Its identity.
    pub name: Name,
    /// The agent that it is for, by its position on the path.
    pub to: u8,
    /// Creation time.
    pub created: Instant,
    /// End of its lifetime.
    pub expires: Instant,
    /// Custodian, which keeps a copy until another agent takes custody; `None` without custody.
    pub custodian: Option<u8>,
    /// True if its source requests status reports.
    pub wants_report: bool,
    /// Content of the bundle.
    pub payload: Payload,
}

/// Content of a bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Application data.
    Data(Fragment),
    /// An administrative record.
    Record(Record),
}

/// Administrative message between agents about a bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// Custody signal: another custodian has it.
    Accepted(Name),
    /// Custody signal: it was refused for lack of storage.
    Refused(Name),
    /// Status report: it was delivered to the application at this time.
    Delivered(Name, Instant),
    /// Status report: it was deleted.
    Deleted(Name),
}

impl Bundle {
    /// Returns the size as a block of the convergence layer, in bytes.
    pub fn bytes(&self) -> u32 {
        match self.payload {
            Payload::Data(fragment) => BLOCKS + fragment.bytes,
            Payload::Record(_) => BLOCKS + RECORD,
        }
    }

    /// True for application data.
    pub fn is_data(&self) -> bool {
        matches!(self.payload, Payload::Data(_))
    }
}

/// Packet between neighbours.
#[derive(Clone, PartialEq, Debug)]
pub enum Pdu {
    /// Part of a bundle as a block. Each part carries the block's header, so that the first part may be lost.
    Segment {
        /// Session of the transmission; a retransmitted bundle has a new one.
        session: u64,
        /// Bundle of the block.
        bundle: Bundle,
        /// First byte of this part, and the first byte after it.
        range: (u32, u32),
        /// Serial number of the requested report, if there is one.
        checkpoint: Option<u32>,
    },
    /// Report of the missing parts of a block.
    Report {
        /// Session of the transmission.
        session: u64,
        /// Serial number of the answered checkpoint.
        checkpoint: u32,
        /// Missing ranges of bytes with exclusive ends; empty if the block is complete.
        missing: Vec<(u32, u32)>,
    },
    /// Segment of a TCP connection.
    Stream {
        /// Number of the connection; later connections have larger numbers.
        connection: u64,
        /// Header bytes (IP and TCP).
        header_bytes: u32,
        /// The segment, with the bundles that end within it and their end positions; `None` for a reset of an unknown connection.
        loaded: Option<Box<Loaded<Bundle>>>,
    },
}

impl Pdu {
    /// Returns the size on the wire in bytes, IP header included.
    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::Segment { range, checkpoint, .. } => {
                let asks = if checkpoint.is_some() { CHECKPOINT } else { 0 };
                IP_HEADER + SEGMENT_HEADER + asks + range.1 - range.0
            }
            Self::Report { missing, .. } => IP_HEADER + REPORT + CLAIM * missing.len() as u32,
            Self::Stream { header_bytes, loaded, .. } => {
                header_bytes + loaded.as_ref().map_or(0, |loaded| loaded.0.len)
            }
        }
    }

    /// True if it carries application data.
    pub(crate) fn is_data(&self) -> bool {
        match self {
            Self::Segment { bundle, .. } => bundle.is_data(),
            Self::Report { .. } => false,
            Self::Stream { loaded, .. } => loaded.as_ref().is_some_and(|loaded| loaded.0.len > 0),
        }
    }
}
