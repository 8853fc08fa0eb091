//! What the connections of a stack hold, altogether and of each remote host, and how they share the rest.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use super::endpoint::{Charge, Endpoint};
use super::limits::Limits;
use super::stream_buffer::CHUNK;

/// One remote host may have this many times as much of the memory, and as many connections, as are free.
const FAIR_SHARE: usize = 4;
/// Data that wait to be sent to peers that have acknowledged nothing yet take at most the memory divided by this (chosen).
const UNPROVEN_DIVISOR: usize = 4;
/// One such peer gets at most what is left of that, divided by this (chosen).
const UNPROVEN_SHARES: usize = 16;

/// Memory and number of the connections of one remote host.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    bytes: usize,
    connections: usize,
}

/// The sums of what the connections of a stack are charged with. Each is charged from [`open`](Self::open) to [`close`](Self::close).
pub(super) struct Accounts {
    limits: Limits,
    connections: usize,
    charged: Charge,
    of_hosts: HashMap<IpAddr, Usage>,
}

impl Accounts {
    pub fn new(limits: Limits) -> Self {
        Self { limits, connections: 0, charged: Charge::default(), of_hosts: HashMap::new() }
    }

    /// Memory of all connections.
    pub fn charged(&self) -> Charge {
        self.charged
    }

    /// Counts a connection. Its memory is counted by [`recount`](Self::recount).
    pub fn open(&mut self, remote: IpAddr) {
        self.connections += 1;
        self.of_hosts.entry(prefix(remote)).or_default().connections += 1;
    }

    /// Counts the memory that a connection takes now.
    pub fn recount(&mut self, endpoint: &mut Endpoint) {
        let (old, new) = (endpoint.charge, endpoint.cost());
        if old == new {
            return;
        }
        endpoint.charge = new;
        self.charged.exchange(old, new);
        let usage = self.of_hosts.entry(prefix(endpoint.ends.remote.ip())).or_default();
        usage.bytes = usage.bytes + new.all - old.all;
    }

    /// Counts a connection and its memory no more.
    pub fn close(&mut self, endpoint: &Endpoint) {
        self.connections -= 1;
        self.charged.exchange(endpoint.charge, Charge::default());
        let host = prefix(endpoint.ends.remote.ip());
        if let Some(usage) = self.of_hosts.get_mut(&host) {
            usage.bytes -= endpoint.charge.all;
            usage.connections -= 1;
            if usage.connections == 0 {
                self.of_hosts.remove(&host);
            }
        }
    }

    /// Whether all connections or all memory are in use.
    pub fn is_full(&self) -> bool {
        self.connections >= self.limits.connections || self.charged.all >= self.limits.bytes
    }

    /// Whether this host has less than its share of the connections and of the memory that are left.
    pub fn may_open(&self, remote: IpAddr) -> bool {
        let usage = self.usage(remote);
        usage.connections < FAIR_SHARE * (self.limits.connections - self.connections)
            && usage.bytes < FAIR_SHARE.saturating_mul(self.limits.bytes - self.charged.all)
    }

    /// Bytes by which the memory of a connection may grow.
    pub fn spare(&self, endpoint: &Endpoint) -> usize {
        let free = self.limits.bytes.saturating_sub(self.charged.all);
        let of_peer = self.usage(endpoint.ends.remote.ip()).bytes;
        free.min(free.saturating_mul(FAIR_SHARE).saturating_sub(of_peer))
    }

    /// The same for data that waits to be sent. A peer that has acknowledged nothing gets one chunk, and beyond that a part of what is left for
    /// all such peers.
    pub fn spare_to_send(&self, endpoint: &Endpoint) -> usize {
        let spare = self.spare(endpoint);
        if !endpoint.is_unproven() {
            return spare;
        }
        let left = (self.limits.bytes / UNPROVEN_DIVISOR).saturating_sub(self.charged.unproven);
        let share = CHUNK + left / UNPROVEN_SHARES;
        spare.min(share.saturating_sub(endpoint.charge.buffers))
    }

    fn usage(&self, remote: IpAddr) -> Usage {
        self.of_hosts.get(&prefix(remote)).copied().unwrap_or_default()
    }
}

/// What counts as one remote host: an IPv4 address, or the network of an IPv6 address, in which every host has many.
fn prefix(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
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
