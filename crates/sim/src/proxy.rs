//! Proxies that split connections: a flow that passes some is a chain of connections, and each proxy carries its bytes from one to the
//! next and back, as far as there is room. The chain is built from the end that connects: the sender, or the client of a dialogue.

use std::sync::Arc;

use bentpipe_base::{Duration, Flags, Instant, Segment};
use bentpipe_scenario::{Connect, FlowGroup, NodeId, Opening, ProxyConfig, Topology};
use bentpipe_tcp::{Config, Connection, Events, State, Stats};

use crate::BuildError;
use crate::measure::add;
use crate::simulation::Simulation;
use crate::traffic::{Application, Interest};
use crate::witness::{Deed, Witness};
use crate::world::{DEAD, End, EndId, World, label, with_receiver_half};

/// A node that splits connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub name: String,
    pub node: NodeId,
    connect: Connect,
    syn: Opening,
    /// When it crashes; [`Instant::FAR_FUTURE`] if it does not.
    pub dies_at: Instant,
    pub dead: bool,
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
    fn retire(&mut self, connection: &Connection) {
        add(&mut self.gone, &connection.stats());
        self.gone_srtt = connection.srtt().or(self.gone_srtt);
    }
}

impl World {
    /// Splits the flow that was added last at the proxies on its way.
    pub fn split(&mut self, topology: &mut Topology<'_>, group: &FlowGroup) -> Result<(), BuildError> {
        let flow = self.flows.len() - 1;
        if self.interior.proxies.is_empty() {
            return Ok(());
        }
        let (routes, [from, to]) = (self.flows[flow].routes, self.flows[flow].nodes);
        let heads = self.links_from(routes[0], from).into_iter().map(|link| self.interior.head(link));
        let proxy_at = |node| self.interior.proxies.iter().position(|proxy| proxy.node == node);
        let passed: Vec<usize> = heads.filter_map(proxy_at).collect();
        if passed.is_empty() {
            return Ok(());
        }
        let name = self.flows[flow].name(group);
        let first = self.interior.legs.len() as u32;
        let at_proxies = passed.iter().map(|&proxy| self.interior.proxies[proxy].node);
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
                self.interior.proxies[passed[proxy]].side(is_satellite, group)
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
            let configs = [sender.clone(), with_receiver_half(&receives, &sender)];
            let proxy = passed[part - 1];
            let name = format!("{name}.{}", self.interior.proxies[proxy].name);
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
            self.interior.legs.push(leg);
        }
        self.flows[flow].onward = first..self.interior.legs.len() as u32;
        Ok(())
    }

    /// Propagation delay over two routes; the longest there is if they lead through a constellation.
    fn delay_there_and_back(&self, routes: [u32; 2], ends: [NodeId; 2]) -> Duration {
        let [there, back] =
            [(routes[0], ends), (routes[1], [ends[1], ends[0]])].map(|(route, [from, to])| {
                let links = self.links_from(route, from);
                let arrives = links.last().is_some_and(|link| self.interior.head(*link) == to);
                let delays = links.iter().map(|link| self.interior.graph.delay_one_way(*link));
                if arrives { delays.fold(Duration::ZERO, |sum, delay| sum + delay) } else { Duration::MAX }
            });
        there + back
    }
}

impl<W: Witness> Simulation<W> {
    /// The leg of a line, if it is not the first of a flow.
    fn leg(&self, line: u32) -> Option<usize> {
        (line as usize).checked_sub(self.flows.len())
    }

    /// The line on which the connections of a flow's client begin: the last before the client.
    pub(crate) fn line_of_client(&self, flow: u32) -> u32 {
        let onward = &self.flows[flow as usize].onward;
        if onward.is_empty() { flow } else { self.flows.len() as u32 + onward.end - 1 }
    }

    /// The line that a proxy opens for what waits on another: the next towards the receiver, or where the client connects towards the
    /// server; and the proxy's number.
    fn line_further(&self, id: EndId) -> Option<(u32, u32)> {
        let End { flow, line, .. } = self.ends[id as usize];
        if !id.is_multiple_of(2) {
            let leg = self.leg_after(flow, line)?;
            return Some((self.flows.len() as u32 + leg, self.interior.legs[leg as usize].proxy));
        }
        let leg = self.leg(line)?;
        let is_first = leg as u32 == self.flows[flow as usize].onward.start;
        Some((if is_first { flow } else { line - 1 }, self.interior.legs[leg].proxy))
    }

