use bentpipe_base::Instant;

use crate::IP_HEADER;
use crate::outbox::Fragment;

const COMMON_HEADER: u32 = 12;
const DATA_HEADER: u32 = 20;

/// Packet of an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// INIT.
    Init,
    /// INIT ACK with a cookie.
    InitAck,
    /// COOKIE ECHO.
    CookieEcho,
    /// COOKIE ACK.
    CookieAck,
    /// I-DATA.
    Data {
        /// Transmission sequence number.
        tsn: u64,
        /// Position among the fragments of its stream; `None` if unordered.
        place: Option<u64>,
        /// Content of the chunk.
        fragment: Fragment,
    },
    /// SACK.
    Sack {
        /// First number that has not arrived; all below have.
        cumulative: u64,
        /// Ranges that arrived above it, with exclusive ends.
        held: Vec<(u64, u64)>,
        /// Free space of the receiver above `cumulative`, in packets.
        window: u64,
    },
    /// HEARTBEAT.
    Heartbeat {
        /// Send time.
        stamp: Instant,
    },
    /// HEARTBEAT ACK.
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
