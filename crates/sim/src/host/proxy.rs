//! Proxies that split connections: a flow that passes some is a chain of connections, and each proxy carries its bytes from one to the
//! next and back, as far as there is room. The chain is built from the end that connects: the sender, or the client of a app.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{Connect, FlowGroup, NodeId, Opening, ProxyConfig};
use bentpipe_tcp::{Config, Connection, Stats};

use crate::ids::EndId;
use crate::packet::handle::Label;

/// A node that splits connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub name: String,
    pub node: NodeId,
    pub connect: Connect,
    pub syn: Opening,
    /// Time of its crash; [`Instant::FAR_FUTURE`] without one.
    pub dies_at: Instant,
    pub dead: bool,
    pub config: ProxyConfig,
    /// Bytes carried onward.
    pub relayed_bytes: u64,
    /// Connections opened onward.
    pub connections: u64,
}

/// A leg of a flow that begins at a proxy. The number of a leg is its index plus the number of flows.
#[derive(Debug)]
pub(crate) struct Leg {
    /// The flow and the proxy.
    pub name: String,
    /// The proxy that it begins at.
    pub proxy: u32,
    /// Algorithm as the user named it.
    pub cc: String,
    /// Configuration of its sender and receiver.
    pub configs: [Arc<Config>; 2],
    /// Positions of the routes of sender and receiver.
    pub routes: [u32; 2],
    /// Labels of the packets of sender and receiver.
    pub labels: [Label; 2],
    /// The nodes of sender and receiver.
    pub nodes: [NodeId; 2],
    /// Counters of the senders of its former connections.
    pub gone: Stats,
    /// Smoothed round-trip time of the last of them.
    pub gone_srtt: Option<Duration>,
}

/// Counterpart of a connection end on the other side of its proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relay {
    /// The end is at a host, and nothing was relayed to it.
    None,
    /// The end of a proxy that has accepted a connection and has not connected further yet.
    Waits,
    /// The end of a proxy that was asked for a connection. The proxy has connected further with this end, and answers when that connection is answered.
    Holds(EndId),
    /// The end of a proxy that relays to and from this other end.
    With(EndId),
    /// An end at a host that receives data over proxies.
    Last,
}

impl Proxy {
    /// A proxy at a node.
    pub fn new(name: String, node: NodeId, config: &ProxyConfig) -> Self {
        Self {
            name,
            node,
            connect: config.connect,
            syn: config.split.syn,
            dies_at: config.dies_at.map_or(Instant::FAR_FUTURE, |after| Instant::ZERO + after),
            dead: false,
            config: config.clone(),
            relayed_bytes: 0,
            connections: 0,
        }
    }

    /// Returns settings and algorithm of the connection ahead or behind, for flows of a group.
    pub fn side(&self, is_satellite: bool, group: &FlowGroup) -> (Arc<Config>, String) {
        let split = &self.config.split;
        let side = if is_satellite { &split.satellite } else { &split.clients };
        let (tcp, flow) = (&self.config.tcp, &group.sender);
        let (name, cc, recovery) = match side.algorithm() {
            Some((cc, recovery)) => (&side.cc, cc, recovery.unwrap_or(tcp.recovery)),
            None => (&group.cc, flow.cc.clone(), flow.recovery),
        };
        let (send_buffer, rate_limit) =
            (split.most_kept(), side.rate_limit.map(|limit| limit.rate).or(tcp.rate_limit));
        let careful_resume = side.careful_resume.or(tcp.careful_resume);
        let config = Config { cc, recovery, send_buffer, rate_limit, careful_resume, ..Config::clone(tcp) };
        (Arc::new(config), name.clone())
    }
}

impl Leg {
    /// Adds the counters of the sending end of a connection that is removed.
    pub fn retire(&mut self, connection: &Connection) {
        self.gone += connection.stats();
        self.gone_srtt = connection.srtt().or(self.gone_srtt);
    }
}
