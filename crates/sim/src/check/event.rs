//! The words in which checkers are told what happens in a network.

use bentpipe_base::{Instant, SackRange, Segment};
use bentpipe_net::Backlog;
use bentpipe_trace::{DropCause, Event};

/// What happened at a connection end. Packets have numbers, which none of two that exist at the same time share.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostEvent {
    /// A new connection uses it; even ends send, odd ends receive.
    Opened {
        /// The leg of a flow that the connection serves.
        leg_id: u32,
        /// At a proxy the end whose stream it relays, in both directions.
        inward: Option<u32>,
    },
    /// The application wrote this number of bytes.
    Wrote(u64),
    /// A segment left.
    Sent {
        /// Number of its packet.
        packet: u32,
        /// The segment.
        segment: Segment,
    },
    /// A middlebox sent a segment in its name.
    Forged {
        /// Number of its packet.
        packet: u32,
        /// The segment.
        segment: Segment,
    },
    /// A segment arrived and will be handled next.
    Arrived {
        /// Number of its packet.
        packet: u32,
        /// The segment.
        segment: Segment,
    },
    /// The application will read over this range of the stream, which never arrived (best effort).
    Missing(SackRange),
    /// The application read this number of bytes.
    Read(u64),
    /// The connection recorded an event of its own at a time.
    Traced(Instant, Event),
    /// The end has done everything that there was to do at this time.
    Settled {
        /// Bytes of its stream that are acknowledged.
        acknowledged_bytes: u64,
    },
}

/// A packet that something happened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenPacket {
    /// Its number.
    pub number: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// The end that it goes to: a connection end, or that of a flow without TCP.
    pub to: u32,
    /// Duplication made it of another.
    pub is_copy: bool,
    /// Its segment; none if it is not a packet of TCP.
    pub segment: Option<Segment>,
}

/// What happened at one direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkActivity {
    /// A packet was offered to the queue.
    Offered {
        /// The packet.
        packet: SeenPacket,
        /// What waits after that.
        backlog: Backlog,
    },
    /// A packet arrived at the far end.
    Delivered(SeenPacket),
    /// The packet delivered next is a copy of another that stays on the link.
    Copied {
        /// Number of the other.
        original: u32,
        /// Number of the copy.
        copy: u32,
    },
    /// A packet that waited was taken back, because the link is given up.
    TakenBack(SeenPacket),
    /// A packet was lost.
    Lost {
        /// The packet.
        packet: SeenPacket,
        /// For this reason.
        cause: DropCause,
        /// At this time.
        at: Instant,
    },
}
