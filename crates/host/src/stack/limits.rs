//! What a stack may hold.

use std::net::IpAddr;

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

/// Memory and number of the connections of one remote host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub bytes: usize,
    pub connections: usize,
}

/// What counts as one remote host: an IPv4 address, or the network of an IPv6 address, in which every host has many.
pub(super) fn prefix(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            std::net::Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

/// One remote host may have this many times as much of the memory, and as many connections, as are free.
pub(super) const FAIR_SHARE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has one IPv6 address has 2^64 of them: the network counts as one host.
    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_host() {
        let of = |address: &str| prefix(address.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2:ffff::1"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6").to_string(), "2001:db8:1:2::");
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1").to_string(), "192.0.2.1");
    }
}
