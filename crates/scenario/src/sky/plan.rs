//! Plan of a constellation over a scenario's duration: its links, and the times of route changes.
//!
//! The plan does not depend on packets, so it is computed in advance, for the links that flows use.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Interpolation, LinkConfig, LossConfig, Outage, OutageEffect, Outages, Schedule};
use bentpipe_orbit::{Hop, OrbitError, Satellite, Sky, delay_of_km};

use crate::members::NodeId;
use crate::model::Scenario;
use crate::sky::{ConstellationGroup, InFlight};

/// Time for which a satellite that left the path to a station keeps its route. It exceeds the waiting time in any queue.
const LINGER: Duration = Duration::from_secs(60);

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

/// Change of a node's next hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Destination station of the packets.
    pub landing: u32,
    /// Node whose next hop changes.
    pub node: SkyNode,
    /// Link direction: twice the number in [`SkyPlan::links`], plus one from far to near. `None` without a route.
    pub link: Option<u32>,
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
    /// All satellites used, in ascending order.
    pub satellites: Vec<Satellite>,
    /// All links used.
    pub links: Vec<SkyLink>,
    /// Changes in order of time, beginning with time zero.
    pub moments: Vec<Moment>,
    /// Treatment of packets on links that are given up.
    pub in_flight: InFlight,
    /// Pairs of stations that never have a path.
    pub never: Vec<(u32, u32)>,
}

