//! Partitions a world into logical processes and phase groups.

use bentpipe_base::{Components, Instant};
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::app::flow::Flow;
use crate::host::proxy::Leg;
use crate::ids::{FlowId, GroupId};
use crate::network::hop::{ARRIVED, Hop, Special, chained, link, shared_link};
use crate::packet::handle::PacketHandle;
use crate::parallel::channel::Channel;
use crate::parallel::process::{Numbers, Process, Processes};
use crate::parallel::shared_link::{SharedLink, find_shared_links};
use crate::tuning::{LEAST_PACKETS, MOST_FLOWS};

/// Bytes of a packet in estimates of packet numbers.
const PACKET_BYTES: u64 = 1000;

/// Owner of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Unused,
    /// The shared link before it, or it is one.
    Shared,
    /// The process of this side.
    Process(SideId),
}

/// Side of a flow: twice the number of the flow for its sender, and one more for its receiver.
type SideId = u32;

/// First link of its process on a route to one side of a flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    side: SideId,
    link: LinkId,
    /// In the routes.
    position: usize,
}

/// State of the search for processes.
struct Survey<'a> {
    links: &'a [Link<PacketHandle>],
    shared_links: &'a [SharedLink],
    /// Number of flows that use each link.
    users: Vec<u32>,
    places: Vec<Place>,
    /// The sides in the same process.
    together: Components,
    entries: Vec<Entry>,
    /// Phase group behind each shared link, assuming two groups, as far as it is known.
    groups: Vec<Option<GroupId>>,
    /// Packets pass one shared link each, and those to senders other ones than those to receivers.
    is_divided: bool,
}

/// Marks in the routes where packets need no event for a hop, and finds the processes of the world with the shared links between them, if it
/// has some.
pub(crate) fn partition(
    links: &mut [Link<PacketHandle>],
    routes: &mut [Hop],
    flows: &[Flow],
    legs: &[Leg],
) -> Processes {
    let mut shared_links = find_shared_links(links, routes);
    let processes =
        if legs.is_empty() { find_processes((links, &mut shared_links), routes, flows) } else { None };
    if let Some(processes) = processes {
        return processes.between(shared_links);
    }
    // Packets arrive at these links by events.
    for hop in routes {
        *hop = shared_link(*hop).map_or(*hop, |id| shared_links[id as usize].link);
    }
    Processes::default()
}

/// Finds the processes and phase groups, and marks in the routes where the channels of processes begin.
///
/// A world has processes only if four conditions hold. All packets go from a process over shared links to a process. No flow has more
/// than a connection, or packets without one. All processes are small. Flows may get enough packets within the lookahead of the shared
/// links that windows pay.
fn find_processes(
    (links, shared_links): (&mut [Link<PacketHandle>], &mut [SharedLink]),
    routes: &mut [Hop],
    flows: &[Flow],
) -> Option<Processes> {
    let lookahead = shared_links.iter().map(|shared_link| shared_link.lookahead).min()?;
    let fastest =
        shared_links.iter().map(|shared_link| links[shared_link.link as usize].rate(Instant::ZERO)).max()?;
    if fastest.time_for(LEAST_PACKETS * PACKET_BYTES * flows.len() as u64) > lookahead {
        return None;
    }
    let links = &*links;
    let mut survey = Survey {
        links,
        shared_links,
        users: count_users(routes, flows, (links, shared_links)),
        places: vec![Place::Unused; links.len()],
        together: Components::new(2 * flows.len() as SideId),
        entries: Vec::new(),
        groups: vec![None; shared_links.len()],
        is_divided: flows.iter().all(|flow| flow.application.sides_are_apart()),
    };
    for (id, flow) in (0..).zip(flows) {
        if flow.application.has_many_connections() || flow.session.is_some() {
            return None;
        }
        survey.explore((2 * id, 2 * id + 1), routes, flow.routes[0] as usize)?;
        survey.explore((2 * id + 1, 2 * id), routes, flow.routes[1] as usize)?;
    }
    let (members, mut processes, process_of) = survey.number_processes(flows.len() as FlowId);
    if processes.iter().any(|process| process.members.len() > MOST_FLOWS) {
        return None;
    }
    let Survey { mut entries, groups, is_divided, .. } = survey;
    for (shared_link, group) in shared_links.iter_mut().zip(groups).filter(|_| is_divided) {
        shared_link.group = group.unwrap_or_default();
    }
    let to = |group| shared_links.iter().filter(move |shared_link| shared_link.group == group);
    let lookaheads = (0..=GroupId::from(is_divided))
        .map(|group| to(group).map(|shared_link| shared_link.lookahead).min())
        .collect::<Option<Vec<_>>>()?;
    entries.sort_unstable_by_key(|entry| (process_of[entry.side as usize], entry.link));
    let mut channels: Vec<Channel> = Vec::new();
    for Entry { side, link, position } in entries {
        let process = process_of[side as usize];
        if channels.last().is_none_or(|channel| channel.link != link) {
            let range = &mut processes[process as usize].channels;
            range.begin = if range.len() == 0 { channels.len() as u32 } else { range.begin };
            channels.push(Channel::new(process, link, position as u32));
            range.end = channels.len() as u32;
        }
        routes[position] = Special::Channel(channels.len() as u32 - 1).hop();
    }
    Some(Processes::new((processes, channels), &members, &lookaheads))
}

