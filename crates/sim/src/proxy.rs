//! Proxies that split connections: a flow that passes some is a chain of connections, and each proxy carries its bytes from one to the
//! next, as far as the next has room.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{Connect, FlowGroup, NodeId, ProxyConfig, Topology};
use bentpipe_tcp::{Config, Connection, Events, State, Stats};

use crate::BuildError;
use crate::measure::add;
use crate::simulation::Simulation;
use crate::traffic::{Application, Interest};
use crate::witness::{Deed, Witness};
use crate::world::{DEAD, EndId, World, label, with_receiver_half};

/// A node that splits connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub name: String,
    pub node: NodeId,
    connect: Connect,
    /// When it crashes; [`Instant::FAR_FUTURE`] if it does not.
    pub dies_at: Instant,
    pub dead: bool,
    /// Its TCP, without an algorithm of its own.
    config: ProxyConfig,
    /// Bytes carried onward.
    pub relayed_bytes: u64,
    /// Connections opened onward.
    pub connections: u64,
}

/// A part of a flow that begins at a proxy. Its number as a line is its index after the flows.
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
    /// It receives at a proxy that has not connected onward yet.
    Waits,
    /// At a proxy; the end that carries on.
    With(EndId),
    /// It receives at a host what proxies relayed.
    Last,
}

impl Proxy {
    /// A proxy at a node.
    pub fn new(name: &str, node: NodeId, config: &ProxyConfig) -> Self {
        Self {
            name: name.to_owned(),
            node,
            connect: config.connect,
            dies_at: config.dies_at.map_or(Instant::FAR_FUTURE, |after| Instant::ZERO + after),
            dead: false,
            config: config.clone(),
            relayed_bytes: 0,
            connections: 0,
        }
    }

    /// The configuration of a connection onward for flows of a group, and the name of its algorithm.
    fn onward(&self, group: &FlowGroup) -> (Arc<Config>, String) {
        let tcp = Config::clone(&self.config.tcp);
        let send_buffer = self.config.buffer;
        match &self.config.cc {
            Some((name, cc)) => (Arc::new(Config { cc: cc.clone(), send_buffer, ..tcp }), name.clone()),
            None => {
                let (cc, recovery) = (group.sender.cc.clone(), group.sender.recovery);
                (Arc::new(Config { cc, recovery, send_buffer, ..tcp }), group.cc.clone())
            }
        }
    }
}

impl Leg {
    /// Keeps the books of the sending end of a connection that goes away.
    fn retire(&mut self, connection: &Connection) {
        add(&mut self.gone, connection.stats());
        self.gone_srtt = connection.srtt().or(self.gone_srtt);
    }
}

