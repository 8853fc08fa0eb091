//! Resource limits of a stack.

/// Resource limits of a stack. Beyond `half_open` handshakes, SYNs are answered by cookies, which need no state. At the other
/// limits SYNs are not answered, and data is dropped as if lost.
///
/// One remote host (an IPv4 address or an IPv6 /64 network) may use at most four times the free memory and connections, so that
/// others always find some. All connections whose peers have acknowledged no data share 25 % of the memory, in addition to one
/// chunk each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of connections, TIME-WAIT included.
    pub connections: usize,
    /// Maximum number of incomplete handshakes begun by peers. Further SYNs are answered by cookies (RFC 4987).
    pub half_open: usize,
    /// Maximum number of complete connections per port that wait to be [accepted](super::Stack::accept).
    pub accept_queue: usize,
    /// Maximum number of [released](super::Stack::release) connections, TIME-WAIT included. Beyond it, and before new connections
    /// are refused, the oldest are reset.
    pub orphans: usize,
    /// Memory of all connections in bytes: unsent, unacknowledged and unread payload, and all state.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 65_536, half_open: 256, accept_queue: 16_384, orphans: 32_768, bytes: 1 << 30 }
    }
}
