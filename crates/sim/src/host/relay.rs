//! Proxies: they relay bytes from one connection to the next.

use std::sync::Arc;

use bentpipe_base::{Flags, Segment};
use bentpipe_check::HostEvent;
use bentpipe_scenario::{Connect, NodeId, Opening};
use bentpipe_tcp::{Config, Connection, Events, State};
use bentpipe_traffic::{Application, Interest};

use crate::host::proxy::Relay;
use crate::ids::EndId;
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;
use crate::world::{DEAD, End};

impl<M: Monitor> Simulation<M> {
    /// The index of a leg among the later legs, if it is not the first of a flow.
    fn later_leg(&self, leg_id: u32) -> Option<usize> {
        (leg_id as usize).checked_sub(self.flows.len())
    }

    /// The leg on which the connections of a flow's client begin: the last before the client.
    pub(crate) fn leg_of_client(&self, flow: u32) -> u32 {
        let onward = &self.flows[flow as usize].onward;
        if onward.is_empty() { flow } else { self.flows.len() as u32 + onward.end - 1 }
    }

    /// The leg that a proxy opens for a connection that waits on another: the next towards the receiver, or where the client connects towards the
    /// server; and the proxy's number.
    fn leg_further(&self, id: EndId) -> Option<(u32, u32)> {
        let End { flow, leg_id, .. } = self.ends[id as usize];
        if !id.is_multiple_of(2) {
            let leg = self.leg_after(flow, leg_id)?;
            return Some((self.flows.len() as u32 + leg, self.core.legs[leg as usize].proxy));
        }
        let leg = self.later_leg(leg_id)?;
        let is_first = leg as u32 == self.flows[flow as usize].onward.start;
        Some((if is_first { flow } else { leg_id - 1 }, self.core.legs[leg].proxy))
    }

    /// The later leg that follows a leg of a flow.
    pub(crate) fn leg_after(&self, flow: u32, leg_id: u32) -> Option<u32> {
        let onward = &self.flows[flow as usize].onward;
        let next = self.later_leg(leg_id).map_or(onward.start, |leg| leg as u32 + 1);
        onward.contains(&next).then_some(next)
    }

    /// The nodes of the ends of a leg.
    pub(crate) fn nodes_of(&self, leg_id: u32) -> [NodeId; 2] {
        match self.later_leg(leg_id) {
            None => self.flows[leg_id as usize].nodes,
            Some(leg) => self.core.legs[leg].nodes,
        }
    }