impl World {
    /// Splits the flow that was added last at the proxies on its way.
    pub fn split(&mut self, topology: &mut Topology<'_>, group: &FlowGroup) -> Result<(), BuildError> {
        let flow = self.flows.len() - 1;
        let (routes, [from, to]) = (self.flows[flow].routes, self.flows[flow].nodes);
        let heads =
            self.links_from(routes[0], from).into_iter().map(|link| self.interior.heads[link as usize]);
        let proxy_at = |node| self.interior.proxies.iter().position(|proxy| proxy.node == node);
        let passed: Vec<usize> = heads.filter_map(proxy_at).collect();
        if passed.is_empty() {
            return Ok(());
        }
        let name = self.flows[flow].name.clone();
        let first = self.interior.legs.len() as u32;
        let mut sender = self.flows[flow].configs[0].clone();
        let receiver = self.flows[flow].configs[1].clone();
        let mut node = from;
        for (place, &proxy) in passed.iter().enumerate() {
            let here = self.interior.proxies[proxy].node;
            let next = passed.get(place + 1).map_or(to, |&next| self.interior.proxies[next].node);
            if place == 0 {
                let routes = [
                    self.add_route(topology, &name, (node, here))?,
                    self.add_route(topology, &name, (here, node))?,
                ];
                let at_proxy = with_receiver_half(&self.interior.proxies[proxy].config.tcp, &sender);
                let flow = &mut self.flows[flow];
                (flow.routes, flow.nodes, flow.configs[1]) = (routes, [node, here], at_proxy);
            }
            let (onward, cc) = self.interior.proxies[proxy].onward(group);
            sender = self.remembering(&onward, (here, next));
            let receives = match passed.get(place + 1) {
                Some(&next) => &self.interior.proxies[next].config.tcp,
                None => &receiver,
            };
            let configs = [sender.clone(), with_receiver_half(receives, &sender)];
            let name = format!("{name}.{}", self.interior.proxies[proxy].name);
            let leg = Leg {
                proxy: proxy as u32,
                cc,
                configs,
                routes: [
                    self.add_route(topology, &name, (here, next))?,
                    self.add_route(topology, &name, (next, here))?,
                ],
                labels: [label(&name, ">"), label(&name, "<")],
                nodes: [here, next],
                gone: Stats::default(),
                gone_srtt: None,
                name,
            };
            self.interior.legs.push(leg);
            node = here;
        }
        self.flows[flow].onward = first..self.interior.legs.len() as u32;
        Ok(())
    }
}

impl<W: Witness> Simulation<W> {
    /// The leg of a line, if it is not the first of a flow.
    fn leg(&self, line: u32) -> Option<usize> {
        (line as usize).checked_sub(self.flows.len())
    }

    /// The leg that follows a line of a flow.
    fn leg_after(&self, flow: u32, line: u32) -> Option<u32> {
        let onward = &self.flows[flow as usize].onward;
        let next = self.leg(line).map_or(onward.start, |leg| leg as u32 + 1);
        onward.contains(&next).then_some(next)
    }

    /// The nodes of the ends of a line.
    pub(crate) fn nodes_of(&self, line: u32) -> [NodeId; 2] {
        match self.leg(line) {
            None => self.flows[line as usize].nodes,
            Some(leg) => self.interior.legs[leg].nodes,
        }
    }

    /// Tells the ends of a new pair of a flow that passes proxies what becomes of the data.
    #[cold]
    pub(crate) fn prepare_relay(&mut self, first: EndId) {
        let (flow, line) = (self.ends[first as usize].flow, self.ends[first as usize].line);
        let next = self.leg_after(flow, line);
        let pair = &mut self.ends[first as usize..first as usize + 2];
        let incarnation =
            pair.iter().map(|end| end.incarnation).filter(|own| *own != DEAD).max().unwrap_or(0);
        pair.iter_mut().for_each(|end| end.incarnation = incarnation);
        for (side, end) in pair.iter_mut().enumerate() {
            // Only hosts have applications.
            let at_host = if side == 0 { (line as usize) < self.flows.len() } else { next.is_none() };
            if !at_host {
                end.interest = Interest::Usual;
            }
        }
        pair[1].relay = if next.is_some() { Relay::Waits } else { Relay::Last };
        let proxy = next.map(|leg| self.interior.legs[leg as usize].proxy);
        if proxy.is_some_and(|proxy| self.interior.proxies[proxy as usize].dead) {
            pair[1].incarnation = DEAD;
        }
    }

    /// Something arrived at a proxy for a connection without one onward.
    #[cold]
    pub(crate) fn meet_syn(&mut self, inward: EndId) {
        let end = &self.ends[inward as usize];
        let begun = !matches!(end.connection.state(), State::Listen | State::Closed);
        let Some(leg) = self.leg_after(end.flow, end.line).filter(|_| begun) else { return };
        let proxy = &self.interior.proxies[self.interior.legs[leg as usize].proxy as usize];
        if proxy.connect == Connect::Early && end.relay == Relay::Waits {
            self.connect_onward(inward);
        }
    }

