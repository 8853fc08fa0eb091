//! Proxies: they relay bytes from one connection to the next.

use std::sync::Arc;

use bentpipe_base::{Flags, Segment};
use bentpipe_check::HostEvent;
use bentpipe_scenario::{Connect, Opening};
use bentpipe_tcp::{Config, Connection, Events, State};
use bentpipe_traffic::{Application, Interest};

use crate::host::chain::Relayed;
use crate::host::end::{DEAD, End};
use crate::host::proxy::Relay;
use crate::ids::EndId;
use crate::observe::monitor::Monitor;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Sets the relays of a new pair of ends, for a flow that passes proxies.
    #[cold]
    pub(crate) fn prepare_relay(&mut self, first: EndId) {
        let (flow, leg_id) = (self.hosts.ends[first as usize].flow, self.hosts.ends[first as usize].leg_id);
        let next = self.hosts.leg_after(flow, leg_id);
        let is_first = self.hosts.later_leg(leg_id).is_none();
        let pair = &mut self.hosts.ends[first as usize..first as usize + 2];
        let incarnation =
            pair.iter().map(|end| end.incarnation).filter(|own| *own != DEAD).max().unwrap_or(0);
        pair.iter_mut().for_each(|end| end.incarnation = incarnation);
        for (side, end) in pair.iter_mut().enumerate() {
            // Only hosts have applications.
            let at_host = if side == 0 { is_first } else { next.is_none() };
            if !at_host {
                end.interest = Interest::Usual;
            }
        }
        let by_client = self.applications.flows[flow as usize].application.interest() == Interest::Everything;
        // A listening end of a proxy waits.
        let listener = first + u32::from(!by_client);
        let further = self.hosts.leg_further(listener);
        self.hosts.ends[listener as usize].relay = match further {
            Some(_) => Relay::Waits,
            None if by_client => Relay::None,
            None => Relay::Last,
        };
        if further.is_some_and(|(_, proxy)| self.hosts.proxies[proxy as usize].dead) {
            self.hosts.ends[listener as usize].incarnation = DEAD;
        }
    }

    /// A segment arrives at a proxy for a connection without one further, or with one that has not been answered. True if the proxy keeps it
    /// until the server has answered.
    #[cold]
    pub(crate) fn hold_syn(&mut self, waiting: EndId, segment: &Segment) -> bool {
        let end = &self.hosts.ends[waiting as usize];
        if let Relay::Holds(_) = end.relay {
            return true;
        }
        let Some((_, proxy)) = self.hosts.leg_further(waiting) else { return false };
        let proxy = &self.hosts.proxies[proxy as usize];
        let begins = segment.flags.contains(Flags::SYN) && end.connection.state() == State::Listen;
        if !begins || proxy.syn == Opening::Early {
            return false;
        }
        self.hosts.held.insert(waiting, *segment);
        self.connect_further(waiting);
        true
    }

    /// The server has answered: so does the proxy.
    fn answer_held(&mut self, waiting: EndId, near: EndId) {
        self.hosts.ends[waiting as usize].relay = Relay::With(near);
        if let Some(mut segment) = self.hosts.held.remove(&waiting) {
            self.hosts.ends[waiting as usize].connection.exchange(self.scheduler.now, &mut segment, false);
            self.settle_other(waiting);
        }
    }

    /// Something arrived at a proxy for a connection without one further.
    #[cold]
    pub(crate) fn meet_syn(&mut self, waiting: EndId) {
        let end = &self.hosts.ends[waiting as usize];
        let begun = !matches!(end.connection.state(), State::Listen | State::Closed);
        let Some((_, proxy)) = self.hosts.leg_further(waiting).filter(|_| begun) else { return };
        let early = self.hosts.proxies[proxy as usize].connect == Connect::Early;
        if early && end.relay == Relay::Waits {
            self.connect_further(waiting);
        }
    }

    /// Opens the connection that forwards the data of an end.
    fn connect_further(&mut self, waiting: EndId) {
        let flow = self.hosts.ends[waiting as usize].flow;
        let Some((leg_id, proxy)) = self.hosts.leg_further(waiting) else { return };
        let first = self.open(flow, leg_id);
        // The proxy's end of the new connection: the one that sends behind one that receives, and the other way round.
        let near = first + u32::from(waiting.is_multiple_of(2));
        let holds = self.hosts.held.contains_key(&waiting);
        self.hosts.ends[waiting as usize].relay = if holds { Relay::Holds(near) } else { Relay::With(near) };
        self.hosts.ends[near as usize].relay = Relay::With(waiting);
        self.hosts.proxies[proxy as usize].connections += 1;
        self.announce(first, Some(waiting));
        if leg_id == flow {
            self.meet_server(flow, first, self.hosts.chain(first).last().map_or(first, |last| *last) + 1);
        }
        self.settle_other(near);
    }

    /// Handles events of an end that relays or is relayed to; returns true if its connection is over.
    #[cold]
    pub(crate) fn react_relay(&mut self, id: EndId, events: Events) -> bool {
        let failed = events.intersects(Events::RESET | Events::TIMED_OUT);
        match self.hosts.ends[id as usize].relay {
            Relay::None => {}
            Relay::Last => self.receive_last(id, events),
            Relay::Waits if events.contains(Events::ESTABLISHED) => self.connect_further(id),
            Relay::Waits | Relay::Holds(_) => {}
            Relay::With(other) if failed => {
                self.hosts.held.remove(&other);
                self.hosts.ends[other as usize].connection.abort(self.scheduler.now);
                self.settle_other(other);
            }
            Relay::With(other) => {
                if events.contains(Events::ESTABLISHED)
                    && self.hosts.ends[other as usize].relay == Relay::Holds(id)
                {
                    self.answer_held(other, id);
                }
                let (to, fro) = (self.relay(id, other), self.relay(other, id));
                if to || fro {
                    self.settle_other(other);
                }
            }
        }
        let flow = self.hosts.ends[id as usize].flow;
        let is_answered =
            self.applications.flows[flow as usize].application.interest() == Interest::Everything;
        if !id.is_multiple_of(2) && events.contains(Events::PEER_CLOSED) && !is_answered {
            self.hosts.ends[id as usize].connection.close(self.scheduler.now);
        }
        if failed {
            let reason = if events.contains(Events::RESET) { "reset" } else { "timed out" };
            self.note_abort(flow, self.hosts.first_of_chain(id), reason);
        }
        let other_is_over = match self.hosts.ends[id as usize].relay {
            Relay::With(other) | Relay::Holds(other) => self.hosts.is_over(other),
            _ => false,
        };
        failed || other_is_over || events.contains(Events::CLOSED)
    }

    /// After an end has sent, there may be room for data that waits at the other side of its proxy.
    #[cold]
    pub(crate) fn relay_more(&mut self, id: EndId, other: EndId) {
        if self.hosts.ends[other as usize].connection.readable() > 0 && self.relay(other, id) {
            self.settle_other(other);
        }
    }

    /// Settles the end on the other side of a proxy, while the caller settles its own end.
    fn settle_other(&mut self, other: EndId) {
        self.hosts.nested += 1;
        self.settle(other);
        self.hosts.nested -= 1;
    }

    /// Reads the data at the host at the end of the chain.
    fn receive_last(&mut self, id: EndId, events: Events) {
        if !events.contains(Events::READABLE) {
            return;
        }
        let connection = &mut self.hosts.ends[id as usize].connection;
        let bytes = connection.read(self.scheduler.now, u64::MAX);
        let delivered = connection.delivered_bytes();
        self.monitor.end(self.scheduler.key, id, HostEvent::Read(bytes));
        if self.hosts.ends[id as usize].interest == Interest::Arrivals {
            self.note_read(id, bytes);
        }
        let flow = self.hosts.ends[id as usize].flow;
        let present = self.applications.flows[flow as usize].sender == Some(self.hosts.first_of_chain(id));
        let flow_state = &self.applications.flows[flow as usize];
        let is_part = matches!(flow_state.application, Application::SourceApp(_));
        if present && !is_part && delivered >= flow_state.wanted {
            self.complete(flow);
        }
    }

    /// Relays as many bytes as there is room for, and the end of the stream after them. Returns false if nothing was relayed.
    fn relay(&mut self, from: EndId, to: EndId) -> bool {
        let Relayed { bytes, closes } = self.hosts.relay(self.scheduler.now, from, to);
        if bytes > 0 {
            self.monitor.end(self.scheduler.key, from, HostEvent::Read(bytes));
            self.monitor.end(self.scheduler.key, to, HostEvent::Wrote(bytes));
        }
        bytes > 0 || closes
    }

    /// Removes a chain in which every connection is over.
    #[cold]
    pub(crate) fn retire_chain(&mut self, id: EndId) {
        if self.hosts.nested > 0 {
            // The end that is being settled repeats this step.
            return;
        }
        let senders = self.hosts.chain(self.hosts.first_of_chain(id));
        let ends: Vec<EndId> = senders.iter().flat_map(|sender| [*sender, *sender + 1]).collect();
        let application = &self.applications.flows[self.hosts.ends[id as usize].flow as usize].application;
        if !application.has_many_connections() || !ends.iter().all(|end| self.hosts.is_over(*end)) {
            return;
        }
        for end in ends {
            self.scheduler.cancel(Target::End(end));
            self.keep_books(end);
            let end = &mut self.hosts.ends[end as usize];
            end.relay = Relay::None;
            if end.incarnation != DEAD {
                end.incarnation += 1;
            }
        }
        let dead = |sender: &EndId| {
            [0, 1].iter().all(|side| self.hosts.ends[(sender + side) as usize].incarnation == DEAD)
        };
        let reusable: Vec<_> = senders.into_iter().filter(|sender| !dead(sender)).collect();
        self.hosts.vacant.extend(reusable);
    }

    /// Adds the counters of a connection end to its flow or its leg.
    pub(crate) fn keep_books(&mut self, id: EndId) {
        let ends = std::mem::take(&mut self.hosts.ends);
        self.keep_books_of(&ends[id as usize], id as usize % 2);
        self.hosts.ends = ends;
    }

    /// Adds the counters of an end outside the list of ends: of a sender (0) or a receiver (1).
    pub(crate) fn keep_books_of(&mut self, end: &End, side: usize) {
        let last = self.hosts.leg_after(end.flow, end.leg_id).is_none();
        let leg = self.hosts.later_leg(end.leg_id);
        let counts = &mut self.applications.flows[end.flow as usize].counts;
        match (side, leg) {
            (0, None) => counts.retire(0, &end.connection),
            (0, Some(leg)) => self.hosts.legs[leg].retire(&end.connection),
            _ if last => counts.retire(1, &end.connection),
            _ => {}
        }
    }

    /// Crashes a proxy: its connections vanish, and nobody is informed.
    pub(crate) fn kill_proxy(&mut self, proxy: u32) {
        let state = &mut self.hosts.proxies[proxy as usize];
        if state.dead || state.dies_at > self.scheduler.now {
            return;
        }
        state.dead = true;
        let node = state.node;
        for id in 0..self.hosts.ends.len() as EndId {
            let end = &self.hosts.ends[id as usize];
            let at_proxy =
                matches!(end.relay, Relay::Waits | Relay::Holds(_) | Relay::With(_)) && end.node == node;
            if !at_proxy {
                continue;
            }
            self.keep_books(id);
            self.scheduler.cancel(Target::End(id));
            let end = &mut self.hosts.ends[id as usize];
            let mut nothing = Connection::listen(Arc::new(Config::default()), 0);
            nothing.close(self.scheduler.now);
            nothing.take_events();
            end.connection = nothing;
            end.incarnation = DEAD;
        }
    }
}
