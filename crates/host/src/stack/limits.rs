//! What a stack may hold, and how connections share it.

use std::net::IpAddr;

use bentpipe_tcp::State;

use super::peer::Peer;
use super::ring::CHUNK;
use super::{Id, Stack};

/// What a stack may hold at most, in all. Beyond this, SYNs are answered without remembering them, then not at all, and data is
/// dropped as if it were lost.
///
/// What is left is shared: of the memory and of the connections, one remote host (an IPv4 address, or an IPv6 network of 64 bits) gets no
/// more than four times what is free, so that there is always some for the next one. All connections whose peers have
/// acknowledged no data share a quarter of the memory, beside a few kilobytes for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections, TIME-WAIT included.
    pub connections: usize,
    /// Connections whose handshake was begun by the peer and is not complete. Further SYNs are answered by cookies (RFC 4987).
    pub half_open: usize,
    /// Connections of one port whose handshake is complete and that wait to be [accepted](Stack::accept).
    pub accept_queue: usize,
    /// [Released](Stack::release) connections, TIME-WAIT included; beyond this, and before new ones are refused, the oldest are reset.
    pub orphans: usize,
    /// Memory of all connections: payload that waits to be sent, acknowledged or read, and everything that is known of it.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 65_536, half_open: 256, accept_queue: 16_384, orphans: 32_768, bytes: 1 << 30 }
    }
}

/// What the connections of one remote host cost.
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
/// All data that waits to be sent to peers that have acknowledged nothing yet takes at most the memory divided by the first number. One of these
/// peers gets at most what is left of that, divided by the second number.
const UNPROVEN_DIVISOR: usize = 4;
const UNPROVEN_SHARES: usize = 16;

impl Stack {
    /// Brings the totals up to date with the memory that a connection takes now.
    pub(super) fn recount(&mut self, id: Id) {
        let peer = &mut self.peers[id];
        let (old, new) = (peer.charge, peer.cost());
        if old == new {
            return;
        }
        peer.charge = new;
        self.charged.exchange(old, new);
        let usage = self.usage.entry(prefix(peer.ends.remote.ip())).or_default();
        usage.bytes = usage.bytes + new.all - old.all;
    }

    /// Bytes by which the memory of a connection may grow.
    pub(super) fn spare(&self, peer: &Peer) -> usize {
        let free = self.config.limits.bytes.saturating_sub(self.charged.all);
        let of_peer = self.usage.get(&prefix(peer.ends.remote.ip())).map_or(0, |usage| usage.bytes);
        free.min(free.saturating_mul(FAIR_SHARE).saturating_sub(of_peer))
    }

    /// The same for data that waits to be sent. A peer that has acknowledged nothing gets one chunk, and beyond that a part of what is left for
    /// all such peers.
    pub(super) fn spare_to_send(&self, peer: &Peer) -> usize {
        let spare = self.spare(peer);
        if !peer.is_unproven() {
            return spare;
        }
        let left = (self.config.limits.bytes / UNPROVEN_DIVISOR).saturating_sub(self.charged.unproven);
        let share = CHUNK + left / UNPROVEN_SHARES;
        spare.min(share.saturating_sub(peer.charge.rings))
    }

    /// Whether there is room for another connection. If there is none, the oldest released connections are reset to make room.
    pub(super) fn has_room(&mut self) -> bool {
        let limits = self.config.limits;
        loop {
            let full = self.peers.len() >= limits.connections || self.charged.all >= limits.bytes;
            if !full || !self.evict_orphan() {
                return !full;
            }
        }
    }

    /// Resets and forgets the oldest released connection. False if there is none.
    pub(super) fn evict_orphan(&mut self) -> bool {
        while let Some(id) = self.orphans.pop_front() {
            let Some(peer) = self.peers.get(id) else { continue };
            if !matches!(peer.engine.state(), State::TimeWait | State::Closed) {
                let (ends, header) = (peer.ends, peer.reset());
                self.answer(ends, header);
            }
            self.counters.evicted += 1;
            self.forget(id);
            return true;
        }
        false
    }
}

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
