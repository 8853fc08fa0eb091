//! Plan of a constellation over a scenario's duration: its links, and the times of route changes.
//!
//! The plan does not depend on packets, so it is computed in advance, for the links that flows use.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Interpolation, LinkConfig, LossConfig, Outage, OutageEffect, Outages, Schedule};
use bentpipe_orbit::{Hop, LIGHT_KM_PER_S, OrbitError, Satellite, Sky, delay_of_km};

use crate::members::{LinkId, NodeId};
use crate::model::Scenario;
use crate::sky::{ConstellationGroup, InFlight};

/// Time for which a satellite that left the path to a station keeps its route. It exceeds the waiting time in any queue.
const LINGER: Duration = Duration::from_secs(60);

/// Ends of a constellation at which packets leave it, in ascending order. Each has the delay from there to the packets' destination,
/// minus the least such delay.
pub type Landings = Vec<(u32, Duration)>;

/// Way of packets through a constellation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Crossing {
    /// Node that decides how the packets enter the constellation.
    pub entry: Entry,
    /// Ends at which they leave it. The path of least delay determines the end.
    pub landings: Landings,
}

impl Crossing {
    /// Returns the nearest end at which packets enter, and the nearest end at which they leave.
    pub fn nearest(&self) -> Option<(u32, u32)> {
        let entry = self.entry.ways.iter().min_by_key(|way| way.delay_one_way)?;
        let landing = self.landings.iter().min_by_key(|(_, delay)| *delay)?;
        Some((entry.end, landing.0))
    }
}

/// Node that decides how packets enter a constellation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// The node.
    pub node: NodeId,
    /// Its ways to ends of the constellation.
    pub ways: Vec<Way>,
}

/// Way from a node to an end of a constellation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Way {
    /// Number of the end in [`Graph::sky_ends`](crate::Graph::sky_ends).
    pub end: u32,
    /// Delay on the ground.
    pub delay_one_way: Duration,
    /// First link; `None` if the node is the end.
    pub link: Option<LinkId>,
}

/// A satellite or a ground station.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SkyNode {
    /// A ground station, by its number in the scenario.
    Station(u32),
    /// A satellite of the constellation.
    Satellite(Satellite),
}

/// A duplex link of a constellation.
#[derive(Clone, PartialEq, Debug)]
pub struct SkyLink {
    /// Near and far end; a ground station is always the near end.
    pub ends: [SkyNode; 2],
    /// One-way propagation delay over time.
    pub delay_one_way: Schedule<Duration>,
    /// Intervals in which the existing link is interrupted.
    pub outages: Outages,
    /// Times after time zero at which a ground link begins or ends to serve its station.
    pub handovers: Vec<Duration>,
    /// Rate of its own, in both directions.
    pub rate: Option<Rate>,
}

impl SkyLink {
    /// Returns the configuration of both directions, as the constellation defines it.
    pub fn configs(&self, group: &ConstellationGroup) -> [LinkConfig; 2] {
        let ConstellationGroup { up, down, between, .. } = group;
        let to_ground = matches!(self.ends[0], SkyNode::Station(_));
        let configs = if to_ground { [up, down] } else { [between, between] };
        configs.map(|config| LinkConfig {
            delay_one_way: self.delay_one_way.clone(),
            rate: self.rate.map_or_else(|| config.rate.clone(), Schedule::Constant),
            outages: self.outages.clone(),
            loss: with_handovers(&config.loss, &self.handovers),
            ..config.clone()
        })
    }
}

/// Returns errors with their bursts at these handovers.
pub(super) fn with_handovers(loss: &LossConfig, handovers: &[Duration]) -> LossConfig {
    let mut loss = loss.clone();
    if let Some(burst) = &mut loss.handover {
        burst.handovers = handovers.to_vec();
    }
    loss
}

/// Node with a next hop of the plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A node on the ground.
    Ground(NodeId),
    /// A satellite.
    Satellite(Satellite),
}

/// Next hop of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onward {
    /// Link direction of the constellation: twice the number in [`SkyPlan::links`], plus one from far to near.
    Sky(u32),
    /// Link direction on the ground, towards a ground station.
    Ground(LinkId),
}