    /// A proxy opens the connection that carries on what an end receives.
    fn connect_onward(&mut self, inward: EndId) {
        let (flow, line) = (self.ends[inward as usize].flow, self.ends[inward as usize].line);
        let Some(leg) = self.leg_after(flow, line) else { return };
        let outward = self.open(flow, self.flows.len() as u32 + leg);
        self.ends[inward as usize].relay = Relay::With(outward);
        self.ends[outward as usize].relay = Relay::With(inward);
        let proxy = self.interior.legs[leg as usize].proxy;
        self.interior.proxies[proxy as usize].connections += 1;
        self.announce(outward, Some(inward));
        self.settle_other(outward);
    }

    /// What happened at an end that relays, or to which was relayed; true if its connection is over.
    #[cold]
    pub(crate) fn react_relay(&mut self, id: EndId, events: Events) -> bool {
        let failed = events.intersects(Events::RESET | Events::TIMED_OUT);
        match self.ends[id as usize].relay {
            Relay::None => {}
            Relay::Last => self.receive_last(id, events),
            Relay::Waits if events.contains(Events::ESTABLISHED) => self.connect_onward(id),
            Relay::Waits => {}
            Relay::With(other) if failed => {
                self.ends[other as usize].connection.abort(self.now);
                self.settle_other(other);
            }
            Relay::With(other) => {
                let (inward, outward) = if id.is_multiple_of(2) { (other, id) } else { (id, other) };
                if self.relay(inward, outward) {
                    self.settle_other(other);
                }
            }
        }
        if !id.is_multiple_of(2) && events.contains(Events::PEER_CLOSED) {
            self.ends[id as usize].connection.close(self.now);
        }
        if failed {
            let reason = if events.contains(Events::RESET) { "reset" } else { "timed out" };
            let flow = self.ends[id as usize].flow;
            self.note_abort(flow, self.first_of_chain(id), reason);
        }
        let other_is_over = match self.ends[id as usize].relay {
            Relay::With(other) => self.is_over(other),
            _ => false,
        };
        failed || other_is_over || events.contains(Events::CLOSED)
    }

    /// Settles the end on the other side of a proxy, on behalf of one that is being settled itself.
    fn settle_other(&mut self, other: EndId) {
        self.interior.nested += 1;
        self.settle(other);
        self.interior.nested -= 1;
    }

    fn is_over(&self, id: EndId) -> bool {
        matches!(self.ends[id as usize].connection.state(), State::Closed | State::TimeWait)
    }

    /// The host at the end of the chain takes what came.
    fn receive_last(&mut self, id: EndId, events: Events) {
        if !events.contains(Events::READABLE) {
            return;
        }
        let connection = &mut self.ends[id as usize].connection;
        let bytes = connection.read(self.now, u64::MAX);
        let delivered = connection.stats().delivered_bytes;
        self.witness.end(self.now, id, Deed::Read(bytes));
        if self.ends[id as usize].interest == Interest::Arrivals {
            self.note_read(id, bytes);
        }
        let flow = self.ends[id as usize].flow;
        let present = self.flows[flow as usize].sender == Some(self.first_of_chain(id));
        let flow_state = &self.flows[flow as usize];
        let is_part = matches!(flow_state.application, Application::Feed(_));
        if present && !is_part && delivered >= flow_state.wanted {
            self.complete(flow);
        }
    }

    /// Carries bytes over a proxy, as many as there is room for, and the end of the stream behind them; false if there were none.
    fn relay(&mut self, inward: EndId, outward: EndId) -> bool {
        let available = self.ends[inward as usize].connection.readable();
        let taken = self.ends[outward as usize].connection.write(self.now, available);
        if taken > 0 {
            let read = self.ends[inward as usize].connection.read(self.now, taken);
            debug_assert_eq!(read, taken, "what is readable can be read");
            self.witness.end(self.now, inward, Deed::Read(taken));
            self.witness.end(self.now, outward, Deed::Wrote(taken));
            let leg = self.leg(self.ends[outward as usize].line).expect("a proxy sends on a later leg");
            let proxy = self.interior.legs[leg].proxy;
            self.interior.proxies[proxy as usize].relayed_bytes += taken;
        }
        let source = &self.ends[inward as usize].connection;
        let ends = source.peer_closed() && source.readable() == 0;
        let sends = &mut self.ends[outward as usize].connection;
        let closes = ends && matches!(sends.state(), State::SynSent | State::Established | State::CloseWait);
        if closes {
            sends.close(self.now);
        }
        taken > 0 || closes
    }

