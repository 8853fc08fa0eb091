//! Memory accounting of the connections of a stack, in total and per remote host.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use super::endpoint::{Charge, Endpoint};
use super::limits::Limits;
use super::stream_buffer::CHUNK;

/// Multiple of the free memory and of the free connections that one remote host may use.
const FAIR_SHARE: usize = 4;
/// Divisor of the memory limit: share of unsent data for peers without any acknowledgement (chosen).
const UNPROVEN_DIVISOR: usize = 4;
/// Divisor of the rest of that share: maximum for one such peer (chosen).
const UNPROVEN_SHARES: usize = 16;

/// Memory and number of the connections of one remote host.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    bytes: usize,
    connections: usize,
}

/// Sums over the connections of a stack. Each connection counts from [`open`](Self::open) to [`close`](Self::close).
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

    /// Returns the memory of all connections.
    pub fn charged(&self) -> Charge {
        self.charged
    }

    /// Adds a connection. [`recount`](Self::recount) adds its memory.
    pub fn open(&mut self, remote: IpAddr) {
        self.connections += 1;
        self.of_hosts.entry(prefix(remote)).or_default().connections += 1;
    }

    /// Updates the memory of a connection.
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

    /// Removes a connection and its memory.
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

    /// True if all connections or all memory are in use.
    pub fn is_full(&self) -> bool {
        self.connections >= self.limits.connections || self.charged.all >= self.limits.bytes
    }

    /// True if this host uses less than its share of the free connections and memory.
    pub fn may_open(&self, remote: IpAddr) -> bool {
        let usage = self.usage(remote);
        usage.connections < FAIR_SHARE * (self.limits.connections - self.connections)
            && usage.bytes < FAIR_SHARE.saturating_mul(self.limits.bytes - self.charged.all)
    }

    /// Returns the bytes by which a connection's memory may grow.
    pub fn spare(&self, endpoint: &Endpoint) -> usize {
        let free = self.limits.bytes.saturating_sub(self.charged.all);
        let of_peer = self.usage(endpoint.ends.remote.ip()).bytes;
        free.min(free.saturating_mul(FAIR_SHARE).saturating_sub(of_peer))
    }

    /// Returns the same for unsent data. A peer without any acknowledgement may use one chunk, plus a part of the remaining share
    /// of such peers.
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

/// Returns the key of a remote host: the IPv4 address, or the /64 network of an IPv6 address.
fn prefix(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of one IPv6 address usually has 2^64 of them, so the network counts as one host.
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