/// Change of a node's next hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Destination of the packets, by its number in [`SkyPlan::destinations`].
    pub destination: u32,
    /// Node whose next hop changes.
    pub node: Holder,
    /// Next hop; `None` without a route.
    pub onward: Option<Onward>,
}

/// All changes at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Time of the changes.
    pub at: Instant,
    /// Changed next hops.
    pub turns: Vec<Turn>,
    /// Numbers of the links that are given up.
    pub given_up: Vec<u32>,
}

/// Links and routes through a constellation over a scenario's duration.
#[derive(Clone, PartialEq, Debug)]
pub struct SkyPlan {
    /// All satellites used that end no connections, in ascending order.
    pub satellites: Vec<Satellite>,
    /// Satellites that end connections, with their numbers in [`Graph::sky_ends`](crate::Graph::sky_ends).
    pub hosts: Vec<(Satellite, u32)>,
    /// Destinations of packets.
    pub destinations: Vec<Landings>,
    /// All links used.
    pub links: Vec<SkyLink>,
    /// Changes in order of time, beginning with time zero.
    pub moments: Vec<Moment>,
    /// Treatment of packets on links that are given up.
    pub in_flight: InFlight,
    /// Ways on which packets never have a path.
    pub never: Vec<Crossing>,
}

impl SkyPlan {
    /// Returns the number of a destination; `None` if no packets were planned for it.
    pub fn destination(&self, landings: &Landings) -> Option<u32> {
        self.destinations.iter().position(|known| known == landings).map(|number| number as u32)
    }

    /// Returns the intervals in which packets cannot enter the constellation for their destination.
    pub fn gaps(&self, crossing: &Crossing) -> Vec<(Instant, Instant)> {
        let (mut gaps, mut since) = (Vec::new(), Some(Instant::ZERO));
        let destination = self.destination(&crossing.landings);
        let entry = self.holder(&crossing.entry);
        for moment in &self.moments {
            let at_entry = |turn: &&Turn| Some(turn.destination) == destination && turn.node == entry;
            for turn in moment.turns.iter().filter(at_entry) {
                match (turn.onward, since) {
                    (Some(_), Some(from)) => {
                        gaps.push((from, moment.at));
                        since = None;
                    }
                    (None, None) => since = Some(moment.at),
                    _ => {}
                }
            }
        }
        gaps.extend(since.map(|from| (from, Instant::FAR_FUTURE)));
        gaps
    }

    /// Returns the node of the plan at which packets enter.
    fn holder(&self, entry: &Entry) -> Holder {
        let is_own = |(_, end): &&(Satellite, u32)| entry.ways.iter().any(|way| way.end == *end);
        let host = self.hosts.iter().find(is_own);
        host.map_or(Holder::Ground(entry.node), |(satellite, _)| Holder::Satellite(*satellite))
    }

    /// Returns a node in a topology with these ends of the constellation, and with other satellites from `first` on.
    pub fn node(&self, node: SkyNode, ends: &[NodeId], first: NodeId) -> NodeId {
        match node {
            SkyNode::Station(station) => ends[station as usize],
            SkyNode::Satellite(satellite) => match self.hosts.iter().find(|(host, _)| *host == satellite) {
                Some((_, end)) => ends[*end as usize],
                None => first + self.satellites.partition_point(|used| *used < satellite) as NodeId,
            },
        }
    }

    /// Computes the plan for packets on these ways.
    ///
    /// # Errors
    /// If the orbits end before the scenario.
    pub fn new(
        scenario: &Scenario,
        group: &ConstellationGroup,
        crossings: &[Crossing],
    ) -> Result<Self, OrbitError> {
        let constellation = group.fly(scenario.duration)?;
        let sky = scenario.sky(group, &constellation)?;
        let stations = scenario.ground_stations().len() as u32;
        let hosts = (stations..).zip(scenario.satellite_hosts(&constellation)?);
        let hosts: Vec<_> = hosts.map(|(end, satellite)| (satellite, end)).collect();
        let mut planner = Planner { group, sky, hosts, look: 0, links: BTreeMap::new(), drafts: Vec::new() };
        let mut destinations: BTreeMap<Landings, Destination> = BTreeMap::new();
        for Crossing { entry, landings } in crossings {
            let known = destinations.entry(landings.clone());
            known.or_insert_with(|| planner.destination(landings)).sources.push((entry.clone(), false));
        }
        let end = Instant::ZERO + scenario.duration;
        loop {
            planner.look(destinations.values_mut());
            if planner.sky.now() >= end {
                break;
            }
            planner.sky.advance()?;
            planner.look += 1;
        }
        let mut never = Vec::new();
        for (landings, destination) in &destinations {
            let lost = destination.sources.iter().filter(|(_, found)| !found);
            let crossing =
                |(entry, _): &(Entry, bool)| Crossing { entry: entry.clone(), landings: landings.clone() };
            never.extend(lost.map(crossing));
        }
        Ok(planner.finish(destinations.into_keys().collect(), never))
    }
}

