//! Partitions a world into logical processes and shared links.

use bentpipe_base::{Components, Duration, Instant};
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::engine::message::{Crossing, Entry, Onward};
use crate::engine::shared_link::SharedLink;
use crate::engine::windows::{Partition, Process};
use crate::ids::FlowId;
use crate::network::hop::{ARRIVED, Hop, Special};
use crate::observe::monitor::Silent;
use crate::simulation::Simulation;
use crate::world::{Flow, World};

/// With fewer packets for a flow within the lookahead, windows cost more than they save.
const LEAST_PACKETS: u64 = 1;
/// Bytes of a packet, as far as its number counts.
const PACKET_BYTES: u64 = 1000;
/// So many lookaheads are tried at most.
const MOST_TRIES: usize = 4;
/// Hosts' sides that are united in a process at most, as far as they need not be. The memory of so many fits into the caches close to a processor.
const MOST_UNITED: usize = 32;
/// A world has at least this number of processes, if it has as many hosts.
const LEAST_PROCESSES: usize = 8;

/// The side of a flow: twice the number of the flow for its sender, and one more for its receiver.
type Side = u32;

/// Which links are shared, and which others belong together with which hosts.
struct Plan {
    lookahead: Duration,
    /// By link.
    is_shared: Vec<bool>,
    /// By side: the links from there to the other side.
    ways: Vec<Vec<LinkId>>,
    /// The process of each side, and of each link that is not shared and that a flow uses.
    process_of_side: Vec<u32>,
    process_of_link: Vec<Option<u32>>,
    processes: u32,
}

/// What a process is made of.
#[derive(Default)]
struct Part {
    links: Vec<LinkId>,
    routes: Vec<Hop>,
    flows: Vec<FlowId>,
    /// The shared link behind which each port is.
    ports: Vec<u32>,
    /// Where routes begin behind ports, and which port that is.
    entries: Vec<(u32, u32)>,
}

impl Part {
    /// Number of the port behind a shared link.
    fn port(&mut self, shared_link: u32) -> u32 {
        let known = self.ports.iter().position(|port| *port == shared_link);
        known.unwrap_or_else(|| {
            self.ports.push(shared_link);
            self.ports.len() - 1
        }) as u32
    }
}

impl Plan {
    /// The plan with the longest lookahead under which no process has more than half of all hosts' sides. There is none unless all flows are
    /// simple: over one connection or without one, between hosts that meet only links on the way.
    fn new(world: &World) -> Option<Self> {
        let is_simple = |flow: &Flow| {
            !flow.application.has_many_connections() && flow.onward.is_empty() && flow.session.is_none()
        };
        if !world.core.meets_only_links()
            || world.core.routing.is_some()
            || !world.flows.iter().all(is_simple)
        {
            return None;
        }
        let way = |flow: &Flow, side: usize| world.links_from(flow.routes[side], flow.nodes[side]);
        let ways: Vec<_> = world.flows.iter().flat_map(|flow| [way(flow, 0), way(flow, 1)]).collect();
        let used = ways.iter().flatten().map(|link| &world.links[*link as usize]);
        let mut lookaheads: Vec<_> = used.filter(|link| link.is_foreseeable()).map(Link::lookahead).collect();
        lookaheads.sort_unstable_by_key(|lookahead| std::cmp::Reverse(*lookahead));
        lookaheads.dedup();
        lookaheads.retain(|lookahead| !lookahead.is_zero());
        lookaheads.truncate(MOST_TRIES);
        lookaheads.into_iter().find_map(|lookahead| Self::with_lookahead(world, &ways, lookahead))
    }

    fn with_lookahead(world: &World, ways: &[Vec<LinkId>], lookahead: Duration) -> Option<Self> {
        let is_shared = |link: &Link<_>| link.is_foreseeable() && link.lookahead() >= lookahead;
        let is_shared: Vec<bool> = world.links.iter().map(is_shared).collect();
        let first_side = world.links.len() as u32;
        let mut together = Components::new(first_side + ways.len() as Side);
        for (side, way) in (0..).zip(ways) {
            let mut before = Some(first_side + side);
            for link in way {
                let next = (!is_shared[*link as usize]).then_some(*link);
                if let (Some(before), Some(next)) = (before, next) {
                    together.unite(before, next);
                }
                before = next;
            }
            if let Some(before) = before {
                together.unite(before, first_side + (side ^ 1));
            }
        }
        let is_whole = |flow: &Flow| !flow.application.sides_are_apart();
        for (flow, _) in (0..).zip(&world.flows).filter(|(_, flow)| is_whole(flow)) {
            together.unite(first_side + 2 * flow, first_side + 2 * flow + 1);
        }
        let firsts = together.firsts();
        let mut numbers = vec![None; firsts.len()];
        let mut sizes: Vec<usize> = Vec::new();
        let united = (ways.len() / LEAST_PROCESSES).min(MOST_UNITED);
        let firsts_of_sides = &firsts[first_side as usize..];
        let mut together = vec![0; firsts.len()];
        firsts_of_sides.iter().for_each(|first| together[*first as usize] += 1);
        let process_of_side = firsts_of_sides.iter().map(|first| {
            *numbers[*first as usize].get_or_insert_with(|| {
                if sizes.last().is_none_or(|size| *size >= united) {
                    sizes.push(0);
                }
                let number = sizes.len() - 1;
                sizes[number] += together[*first as usize];
                number as u32
            })
        });
        let process_of_side: Vec<u32> = process_of_side.collect();
        let of_link = |link: usize| numbers[firsts[link] as usize].filter(|_| !is_shared[link]);
        let process_of_link: Vec<_> = (0..world.links.len()).map(of_link).collect();
        // Packets pass only the processes of their own sender and receiver.
        let is_own = |side: usize, link: &LinkId| {
            let process = process_of_link[*link as usize];
            let of_sides = [process_of_side[side], process_of_side[side ^ 1]];
            is_shared[*link as usize] || process.is_some_and(|process| of_sides.contains(&process))
        };
        let is_known = ways.iter().enumerate().all(|(side, way)| way.iter().all(|link| is_own(side, link)));
        let is_divided = sizes.iter().max().is_some_and(|most| 2 * most <= ways.len());
        let processes = sizes.len() as u32;
        let ways = ways.to_vec();
        (is_known && is_divided).then_some(Self {
            lookahead,
            is_shared,
            ways,
            process_of_side,
            process_of_link,
            processes,
        })
    }