    /// Sets the relays of a new pair of ends, for a flow that passes proxies.
    #[cold]
    pub(crate) fn prepare_relay(&mut self, first: EndId) {
        let (flow, leg_id) = (self.ends[first as usize].flow, self.ends[first as usize].leg_id);
        let next = self.leg_after(flow, leg_id);
        let pair = &mut self.ends[first as usize..first as usize + 2];
        let incarnation =
            pair.iter().map(|end| end.incarnation).filter(|own| *own != DEAD).max().unwrap_or(0);
        pair.iter_mut().for_each(|end| end.incarnation = incarnation);
        for (side, end) in pair.iter_mut().enumerate() {
            // Only hosts have applications.
            let at_host = if side == 0 { (leg_id as usize) < self.flows.len() } else { next.is_none() };
            if !at_host {
                end.interest = Interest::Usual;
            }
        }
        let by_client = self.flows[flow as usize].application.interest() == Interest::Everything;
        // A listening end of a proxy waits.
        let listener = first + u32::from(!by_client);
        let further = self.leg_further(listener);
        self.ends[listener as usize].relay = match further {
            Some(_) => Relay::Waits,
            None if by_client => Relay::None,
            None => Relay::Last,
        };
        if further.is_some_and(|(_, proxy)| self.core.proxies[proxy as usize].dead) {
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
        let Some((_, proxy)) = self.leg_further(waiting) else { return false };
        let proxy = &self.core.proxies[proxy as usize];
        let begins = segment.flags.contains(Flags::SYN) && end.connection.state() == State::Listen;
        if !begins || proxy.syn == Opening::Early {
            return false;
        }
        self.core.held.insert(waiting, *segment);
        self.connect_further(waiting);
        true
    }

    /// The server has answered: so does the proxy.
    fn answer_held(&mut self, waiting: EndId, near: EndId) {
        self.ends[waiting as usize].relay = Relay::With(near);
        if let Some(mut segment) = self.core.held.remove(&waiting) {
            self.ends[waiting as usize].connection.exchange(self.now, &mut segment, false);
            self.settle_other(waiting);
        }
    }

    /// Something arrived at a proxy for a connection without one further.
    #[cold]
    pub(crate) fn meet_syn(&mut self, waiting: EndId) {
        let end = &self.ends[waiting as usize];
        let begun = !matches!(end.connection.state(), State::Listen | State::Closed);
        let Some((_, proxy)) = self.leg_further(waiting).filter(|_| begun) else { return };
        let early = self.core.proxies[proxy as usize].connect == Connect::Early;
        if early && end.relay == Relay::Waits {
            self.connect_further(waiting);
        }
    }

    /// Opens the connection that forwards the data of an end.
    fn connect_further(&mut self, waiting: EndId) {
        let flow = self.ends[waiting as usize].flow;
        let Some((leg_id, proxy)) = self.leg_further(waiting) else { return };
        let first = self.open(flow, leg_id);
        // The proxy's end of the new connection: the one that sends behind one that receives, and the other way round.
        let near = first + u32::from(waiting.is_multiple_of(2));
        let holds = self.core.held.contains_key(&waiting);
        self.ends[waiting as usize].relay = if holds { Relay::Holds(near) } else { Relay::With(near) };
        self.ends[near as usize].relay = Relay::With(waiting);
        self.core.proxies[proxy as usize].connections += 1;
        self.announce(first, Some(waiting));
        if leg_id == flow {
            self.meet_server(flow, first, self.last_of_chain(first));
        }
        self.settle_other(near);
    }

    /// Handles events of an end that relays or is relayed to; returns true if its connection is over.
    #[cold]
    pub(crate) fn react_relay(&mut self, id: EndId, events: Events) -> bool {
        let failed = events.intersects(Events::RESET | Events::TIMED_OUT);
        match self.ends[id as usize].relay {
            Relay::None => {}
            Relay::Last => self.receive_last(id, events),
            Relay::Waits if events.contains(Events::ESTABLISHED) => self.connect_further(id),
            Relay::Waits | Relay::Holds(_) => {}
            Relay::With(other) if failed => {
                self.core.held.remove(&other);
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

    /// After an end has sent, there may be room for data that waits at the other side of its proxy.
    #[cold]
    pub(crate) fn relay_more(&mut self, id: EndId, other: EndId) {
        if self.ends[other as usize].connection.readable() > 0 && self.relay(other, id) {
            self.settle_other(other);
        }
    }

    /// Settles the end on the other side of a proxy, while the caller settles its own end.
    fn settle_other(&mut self, other: EndId) {
        self.core.nested += 1;
        self.settle(other);
        self.core.nested -= 1;
    }

    fn is_over(&self, id: EndId) -> bool {
        matches!(self.ends[id as usize].connection.state(), State::Closed | State::TimeWait)
    }

    /// Reads the data at the host at the end of the chain.
    fn receive_last(&mut self, id: EndId, events: Events) {
        if !events.contains(Events::READABLE) {
            return;
        }
        let connection = &mut self.ends[id as usize].connection;
        let bytes = connection.read(self.now, u64::MAX);
        let delivered = connection.delivered_bytes();
        self.monitor.end(self.key, id, HostEvent::Read(bytes));
        if self.ends[id as usize].interest == Interest::Arrivals {
            self.note_read(id, bytes);
        }
        let flow = self.ends[id as usize].flow;
        let present = self.flows[flow as usize].sender == Some(self.first_of_chain(id));
        let flow_state = &self.flows[flow as usize];
        let is_part = matches!(flow_state.application, Application::SourceApp(_));
        if present && !is_part && delivered >= flow_state.wanted {
            self.complete(flow);
        }
    }

    /// Relays as many bytes as there is room for, and the end of the stream after them. Returns false if nothing was relayed.
    fn relay(&mut self, from: EndId, to: EndId) -> bool {
        let behind = if to.is_multiple_of(2) { to } else { from };
        let leg = self.later_leg(self.ends[behind as usize].leg_id).expect("a later leg begins at a proxy");
        let proxy = self.core.legs[leg].proxy as usize;
        let sink = &mut self.ends[to as usize].connection;
        let most_unsent = self.core.proxies[proxy].config.split.most_unsent(sink.window_bytes());
        let room = most_unsent.saturating_sub(unsent_bytes(sink));
        let available = self.ends[from as usize].connection.readable().min(room);
        let taken = self.ends[to as usize].connection.write(self.now, available);
        if taken > 0 {
            let read = self.ends[from as usize].connection.read(self.now, taken);
            debug_assert_eq!(read, taken, "what is readable can be read");
            let unsent = unsent_bytes(&self.ends[to as usize].connection);
            debug_assert!(
                unsent <= most_unsent,
                "a proxy holds {unsent} unsent bytes of at most {most_unsent}"
            );
            self.monitor.end(self.key, from, HostEvent::Read(taken));
            self.monitor.end(self.key, to, HostEvent::Wrote(taken));
            self.core.proxies[proxy].relayed_bytes += taken;
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

    /// Returns the sending end of the first connection of the chain of an end.
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

    /// Removes a chain in which every connection is over.
    #[cold]
    pub(crate) fn retire_chain(&mut self, id: EndId) {
        if self.core.nested > 0 {
            // The end that is being settled repeats this step.
            return;
        }
        let senders = self.chain(self.first_of_chain(id));
        let ends: Vec<EndId> = senders.iter().flat_map(|sender| [*sender, *sender + 1]).collect();
        let application = &self.flows[self.ends[id as usize].flow as usize].application;
        if !application.has_many_connections() || !ends.iter().all(|end| self.is_over(*end)) {
            return;
        }
        for end in ends {
            self.wheel.cancel(self.targets.first_end + end);
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

    /// Adds the counters of a connection end to its flow or its leg.
    pub(crate) fn keep_books(&mut self, id: EndId) {
        let ends = std::mem::take(&mut self.ends);
        self.keep_books_of(&ends[id as usize], id as usize % 2);
        self.ends = ends;
    }

    /// Adds the counters of an end outside the list of ends: of a sender (0) or a receiver (1).
    pub(crate) fn keep_books_of(&mut self, end: &End, side: usize) {
        let last = self.leg_after(end.flow, end.leg_id).is_none();
        let leg = self.later_leg(end.leg_id);
        let counts = &mut self.flows[end.flow as usize].counts;
        match (side, leg) {
            (0, None) => counts.retire(0, &end.connection),
            (0, Some(leg)) => self.core.legs[leg].retire(&end.connection),
            _ if last => counts.retire(1, &end.connection),
            _ => {}
        }
    }

    /// Crashes a proxy: its connections vanish, and nobody is informed.
    pub(crate) fn kill_proxy(&mut self, proxy: u32) {
        let state = &mut self.core.proxies[proxy as usize];
        if state.dead || state.dies_at > self.now {
            return;
        }
        state.dead = true;
        let node = state.node;
        for id in 0..self.ends.len() as EndId {
            let end = &self.ends[id as usize];
            let at_proxy = matches!(end.relay, Relay::Waits | Relay::Holds(_) | Relay::With(_))
                && self.nodes_of(end.leg_id)[id as usize % 2] == node;
            if !at_proxy {
                continue;
            }
            self.keep_books(id);
            self.wheel.cancel(self.targets.first_end + id);
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
