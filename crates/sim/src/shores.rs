//! Where the islands of a world end.

use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::islands::{Island, Islands, Lane};
use crate::junction::Junction;
use crate::step::{ARRIVED, Special, Step, behind, junction, link};
use crate::ticket::Ticket;
use crate::world::{Flow, FlowId};

/// An island with more flows would have to search long for what happens next. What more of them share is not ashore.
const MOST_FLOWS: usize = 16;

/// With fewer packets for a flow in a turn, its memory is fetched for too little: then it is quicker to take turns at every event. Measured.
const LEAST_PACKETS: u64 = 8;

/// Bytes of a packet, as far as its number counts.
const PACKET_BYTES: u64 = 1000;

/// Whom a link belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Unused,
    /// A junction before it.
    Between,
    /// The island of this flow.
    Ashore(FlowId),
}

/// Where a route of a flow comes to its last links.
#[derive(Clone, Copy, Debug)]
struct Landing {
    flow: FlowId,
    link: LinkId,
    /// In the routes.
    position: usize,
}

/// What is known of the islands while they are looked for.
struct Survey<'a> {
    links: &'a [Link<Ticket>],
    junctions: &'a [Junction],
    /// How many flows use each link.
    users: Vec<u32>,
    places: Vec<Place>,
    /// For each flow one with a smaller number on the same island, itself if there is none.
    parents: Vec<FlowId>,
    landings: Vec<Landing>,
}

/// Finds the islands, and marks in the routes where their lanes begin. There are none unless all packets go from an island over
/// junctions to an island, no flow has more to do with the network than a connection or packets without one, all islands are small, and
/// flows may get so many packets within the foresight of the junctions that it pays.
pub(crate) fn find_islands(
    (links, junctions): (&mut [Link<Ticket>], &[Junction]),
    routes: &mut [Step],
    flows: &[Flow],
) -> Option<Islands> {
    let lookahead = junctions.iter().map(|junction| junction.foresight).min()?;
    let fastest = junctions.iter().map(|junction| links[junction.link as usize].rate(Instant::ZERO)).max()?;
    if fastest.time_for(LEAST_PACKETS * PACKET_BYTES * flows.len() as u64) > lookahead {
        return None;
    }
    let links = &*links;
    let (places, parents) = (vec![Place::Unused; links.len()], (0..flows.len() as FlowId).collect());
    let users = count_users(routes, flows, (links, junctions));
    let mut survey = Survey { links, junctions, users, places, parents, landings: Vec::new() };
    for (id, flow) in flows.iter().enumerate() {
        if flow.application.has_many_connections() || !flow.onward.is_empty() || flow.party.is_some() {
            return None;
        }
        for start in flow.routes {
            survey.explore(id as FlowId, routes, start as usize)?;
        }
    }
    let (flows, mut islands, island_of) = survey.number_islands();
    if islands.iter().any(|island| island.members.len() > MOST_FLOWS) {
        return None;
    }
    let mut landings = survey.landings;
    landings.sort_unstable_by_key(|landing| (island_of[landing.flow as usize], landing.link));
    let mut lanes: Vec<Lane> = Vec::new();
    for Landing { flow, link, position } in landings {
        let island = island_of[flow as usize];
        if lanes.last().is_none_or(|lane| lane.link() != link) {
            let range = &mut islands[island as usize].lanes;
            range.begin = if range.len() == 0 { lanes.len() as u32 } else { range.begin };
            lanes.push(Lane::new(island, link));
            range.end = lanes.len() as u32;
        }
        routes[position] = Special::Lane(lanes.len() as u32 - 1).step();
    }
    Some(Islands::new((islands, lanes), &flows, lookahead))
}

/// How many flows use each link.
fn count_users(
    routes: &[Step],
    flows: &[Flow],
    (links, junctions): (&[Link<Ticket>], &[Junction]),
) -> Vec<u32> {
    let mut users = vec![0; links.len()];
    for begin in flows.iter().flat_map(|flow| flow.routes) {
        for step in routes[begin as usize..].iter().take_while(|step| **step != ARRIVED) {
            let of_junction = || junction(*step).map(|id| junctions[id as usize].link);
            if let Some(link) = link(*step).or_else(|| behind(*step)).or_else(of_junction) {
                users[link as usize] += 1;
            }
        }
    }
    users
}

