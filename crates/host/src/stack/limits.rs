//! What a stack may hold.

/// What a stack may hold at most. Beyond `half_open` handshakes SYNs are answered by cookies, for which nothing is stored. At the other limits SYNs
/// are not answered, and data are dropped as if they were lost.
///
/// One remote host (an IPv4 address, or an IPv6 network of 64 bits) gets no more than four times as much memory and as many connections as are
/// free, so that some are always left for another. All connections whose peers have acknowledged no data share a quarter of the memory, in
/// addition to a few kilobytes for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections, TIME-WAIT included.
    pub connections: usize,
    /// Connections whose handshake was begun by the peer and is not complete. Further SYNs are answered by cookies (RFC 4987).
    pub half_open: usize,
    /// Connections of one port whose handshake is complete and that wait to be [accepted](super::Stack::accept).
    pub accept_queue: usize,
    /// [Released](super::Stack::release) connections, TIME-WAIT included; beyond this, and before new ones are refused, the oldest are reset.
    pub orphans: usize,
    /// Memory of all connections: payload that waits to be sent, acknowledged or read, and everything that is known of it.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 65_536, half_open: 256, accept_queue: 16_384, orphans: 32_768, bytes: 1 << 30 }
    }
}
