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
    /// When it crashes; [`Instant::FAR_FUTURE`] if it does not.
    pub dies_at: Instant,
    pub dead: bool,
    pub config: ProxyConfig,
    /// Bytes carried onward.
    pub relayed_bytes: u64,
    /// Connections opened onward.
    pub connections: u64,
}

/// A later leg of a flow, which begins at a proxy. Its number is its index, counted on from the flows.
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
    /// Where the routes of sender and receiver begin.
    pub routes: [u32; 2],
    /// Labels of the packets of sender and receiver.
    pub labels: [Label; 2],
    /// The nodes of sender and receiver.
    pub nodes: [NodeId; 2],
    /// What the senders of its connections that are gone counted.
    pub gone: Stats,
    /// Smoothed round-trip time of the last of them.
    pub gone_srtt: Option<Duration>,
}

/// What stands for a connection end on the other side of its proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relay {
    /// The end is at a host, and nothing was relayed to it.
    None,
    /// Somebody connected to it at a proxy that has not connected further yet.
    Waits,
    /// Somebody connected to it at a proxy that has connected further by this end, and answers when that is answered.
    Holds(EndId),
    /// At a proxy; the end that carries on, in both directions.
    With(EndId),
    /// It receives at a host what proxies relayed.
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

    /// What it does with the half of a connection that lies ahead or behind, and by whom it sends there for flows of a group.
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
        let config = Config { cc, recovery, send_buffer, rate_limit, ..Config::clone(tcp) };
        (Arc::new(config), name.clone())
    }
}

impl Leg {
    /// Keeps the books of the sending end of a connection that goes away.
    pub fn retire(&mut self, connection: &Connection) {
        self.gone += connection.stats();
        self.gone_srtt = connection.srtt().or(self.gone_srtt);
    }
}