    /// The sending end of the first connection of the chain that an end belongs to.
    fn first_of_chain(&self, id: EndId) -> EndId {
        let mut sender = id & !1;
        while let Relay::With(inward) = self.ends[sender as usize].relay {
            sender = inward & !1;
        }
        sender
    }

    /// The sending ends of the connections of a chain, from its first.
    fn chain(&self, first: EndId) -> Vec<EndId> {
        let mut senders = vec![first];
        let mut last = first;
        while let Relay::With(outward) = self.ends[last as usize + 1].relay {
            senders.push(outward);
            last = outward;
        }
        senders
    }

    /// Clears a chain away in which every connection is over.
    #[cold]
    pub(crate) fn retire_chain(&mut self, id: EndId) {
        if self.interior.nested > 0 {
            // Whoever is being settled looks again.
            return;
        }
        let senders = self.chain(self.first_of_chain(id));
        let ends: Vec<EndId> = senders.iter().flat_map(|sender| [*sender, *sender + 1]).collect();
        let application = &self.flows[self.ends[id as usize].flow as usize].application;
        if !application.has_many_connections() || !ends.iter().all(|end| self.is_over(*end)) {
            return;
        }
        for end in ends {
            self.wheel.cancel(self.first_end + end);
            self.keep_books(end);
            let end = &mut self.ends[end as usize];
            end.relay = Relay::None;
            if end.incarnation != DEAD {
                end.incarnation += 1;
            }
        }
        let dead = |sender: &EndId| {
            [0, 1].iter().all(|side| self.ends[(sender + side) as usize].incarnation == DEAD)
        };
        let reusable: Vec<_> = senders.into_iter().filter(|sender| !dead(sender)).collect();
        self.vacant.extend(reusable);
    }

    /// Adds what a connection end counted to the books of its flow or its leg.
    pub(crate) fn keep_books(&mut self, id: EndId) {
        let side = id as usize % 2;
        let end = &self.ends[id as usize];
        let last = self.leg_after(end.flow, end.line).is_none();
        let leg = self.leg(end.line);
        let counts = &mut self.flows[end.flow as usize].counts;
        match (side, leg) {
            (0, None) => counts.retire(0, &end.connection),
            (0, Some(leg)) => self.interior.legs[leg].retire(&end.connection),
            _ if last => counts.retire(1, &end.connection),
            _ => {}
        }
    }

    /// A proxy crashes: its connections are gone, and nobody is told.
    pub(crate) fn kill_proxy(&mut self, proxy: u32) {
        let state = &mut self.interior.proxies[proxy as usize];
        if state.dead || state.dies_at > self.now {
            return;
        }
        state.dead = true;
        let node = state.node;
        for id in 0..self.ends.len() as EndId {
            let end = &self.ends[id as usize];
            let at_proxy = matches!(end.relay, Relay::Waits | Relay::With(_))
                && self.nodes_of(end.line)[id as usize % 2] == node;
            if !at_proxy {
                continue;
            }
            self.keep_books(id);
            self.wheel.cancel(self.first_end + id);
            let end = &mut self.ends[id as usize];
            let mut nothing = Connection::listen(Arc::new(Config::default()), 0);
            nothing.close(self.now);
            nothing.take_events();
            end.connection = nothing;
            end.incarnation = DEAD;
        }
    }
}
