//! Proxies that split connections: a flow that passes some is a chain of connections, and each proxy carries its bytes from one to the
//! next and back, as far as there is room. The chain is built from the end that connects: the sender, or the client of a app.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{Connect, FlowGroup, NodeId, Opening, ProxyConfig, Topology};
use bentpipe_tcp::{Config, Connection, Stats};

use crate::BuildError;
use crate::world::{EndId, World, label, with_receiver_half};

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
    pub labels: [u32; 2],
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
    fn side(&self, is_satellite: bool, group: &FlowGroup) -> (Arc<Config>, String) {
        let split = &self.config.split;
        let side = if is_satellite { &split.satellite } else { &split.clients };
        let (tcp, flow) = (&self.config.tcp, &group.sender);
        let (name, cc, recovery) = match side.algorithm() {
            Some((cc, recovery)) => (&side.cc, cc, recovery.unwrap_or(tcp.recovery)),
            None => (&group.cc, flow.cc.clone(), flow.recovery),
        };
        let (send_buffer, rate_limit) = (split.most_kept(), side.rate_limit.or(tcp.rate_limit));
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

impl World {
    /// Splits the flow that was added last at the proxies on its way.
    pub fn split(&mut self, topology: &mut Topology<'_>, group: &FlowGroup) -> Result<(), BuildError> {
        let flow = self.flows.len() - 1;
        // Who cannot read a SYN answers none, and cannot make segments that the ends would accept.
        if self.core.proxies.is_empty() || group.esp.is_some() {
            return Ok(());
        }
        let (routes, [from, to]) = (self.flows[flow].routes, self.flows[flow].nodes);
        let heads = self.links_from(routes[0], from).into_iter().map(|link| self.core.head(link));
        let proxy_at = |node| self.core.proxies.iter().position(|proxy| proxy.node == node);
        let passed: Vec<usize> = heads.filter_map(proxy_at).collect();
        if passed.is_empty() {
            return Ok(());
        }
        let name = self.flows[flow].name(group);
        let first = self.core.legs.len() as u32;
        let at_proxies = passed.iter().map(|&proxy| self.core.proxies[proxy].node);
        let stops: Vec<NodeId> = [from].into_iter().chain(at_proxies).chain([to]).collect();
        let mut parts = Vec::new();
        for stops in stops.windows(2) {
            let routes = [
                self.add_route(topology, name, (stops[0], stops[1]))?,
                self.add_route(topology, name, (stops[1], stops[0]))?,
            ];
            parts.push((routes, self.delay_there_and_back(routes, [stops[0], stops[1]])));
        }
        let mut sender = self.flows[flow].configs[0].clone();
        let receiver = self.flows[flow].configs[1].clone();
        for (part, stops) in stops.windows(2).enumerate() {
            let routes = parts[part].0;
            // The satellite is where the way is longer.
            let of = |proxy: usize, part: usize| {
                let other = if part == proxy { part + 1 } else { part - 1 };
                let is_satellite = (parts[part].1, part) > (parts[other].1, other);
                self.core.proxies[passed[proxy]].side(is_satellite, group)
            };
            let receives = if part < passed.len() { of(part, part).0 } else { receiver.clone() };
            if part == 0 {
                let flow = &mut self.flows[flow];
                (flow.routes, flow.nodes) = (routes, [stops[0], stops[1]]);
                flow.configs[1] = with_receiver_half(&receives, &sender);
                continue;
            }
            let (onward, cc) = of(part - 1, part);
            sender = self.remembering(&onward, (stops[0], stops[1]));
            let receives = if part == passed.len() && group.plain_receiver {
                receives
            } else {
                with_receiver_half(&receives, &sender)
            };
            let configs = [sender.clone(), receives];
            let proxy = passed[part - 1];
            let name = format!("{name}.{}", self.core.proxies[proxy].name);
            let leg = Leg {
                proxy: proxy as u32,
                cc,
                configs,
                routes,
                labels: [label(&name, ">"), label(&name, "<")],
                nodes: [stops[0], stops[1]],
                gone: Stats::default(),
                gone_srtt: None,
                name,
            };
            self.core.legs.push(leg);
        }
        self.flows[flow].onward = first..self.core.legs.len() as u32;
        Ok(())
    }

    /// Propagation delay over two routes; the longest there is if they lead through a constellation.
    fn delay_there_and_back(&self, routes: [u32; 2], ends: [NodeId; 2]) -> Duration {
        let [there, back] =
            [(routes[0], ends), (routes[1], [ends[1], ends[0]])].map(|(route, [from, to])| {
                let links = self.links_from(route, from);
                let arrives = links.last().is_some_and(|link| self.core.head(*link) == to);
                let delays = links.iter().map(|link| self.core.graph.delay_one_way(*link));
                if arrives { delays.fold(Duration::ZERO, |sum, delay| sum + delay) } else { Duration::MAX }
            });
        there + back
    }
}
