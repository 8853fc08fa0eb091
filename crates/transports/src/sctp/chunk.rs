use bentpipe_base::Instant;

use crate::IP_HEADER;
use crate::outbox::Fragment;

const COMMON_HEADER: u32 = 12;
const DATA_HEADER: u32 = 20;

/// A packet of an association.
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
        /// Place among the fragments of its stream; none if it is unordered.
        place: Option<u64>,
        /// What it carries.
        fragment: Fragment,
    },
    /// SACK.
    Sack {
        /// Everything below has arrived.
        cumulative: u64,
        /// What has arrived above, as ranges that do not include their ends.
        held: Vec<(u64, u64)>,
        /// Packets for which the receiver has room above `cumulative`.
        window: u64,
    },
    /// HEARTBEAT.
    Heartbeat {
        /// Time of sending.
        stamp: Instant,
    },
    /// HEARTBEAT ACK.
    HeartbeatAck {
        /// Time of sending of the heartbeat.
        echo: Instant,
    },
}

impl Chunk {
    /// Size on the wire from the IP header on.
    pub(crate) fn bytes(&self) -> u32 {
        IP_HEADER
            + COMMON_HEADER
            + match self {
                Self::Init => 20,
                // With the state cookie, of a usual size.
                Self::InitAck => 120,
                Self::CookieEcho => 100,
                Self::CookieAck => 4,
                Self::Data { fragment, .. } => DATA_HEADER + fragment.bytes,
                Self::Sack { held, .. } => 16 + 4 * held.len() as u32,
                Self::Heartbeat { .. } | Self::HeartbeatAck { .. } => 16,
            }
    }
}
