//! What a middlebox is told of a packet, and what it answers.

use bentpipe_base::{Duration, Instant, Rate, Segment};

/// A connection, as long as it lives: no other one of the same run has the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Connection(pub u64);

/// The direction in which a packet of a connection travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// From the sending end of a flow to its receiver.
    Forward,
    /// Towards it.
    Reverse,
}

impl Direction {
    /// The other direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// The data that a connection carries in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DataStream {
    pub connection: Connection,
    /// They travel in [`Direction::Reverse`].
    pub reverse: bool,
}

/// The link that a packet leaves a node by, and what its queue holds now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Number of the link in its world.
    pub link: u32,
    /// Rate of transmission now.
    pub rate: Rate,
    /// One-way propagation delay now.
    pub delay_one_way: Duration,
    /// Bytes that wait; the packet in transmission does not.
    pub waiting_bytes: u64,
    /// Packets that wait.
    pub waiting_packets: u32,
    /// When the outage ends in which the link is, if it is in one.
    pub out_until: Option<Instant>,
}

/// A packet that reached a node spoilt by transmission errors, and of which the header could be read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spoilt<'a> {
    /// Its connection.
    pub connection: Connection,
    /// The direction in which it travelled.
    pub direction: Direction,
    /// Its header.
    pub segment: &'a Segment,
}

/// A packet that passes a node.
#[derive(PartialEq, Debug)]
pub struct Passing<'a> {
    /// Its connection; none if it is not TCP.
    pub connection: Option<Connection>,
    /// The direction in which it travels.
    pub direction: Direction,
    /// Its header, which the middlebox may change. Of a packet that is not TCP only the length counts.
    pub segment: &'a mut Segment,
    /// Bytes on the wire.
    pub size: u32,
    /// The link that it leaves by.
    pub port: Port,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It goes on, behind what the middlebox sends.
    Forward,
    /// It goes no further.
    Absorb,
}

/// A segment that a middlebox sends in the name of one end of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Emission {
    /// The connection.
    pub connection: Connection,
    /// The direction in which it travels.
    pub direction: Direction,
    /// The segment.
    pub segment: Segment,
}
