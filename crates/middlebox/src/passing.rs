//! Inputs and outputs of a middlebox for a packet.

use bentpipe_base::{Duration, Instant, Rate, Segment};

/// Number of a connection, unique within a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Connection(pub u64);

/// Direction of a connection's packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// From the sending end of a flow to its receiver.
    Forward,
    /// From the receiver to the sending end.
    Reverse,
}

impl Direction {
    /// Returns the other direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// The data of a connection in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DataStream {
    pub connection: Connection,
    /// True for data in [`Direction::Reverse`].
    pub reverse: bool,
}

/// Outgoing link of a packet, with the present state of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Number of the link in its world.
    pub link: u32,
    /// Present transmission rate.
    pub rate: Rate,
    /// Present one-way propagation delay.
    pub delay_one_way: Duration,
    /// Queued bytes, without the packet in transmission.
    pub waiting_bytes: u64,
    /// Queued packets.
    pub waiting_packets: u32,
    /// End of the present outage, if there is one.
    pub out_until: Option<Instant>,
}

/// A packet that arrived with transmission errors and a readable header.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spoilt<'a> {
    /// Connection of the packet.
    pub connection: Connection,
    /// The direction in which it travelled.
    pub direction: Direction,
    /// Header of the packet.
    pub segment: &'a Segment,
}

/// A packet that passes a node.
#[derive(PartialEq, Debug)]
pub struct Passing<'a> {
    /// Connection of the packet; `None` if it is not TCP.
    pub connection: Option<Connection>,
    /// The direction in which it travels.
    pub direction: Direction,
    /// Header, which the middlebox may change. For packets other than TCP only the length is used.
    pub segment: &'a mut Segment,
    /// Bytes on the wire.
    pub size: u32,
    /// Outgoing link.
    pub port: Port,
}

/// Fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet goes on, after the middlebox's own segments.
    Forward,
    /// The packet ends here.
    Absorb,
}

/// A segment that a middlebox sends on behalf of one end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Emission {
    /// The connection.
    pub connection: Connection,
    /// The direction in which it travels.
    pub direction: Direction,
    /// The segment.
    pub segment: Segment,
}
