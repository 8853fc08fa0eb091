use bentpipe_base::Instant;

use crate::IP_HEADER;
use crate::outbox::Fragment;

const COMMON_HEADER: u32 = 12;
const DATA_HEADER: u32 = 20;

/// Packet of an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// INIT chunk: opens an association.
    Init,
    /// INIT ACK with a cookie.
    InitAck,
    /// COOKIE ECHO chunk: returns the cookie to the server.
    CookieEcho,
    /// COOKIE ACK chunk: completes the handshake.
    CookieAck,
    /// I-DATA chunk: user data.
    Data {
        /// Transmission sequence number.
        tsn: u64,
        /// Position among the fragments of its stream; `None` if unordered.
        place: Option<u64>,
        /// Content of the chunk.
        fragment: Fragment,
    },
    /// SACK chunk: acknowledges data.
    Sack {
        /// First number that has not arrived; all below have.
        cumulative: u64,
        /// Ranges that arrived above it, with exclusive ends.
        held: Vec<(u64, u64)>,
        /// Free space of the receiver above `cumulative`, in packets.
        window: u64,
    },
    /// HEARTBEAT chunk: tests whether a path works.
    Heartbeat {
        /// Send time of the heartbeat.
        stamp: Instant,
    },
    /// HEARTBEAT ACK chunk: answers a heartbeat.
    HeartbeatAck {
        /// Send time of the heartbeat.
        echo: Instant,
    },
}

impl Chunk {
    /// Returns the size on the wire in bytes, IP header included.
    pub(crate) fn bytes(&self) -> u32 {
        IP_HEADER
            + COMMON_HEADER
            + match self {
                Self::Init => 20,
                // With a state cookie of typical size.
                Self::InitAck => 120,
                Self::CookieEcho => 100,
                Self::CookieAck => 4,
                Self::Data { fragment, .. } => DATA_HEADER + fragment.bytes,
                Self::Sack { held, .. } => 16 + 4 * held.len() as u32,
                Self::Heartbeat { .. } | Self::HeartbeatAck { .. } => 16,
            }
    }
}