    /// The leg that follows a line of a flow.
    pub(crate) fn leg_after(&self, flow: u32, line: u32) -> Option<u32> {
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
        let by_client = self.flows[flow as usize].application.interest() == Interest::Everything;
        // Who listens at a proxy waits.
        let listener = first + u32::from(!by_client);
        let further = self.line_further(listener);
        self.ends[listener as usize].relay = match further {
            Some(_) => Relay::Waits,
            None if by_client => Relay::None,
            None => Relay::Last,
        };
        if further.is_some_and(|(_, proxy)| self.interior.proxies[proxy as usize].dead) {
            self.ends[listener as usize].incarnation = DEAD;
        }
    }

    /// A segment arrives at a proxy for a connection without one further, or with one that has not been answered. True if the proxy keeps it
    /// until the server has answered.
    #[cold]
    pub(crate) fn hold_syn(&mut self, waiting: EndId, segment: &Segment) -> bool {
        let end = &self.ends[waiting as usize];
        if let Relay::Holds(_) = end.relay {
            return true;
        }
        let Some((_, proxy)) = self.line_further(waiting) else { return false };
        let proxy = &self.interior.proxies[proxy as usize];
        let begins = segment.flags.contains(Flags::SYN) && end.connection.state() == State::Listen;
        if !begins || proxy.syn == Opening::Early {
            return false;
        }
        self.interior.held.insert(waiting, *segment);
        self.connect_further(waiting);
        true
    }

    /// The server has answered: so does the proxy.
    fn answer_held(&mut self, waiting: EndId, near: EndId) {
        self.ends[waiting as usize].relay = Relay::With(near);
        if let Some(segment) = self.interior.held.remove(&waiting) {
            self.ends[waiting as usize].connection.handle_segment(self.now, &segment);
            self.settle_other(waiting);
        }
    }

    /// Something arrived at a proxy for a connection without one further.
    #[cold]
    pub(crate) fn meet_syn(&mut self, waiting: EndId) {
        let end = &self.ends[waiting as usize];
        let begun = !matches!(end.connection.state(), State::Listen | State::Closed);
        let Some((_, proxy)) = self.line_further(waiting).filter(|_| begun) else { return };
        let early = self.interior.proxies[proxy as usize].connect == Connect::Early;
        if early && end.relay == Relay::Waits {
            self.connect_further(waiting);
        }
    }

    /// A proxy opens the connection that carries on what an end receives.
    fn connect_further(&mut self, waiting: EndId) {
        let flow = self.ends[waiting as usize].flow;
        let Some((line, proxy)) = self.line_further(waiting) else { return };
        let first = self.open(flow, line);
        // The proxy's end of the new connection: the one that sends behind one that receives, and the other way round.
        let near = first + u32::from(waiting.is_multiple_of(2));
        let holds = self.interior.held.contains_key(&waiting);
        self.ends[waiting as usize].relay = if holds { Relay::Holds(near) } else { Relay::With(near) };
        self.ends[near as usize].relay = Relay::With(waiting);
        self.interior.proxies[proxy as usize].connections += 1;
        self.announce(first, Some(waiting));
        if line == flow {
            self.meet_server(flow, first, self.last_of_chain(first));
        }
        self.settle_other(near);
    }

