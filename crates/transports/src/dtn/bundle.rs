use bentpipe_base::Instant;

use crate::IP_HEADER;
use crate::outbox::Fragment;
use crate::tcp_end::Loaded;

/// Primary block and the header of the payload block (RFC 5050 section 4.5) with identifiers of a usual length.
const BLOCKS: u32 = 60;
/// Payload of an administrative record (RFC 5050 section 6.1): a signal or a status report with the identity of its bundle.
const RECORD: u32 = 40;
/// UDP, and the header of an LTP segment (RFC 5326 section 3) with numbers of a usual length.
const SEGMENT_HEADER: u32 = 8 + 14;
/// Serial numbers of a checkpoint.
const CHECKPOINT: u32 = 4;
/// What a segment adds to the bytes of its block, at most.
pub(super) const SEGMENT_OVERHEAD: u32 = IP_HEADER + SEGMENT_HEADER + CHECKPOINT;
/// A report segment without claims, and each of those.
const REPORT: u32 = 8 + 20;
const CLAIM: u32 = 6;

/// Identity of a bundle: RFC 5050 has source and creation timestamp with its sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The agent that made it, by its position on the path: the source is 0.
    pub source: u8,
    /// Its number there.
    pub number: u64,
}

/// A bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bundle {
    /// Its identity.
    pub name: Name,
    /// The agent that it is for, by its position on the path.
    pub to: u8,
    /// When it was made.
    pub created: Instant,
    /// When its lifetime ends.
    pub expires: Instant,
    /// The custodian, which keeps a copy until another agent does; none without custody.
    pub custodian: Option<u8>,
    /// Whether its source wants to know what becomes of it.
    pub wants_report: bool,
    /// What it holds.
    pub payload: Payload,
}

/// What a bundle holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Of the application.
    Data(Fragment),
    /// An administrative record.
    Record(Record),
}

/// What agents tell each other of a bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// Custody signal: another custodian keeps it.
    Accepted(Name),
    /// Custody signal: there was no room for it.
    Refused(Name),
    /// Status report: it was handed to the application, at that time.
    Delivered(Name, Instant),
    /// Status report: it was deleted.
    Deleted(Name),
}

impl Bundle {
    /// Size as a block of the convergence layer.
    pub fn bytes(&self) -> u32 {
        match self.payload {
            Payload::Data(fragment) => BLOCKS + fragment.bytes,
            Payload::Record(_) => BLOCKS + RECORD,
        }
    }

    /// Whether it is one of the application's.
    pub fn is_data(&self) -> bool {
        matches!(self.payload, Payload::Data(_))
    }
}

/// A packet between neighbours.
#[derive(Clone, PartialEq, Debug)]
pub enum Pdu {
    /// A part of a bundle as a block. Each part carries the head of the block, so that the first may be lost.
    Segment {
        /// Transmission that it belongs to: a bundle that is sent again has another.
        session: u64,
        /// The bundle.
        bundle: Bundle,
        /// First byte of this part, and the first behind it.
        range: (u32, u32),
        /// Serial number of the report that is asked for, if one is.
        checkpoint: Option<u32>,
    },
    /// What is missing of a block.
    Report {
        /// Transmission.
        session: u64,
        /// The checkpoint that it answers.
        checkpoint: u32,
        /// Ranges of bytes without their ends; none if the block is complete.
        missing: Vec<(u32, u32)>,
    },
    /// A part of a TCP connection.
    Stream {
        /// Which one: the later, the greater.
        connection: u64,
        /// IP and TCP headers.
        header_bytes: u32,
        /// The segment, with the bundles that end within it, by the positions at which they do; none where the connection is not known.
        loaded: Option<Box<Loaded<Bundle>>>,
    },
}

impl Pdu {
    /// Size on the wire from the IP header on.
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

    /// Whether it carries payload of the application.
    pub(crate) fn is_data(&self) -> bool {
        match self {
            Self::Segment { bundle, .. } => bundle.is_data(),
            Self::Report { .. } => false,
            Self::Stream { loaded, .. } => loaded.as_ref().is_some_and(|loaded| loaded.0.len > 0),
        }
    }
}