    /// True if flows may get enough packets within the lookahead of the shared links.
    fn pays(&self, world: &mut World) -> bool {
        let shared = world.links.iter_mut().zip(&self.is_shared).filter(|(_, is_shared)| **is_shared);
        let fastest = shared.map(|(link, _)| link.rate(Instant::ZERO)).max();
        let packets = LEAST_PACKETS * PACKET_BYTES * world.flows.len() as u64;
        fastest.is_some_and(|rate| rate.time_for(packets) <= self.lookahead)
    }
}

/// Takes a world apart into processes.
struct Builder<'a> {
    plan: &'a Plan,
    parts: Vec<Part>,
    /// By link: its number among the links of its process, or among the shared links.
    local_link: Vec<u32>,
    /// By side: the number of its flow in its process.
    local_flow: Vec<FlowId>,
    crossings: Vec<Crossing>,
}

impl<'a> Builder<'a> {
    /// Divides links and flows.
    fn new(plan: &'a Plan) -> Self {
        let mut parts: Vec<Part> = (0..plan.processes).map(|_| Part::default()).collect();
        let (mut local_link, mut shared) = (vec![0; plan.is_shared.len()], 0);
        for (link, local) in (0..).zip(&mut local_link) {
            if plan.is_shared[link as usize] {
                *local = shared;
                shared += 1;
            } else if let Some(process) = plan.process_of_link[link as usize] {
                let links = &mut parts[process as usize].links;
                *local = links.len() as u32;
                links.push(link);
            }
        }
        let mut local_flow = Vec::new();
        for (side, process) in (0..).zip(&plan.process_of_side) {
            let flows = &mut parts[*process as usize].flows;
            if flows.last() != Some(&(side / 2)) {
                flows.push(side / 2);
            }
            local_flow.push(flows.len() as FlowId - 1);
        }
        Self { plan, parts, local_link, local_flow, crossings: Vec::new() }
    }

    /// Adds the route from one side of a flow to the other; returns where it begins.
    fn add_route(&mut self, side: Side) -> u32 {
        let plan = self.plan;
        let mut process = plan.process_of_side[side as usize];
        let begin = self.parts[process as usize].routes.len() as u32;
        // The crossing that the packets have taken, until a process takes them in.
        let mut over: Option<u32> = None;
        for link in &plan.ways[side as usize] {
            let local = self.local_link[*link as usize];
            if let Some(next) = plan.process_of_link[*link as usize] {
                if let Some(crossing) = over.take() {
                    process = next;
                    self.enter(crossing, process, side ^ 1);
                }
                self.parts[process as usize].routes.push(local);
                continue;
            }
            let crossing = self.crossings.len() as u32;
            match over.replace(crossing) {
                Some(before) => self.crossings[before as usize].onward = Onward::Crossing(crossing),
                None => self.parts[process as usize].routes.push(Special::Exit(crossing).hop()),
            }
            let onward = Onward::Crossing(crossing);
            self.crossings.push(Crossing { shared_link: local, flow: side / 2, onward });
        }
        if let Some(crossing) = over {
            process = plan.process_of_side[(side ^ 1) as usize];
            self.enter(crossing, process, side ^ 1);
        }
        self.parts[process as usize].routes.push(ARRIVED);
        begin
    }

    /// Packets to a side of a flow come to a process behind a crossing, where the next hop of the route will stand.
    fn enter(&mut self, crossing: u32, process: u32, to: Side) {
        let part = &mut self.parts[process as usize];
        let (port, position) =
            (part.port(self.crossings[crossing as usize].shared_link), part.routes.len() as u32);
        part.entries.push((position, port));
        // Sender and receiver are in the process, or the one that the packets go to.
        let side = if self.plan.process_of_side[to as usize] == process { to } else { to ^ 1 };
        let entry = Entry { port, position, flow: self.local_flow[side as usize], side: to % 2 };
        self.crossings[crossing as usize].onward = Onward::Process(process, entry);
    }
}