    /// What happened at an end that relays, or to which was relayed; true if its connection is over.
    #[cold]
    pub(crate) fn react_relay(&mut self, id: EndId, events: Events) -> bool {
        let failed = events.intersects(Events::RESET | Events::TIMED_OUT);
        match self.ends[id as usize].relay {
            Relay::None => {}
            Relay::Last => self.receive_last(id, events),
            Relay::Waits if events.contains(Events::ESTABLISHED) => self.connect_further(id),
            Relay::Waits | Relay::Holds(_) => {}
            Relay::With(other) if failed => {
                self.interior.held.remove(&other);
                self.ends[other as usize].connection.abort(self.now);
                self.settle_other(other);
            }
            Relay::With(other) => {
                if events.contains(Events::ESTABLISHED) && self.ends[other as usize].relay == Relay::Holds(id)
                {
                    self.answer_held(other, id);
                }
                let (to, fro) = (self.relay(id, other), self.relay(other, id));
                if to || fro {
                    self.settle_other(other);
                }
            }
        }
        let flow = self.ends[id as usize].flow;
        let is_answered = self.flows[flow as usize].application.interest() == Interest::Everything;
        if !id.is_multiple_of(2) && events.contains(Events::PEER_CLOSED) && !is_answered {
            self.ends[id as usize].connection.close(self.now);
        }
        if failed {
            let reason = if events.contains(Events::RESET) { "reset" } else { "timed out" };
            self.note_abort(flow, self.first_of_chain(id), reason);
        }
        let other_is_over = match self.ends[id as usize].relay {
            Relay::With(other) | Relay::Holds(other) => self.is_over(other),
            _ => false,
        };
        failed || other_is_over || events.contains(Events::CLOSED)
    }

    /// An end has sent: there may be room for what waits at the other side of its proxy.
    #[cold]
    pub(crate) fn relay_more(&mut self, id: EndId, other: EndId) {
        if self.ends[other as usize].connection.readable() > 0 && self.relay(other, id) {
            self.settle_other(other);
        }
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
        let delivered = connection.delivered_bytes();
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
    fn relay(&mut self, from: EndId, to: EndId) -> bool {
        let behind = if to.is_multiple_of(2) { to } else { from };
        let leg = self.leg(self.ends[behind as usize].line).expect("a later leg begins at a proxy");
        let proxy = self.interior.legs[leg].proxy as usize;
        let sink = &mut self.ends[to as usize].connection;
        let room = self.interior.proxies[proxy].config.split.most_unsent(sink.window_bytes());
        let room = room.saturating_sub(unsent_bytes(sink));
        let available = self.ends[from as usize].connection.readable().min(room);
        let taken = self.ends[to as usize].connection.write(self.now, available);
        if taken > 0 {
            let read = self.ends[from as usize].connection.read(self.now, taken);
            debug_assert_eq!(read, taken, "what is readable can be read");
            self.witness.end(self.now, from, Deed::Read(taken));
            self.witness.end(self.now, to, Deed::Wrote(taken));
            self.interior.proxies[proxy].relayed_bytes += taken;
        }
        let source = &self.ends[from as usize].connection;
        let ends = source.peer_closed() && source.readable() == 0;
        let sends = &mut self.ends[to as usize].connection;
        let closes = ends && matches!(sends.state(), State::SynSent | State::Established | State::CloseWait);
        if closes {
            sends.close(self.now);
        }
        taken > 0 || closes
    }

    /// The sending end of the first connection of the chain that an end belongs to.
    fn first_of_chain(&self, id: EndId) -> EndId {
        let mut sender = id & !1;
        while let Relay::With(inward) | Relay::Holds(inward) = self.ends[sender as usize].relay {
            sender = inward & !1;
        }
        sender
    }

    /// The sending ends of the connections of a chain, from its first.
    fn chain(&self, first: EndId) -> Vec<EndId> {
        let mut senders = vec![first];
        let mut last = first;
        while let Relay::With(outward) | Relay::Holds(outward) = self.ends[last as usize + 1].relay {
            senders.push(outward);
            last = outward;
        }
        senders
    }

    /// The receiving end of the last connection of the chain that begins with a sending end.
    fn last_of_chain(&self, first: EndId) -> EndId {
        let mut receiver = first + 1;
        while let Relay::With(outward) | Relay::Holds(outward) = self.ends[receiver as usize].relay {
            receiver = outward + 1;
        }
        receiver
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
        let ends = std::mem::take(&mut self.ends);
        self.keep_books_of(&ends[id as usize], id as usize % 2);
        self.ends = ends;
    }

    /// The same of an end that is not among the others: of a sender (0) or a receiver (1).
    pub(crate) fn keep_books_of(&mut self, end: &End, side: usize) {
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
            let at_proxy = matches!(end.relay, Relay::Waits | Relay::Holds(_) | Relay::With(_))
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

/// Bytes that were written and have not been sent for the first time.
fn unsent_bytes(connection: &Connection) -> u64 {
    let sent = connection.next_to_send() - connection.oldest_unacknowledged();
    connection.unacknowledged_bytes().saturating_sub(sent)
}