/// Routes to a destination.
struct Destination {
    /// Number of its end in the sky.
    end: usize,
    /// Nodes that send packets here, each with true if it ever had a path.
    sources: Vec<(Entry, bool)>,
    /// Satellites that may hold packets for it, with the last step at which they may.
    holders: BTreeMap<Satellite, usize>,
    /// Next hop of each node.
    table: BTreeMap<Holder, Next>,
}

/// A link that is used at some time.
struct Usage {
    number: u32,
    /// Steps at which it is used, with its length in km.
    lengths_km: Vec<(usize, f64)>,
    last_used: usize,
    is_up: bool,
    /// Steps at which it came up.
    came_up: Vec<usize>,
    /// Steps at which it was given up.
    went_down: Vec<usize>,
}

/// A next hop with nodes instead of a link of the constellation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// From a node of the constellation to another.
    Sky([SkyNode; 2]),
    Ground(LinkId),
}

/// A [`Turn`] before links have numbers.
type Draft = (u32, Holder, Option<Next>);

struct Planner<'a> {
    group: &'a ConstellationGroup,
    sky: Sky<'a>,
    /// Satellites that end connections, with their numbers in the sky.
    hosts: Vec<(Satellite, u32)>,
    /// Number of the current step.
    look: usize,
    links: BTreeMap<[SkyNode; 2], Usage>,
    /// Changes at each step that has any.
    drafts: Vec<(Instant, Vec<Draft>, Vec<u32>)>,
}

/// Returns the ends of a link in canonical order: a station first.
fn filed(a: SkyNode, b: SkyNode) -> [SkyNode; 2] {
    if a <= b { [a, b] } else { [b, a] }
}