impl Survey<'_> {
    /// Follows a route of a flow from its beginning; nothing if it does not lead over junctions to a host.
    fn explore(&mut self, flow: FlowId, routes: &[Step], begin: usize) -> Option<()> {
        let links_from = |begin: usize| routes[begin..].iter().map_while(|step| behind(*step));
        self.claim(link(routes[begin])?, Place::Ashore(flow))?;
        let mut position = begin + 1;
        for link in links_from(position) {
            self.claim(link, Place::Ashore(flow))?;
            position += 1;
        }
        loop {
            let next = junction(routes[position])?;
            self.claim(self.junctions[next as usize].link, Place::Between)?;
            let begin = position + 1;
            position = begin + links_from(begin).count();
            let is_last = routes[position] == ARRIVED;
            let is_shared = |link: LinkId| !is_last || self.users[link as usize] > MOST_FLOWS as u32;
            let shared = (begin..position)
                .rev()
                .find(|place| behind(routes[*place]).is_some_and(is_shared))
                .map_or(0, |last| last + 1 - begin);
            for (place, link) in links_from(begin).enumerate() {
                self.claim(link, if place < shared { Place::Between } else { Place::Ashore(flow) })?;
            }
            if is_last {
                let position = begin + shared;
                let (first, last) = (links_from(position).next()?, links_from(position).last()?);
                self.landings.push(Landing { flow, link: first, position });
                return self.links[last as usize].is_foreseeable().then_some(());
            }
        }
    }

    /// A link belongs there; nothing if it belongs elsewhere, too.
    fn claim(&mut self, link: LinkId, place: Place) -> Option<()> {
        let current = &mut self.places[link as usize];
        match (*current, place) {
            (Place::Unused, _) => *current = place,
            (Place::Ashore(one), Place::Ashore(other)) => {
                let (one, other) = (self.first_of(one), self.first_of(other));
                self.parents[one.max(other) as usize] = one.min(other);
            }
            (current, _) if current == place => {}
            _ => return None,
        }
        Some(())
    }

    /// The flow with the smallest number on the same island, as far as it is known.
    fn first_of(&mut self, mut flow: FlowId) -> FlowId {
        while self.parents[flow as usize] != flow {
            let parent = self.parents[flow as usize];
            self.parents[flow as usize] = self.parents[parent as usize];
            flow = parent;
        }
        flow
    }

    /// The flows in the order of their islands, the islands, and the island of each flow.
    fn number_islands(&mut self) -> (Vec<FlowId>, Vec<Island>, Vec<u32>) {
        let firsts: Vec<FlowId> = (0..self.parents.len() as FlowId).map(|flow| self.first_of(flow)).collect();
        let mut flows: Vec<FlowId> = (0..firsts.len() as FlowId).collect();
        flows.sort_by_key(|flow| firsts[*flow as usize]);
        let (mut islands, mut island_of) = (Vec::new(), vec![0; flows.len()]);
        let mut begin = 0;
        for together in flows.chunk_by(|one, other| firsts[*one as usize] == firsts[*other as usize]) {
            for flow in together {
                island_of[*flow as usize] = islands.len() as u32;
            }
            let end = begin + together.len() as u32;
            islands.push(Island::new(begin, end));
            begin = end;
        }
        (flows, islands, island_of)
    }
}

#[cfg(test)]
mod tests {
    use crate::simulation::Simulation;
    use crate::witness::Silent;
    use crate::world::World;
    use bentpipe_base::{Duration, Instant, Rate};
    use bentpipe_net::Schedule;
    use bentpipe_scenario::{LinkGroup, Scenario, Topology, builtin};

    fn islands_of(scenario: &Scenario) -> usize {
        let mut topology = Topology::new(scenario).expect("a topology");
        let world = World::new(scenario, &mut topology, 1).expect("a world");
        Simulation::new(world, Instant::FAR_FUTURE, Silent).islands.len()
    }

    fn satellite(scenario: &mut Scenario) -> &mut LinkGroup {
        scenario.links.iter_mut().find(|link| link.name == "satellite").expect("it has a satellite")
    }

    fn dumbbell() -> Scenario {
        builtin("geo-dumbbell").expect("it is built in")
    }

    #[test]
    fn each_pair_of_hosts_of_a_dumbbell_is_an_island() {
        let mut scenario = dumbbell();
        let pairs = scenario.flows[0].count as usize;
        assert_eq!(islands_of(&scenario), pairs);
        // Flows that share their hosts are together, as long as they are few.
        scenario.flows[0].count *= 2;
        assert_eq!(islands_of(&scenario), pairs);
        scenario.flows[0].count *= 10;
        satellite(&mut scenario).forward.rate = Schedule::Constant(Rate::from_mbps(1000));
        assert_eq!(islands_of(&scenario), 0);
    }

    #[test]
    fn for_few_packets_in_a_round_there_is_none() {
        let mut scenario = dumbbell();
        satellite(&mut scenario).forward.delay_one_way = Schedule::Constant(Duration::from_millis(20));
        assert_eq!(islands_of(&scenario), 0);
    }

    #[test]
    fn without_a_junction_or_with_clients_there_is_none() {
        assert_eq!(islands_of(&builtin("geo-single").expect("it is built in")), 0);
        assert_eq!(islands_of(&builtin("geo-web").expect("it is built in")), 0);
    }
}