impl SkyPlan {
    /// Returns the intervals without a path from one ground station to another, both given by number.
    pub fn gaps(&self, entry: u32, landing: u32) -> Vec<(Instant, Instant)> {
        let (mut gaps, mut since) = (Vec::new(), Some(Instant::ZERO));
        for moment in &self.moments {
            let at_entry = |turn: &&Turn| turn.landing == landing && turn.node == SkyNode::Station(entry);
            for turn in moment.turns.iter().filter(at_entry) {
                match (turn.link, since) {
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

    /// Returns the node in a topology whose satellites begin at `first`.
    pub fn node(&self, node: SkyNode, stations: &[NodeId], first: NodeId) -> NodeId {
        match node {
            SkyNode::Station(station) => stations[station as usize],
            SkyNode::Satellite(satellite) => {
                let place = self.satellites.partition_point(|used| *used < satellite);
                first + place as NodeId
            }
        }
    }

    /// Computes the plan for packets between stations, given as pairs of (from, to).
    ///
    /// # Errors
    /// If the orbits end before the scenario.
    pub fn new(
        scenario: &Scenario,
        group: &ConstellationGroup,
        crossings: &[(u32, u32)],
    ) -> Result<Self, OrbitError> {
        let constellation = group.fly(scenario.duration)?;
        let sky = group.sky(&constellation, &scenario.ground_stations())?;
        let mut landings: BTreeMap<u32, Landing> = BTreeMap::new();
        for &(from, to) in crossings {
            landings.entry(to).or_default().sources.push((from, false));
        }
        let mut planner = Planner { group, sky, look: 0, links: BTreeMap::new(), drafts: Vec::new() };
        let end = Instant::ZERO + scenario.duration;
        loop {
            planner.look(&mut landings);
            if planner.sky.now() >= end {
                break;
            }
            planner.sky.advance()?;
            planner.look += 1;
        }
        let never = |(to, landing): (&u32, &Landing)| {
            let never = landing.sources.iter().filter(|(_, found)| !found);
            never.map(|(from, _)| (*from, *to)).collect::<Vec<_>>()
        };
        let never = landings.iter().flat_map(never).collect();
        Ok(planner.finish(never))
    }
}

/// Routes to a station.
#[derive(Default)]
struct Landing {
    /// Stations that send packets here, each with true if it ever had a path.
    sources: Vec<(u32, bool)>,
    /// Satellites that may hold packets for the station, with the last step at which they may.
    holders: BTreeMap<Satellite, usize>,
    /// Next hop of each node towards the station.
    table: BTreeMap<SkyNode, SkyNode>,
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

/// A [`Turn`] with nodes instead of links.
type Draft = (u32, SkyNode, Option<SkyNode>);

struct Planner<'a> {
    group: &'a ConstellationGroup,
    sky: Sky<'a>,
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
    /// Records the differences from the previous step.
    fn look(&mut self, landings: &mut BTreeMap<u32, Landing>) {
        let mut turns = Vec::new();
        for (&to, landing) in landings {
            let table = self.table(to, landing);
            for &node in landing.table.keys().filter(|node| !table.contains_key(node)) {
                turns.push((to, node, None));
            }
            for (&node, &next) in &table {
                self.use_link(filed(node, next));
                if landing.table.get(&node) != Some(&next) {
                    turns.push((to, node, Some(next)));
                }
            }
            landing.table = table;
        }
        let given_up = self.watch_links();
        if !turns.is_empty() || !given_up.is_empty() {
            self.drafts.push((self.sky.now(), turns, given_up));
        }
    }

    /// Returns the next hops towards a station for all nodes that may have packets for it.
    fn table(&mut self, to: u32, landing: &mut Landing) -> BTreeMap<SkyNode, SkyNode> {
        let mut table = BTreeMap::new();
        let mut path = Vec::new();
        for (from, found) in &mut landing.sources {
            if self.sky.find_path(*from as usize, to as usize, &mut path).is_some() {
                *found = true;
                table.insert(SkyNode::Station(*from), SkyNode::Satellite(path[0]));
                landing.holders.extend(path.iter().map(|satellite| (*satellite, self.look)));
            }
        }
        let linger = (LINGER.as_nanos() / self.group.step.as_nanos()) as usize;
        landing.holders.retain(|_, last| self.look - *last <= linger);
        let mut holders: Vec<_> =
            landing.holders.iter().map(|(satellite, last)| (*satellite, *last)).collect();
        while let Some((satellite, last)) = holders.pop() {
            let Some(hop) = self.sky.next_hop(satellite, to as usize) else { continue };
            let next = match hop {
                Hop::Ground => SkyNode::Station(to),
                Hop::Satellite(next) => {
                    // The next node may receive these packets, so it may hold them until the same step.
                    let known = landing.holders.insert(next, last).filter(|known| *known >= last);
                    match known {
                        Some(known) => drop(landing.holders.insert(next, known)),
                        None => holders.push((next, last)),
                    }
                    SkyNode::Satellite(next)
                }
            };
            table.insert(SkyNode::Satellite(satellite), next);
        }
        table
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

    fn finish(self, never: Vec<(u32, u32)>) -> SkyPlan {
        let mut links: Vec<_> = self.links.iter().collect();
        links.sort_by_key(|(_, usage)| usage.number);
        let number = |node: SkyNode, next: SkyNode| {
            let ends = filed(node, next);
            2 * self.links[&ends].number + u32::from(ends[0] != node)
        };
        let moments = self.drafts.iter().map(|(at, turns, given_up)| {
            let turn = |&(landing, node, next): &Draft| {
                let link = next.map(|next| number(node, next));
                Turn { landing, node, link }
            };
            Moment { at: *at, turns: turns.iter().map(turn).collect(), given_up: given_up.clone() }
        });
        let moments = moments.collect();
        let satellite = |end: &SkyNode| match end {
            SkyNode::Satellite(satellite) => Some(*satellite),
            SkyNode::Station(_) => None,
        };
        let mut satellites: Vec<_> =
            links.iter().flat_map(|(ends, _)| ends.iter().filter_map(satellite)).collect();
        satellites.sort_unstable();
        satellites.dedup();
        let links = links.iter().map(|(ends, usage)| self.link(**ends, usage)).collect();
        SkyPlan { satellites, links, moments, in_flight: self.group.in_flight, never }
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