impl Planner<'_> {
    /// Makes a destination without sources.
    fn destination(&mut self, landings: &Landings) -> Destination {
        let km = |delay: Duration| delay.as_secs_f64() * LIGHT_KM_PER_S;
        let end = match landings[..] {
            [(end, _)] => end as usize,
            _ => {
                self.sky.add_any_of(landings.iter().map(|(end, delay)| (*end as usize, km(*delay))).collect())
            }
        };
        Destination { end, sources: Vec::new(), holders: BTreeMap::new(), table: BTreeMap::new() }
    }

    /// Records the differences from the previous step.
    fn look<'d>(&mut self, destinations: impl Iterator<Item = &'d mut Destination>) {
        let mut turns = Vec::new();
        for (number, destination) in (0..).zip(destinations) {
            let table = self.table(destination);
            for &node in destination.table.keys().filter(|node| !table.contains_key(node)) {
                turns.push((number, node, None));
            }
            for (&node, &next) in &table {
                if let Next::Sky([from, to]) = next {
                    self.use_link(filed(from, to));
                }
                if destination.table.get(&node) != Some(&next) {
                    turns.push((number, node, Some(next)));
                }
            }
            destination.table = table;
        }
        let given_up = self.watch_links();
        if !turns.is_empty() || !given_up.is_empty() {
            self.drafts.push((self.sky.now(), turns, given_up));
        }
    }

    /// Returns the next hops to a destination for all nodes that may have packets for it.
    fn table(&mut self, destination: &mut Destination) -> BTreeMap<Holder, Next> {
        let mut table = BTreeMap::new();
        for (entry, found) in &mut destination.sources {
            let Some((way, path)) = self.best(entry, destination.end) else { continue };
            *found = true;
            let next = match way.link {
                Some(link) => Next::Ground(link),
                None => {
                    destination.holders.extend(path.iter().map(|satellite| (*satellite, self.look)));
                    Next::Sky([SkyNode::Station(way.end), SkyNode::Satellite(path[0])])
                }
            };
            if self.hosts.iter().all(|(_, end)| *end != way.end) {
                table.insert(Holder::Ground(entry.node), next);
            }
        }
        let linger = (LINGER.as_nanos() / self.group.step.as_nanos()) as usize;
        destination.holders.retain(|_, last| self.look - *last <= linger);
        let holders = &mut destination.holders;
        let mut open: Vec<_> = holders.iter().map(|(satellite, last)| (*satellite, *last)).collect();
        while let Some((satellite, last)) = open.pop() {
            let Some(hop) = self.sky.next_hop(satellite, destination.end) else { continue };
            let next = match hop {
                Hop::Ground(station) => SkyNode::Station(station as u32),
                Hop::Satellite(next) => {
                    // The next node may receive these packets, so it may hold them until the same step.
                    let known = holders.insert(next, last).filter(|known| *known >= last);
                    match known {
                        Some(known) => drop(holders.insert(next, known)),
                        None => open.push((next, last)),
                    }
                    SkyNode::Satellite(next)
                }
            };
            table.insert(Holder::Satellite(satellite), Next::Sky([SkyNode::Satellite(satellite), next]));
        }
        table
    }

    /// Returns the way of least delay from a node to a destination, and the satellites of its path.
    fn best(&mut self, entry: &Entry, to: usize) -> Option<(Way, Vec<Satellite>)> {
        let mut best: Option<(Duration, Way, Vec<Satellite>)> = None;
        for way in &entry.ways {
            let mut path = Vec::new();
            let Some(distance_km) = self.sky.find_path(way.end as usize, to, &mut path) else { continue };
            let delay = way.delay_one_way + delay_of_km(distance_km);
            if best.as_ref().is_none_or(|(least, ..)| delay < *least) {
                best = Some((delay, *way, path));
            }
        }
        best.map(|(_, way, path)| (way, path))
    }

    fn use_link(&mut self, ends: [SkyNode; 2]) {
        let number = self.links.len() as u32;
        let usage = self.links.entry(ends).or_insert(Usage {
            number,
            lengths_km: Vec::new(),
            last_used: self.look,
            is_up: false,
            came_up: Vec::new(),
            went_down: Vec::new(),
        });
        usage.last_used = self.look;
    }

    /// Records the lengths of the links in use. Returns the links given up.
    fn watch_links(&mut self) -> Vec<u32> {
        let Self { sky, look, links, .. } = self;
        let mut given_up = Vec::new();
        for (ends, usage) in links {
            let is_up = match *ends {
                [SkyNode::Station(station), SkyNode::Satellite(satellite)] => {
                    sky.serving(station as usize).iter().any(|(serving, _)| *serving == satellite)
                }
                [SkyNode::Satellite(a), SkyNode::Satellite(b)] => sky.are_linked(a, b),
                _ => false,
            };
            match (usage.is_up, is_up) {
                (true, false) => {
                    given_up.push(usage.number);
                    usage.went_down.push(*look);
                }
                (false, true) => usage.came_up.push(*look),
                _ => {}
            }
            usage.is_up = is_up;
            // Recorded one step beyond the last use: packets sent in between are still on it.
            if *look <= usage.last_used + 1 {
                let [a, b] = ends.map(|end| match end {
                    SkyNode::Station(station) => sky.place(station as usize),
                    SkyNode::Satellite(satellite) => sky.positions()[satellite as usize],
                });
                usage.lengths_km.push((*look, (a - b).length()));
            }
        }
        given_up
    }

    fn finish(self, destinations: Vec<Landings>, never: Vec<Crossing>) -> SkyPlan {
        let mut links: Vec<_> = self.links.iter().collect();
        links.sort_by_key(|(_, usage)| usage.number);
        let onward = |next: Next| match next {
            Next::Ground(link) => Onward::Ground(link),
            Next::Sky([from, to]) => {
                let ends = filed(from, to);
                Onward::Sky(2 * self.links[&ends].number + u32::from(ends[0] != from))
            }
        };
        let moments = self.drafts.iter().map(|(at, turns, given_up)| {
            let turn =
                |&(destination, node, next): &Draft| Turn { destination, node, onward: next.map(onward) };
            Moment { at: *at, turns: turns.iter().map(turn).collect(), given_up: given_up.clone() }
        });
        let moments = moments.collect();
        let satellite = |end: &SkyNode| match end {
            SkyNode::Satellite(satellite) => Some(*satellite),
            SkyNode::Station(_) => None,
        };
        let mut satellites: Vec<_> =
            links.iter().flat_map(|(ends, _)| ends.iter().filter_map(satellite)).collect();
        satellites.retain(|satellite| self.hosts.iter().all(|(host, _)| host != satellite));
        satellites.sort_unstable();
        satellites.dedup();
        let links = links.iter().map(|(ends, usage)| self.link(**ends, usage)).collect();
        let in_flight = self.group.in_flight;
        SkyPlan { satellites, hosts: self.hosts, destinations, links, moments, in_flight, never }
    }

    fn link(&self, ends: [SkyNode; 2], usage: &Usage) -> SkyLink {
        let delay_one_way = delays(&usage.lengths_km, self.group.step);
        let to_ground = matches!(ends[0], SkyNode::Station(_));
        let outages = if to_ground { interruptions(&usage.came_up, self.group) } else { Outages::default() };
        let mut handovers = Vec::new();
        if to_ground {
            let looks = usage.came_up.iter().chain(&usage.went_down).filter(|look| **look > 0);
            handovers.extend(looks.map(|look| self.group.step * *look as u64));
            handovers.sort_unstable();
        }
        let rate = match ends {
            [SkyNode::Satellite(a), SkyNode::Satellite(b)] => self.sky.constellation().rate_between(a, b),
            _ => None,
        };
        SkyLink { ends, delay_one_way, outages, handovers, rate }
    }
}

