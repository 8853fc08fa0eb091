//! STP, the Satellite Transport Protocol: the receiver reports missing data when it is polled, not for every packet.
//!
//! Henderson and Katz, "Satellite Transport Protocol (STP): An SSCOP-based Transport Protocol for Datagram Satellite Networks",
//! WOSBIS 1997, after ITU-T Q.2110 (SSCOP). The sender polls three times per round trip. The receiver answers a poll with the
//! list of all missing packets (STAT), and reports a new gap once by itself (USTAT). There is no retransmission timer: a packet
//! is sent again if a report to a later poll lists it as missing. On a dedicated link it can send at a fixed rate instead of
//! TCP's window law, and it can survive outages. Unacknowledged data (UD) is not implemented.

mod receiver;
mod sender;

use bentpipe_base::{Instant, Rate};

use crate::IP_HEADER;
use crate::outbox::Fragment;

pub use receiver::Receiver;
pub use sender::Sender;

/// Trailer bytes of a data packet: type, and a 32-bit sequence number.
const TRAILER: u32 = 8;
/// Options of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Fixed rate on the wire for a dedicated link, independent of losses. Only the receiver's window limits the outstanding
    /// data. `None` for TCP's window law.
    pub rate: Option<Rate>,
    /// True if silence does not end the connection. The sender continues to poll, and restarts with a window of one packet at the
    /// first answer.
    pub outage_tolerant: bool,
}

/// A packet of STP. Sequence numbers count data packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pdu {
    /// BGN: opens a connection.
    Begin,
    /// BGAK: accepts it.
    BeginAck {
        /// First sequence number that must not be sent.
        limit: u64,
    },
    /// END: releases it.
    End,
    /// ENDAK: confirms the release.
    EndAck,
    /// SD: data.
    Data {
        /// Sequence number N(S).
        number: u64,
        /// Content of the packet.
        fragment: Fragment,
    },
    /// POLL.
    Poll {
        /// Number of the poll N(PS).
        poll: u64,
        /// Sequence number of the next new packet.
        next: u64,
        /// Send time.
        stamp: Instant,
    },
    /// STAT: the answer to a poll.
    Status {
        /// N(R): first missing number; all below have arrived.
        base: u64,
        /// N(MR): first sequence number that must not be sent.
        limit: u64,
        /// Number of the poll.
        poll: u64,
        /// Send time of the poll.
        echo: Instant,
        /// Missing ranges, with exclusive ends.
        gaps: Vec<(u64, u64)>,
    },
    /// USTAT: a new gap.
    Gap {
        /// N(R) as in a STAT.
        base: u64,
        /// N(MR) as in a STAT.
        limit: u64,
        /// The gap, with an exclusive end.
        gap: (u64, u64),
    },
}

impl Pdu {
    /// Returns the size on the wire in bytes, IP header included.
    pub(crate) fn bytes(&self) -> u32 {
        IP_HEADER
            + match self {
                Self::Begin | Self::BeginAck { .. } | Self::End | Self::EndAck => 12,
                Self::Data { fragment, .. } => TRAILER + fragment.bytes,
                Self::Poll { .. } => 16,
                Self::Status { gaps, .. } => 20 + 8 * gaps.len() as u32,
                Self::Gap { .. } => 20,
            }
    }
}