/// Counts the flows that use each link.
fn count_users(
    routes: &[Hop],
    flows: &[Flow],
    (links, shared_links): (&[Link<PacketHandle>], &[SharedLink]),
) -> Vec<u32> {
    let mut users = vec![0; links.len()];
    for begin in flows.iter().flat_map(|flow| flow.routes) {
        for hop in routes[begin as usize..].iter().take_while(|hop| **hop != ARRIVED) {
            let of_shared_link = || shared_link(*hop).map(|id| shared_links[id as usize].link);
            if let Some(link) = link(*hop).or_else(|| chained(*hop)).or_else(of_shared_link) {
                users[link as usize] += 1;
            }
        }
    }
    users
}

impl Survey<'_> {
    /// Follows a route from one side to another from its beginning; nothing if it does not lead over shared links to a host.
    fn explore(&mut self, (from, to): (SideId, SideId), routes: &[Hop], begin: usize) -> Option<()> {
        let links_from = |begin: usize| routes[begin..].iter().map_while(|hop| chained(*hop));
        self.claim(link(routes[begin])?, Place::Process(from))?;
        let mut position = begin + 1;
        for link in links_from(position) {
            self.claim(link, Place::Process(from))?;
            position += 1;
        }
        loop {
            let next = shared_link(routes[position])?;
            self.claim(self.shared_links[next as usize].link, Place::Shared)?;
            let group = self.groups[next as usize].get_or_insert((to % 2) as GroupId);
            self.is_divided &= u32::from(*group) == to % 2;
            let begin = position + 1;
            position = begin + links_from(begin).count();
            let is_last = routes[position] == ARRIVED;
            self.is_divided &= is_last;
            let is_shared = |link: LinkId| !is_last || self.users[link as usize] > MOST_FLOWS as u32;
            let shared = (begin..position)
                .rev()
                .find(|place| chained(routes[*place]).is_some_and(is_shared))
                .map_or(0, |last| last + 1 - begin);
            for (place, link) in links_from(begin).enumerate() {
                self.claim(link, if place < shared { Place::Shared } else { Place::Process(to) })?;
            }
            if is_last {
                let position = begin + shared;
                let (first, last) = (links_from(position).next()?, links_from(position).last()?);
                self.entries.push(Entry { side: to, link: first, position });
                return self.links[last as usize].is_foreseeable().then_some(());
            }
        }
    }

    /// A link belongs there; nothing if it belongs elsewhere, too.
    fn claim(&mut self, link: LinkId, place: Place) -> Option<()> {
        let current = &mut self.places[link as usize];
        match (*current, place) {
            (Place::Unused, _) => *current = place,
            (Place::Process(one), Place::Process(other)) => self.unite(one, other),
            (current, _) if current == place => {}
            _ => return None,
        }
        Some(())
    }

    /// Two sides are in the same process.
    fn unite(&mut self, one: SideId, other: SideId) {
        self.is_divided &= one % 2 == other % 2;
        self.together.unite(one, other);
    }

    /// The flows that the members are in the order of their processes, the processes, and the process of each side.
    fn number_processes(&mut self, flows: FlowId) -> (Vec<FlowId>, Vec<Process>, Vec<u32>) {
        let mut sides: Vec<SideId> = (0..2 * flows).collect();
        if !self.is_divided {
            (0..flows).for_each(|flow| self.unite(2 * flow, 2 * flow + 1));
        }
        let firsts = self.together.firsts();
        let group = |side: SideId| if self.is_divided { (side % 2) as GroupId } else { 0 };
        sides.sort_by_key(|side| (group(*side), firsts[*side as usize]));
        let (mut members, mut processes, mut process_of) = (Vec::new(), Vec::new(), vec![0; sides.len()]);
        for together in sides.chunk_by(|one, other| firsts[*one as usize] == firsts[*other as usize]) {
            let begin = members.len() as u32;
            for side in together {
                process_of[*side as usize] = processes.len() as u32;
                if self.is_divided || side.is_multiple_of(2) {
                    members.push(side / 2);
                }
            }
            processes.push(Process::new(group(together[0]), Numbers { begin, end: members.len() as u32 }));
        }
        (members, processes, process_of)
    }
}

