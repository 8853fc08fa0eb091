//! Changes of the routes: lost packets, and the links over which packets may be followed until the next change.

use bentpipe_base::{Duration, Instant};
use bentpipe_check::LinkActivity;
use bentpipe_net::{Link, Passing};
use bentpipe_scenario::{InFlight, LinkId, NodeId, RoutingTable};

use crate::engine::shared_link::Source;
use crate::network::core::NetworkCore;
use crate::network::hop::{Here, Hop, lookup};
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::simulation::Simulation;
use crate::world::Flow;

/// Links from which the packets of each link come.
struct Survey<'a> {
    routing: &'a RoutingTable,
    links: &'a [Link<PacketHandle>],
    sources: Vec<Source>,
}

impl Survey<'_> {
    /// Follows packets to a destination from a node, at which they arrived from this source.
    fn walk(&mut self, (node, destination): (NodeId, u32), mut source: Source) {
        for link in self.routing.way(destination, node) {
            let before = &mut self.sources[link as usize];
            *before = before.or(source);
            source = self.source(link);
        }
    }

    /// Returns the source of a link's packets.
    fn source(&self, link: LinkId) -> Source {
        if self.links[link as usize].is_foreseeable() { Source::One(link) } else { Source::Elsewhere }
    }

    /// True if all packets of a link come from one other link, and their fate is known at their arrival.
    fn is_chained(&self, link: LinkId) -> bool {
        let is_alone = matches!(self.sources[link as usize], Source::One(_));
        is_alone && self.links[link as usize].is_first_in_first_out()
    }

    /// Number of links over which packets were followed before they reach this one.
    fn depth(&self, mut link: LinkId) -> usize {
        let mut depth = 0;
        while let (true, Source::One(before)) = (self.is_chained(link), self.sources[link as usize])
            && depth < self.links.len()
        {
            (depth, link) = (depth + 1, before);
        }
        depth
    }
}

impl NetworkCore {
    /// Permits to follow packets over routes that change, unless they meet another element on their path, or agents send to other
    /// nodes, too.
    pub fn set_origins(&mut self, flows: &[Flow], routes: &[Hop]) {
        let has_sessions = flows.iter().any(|flow| flow.session.is_some());
        if self.routing.is_none()
            || has_sessions
            || !self.middleboxes.is_empty()
            || !self.media.shared.is_empty()
        {
            return;
        }
        let of_flows = flows.iter().map(|flow| (flow.routes, flow.nodes));
        let of_legs = self.legs.iter().map(|leg| (leg.routes, leg.nodes));
        let origin = |(route, node): (u32, NodeId)| Some((node, lookup(routes[route as usize])?));
        let origins = of_flows.chain(of_legs).flat_map(|(routes, nodes)| routes.into_iter().zip(nodes));
        self.chains.origins = origins.filter_map(origin).collect();
    }
}

impl<M: Monitor> Simulation<M> {
    /// The network itself changes at this time.
    pub(crate) fn change_routes(&mut self, now: Instant) {
        let (given_up, in_flight) = self.take_new_routes(now);
        for link in given_up {
            self.give_up(link, in_flight);
        }
        let remaining = self.remaining();
        self.find_chains(&remaining);
    }

    /// Applies new routes. Returns the links that end, and the lost packets on them.
    pub(crate) fn take_new_routes(&mut self, now: Instant) -> (Vec<LinkId>, InFlight) {
        let routing = self.core.routing.as_mut().expect("only the routes of such a world change");
        routing.change(now);
        // Packets on the way continue by events, until the new routes allow to follow packets again.
        self.core.chains.clear();
        self.wheel.schedule(self.targets.routing, routing.next_change());
        routing.given_up()
    }

    /// A link of the constellation is no more.
    pub(crate) fn give_up(&mut self, id: LinkId, in_flight: InFlight) {
        let now = self.now;
        // Packets that arrive at this very time have arrived.
        self.deliver(id);
        match in_flight {
            InFlight::Lost => {
                self.links[id as usize].lose_everything(now);
                self.reclaim_dropped(id, self.key);
            }
            InFlight::Rerouted => {
                let waiting = self.links[id as usize].take_back_waiting(now);
                self.reclaim_dropped(id, self.key);
                let here = Here { node: self.core.graph.hop(id).from, served: true };
                for handle in waiting {
                    if self.monitor.watches(id) {
                        self.monitor.link(self.key, id, LinkActivity::TakenBack(self.seen(handle)));
                    }
                    self.go(handle, here);
                }
            }
        }
        self.wheel.schedule(self.targets.first_link + id, self.links[id as usize].next_event());
    }

    /// Returns the links with packets and their destinations; all destinations if a link cannot distinguish them.
    pub(crate) fn remaining(&self) -> Vec<(LinkId, u32)> {
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

    /// Finds where packets may be followed until the routes change again, and follows those that are on links now: `remaining`, here and
    /// in other shares.
    pub(crate) fn find_chains(&mut self, remaining: &[(LinkId, u32)]) {
        let Some(routing) = &self.core.routing else { return };
        if self.core.chains.origins.is_empty() {
            return;
        }
        let (links, nothing) = (&self.links, vec![Source::Nowhere; self.links.len()]);
        let mut survey = Survey { routing, links, sources: nothing };
        for origin in &self.core.chains.origins {
            survey.walk(*origin, Source::Elsewhere);
        }
        for (id, destination) in remaining {
            survey.walk((routing.head(*id), *destination), survey.source(*id));
        }
        // Packets further along a path reach the next element first.
        let mut used: Vec<LinkId> = remaining.iter().map(|(id, _)| *id).collect();
        used.dedup();
        used.sort_by_cached_key(|id| std::cmp::Reverse(survey.depth(*id)));
        let is_own = |id| self.share.as_ref().is_none_or(|share| share.owners[id as usize] == share.number);
        let chained = (0..links.len() as LinkId).map(|id| is_own(id) && survey.is_chained(id)).collect();
        self.horizon = self.until.min(routing.next_change() - Duration::from_nanos(1));
        self.core.chains.open(chained);
        used.into_iter().for_each(|link| self.follow_from(link));
    }

    /// Follows the packets that are on a link and will go on over one to which they may be offered ahead of time.
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
            self.enter_arrival_by(at, link, handle);
            self.run_ahead((at, onward), handle);
        }
    }
}