/// Returns the delays of a link with these lengths at these steps, linear in between.
fn delays(lengths_km: &[(usize, f64)], step: Duration) -> Schedule<Duration> {
    let all: Vec<_> = lengths_km.iter().map(|(look, km)| (step * *look as u64, delay_of_km(*km))).collect();
    let first = all.first().filter(|first| !first.0.is_zero()).map(|first| (Duration::ZERO, first.1));
    let points: Vec<_> = first.into_iter().chain(all).collect();
    match points.as_slice() {
        [(_, only)] => Schedule::Constant(*only),
        [(_, first), rest @ ..] if rest.iter().all(|(_, delay)| delay == first) => Schedule::Constant(*first),
        _ => Schedule::Table { points, interpolation: Interpolation::Linear, repeat_every: None },
    }
}

/// Returns the interruptions of the link after each start, except for a satellite serving from time zero.
fn interruptions(came_up: &[usize], group: &ConstellationGroup) -> Outages {
    let mut outages = Outages { intervals: Vec::new(), effect: OutageEffect::Cut };
    if group.interruption.is_zero() {
        return outages;
    }
    for look in came_up.iter().filter(|look| **look > 0) {
        let from = Instant::ZERO + group.step * *look as u64;
        let to = from + group.interruption;
        match outages.intervals.last_mut() {
            Some(last) if last.to >= from => last.to = to,
            _ => outages.intervals.push(Outage { from, to }),
        }
    }
    outages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Topology};

    #[test]
    fn each_change_of_a_ground_link_is_a_handover_of_its_losses() {
        let mut draft = Draft::load("leo-iridium").unwrap();
        let burst = "constellation.iridium.ground.handover-loss={ rate = 0.5, before = \"1 s\" }";
        draft.set(burst).unwrap();
        draft.set("duration=30 min").unwrap();
        let scenario = draft.scenario().unwrap();
        let topology = Topology::new(&scenario).unwrap();
        let plan = topology.sky.as_ref().unwrap();
        let to_ground = |link: &SkyLink| matches!(link.ends[0], SkyNode::Station(_));
        let mut count = 0;
        for moment in &plan.moments {
            for link in moment.given_up.iter().map(|link| &plan.links[*link as usize]) {
                let found = link.handovers.contains(&moment.at.since(Instant::ZERO));
                assert_eq!(found, to_ground(link), "{link:?}");
                count += usize::from(found);
            }
        }
        assert!(count > 2, "{count} handovers");
        for link in &plan.links {
            let [up, down] = link.configs(&scenario.constellations[0]);
            for config in [up, down] {
                let burst = config.loss.handover.map(|burst| burst.handovers);
                assert_eq!(burst, to_ground(link).then(|| link.handovers.clone()));
            }
        }
    }
}
