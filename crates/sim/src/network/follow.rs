//! Follows packets over [chained links](crate::network::chains).

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Passing;
use bentpipe_scenario::{LinkId, NextHop, NodeId, RoutingTable};

use crate::network::chains::{Source, Survey};
use crate::network::core::NetworkCore;
use crate::network::hop::{FIRST_SPECIAL, Special, link, lookup};
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::simulation::Simulation;

/// Where a packet goes behind a link.
#[derive(Clone, Copy)]
enum Onward {
    Link(LinkId),
    /// To a link that the routing table knows; the packet stays on its hop.
    Lookup(LinkId),
    /// To another logical process.
    Exit(u32),
}

impl NetworkCore {
    /// The next link of a packet behind another, if packets may be offered to it ahead of time.
    fn chained_hop(&mut self, destination: u32, behind: LinkId) -> Option<LinkId> {
        if let Some(next) = self.chains.known(destination, behind) {
            return next;
        }
        let next = match self.routing.as_ref()?.next(destination, self.head(behind)) {
            NextHop::Link(next) if self.chains.has(next) => Some(next),
            _ => None,
        };
        self.chains.learn(destination, behind, next);
        next
    }
}

impl<M: Monitor> Simulation<M> {
    /// Finds the chained links of a world at rest. There are none if packets meet something else on their way, or if agents send to other nodes.
    pub(crate) fn prepare_chains(&mut self, mut entries: Vec<(u32, u32)>) {
        let Self { flows, routes, core, links, .. } = self;
        let is_routed = core.routing.is_some();
        if !core.meets_only_links() || (is_routed && flows.iter().any(|flow| flow.session.is_some())) {
            return;
        }
        if !is_routed {
            let mut survey = Survey::new(links);
            entries.sort_unstable();
            let mut entries = entries.into_iter().peekable();
            let (mut before, link_count) = (None, links.len() as u32);
            for (position, hop) in (0..).zip(routes.iter()) {
                let port = entries.next_if(|entry| entry.0 == position).map(|(_, port)| port);
                if let Some(id) = link(*hop) {
                    let source = match (before, port) {
                        (Some(before), _) => survey.source(before),
                        (None, Some(port)) => Source::One(link_count + port),
                        (None, None) => Source::Several,
                    };
                    survey.note(id, source);
                }
                before = link(*hop);
            }
            let chained = survey.chained();
            return core.chains.open(chained);
        }
        let of_flows = flows.iter().map(|flow| (flow.routes, flow.nodes));
        let of_legs = core.legs.iter().map(|leg| (leg.routes, leg.nodes));
        let origin = |(route, node): (u32, NodeId)| Some((node, lookup(routes[route as usize])?));
        let origins = of_flows.chain(of_legs).flat_map(|(routes, nodes)| routes.into_iter().zip(nodes));
        core.chains.origins = origins.filter_map(origin).collect();
        self.find_chains();
    }

    /// Offers a packet to a link at a time that may lie in the future, and follows it over chained links.
    #[inline]
    pub(crate) fn offer(&mut self, mut at: Instant, mut link: LinkId, mut handle: PacketHandle) {
        loop {
            let Some(onward) = self.onward(link, handle) else {
                self.links[link as usize].enqueue(at, handle);
                self.note_offered(link, handle);
                break;
            };
            let Some(passing) = self.links[link as usize].pass(at, handle, self.horizon) else { break };
            self.events += 1;
            (at, handle) = (passing.at, passing.packet);
            if !matches!(onward, Onward::Lookup(_)) {
                handle.advance();
            }
            match onward {
                Onward::Link(next) | Onward::Lookup(next) => link = next,
                Onward::Exit(crossing) => {
                    let arrival = self.queue.key(at, self.targets.first_link + link);
                    return self.send_message((at, arrival.rank), crossing, handle);
                }
            }
        }
        self.queue.schedule(self.targets.first_link + link, self.links[link as usize].next_event());
        self.reclaim_dropped(link);
    }

    /// Where a packet goes behind a link, if no event is needed for that.
    #[inline]
    fn onward(&mut self, behind: LinkId, handle: PacketHandle) -> Option<Onward> {
        if self.core.chains.is_empty() {
            return None;
        }
        let next = self.routes[handle.position() + 1];
        if next < FIRST_SPECIAL {
            return self.core.chains.has(next).then_some(Onward::Link(next));
        }
        match Special::of(next) {
            Special::Exit(crossing) => Some(Onward::Exit(crossing)),
            Special::Lookup(destination) => self.core.chained_hop(destination, behind).map(Onward::Lookup),
            _ => None,
        }
    }

    /// The links on which packets are, with the destinations of these, or with all if a link cannot tell.
    fn remaining(&self) -> Vec<(LinkId, u32)> {
        let all = self.core.routing.as_ref().map_or(0, RoutingTable::destination_count);
        let mut remaining = Vec::new();
        for (id, link) in (0..).zip(&self.links).filter(|(_, link)| link.packets_inside() > 0) {
            let seen = || (0..).map_while(|ahead| link.in_flight(ahead));
            if seen().count() < link.packets_inside() {
                remaining.extend((0..all).map(|to| (id, to)));
            } else {
                remaining
                    .extend(seen().filter_map(|handle| Some((id, lookup(self.routes[handle.position()])?))));
            }
        }
        remaining.sort_unstable();
        remaining.dedup();
        remaining
    }

    /// Finds which links are chained until the routes change again, and offers the packets that are on links now to those behind them.
    pub(crate) fn find_chains(&mut self) {
        let Some(routing) = &self.core.routing else { return };
        if self.core.chains.origins.is_empty() {
            return;
        }
        let remaining = self.remaining();
        let mut survey = Survey::new(&self.links);
        for origin in &self.core.chains.origins {
            survey.walk(routing, *origin, Source::Several);
        }
        for (id, destination) in &remaining {
            survey.walk(routing, (routing.head(*id), *destination), survey.source(*id));
        }
        // Packets further along a way come first to whatever follows.
        let mut used: Vec<LinkId> = remaining.iter().map(|(id, _)| *id).collect();
        used.dedup();
        used.sort_by_cached_key(|id| std::cmp::Reverse(survey.depth(*id)));
        let chained = survey.chained();
        self.horizon = self.until.min(routing.next_change() - Duration::from_nanos(1));
        self.core.chains.open(chained);
        used.into_iter().for_each(|link| self.follow_from(link));
    }

    /// Offers the packets that are on a link to the chained link behind it.
    fn follow_from(&mut self, link: LinkId) {
        if !self.links[link as usize].is_foreseeable() {
            return;
        }
        let Self { links, routes, core, horizon, .. } = self;
        let mut onward = Vec::new();
        let passing = links[link as usize].hand_over(*horizon, |handle| {
            let destination = lookup(routes[handle.position()]);
            let next = destination.and_then(|destination| core.chained_hop(destination, link));
            onward.extend(next);
            next.is_some()
        });
        for (Passing { at, packet: handle }, onward) in passing.into_iter().zip(onward) {
            self.events += 1;
            self.offer(at, onward, handle);
        }
    }
}
