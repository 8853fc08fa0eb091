//! STP, the Satellite Transport Protocol: the receiver reports what it has when it is polled, not for every packet.
//!
//! Henderson and Katz, "Satellite Transport Protocol (STP): An SSCOP-based Transport Protocol for Datagram Satellite Networks", WOSBIS 1997, after
//! ITU-T Q.2110 (SSCOP). The sender polls a few times in a round trip; the receiver answers a poll with the list of everything that is missing (STAT), and
//! reports a gap once by itself when it sees one (USTAT). There is no retransmission timer: a packet is sent again
//! if it is missing in a report that answers a poll sent after it. On a dedicated link it sends at a rate instead of by TCP's window law, and it may outlast
//! outages. Unacknowledged data (UD) are not part of it.

mod receiver;
mod sender;

use bentpipe_base::{Instant, Rate};

use crate::IP_HEADER;
use crate::outbox::Fragment;

pub use receiver::Receiver;
pub use sender::Sender;

/// Bytes of the trailer of a data packet: type, and a sequence number of 32 bits.
const TRAILER: u32 = 8;
/// What a flow chooses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// For a dedicated link: data leave at this rate on the wire whatever is lost, and only the receiver's window limits what is outstanding. None for
    /// TCP's window law.
    pub rate: Option<Rate>,
    /// Silence does not end the connection: it goes on polling, and begins with a window of one packet when it is answered.
    pub outage_tolerant: bool,
}

/// A packet of STP. Sequence numbers count data packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pdu {
    /// BGN: opens a connection.
    Begin,
    /// BGAK: accepts it.
    BeginAck {
        /// First sequence number that may not be sent.
        limit: u64,
    },
    /// END: releases it.
    End,
    /// ENDAK: agrees.
    EndAck,
    /// SD: data.
    Data {
        /// Sequence number N(S).
        number: u64,
        /// What it carries.
        fragment: Fragment,
    },
    /// POLL.
    Poll {
        /// Number of the poll N(PS).
        poll: u64,
        /// The sequence number that the next new packet will have.
        next: u64,
        /// Time of sending.
        stamp: Instant,
    },
    /// STAT: the answer to a poll.
    Status {
        /// Everything below has arrived, N(R).
        base: u64,
        /// First sequence number that may not be sent, N(MR).
        limit: u64,
        /// Number of the poll.
        poll: u64,
        /// Its time of sending.
        echo: Instant,
        /// Missing packets, as ranges that do not include their ends.
        gaps: Vec<(u64, u64)>,
    },
    /// USTAT: a gap that was not there before.
    Gap {
        /// As in a STAT.
        base: u64,
        /// As in a STAT.
        limit: u64,
        /// The gap, without its end.
        gap: (u64, u64),
    },
}

impl Pdu {
    /// Size on the wire from the IP header on.
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