/// Partitions a world that will run until `until`, if it can be divided and windows pay. Links that no flow uses stay behind.
pub(crate) fn partition(world: &mut World, until: Instant) -> Option<Partition> {
    let plan = Plan::new(world)?;
    if !plan.pays(world) {
        return None;
    }
    let mut builder = Builder::new(&plan);
    let mut flows: Vec<[Option<Flow>; 2]> = Vec::new();
    for (number, mut flow) in (0..).zip(std::mem::take(&mut world.flows)) {
        flow.routes = [builder.add_route(2 * number), builder.add_route(2 * number + 1)];
        let [sender, receiver] = [0, 1].map(|side| plan.process_of_side[2 * number as usize + side]);
        let other = (sender != receiver).then(|| flow.split_off_receiver());
        flows.push([Some(flow), other]);
    }
    let Builder { parts, crossings, .. } = builder;
    let mut links: Vec<_> = std::mem::take(&mut world.links).into_iter().map(Some).collect();
    let mut take = |id: LinkId| links[id as usize].take().expect("each link is in one place");
    let mut shared_links = Vec::new();
    for (id, _) in (0..).zip(&plan.is_shared).filter(|(_, is_shared)| **is_shared) {
        let (number, salt) = (shared_links.len() as u32, world.salts[id as usize]);
        shared_links.push(SharedLink::new(number, (id, take(id)), salt, plan.processes as usize));
    }
    let mut processes = Vec::new();
    for (number, part) in (0..).zip(parts) {
        let Part { links: ids, routes, flows: numbers, ports, entries } = part;
        let own = World {
            links: ids.iter().map(|id| take(*id)).collect(),
            salts: ids.iter().map(|id| world.salts[*id as usize]).collect(),
            routes,
            ports: ports.iter().map(|port| world.salts[shared_links[*port as usize].id as usize]).collect(),
            entries,
            flows: numbers
                .iter()
                .filter_map(|flow| flows[*flow as usize].iter_mut().find_map(Option::take))
                .collect(),
            ..World::default()
        };
        let simulation = Simulation::new(own, until, Silent, true);
        processes.push(Process::new(number, (simulation, ports), (ids, numbers)));
    }
    Some(Partition { processes, shared_links, crossings, lookahead: plan.lookahead, until, unused: links })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Rate;
    use bentpipe_net::Schedule;
    use bentpipe_scenario::{LinkGroup, Scenario, Topology, Traffic, builtin};

    fn processes_of(scenario: &Scenario) -> usize {
        let mut topology = Topology::new(scenario).expect("a topology");
        let mut world = World::new(scenario, &mut topology, 1).expect("a world");
        partition(&mut world, Instant::FAR_FUTURE).map_or(0, |partition| partition.processes.len())
    }

    fn satellite(scenario: &mut Scenario) -> &mut LinkGroup {
        scenario.links.iter_mut().find(|link| link.name == "satellite").expect("it has a satellite")
    }

    fn dumbbell() -> Scenario {
        builtin("geo-dumbbell").expect("it is built in")
    }

    #[test]
    fn each_host_of_a_small_dumbbell_is_a_process() {
        let mut scenario = dumbbell();
        scenario.flows[0].count = 3;
        assert_eq!(processes_of(&scenario), 6);
        // A lookahead that differs by direction is that of the shorter.
        satellite(&mut scenario).reverse.delay_one_way = Schedule::Constant(Duration::from_millis(200));
        assert_eq!(processes_of(&scenario), 6);
        scenario.flows[0].traffic = Traffic::File { bytes: 1_000_000 };
        assert_eq!(processes_of(&scenario), 3, "hosts whose applications know of each other are together");
    }

    #[test]
    fn hosts_of_a_large_dumbbell_are_united() {
        let mut scenario = dumbbell();
        assert_eq!(processes_of(&scenario), LEAST_PROCESSES);
        // Flows that share their hosts are together: 200 flows on 20 hosts on either side.
        scenario.flows[0].count = 200;
        assert_eq!(processes_of(&scenario), 10);
    }

    #[test]
    fn a_link_that_changes_packets_is_not_shared() {
        let mut scenario = dumbbell();
        satellite(&mut scenario).forward.duplicate_probability = 0.1;
        assert_eq!(processes_of(&scenario), 0);
    }

    #[test]
    fn for_few_packets_in_a_window_there_is_none() {
        let mut scenario = dumbbell();
        satellite(&mut scenario).forward.rate = Schedule::Constant(Rate::from_bps(100_000));
        satellite(&mut scenario).reverse.rate = Schedule::Constant(Rate::from_bps(100_000));
        assert_eq!(processes_of(&scenario), 0);
    }

    #[test]
    fn with_clients_or_routes_that_change_there_is_none() {
        assert_eq!(processes_of(&builtin("geo-web").expect("it is built in")), 0);
        assert_eq!(processes_of(&builtin("leo-starlink").expect("it is built in")), 0);
    }
}
