//! Where the islands of a world end.

use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::islands::{CoastId, Island, Islands, Lane, Numbers};
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
    /// The island of this side.
    Ashore(SideId),
}

/// Side of a flow: twice the number of the flow for its sender, and one more for its receiver.
type SideId = u32;

/// Where a route to one side of a flow comes to its last links.
#[derive(Clone, Copy, Debug)]
struct Landing {
    side: SideId,
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
    /// For each side one with a smaller number on the same island, itself if there is none.
    parents: Vec<SideId>,
    landings: Vec<Landing>,
    /// The coast that each junction leads to, if there were two, as far as it is known.
    coasts: Vec<Option<CoastId>>,
    /// Packets pass one junction each, and those to senders other ones than those to receivers.
    is_divided: bool,
}

/// Finds the islands and coasts, and marks in the routes where the lanes of islands begin. There are none unless all packets go from an
/// island over junctions to an island, no flow has more to do with the network than a connection or packets without one, all islands are
/// small, and flows may get so many packets within the foresight of the junctions that it pays.
pub(crate) fn find_islands(
    (links, junctions): (&mut [Link<Ticket>], &mut [Junction]),
    routes: &mut [Step],
    flows: &[Flow],
) -> Option<Islands> {
    let lookahead = junctions.iter().map(|junction| junction.foresight).min()?;
    let fastest = junctions.iter().map(|junction| links[junction.link as usize].rate(Instant::ZERO)).max()?;
    if fastest.time_for(LEAST_PACKETS * PACKET_BYTES * flows.len() as u64) > lookahead {
        return None;
    }
    let links = &*links;
    let mut survey = Survey {
        links,
        junctions,
        users: count_users(routes, flows, (links, junctions)),
        places: vec![Place::Unused; links.len()],
        parents: (0..2 * flows.len() as SideId).collect(),
        landings: Vec::new(),
        coasts: vec![None; junctions.len()],
        is_divided: flows.iter().all(|flow| flow.application.sides_are_apart()),
    };
    for (id, flow) in (0..).zip(flows) {
        if flow.application.has_many_connections() || !flow.onward.is_empty() || flow.party.is_some() {
            return None;
        }
        survey.explore((2 * id, 2 * id + 1), routes, flow.routes[0] as usize)?;
        survey.explore((2 * id + 1, 2 * id), routes, flow.routes[1] as usize)?;
    }
    let (members, mut islands, island_of) = survey.number_islands();
    if islands.iter().any(|island| island.members.len() > MOST_FLOWS) {
        return None;
    }
    let Survey { mut landings, coasts, is_divided, .. } = survey;
    for (junction, coast) in junctions.iter_mut().zip(coasts).filter(|_| is_divided) {
        junction.coast = coast.unwrap_or_default();
    }
    let to = |coast| junctions.iter().filter(move |junction| junction.coast == coast);
    let lookaheads = (0..=CoastId::from(is_divided))
        .map(|coast| to(coast).map(|junction| junction.foresight).min())
        .collect::<Option<Vec<_>>>()?;
    landings.sort_unstable_by_key(|landing| (island_of[landing.side as usize], landing.link));
    let mut lanes: Vec<Lane> = Vec::new();
    for Landing { side, link, position } in landings {
        let island = island_of[side as usize];
        if lanes.last().is_none_or(|lane| lane.link() != link) {
            let range = &mut islands[island as usize].lanes;
            range.begin = if range.len() == 0 { lanes.len() as u32 } else { range.begin };
            lanes.push(Lane::new(island, link, position as u32));
            range.end = lanes.len() as u32;
        }
        routes[position] = Special::Lane(lanes.len() as u32 - 1).step();
    }
    Some(Islands::new((islands, lanes), &members, &lookaheads))
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
    /// Follows a route from one side to another from its beginning; nothing if it does not lead over junctions to a host.
    fn explore(&mut self, (from, to): (SideId, SideId), routes: &[Step], begin: usize) -> Option<()> {
        let links_from = |begin: usize| routes[begin..].iter().map_while(|step| behind(*step));
        self.claim(link(routes[begin])?, Place::Ashore(from))?;
        let mut position = begin + 1;
        for link in links_from(position) {
            self.claim(link, Place::Ashore(from))?;
            position += 1;
        }
        loop {
            let next = junction(routes[position])?;
            self.claim(self.junctions[next as usize].link, Place::Between)?;
            let coast = self.coasts[next as usize].get_or_insert((to % 2) as CoastId);
            self.is_divided &= u32::from(*coast) == to % 2;
            let begin = position + 1;
            position = begin + links_from(begin).count();
            let is_last = routes[position] == ARRIVED;
            self.is_divided &= is_last;
            let is_shared = |link: LinkId| !is_last || self.users[link as usize] > MOST_FLOWS as u32;
            let shared = (begin..position)
                .rev()
                .find(|place| behind(routes[*place]).is_some_and(is_shared))
                .map_or(0, |last| last + 1 - begin);
            for (place, link) in links_from(begin).enumerate() {
                self.claim(link, if place < shared { Place::Between } else { Place::Ashore(to) })?;
            }
            if is_last {
                let position = begin + shared;
                let (first, last) = (links_from(position).next()?, links_from(position).last()?);
                self.landings.push(Landing { side: to, link: first, position });
                return self.links[last as usize].is_foreseeable().then_some(());
            }
        }
    }

    /// A link belongs there; nothing if it belongs elsewhere, too.
    fn claim(&mut self, link: LinkId, place: Place) -> Option<()> {
        let current = &mut self.places[link as usize];
        match (*current, place) {
            (Place::Unused, _) => *current = place,
            (Place::Ashore(one), Place::Ashore(other)) => self.unite(one, other),
            (current, _) if current == place => {}
            _ => return None,
        }
        Some(())
    }

    /// Two sides are on the same island.
    fn unite(&mut self, one: SideId, other: SideId) {
        self.is_divided &= one % 2 == other % 2;
        let (one, other) = (self.first_of(one), self.first_of(other));
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// The side with the smallest number on the same island, as far as it is known.
    fn first_of(&mut self, mut side: SideId) -> SideId {
        while self.parents[side as usize] != side {
            let parent = self.parents[side as usize];
            self.parents[side as usize] = self.parents[parent as usize];
            side = parent;
        }
        side
    }

    /// The flows that the members are in the order of their islands, the islands, and the island of each side.
    fn number_islands(&mut self) -> (Vec<FlowId>, Vec<Island>, Vec<u32>) {
        let sides = 0..self.parents.len() as SideId;
        if !self.is_divided {
            sides.clone().step_by(2).for_each(|side| self.unite(side, side + 1));
        }
        let firsts: Vec<SideId> = sides.clone().map(|side| self.first_of(side)).collect();
        let mut sides: Vec<SideId> = sides.collect();
        let coast = |side: SideId| if self.is_divided { (side % 2) as CoastId } else { 0 };
        sides.sort_by_key(|side| (coast(*side), firsts[*side as usize]));
        let (mut members, mut islands, mut island_of) = (Vec::new(), Vec::new(), vec![0; sides.len()]);
        for together in sides.chunk_by(|one, other| firsts[*one as usize] == firsts[*other as usize]) {
            let begin = members.len() as u32;
            for side in together {
                island_of[*side as usize] = islands.len() as u32;
                if self.is_divided || side.is_multiple_of(2) {
                    members.push(side / 2);
                }
            }
            islands.push(Island::new(coast(together[0]), Numbers { begin, end: members.len() as u32 }));
        }
        (members, islands, island_of)
    }
}

#[cfg(test)]
mod tests {
    use crate::simulation::Simulation;
    use crate::witness::Silent;
    use crate::world::World;
    use bentpipe_base::{Duration, Instant, Rate};
    use bentpipe_net::Schedule;
    use bentpipe_scenario::{LinkGroup, Scenario, Topology, Traffic, builtin};

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
    fn each_host_of_a_dumbbell_is_an_island() {
        let mut scenario = dumbbell();
        let hosts = 2 * scenario.flows[0].count as usize;
        assert_eq!(islands_of(&scenario), hosts);
        // Flows that share their hosts are together, as long as they are few.
        scenario.flows[0].count *= 2;
        assert_eq!(islands_of(&scenario), hosts);
        scenario.flows[0].count *= 10;
        satellite(&mut scenario).forward.rate = Schedule::Constant(Rate::from_mbps(1000));
        assert_eq!(islands_of(&scenario), 0);
    }

    #[test]
    fn hosts_whose_applications_know_of_each_other_are_together() {
        let mut scenario = dumbbell();
        let pairs = scenario.flows[0].count as usize;
        scenario.flows[0].traffic = Traffic::File { bytes: 1_000_000 };
        assert_eq!(islands_of(&scenario), pairs);
    }

    #[test]
    fn there_are_no_two_coasts_where_data_and_acks_share_a_junction() {
        let mut scenario = dumbbell();
        let pairs = scenario.flows[0].count as usize;
        let mut back = scenario.flows[0].clone();
        (back.name, back.from, back.to) = ("back".to_owned(), back.to, back.from);
        scenario.flows.push(back);
        assert_eq!(islands_of(&scenario), pairs);
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
