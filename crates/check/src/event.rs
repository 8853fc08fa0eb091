//! Events of connection ends and links, as the checkers receive them.

use bentpipe_base::{Instant, SackRange, Segment};
use bentpipe_net::Backlog;
use bentpipe_trace::{DropCause, Event};

/// Event of a connection end. Packets have numbers that are unique among the packets in the network.
#[derive(Clone, Copy, Debug)]
pub enum HostEvent {
    /// A new connection uses this end. Even ends send, odd ends receive.
    Opened {
        /// Leg of the flow that the connection carries.
        leg_id: u32,
        /// At a proxy: the end whose stream this end relays, in both directions.
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
    /// A middlebox sent a segment in the name of this end.
    Forged {
        /// Number of its packet.
        packet: u32,
        /// The segment.
        segment: Segment,
    },
    /// A segment arrived; the end handles it next.
    Arrived {
        /// Number of its packet.
        packet: u32,
        /// The segment.
        segment: Segment,
    },
    /// The application will skip this range of the stream, which never arrived (best effort).
    Missing(SackRange),
    /// The application read this number of bytes.
    Read(u64),
    /// The connection recorded a trace event at this time.
    Traced(Instant, Event),
    /// The end has finished all work of this time.
    Settled {
        /// Acknowledged bytes of its stream.
        acknowledged_bytes: u64,
    },
}

/// A packet of an event.
#[derive(Clone, Copy, Debug)]
pub struct SeenPacket {
    /// Number of the packet.
    pub number: u32,
    /// Size on the wire in bytes.
    pub bytes: u32,
    /// Destination: a connection end, or the end of a flow without TCP.
    pub to: u32,
    /// True if duplication made the packet.
    pub is_copy: bool,
    /// Its segment; `None` for packets of other protocols.
    pub segment: Option<Segment>,
}

/// Event of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub enum LinkActivity {
    /// A packet was offered to the queue.
    Offered {
        /// The packet.
        packet: SeenPacket,
        /// Packets in the queue after that.
        backlog: Backlog,
    },
    /// A packet arrived at the far end.
    Delivered(SeenPacket),
    /// The packet that is delivered next is a copy; the original stays on the link.
    Copied {
        /// Number of the original.
        original: u32,
        /// Number of the copy.
        copy: u32,
    },
    /// A queued packet was removed, because routing abandons the link.
    TakenBack(SeenPacket),
    /// A packet was lost.
    Lost {
        /// The packet.
        packet: SeenPacket,
        /// Reason of the loss.
        cause: DropCause,
        /// Time of the loss.
        at: Instant,
    },
}
