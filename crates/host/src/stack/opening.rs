//! Opening of connections by this stack, and setup common to all connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bentpipe_base::Instant;
use bentpipe_tcp::{Config, Connection, State};
use bentpipe_wire::Ends;

use super::endpoint::{Endpoint, Numbers};
use super::output::TIMESTAMPS_LEN;
use super::ports::EphemeralPorts;
use super::{Id, Stack};

/// Reason why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unopened {
    /// The stack has no address of that IP version.
    #[error("no address of our own of the same IP version")]
    NoAddress,
    /// The maximum number of connections is reached.
    #[error("too many connections")]
    Full,
    /// A connection between these ends exists.
    #[error("the connection exists")]
    Exists,
    /// All ports to that destination are in use.
    #[error("no free port")]
    NoPort,
}

impl Stack {
    /// Opens a connection.
    ///
    /// # Errors
    /// If there is no address, no port or no room for it.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr, config: Config) -> Result<Id, Unopened> {
        if !self.has_room() {
            return Err(Unopened::Full);
        }
        let own = self.config.addresses.iter().find(|own| own.is_ipv4() == remote.is_ipv4());
        let address = *own.ok_or(Unopened::NoAddress)?;
        let ends = self.free_ends(address, remote).ok_or(Unopened::NoPort)?;
        Ok(self.open(now, ends, &Arc::new(config)))
    }

    /// Opens a connection from a given address and port, which may be another host's if the stack is transparent. It ends an
    /// earlier connection between the same ends that the caller has [released](Self::release), with a reset if that was not
    /// finished.
    ///
    /// # Errors
    /// If there is no room for it, or another connection exists between the same ends.
    pub fn connect_from(&mut self, now: Instant, ends: Ends, config: &Arc<Config>) -> Result<Id, Unopened> {
        if !self.config.transparent && !self.config.addresses.contains(&ends.local.ip()) {
            return Err(Unopened::NoAddress);
        }
        if !self.has_room() {
            return Err(Unopened::Full);
        }
        let Some(old) = self.by_ends.get(&ends).copied() else {
            return Ok(self.open(now, ends, config));
        };
        let endpoint = &self.endpoints[old];
        if endpoint.owned && !matches!(endpoint.engine.state(), State::TimeWait | State::Closed) {
            return Err(Unopened::Exists);
        }
        let above = self.detach(now, old);
        let id = self.open(now, ends, config);
        self.number_above(&ends, Some(above));
        Ok(id)
    }

    fn open(&mut self, now: Instant, ends: Ends, config: &Arc<Config>) -> Id {
        let config = self.fitted(config, ends.remote.ip());
        let engine = Connection::connect(config, self.next_seed(), now);
        self.admit_owned(now, ends, engine)
    }

    pub(super) fn numbers(&self, ends: &Ends, now: Instant) -> Numbers {
        Numbers { initial: self.secret.initial(ends, now), clock: self.secret.clock_offset(ends) }
    }

    /// Adds a connection whose identifier the caller holds from the start.
    pub(super) fn admit_owned(&mut self, now: Instant, ends: Ends, engine: Connection) -> Id {
        let numbers = self.numbers(&ends, now);
        let mut endpoint = Endpoint::new(ends, engine, numbers, self.config.mtu);
        endpoint.owned = true;
        self.admit(endpoint)
    }

    /// Adapts the configuration to `remote`: segments fit the device, the engine knows the size of timestamps, and an algorithm that
    /// learns from other connections has a memory. An unchanged configuration stays shared.
    pub(super) fn fitted(&self, config: &Arc<Config>, remote: IpAddr) -> Arc<Config> {
        let (mss, timestamps_len) = (config.mss.min(self.full_segment(remote)), TIMESTAMPS_LEN);
        let learns = config.memory.is_none() && config.remembers();
        if !learns && (mss, timestamps_len) == (config.mss, config.timestamps_len) {
            return Arc::clone(config);
        }
        let known = || self.known_hosts.memory(remote).unwrap_or_default();
        let memory = if learns { Some(known()) } else { config.memory.clone() };
        Arc::new(Config { mss, timestamps_len, memory, ..Config::clone(config) })
    }

    pub(super) fn next_seed(&mut self) -> u64 {
        self.opened += 1;
        self.opened ^ (self.config.key as u64)
    }

    fn free_ends(&mut self, address: IpAddr, remote: SocketAddr) -> Option<Ends> {
        let ports = self.ports.by_ref().take(EphemeralPorts::COUNT);
        let mut ends = ports.map(|port| Ends { local: SocketAddr::new(address, port), remote });
        ends.find(|ends| !self.by_ends.contains_key(ends))
    }

    pub(super) fn admit(&mut self, mut endpoint: Endpoint) -> Id {
        let ends = endpoint.ends;
        if let Some(mtu) = self.known_hosts.mtu(self.now, ends.remote.ip()) {
            endpoint.recall_mtu(self.now, mtu);
        }
        let id = self.endpoints.insert(Box::new(endpoint));
        self.by_ends.insert(ends, id);
        self.accounts.open(ends.remote.ip());
        self.touch(id);
        id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{Limits, StackConfig};
    use super::*;

    /// Algorithms with random numbers must not draw the same ones in two connections or processes.
    #[test]
    fn each_connection_gets_a_seed_of_its_own() {
        let config = |key| StackConfig {
            addresses: vec![],
            transparent: true,
            mtu: 1500,
            offload: false,
            key,
            limits: Limits::default(),
        };
        let mut stack = Stack::new(config(0x55));
        let seeds: Vec<u64> = (0..1000).map(|_| stack.next_seed()).collect();
        assert_eq!(seeds.iter().collect::<HashSet<_>>().len(), 1000);
        assert_ne!(Stack::new(config(0xaa)).next_seed(), seeds[0]);
        assert_eq!(Stack::new(config(0x55)).next_seed(), seeds[0], "the same key, the same luck");
    }
}