#[cfg(test)]
mod tests {
    use crate::observe::monitor::Silent;
    use crate::options::RunOptions;
    use crate::simulation::Simulation;
    use crate::world::World;
    use bentpipe_base::{Duration, Instant, Rate};
    use bentpipe_net::Schedule;
    use bentpipe_scenario::{LinkGroup, Scenario, Topology, Traffic, builtin};

    fn processes_of(scenario: &Scenario) -> usize {
        let mut topology = Topology::new(scenario).expect("a topology");
        let world = World::new(scenario, &mut topology, 1).expect("a world");
        Simulation::new(world, Instant::FAR_FUTURE, Silent, &RunOptions::default()).processes.len()
    }

    fn satellite(scenario: &mut Scenario) -> &mut LinkGroup {
        scenario.links.iter_mut().find(|link| link.name == "satellite").expect("it has a satellite")
    }

    fn dumbbell() -> Scenario {
        builtin("geo-dumbbell").expect("it is built in")
    }

    #[test]
    fn each_host_of_a_dumbbell_is_a_process() {
        let mut scenario = dumbbell();
        let hosts = 2 * scenario.flows[0].count as usize;
        assert_eq!(processes_of(&scenario), hosts);
        // Flows that share their hosts are one process if there are few of them.
        scenario.flows[0].count *= 2;
        assert_eq!(processes_of(&scenario), hosts);
        scenario.flows[0].count *= 100;
        satellite(&mut scenario).forward.rate = Schedule::Constant(Rate::from_mbps(1000));
        assert_eq!(processes_of(&scenario), 0);
    }

    /// Both sides of a flow are in one share. Shares have about equal work; the first share has the link of the data.
    #[test]
    fn a_world_is_divided_into_shares_by_flows() {
        let shares = |scenario: &Scenario, most| {
            let mut topology = Topology::new(scenario).expect("a topology");
            let world = World::new(scenario, &mut topology, 1).expect("a world");
            let until = Instant::ZERO + scenario.duration;
            let mut simulation = Simulation::new(world, until, Silent, &RunOptions::default());
            (simulation.processes.divide(most), simulation.processes.shares_of_flows())
        };
        let mut scenario = dumbbell();
        let three: Vec<u32> = [[0; 6].as_slice(), &[1; 7], &[2; 7]].concat();
        assert_eq!(shares(&scenario, 3), (3, three));
        assert_eq!(shares(&scenario, 100).0, scenario.flows[0].count);
        // The flows of a host stay together.
        scenario.flows[0].count *= 2;
        let (count, of_flows) = shares(&scenario, 2);
        let (first, second) = of_flows.split_at(of_flows.len() / 2);
        assert_eq!((count, first), (2, second));
        assert_eq!(shares(&builtin("geo-single").expect("it is built in"), 2), (1, Vec::new()));
    }

    #[test]
    fn hosts_whose_applications_know_of_each_other_are_together() {
        let mut scenario = dumbbell();
        let pairs = scenario.flows[0].count as usize;
        scenario.flows[0].traffic = Traffic::File { bytes: 1_000_000 };
        assert_eq!(processes_of(&scenario), pairs);
    }

    #[test]
    fn there_are_no_two_phase_groups_where_data_and_acks_share_a_shared_link() {
        let mut scenario = dumbbell();
        let pairs = scenario.flows[0].count as usize;
        let mut back = scenario.flows[0].clone();
        (back.name, back.from, back.to) = ("back".to_owned(), back.to, back.from);
        scenario.flows.push(back);
        assert_eq!(processes_of(&scenario), pairs);
    }

    #[test]
    fn for_few_packets_in_a_window_there_is_none() {
        let mut scenario = dumbbell();
        satellite(&mut scenario).forward.delay_one_way = Schedule::Constant(Duration::from_millis(1));
        assert_eq!(processes_of(&scenario), 0);
    }

    #[test]
    fn without_a_shared_link_or_with_clients_there_is_none() {
        assert_eq!(processes_of(&builtin("geo-single").expect("it is built in")), 0);
        assert_eq!(processes_of(&builtin("geo-web").expect("it is built in")), 0);
    }
}
