//! Nodes and links of a scenario, and the shortest routes between them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_mac::Access;
use bentpipe_net::{LinkConfig, Quantity, Schedule};

use bentpipe_orbit::OrbitError;

use crate::members::{LinkId, Members, Name, NodeId};
use crate::model::{LinkGroup, NodeGroup, NodeKind, Scenario};
use crate::sky::{ConstellationGroup, Crossing, Entry, Landings, SkyNode, SkyPlan, Way, shared_plan};

/// Reason why a scenario has no graph.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TopologyError {
    /// A link or flow group names a node group that does not exist.
    #[error("{user}: there is no node group \"{name}\"")]
    UnknownNode {
        /// `link` or `flow`, with its name.
        user: String,
        /// Name of the missing group.
        name: String,
    },
    /// Two groups share a name, or a group is empty.
    #[error("{0}")]
    Unnameable(String),
    /// A constellation's orbits are invalid, or end before the scenario.
    #[error("constellation.{constellation}: {error}")]
    Orbit {
        /// Name of the constellation.
        constellation: String,
        /// Error of the orbits.
        error: OrbitError,
    },
    /// Two nodes that never have a path through the constellation.
    #[error(
        "constellation.{constellation}: found no path from {from} to {to} at any time, accepted: an elevation-mask, orbits and places that give one"
    )]
    NeverJoined {
        /// Name of the constellation.
        constellation: String,
        /// Node at which packets enter.
        from: String,
        /// Nearest ground station at which packets leave, or their satellite.
        to: String,
    },
    /// The two node groups of a link group cannot be paired.
    #[error("link.{link}: {from} nodes cannot be joined with {to}; one of the two must be 1, or both equal")]
    Unpairable {
        /// Name of the link group.
        link: String,
        /// Number of nodes at the near end.
        from: u32,
        /// Number of nodes at the far end.
        to: u32,
    },
}

/// Graph of a world.
///
/// Worlds may have millions of nodes and links that differ only in number. No per-node or per-link data exists besides the graph.
#[derive(Debug)]
pub struct Topology<'a> {
    /// Nodes, in the order of the scenario.
    nodes: Vec<Members<'a, NodeGroup>>,
    /// Duplex links, in the order of the scenario.
    links: Vec<Members<'a, LinkGroup>>,
    /// Names of the satellites, which follow all other nodes.
    satellites: Vec<String>,
    /// Duplex links of the constellation, which follow all others.
    sky_links: Vec<SkyEdge<'a>>,
    /// Nodes and links for the route search.
    pub graph: Arc<Graph>,
    /// Plan of the constellation, if there is one.
    pub sky: Option<Arc<SkyPlan>>,
    trees: BTreeMap<NodeId, Tree>,
}

/// A node of the ground or a satellite.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Name of the node.
    pub name: Name<'a>,
    /// Kind of the node.
    pub kind: &'a NodeKind,
}

/// A duplex link of a constellation.
#[derive(Debug)]
struct SkyEdge<'a> {
    name: String,
    group: &'a str,
    configs: [LinkConfig; 2],
}

/// Graph for the route search.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Near and far end of each duplex link.
    ends: Vec<[NodeId; 2]>,
    /// Typical one-way delays, forward and reverse, of a group of links that begins at this duplex link. Constellation links are
    /// left out.
    delays: Vec<(u32, [Duration; 2])>,
    /// Link directions, sorted by the node that they lead to.
    into: Vec<LinkId>,
    /// End of each node's range in `into`.
    into_ends: Vec<u32>,
    /// True for nodes that forward packets.
    forwards: Vec<bool>,
    /// Ends of paths through the constellation: ground stations in the order of the nodes, then satellites that end connections. A
    /// constellation connects all of them.
    pub sky_ends: Vec<NodeId>,
    /// Ways into the constellation of nodes that may choose between several next hops, in the order of the ends.
    choices: BTreeMap<NodeId, Vec<Way>>,
}

/// Next hops of all nodes on their shortest routes to one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// Next hop of each node; [`NOWHERE`] at the root and without a path, [`THROUGH_SKY`] where the plan of the constellation has it.
    pub next_hops: Vec<LinkId>,
    /// Ends of the constellation at which packets leave it.
    pub landings: Landings,
}

/// A link direction in the route search.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Node where the link direction begins.
    pub from: NodeId,
    /// Node where the link direction ends.
    pub to: NodeId,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Edge<'a> {
    /// Name of the link, the same for both directions.
    pub name: Name<'a>,
    /// Group of the link.
    pub group: &'a str,
    /// Direction of the link: `forward` or `reverse`.
    pub direction: &'static str,
    /// Configuration of the direction.
    pub config: &'a LinkConfig,
    /// Access scheme if the group's members share a channel. `config` then describes the channel and each member's queue.
    pub medium: Option<&'a Access>,
}

/// Next hop of a node without a path.
pub const NOWHERE: LinkId = LinkId::MAX;
/// Next hop of a node that the plan of the constellation determines: up from a ground station, or towards one of several.
pub const THROUGH_SKY: LinkId = LinkId::MAX - 1;

/// Names of the two directions, indexed by the last bit of the link number.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// Returns the initial value of a quantity, as its typical value.
pub fn initial<T: Quantity>(schedule: &Schedule<T>) -> u64 {
    match schedule {
        Schedule::Constant(value) => value.raw(),
        Schedule::Table { points, .. } => points.first().map_or(0, |(_, value)| value.raw()),
        Schedule::Sine { mean, .. } => mean.raw(),
    }
}

impl<'a> Topology<'a> {
    /// Makes the graph of a scenario.
    ///
    /// # Errors
    /// [`TopologyError`] for scenarios not read from a file; files are checked earlier.
    pub fn new(scenario: &'a Scenario) -> Result<Self, TopologyError> {
        let mut topology = Self {
            nodes: Vec::new(),
            links: Vec::new(),
            satellites: Vec::new(),
            sky_links: Vec::new(),
            graph: Arc::default(),
            sky: None,
            trees: BTreeMap::new(),
        };
        let mut graph = Graph::default();
        for group in &scenario.nodes {
            let (first, count) = (graph.forwards.len() as NodeId, group.count);
            let unnameable = |what: &str| TopologyError::Unnameable(format!("node.{}: {what}", group.name));
            if count == 0 {
                return Err(unnameable("a group of no nodes"));
            }
            if topology.nodes.iter().any(|other| other.group.name == group.name) {
                return Err(unnameable("two groups have this name"));
            }
            topology.nodes.push(Members { first, count, group });
            graph.forwards.resize((first + count) as usize, group.kind.forwards());
        }
        let of_kind = |wanted: fn(&NodeKind) -> bool| {
            topology
                .nodes
                .iter()
                .filter(move |members| wanted(&members.group.kind))
                .map(|members| members.first)
        };
        graph.sky_ends.extend(of_kind(|kind| matches!(kind, NodeKind::GroundStation(_))));
        graph.sky_ends.extend(of_kind(|kind| matches!(kind, NodeKind::Satellite(_))));
        for group in &scenario.links {
            topology.add_links(&mut graph, group)?;
        }
        graph.collect_into();
        graph.find_choices();
        topology.graph = Arc::new(graph);
        for group in &scenario.constellations {
            topology.add_sky(scenario, group)?;
        }
        Ok(topology)
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.graph.forwards.len()
    }

    /// Returns the number of link directions.
    pub fn link_count(&self) -> usize {
        2 * self.graph.ends.len()
    }

    /// Returns the number of link directions on the ground; those of the constellation follow them.
    pub fn ground_link_count(&self) -> usize {
        self.link_count() - 2 * self.sky_links.len()
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> Node<'_> {
        match Members::find(&self.nodes, id) {
            Some((Members { count, group, .. }, index)) => {
                Node { name: Name::of_member(&group.name, index, *count), kind: &group.kind }
            }
            None => {
                let satellite = id as usize + self.satellites.len() - self.node_count();
                Node { name: Name::alone(&self.satellites[satellite]), kind: &NodeKind::Router }
            }
        }
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> {
        (0..self.node_count()).map(|id| self.node(id as NodeId))
    }

    /// Returns a link direction.
    pub fn link(&self, id: LinkId) -> Edge<'_> {
        let side = id as usize % 2;
        let direction = DIRECTIONS[side];
        match Members::find(&self.links, id / 2) {
            Some((Members { count, group, .. }, index)) => Edge {
                name: Name::of_member(&group.name, index, *count),
                group: &group.name,
                direction,
                config: [&group.forward, &group.reverse][side],
                medium: group.radio[side].medium.as_ref(),
            },
            None => {
                let SkyEdge { name, group, configs } =
                    &self.sky_links[(id as usize - self.ground_link_count()) / 2];
                let (name, config) = (Name::alone(name), &configs[side]);
                Edge { name, group, direction, config, medium: None }
            }
        }
    }

    /// Returns all link directions.
    pub fn links(&self) -> impl ExactSizeIterator<Item = Edge<'_>> {
        (0..self.link_count()).map(|id| self.link(id as LinkId))
    }

    /// Adds the satellites and links used by the flows of a scenario. The plan defines the routes through them, so the route
    /// search leaves them out.
    fn add_sky(&mut self, scenario: &Scenario, group: &'a ConstellationGroup) -> Result<(), TopologyError> {
        let constellation = &group.name;
        let refused = |error| TopologyError::Orbit { constellation: constellation.clone(), error };
        let (of_flows, behind) = self.crossings(scenario)?;
        let crossings: Vec<Crossing> = of_flows.union(&behind).cloned().collect();
        let plan = shared_plan(scenario, group, &crossings).map_err(refused)?;
        // A scenario of zero duration has no path at any time; this is not an error. One of several stations may never have a path.
        let never = plan.never.iter().find(|crossing| of_flows.contains(crossing));
        if let Some(crossing) = never.filter(|_| !scenario.duration.is_zero()) {
            let to = crossing.nearest().map_or(0, |(_, landing)| landing);
            let from = self.node(crossing.entry.node).name.to_string();
            let to = self.end_name(to).to_string();
            return Err(TopologyError::NeverJoined { constellation: constellation.clone(), from, to });
        }
        let satellites = group.fly(scenario.duration).map_err(refused)?;
        let first = self.node_count() as NodeId;
        let mut graph = Graph::clone(&self.graph);
        for link in &plan.links {
            let [near, far] = link.ends.map(|end| match end {
                SkyNode::Station(station) => self.end_name(station),
                SkyNode::Satellite(satellite) => Name::alone(satellites.name(satellite)),
            });
            let name = format!("{constellation}.{near}~{far}");
            let configs = link.configs(group);
            let [near, far] = link.ends.map(|end| plan.node(end, &graph.sky_ends, first));
            graph.ends.push([near, far]);
            self.sky_links.push(SkyEdge { name, group: constellation, configs });
        }
        let name = |satellite| format!("{constellation}.{}", satellites.name(satellite));
        self.satellites.extend(plan.satellites.iter().map(|satellite| name(*satellite)));
        let nodes = first as usize + plan.satellites.len();
        graph.into_ends.resize(nodes, graph.into.len() as u32);
        graph.forwards.resize(nodes, true);
        self.graph = Arc::new(graph);
        self.sky = Some(plan);
        Ok(())
    }

    fn end_name(&self, end: u32) -> Name<'_> {
        self.node(self.graph.sky_ends[end as usize]).name
    }

    /// Returns the ways of the flows' packets through the constellation, and those from nodes behind the first one that decides.
    fn crossings(
        &mut self,
        scenario: &Scenario,
    ) -> Result<(BTreeSet<Crossing>, BTreeSet<Crossing>), TopologyError> {
        let (mut of_flows, mut behind) = (BTreeSet::new(), BTreeSet::new());
        for flow in &scenario.flows {
            let user = || format!("flow.{}", flow.name);
            let (from, to) = (self.group(user, &flow.from)?, self.group(user, &flow.to)?);
            for index in 0..flow.count {
                let from = from.start + index % from.len() as NodeId;
                let to = to.start + index % to.len() as NodeId;
                for (from, to) in [(from, to), (to, from)] {
                    let mut crossings = self.crossings_between(from, to).into_iter();
                    of_flows.extend(crossings.next());
                    behind.extend(crossings);
                }
            }
        }
        Ok((of_flows, behind))
    }

    /// Returns the ways of packets from one node to another through the constellation, one for each node that decides about them. The
    /// first node on the way comes first.
    fn crossings_between(&mut self, from: NodeId, to: NodeId) -> Vec<Crossing> {
        let tree = self.tree(to);
        let landings = tree.landings.clone();
        let graph = &self.graph;
        let mut found: Vec<Crossing> = Vec::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            let Some(node) = graph.entry(&self.trees[&to], node) else { continue };
            if found.iter().any(|crossing| crossing.entry.node == node) {
                continue;
            }
            let ways = graph.ways(node);
            open.extend(ways.iter().filter_map(|way| way.link).map(|link| graph.hop(link).to));
            found.push(Crossing { entry: Entry { node, ways }, landings: landings.clone() });
        }
        found
    }

    /// Returns the nodes of a group that `user` names.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], which includes `user`.
    pub fn group(
        &self,
        user: impl Fn() -> String,
        name: &str,
    ) -> Result<std::ops::Range<NodeId>, TopologyError> {
        let found = self.nodes.iter().find(|members| members.group.name == name);
        found
            .map(|members| members.first..members.first + members.count)
            .ok_or_else(|| TopologyError::UnknownNode { user: user(), name: name.to_owned() })
    }

    fn add_links(&mut self, graph: &mut Graph, group: &'a LinkGroup) -> Result<(), TopologyError> {
        let user = || format!("link.{}", group.name);
        let (from, to) = (self.group(user, &group.from)?, self.group(user, &group.to)?);
        if self.links.iter().any(|other| other.group.name == group.name) {
            return Err(TopologyError::Unnameable(format!("link.{}: two groups have this name", group.name)));
        }
        let (n, m) = (from.len() as u32, to.len() as u32);
        if n != m && n != 1 && m != 1 {
            return Err(TopologyError::Unpairable { link: group.name.clone(), from: n, to: m });
        }
        let count = n.max(m);
        let first = graph.ends.len() as u32;
        self.links.push(Members { first, count, group });
        let delay = |config: &LinkConfig| Duration::from_nanos(initial(&config.delay_one_way));
        graph.delays.push((first, [&group.forward, &group.reverse].map(delay)));
        graph.ends.extend((0..count).map(|index| [from.start + index % n, to.start + index % m]));
        Ok(())
    }

    /// Returns the way of packets from one node to another through the constellation. `None` for a path on the ground.
    pub fn crossing(&mut self, from: NodeId, to: NodeId) -> Option<Crossing> {
        self.tree(to);
        let tree = &self.trees[&to];
        let node = self.graph.entry(tree, from)?;
        Some(Crossing { entry: Entry { node, ways: self.graph.ways(node) }, landings: tree.landings.clone() })
    }

    /// Returns the next hops to a node over all links.
    fn tree(&mut self, root: NodeId) -> &Tree {
        let graph = &self.graph;
        self.trees.entry(root).or_insert_with(|| graph.tree(root, |_| true))
    }

    /// Frees the memory of the route search; later calls compute it again.
    pub fn forget_trees(&mut self) {
        self.trees.clear();
    }

    /// Returns the rate of a link, the first value if it varies.
    pub fn rate(&self, link: LinkId) -> Rate {
        Rate::from_bps(initial(&self.link(link).config.rate))
    }

    /// Appends the links of the shortest route to `route`, without those through the constellation. The route has the fewest
    /// hops, then the least delay, then the links named first. Hosts do not forward. Of several ground stations the nearest one counts.
    /// Returns false without a route.
    pub fn route(&mut self, from: NodeId, to: NodeId, route: &mut Vec<LinkId>) -> bool {
        // A node with one link has its neighbour's routes plus that link: one tree per neighbour is enough.
        let graph = &self.graph;
        let (root, last) = match *graph.leading_to(to) {
            [only] if !graph.sky_ends.contains(&to) => (graph.hop(only).from, Some(only)),
            _ => (to, None),
        };
        if root != from && last.is_some() && !graph.forwards[root as usize] {
            return false;
        }
        let tree = self.trees.entry(root).or_insert_with(|| graph.tree(root, |_| true));
        let mut node = from;
        while node != root {
            match tree.next_hops[node as usize] {
                NOWHERE => return false,
                THROUGH_SKY => match graph.nearest(node) {
                    Some(link) => {
                        route.push(link);
                        node = graph.hop(link).to;
                    }
                    None => {
                        let nearest = tree.landings.iter().min_by_key(|(_, delay)| *delay);
                        let (landing, _) = nearest.expect("who sends through the sky has a place to land");
                        node = graph.sky_ends[*landing as usize];
                    }
                },
                link => {
                    route.push(link);
                    node = graph.hop(link).to;
                }
            }
        }
        route.extend(last);
        true
    }
}

impl Graph {
    /// Returns the link directions that lead to a node.
    fn leading_to(&self, node: NodeId) -> &[LinkId] {
        let begin = node.checked_sub(1).map_or(0, |before| self.into_ends[before as usize]);
        &self.into[begin as usize..self.into_ends[node as usize] as usize]
    }

    /// Returns a link direction.
    pub fn hop(&self, link: LinkId) -> Hop {
        let [near, far] = self.ends[link as usize / 2];
        if link.is_multiple_of(2) { Hop { from: near, to: far } } else { Hop { from: far, to: near } }
    }

    /// Returns the typical one-way delay of a ground link.
    pub fn delay_one_way(&self, link: LinkId) -> Duration {
        let group = self.delays.partition_point(|(first, _)| *first <= link / 2) - 1;
        self.delays[group].1[link as usize % 2]
    }

    /// Sorts the link directions by their end node.
    fn collect_into(&mut self) {
        self.ends.shrink_to_fit();
        let mut into: Vec<_> = (0..2 * self.ends.len() as LinkId).collect();
        let to = |link: &LinkId| self.hop(*link).to;
        into.sort_by_key(to);
        let end = |node| into.partition_point(|link| to(link) <= node) as u32;
        self.into_ends = (0..self.forwards.len() as NodeId).map(end).collect();
        self.into = into;
    }

    /// Computes every node's next hop on its shortest route to `root` over `usable` links. It is [`NOWHERE`] at the root and
    /// without a route. Packets cross the constellation only if no path on the ground leads to the root.
    pub fn tree(&self, root: NodeId, usable: impl Fn(LinkId) -> bool) -> Tree {
        let Search { mut next_hops, costs } = self.search([root], &usable);
        let is_reached = |node: NodeId| costs[node as usize] != UNREACHED;
        let reached = (0..).zip(&self.sky_ends).filter(|(_, node)| is_reached(**node));
        let reached: Vec<(u32, u64)> = reached.map(|(end, node)| (end, costs[*node as usize].1)).collect();
        let least = reached.iter().map(|(_, delay)| *delay).min().unwrap_or(0);
        let further = |(end, delay)| (end, Duration::from_nanos(delay - least));
        let landings: Landings = reached.into_iter().map(further).collect();
        if !landings.is_empty() {
            let others = || self.sky_ends.iter().copied().filter(|node| !is_reached(*node));
            let beyond = self.search(others(), &usable);
            for (node, link) in (0..).zip(beyond.next_hops).filter(|(node, _)| !is_reached(*node)) {
                let chooses = link != NOWHERE && self.choices.contains_key(&node);
                next_hops[node as usize] = if chooses { THROUGH_SKY } else { link };
            }
            others().for_each(|node| next_hops[node as usize] = THROUGH_SKY);
        }
        Tree { next_hops, landings }
    }

    /// Finds the shortest routes to the nearest of these nodes (Dijkstra 1959, backwards).
    fn search(&self, roots: impl IntoIterator<Item = NodeId>, usable: &impl Fn(LinkId) -> bool) -> Search {
        let mut next_hops = vec![NOWHERE; self.forwards.len()];
        let mut costs = vec![UNREACHED; self.forwards.len()];
        let mut frontier = BinaryHeap::new();
        for root in roots {
            costs[root as usize] = (0, 0);
            frontier.push(Reverse(((0, 0), root)));
        }
        while let Some(Reverse((cost, node))) = frontier.pop() {
            let forwards = cost.0 == 0 || self.forwards[node as usize];
            if cost > costs[node as usize] || !forwards {
                continue;
            }
            for &link in self.leading_to(node).iter().filter(|link| usable(**link)) {
                let from = self.hop(link).from;
                let delay_one_way = self.delay_one_way(link).as_nanos();
                let further = (cost.0 + 1, cost.1.saturating_add(delay_one_way));
                if further < costs[from as usize] {
                    costs[from as usize] = further;
                    next_hops[from as usize] = link;
                    frontier.push(Reverse((further, from)));
                }
            }
        }
        Search { next_hops, costs }
    }

    /// Returns the first node on the route from a node at which the plan of the constellation determines the next hop. `None` for a
    /// path on the ground.
    fn entry(&self, tree: &Tree, from: NodeId) -> Option<NodeId> {
        let mut node = from;
        loop {
            match tree.next_hops[node as usize] {
                NOWHERE => return None,
                THROUGH_SKY => return Some(node),
                link => node = self.hop(link).to,
            }
        }
    }

    /// Returns the ways into the constellation of a node at which packets enter it, or which chooses between several ends.
    fn ways(&self, node: NodeId) -> Vec<Way> {
        let own = || self.sky_ends.iter().position(|end| *end == node);
        let known = self.choices.get(&node).cloned();
        known.unwrap_or_else(|| {
            own().map(|end| Way { end: end as u32, ..Way::default() }).into_iter().collect()
        })
    }

    /// Returns the link from a node towards the nearest end of the constellation; `None` at such an end.
    fn nearest(&self, node: NodeId) -> Option<LinkId> {
        self.choices.get(&node)?.iter().min_by_key(|way| way.delay_one_way)?.link
    }

    /// Finds the nodes with several next hops towards the ends of the constellation.
    fn find_choices(&mut self) {
        let mut choices: BTreeMap<NodeId, Vec<Way>> = BTreeMap::new();
        for (end, &root) in (0..).zip(&self.sky_ends) {
            let Search { next_hops, costs } = self.search([root], &|_| true);
            for (node, (cost, next_hop)) in (0..).zip(costs.into_iter().zip(next_hops)) {
                // A node with one link has one next hop.
                let may_choose = node == root || self.leading_to(node).len() > 1;
                if cost != UNREACHED && may_choose {
                    let link = (node != root).then_some(next_hop);
                    let delay_one_way = Duration::from_nanos(cost.1);
                    choices.entry(node).or_default().push(Way { end, delay_one_way, link });
                }
            }
        }
        choices.retain(|_, ways| ways.iter().any(|way| way.link != ways[0].link));
        self.choices = choices;
    }
}

/// Shortest routes to the nearest of several nodes.
struct Search {
    /// Next hop of each node; [`NOWHERE`] at the nodes searched for and without a route.
    next_hops: Vec<LinkId>,
    /// Number of links, then delay in nanoseconds.
    costs: Vec<(u32, u64)>,
}

/// Cost of a node without a route.
const UNREACHED: (u32, u64) = (u32::MAX, u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_net::QueueConfig;

    fn world() -> Scenario {
        Scenario::unread("test")
    }

    fn nodes(name: &str, kind: NodeKind, count: u32) -> NodeGroup {
        NodeGroup { name: name.to_owned(), kind, count }
    }

    fn link_group(name: &str, (from, to): (&str, &str), delay_ms: u64) -> LinkGroup {
        let delay_one_way = Duration::from_millis(delay_ms);
        let config = LinkConfig::new(Rate::from_mbps(10), delay_one_way, QueueConfig::default());
        let (from, to) = (from.to_owned(), to.to_owned());
        LinkGroup {
            name: name.to_owned(),
            from,
            to,
            forward: config.clone(),
            reverse: config,
            radio: Default::default(),
        }
    }

    fn names(topology: &mut Topology<'_>, from: &str, to: &str) -> Option<Vec<String>> {
        let find =
            |name: &str| topology.nodes().position(|node| node.name.to_string() == name).unwrap() as NodeId;
        let (from, to) = (find(from), find(to));
        let mut route = Vec::new();
        let found = topology.route(from, to, &mut route);
        let name = |link: &LinkId| {
            let edge = topology.link(*link);
            format!("{} {}", edge.name, edge.direction)
        };
        found.then(|| route.iter().map(name).collect())
    }

    #[test]
    fn a_dumbbell_is_three_hops_each_way() {
        let mut scenario = world();
        scenario.nodes = vec![nodes("a", NodeKind::Host, 2), nodes("x", NodeKind::Router, 1)];
        scenario.nodes.extend([nodes("y", NodeKind::Router, 1), nodes("b", NodeKind::Host, 2)]);
        scenario.links = vec![
            link_group("left", ("a", "x"), 1),
            link_group("middle", ("x", "y"), 10),
            link_group("right", ("y", "b"), 1),
        ];
        let mut topology = Topology::new(&scenario).unwrap();
        let there = names(&mut topology, "a.1", "b.0").unwrap();
        assert_eq!(there, ["left.1 forward", "middle forward", "right.0 forward"]);
        let back = names(&mut topology, "b.0", "a.1").unwrap();
        assert_eq!(back, ["right.0 reverse", "middle reverse", "left.1 reverse"]);
    }

    #[test]
    fn fewest_hops_then_least_delay_and_never_through_a_host() {
        let mut scenario = world();
        scenario.nodes = ["a", "b", "c", "h"].map(|name| nodes(name, NodeKind::Host, 1)).to_vec();
        scenario.nodes.extend(["x", "y", "z"].map(|name| nodes(name, NodeKind::Router, 1)));
        scenario.links = vec![
            link_group("slow", ("a", "x"), 100),
            link_group("fast", ("a", "y"), 10),
            link_group("xb", ("x", "b"), 1),
            link_group("yb", ("y", "b"), 1),
            link_group("bz", ("b", "z"), 1),
            link_group("zc", ("z", "c"), 1),
            link_group("bh", ("b", "h"), 1),
        ];
        let mut topology = Topology::new(&scenario).unwrap();
        assert_eq!(names(&mut topology, "a", "b").unwrap(), ["fast forward", "yb forward"]);
        assert_eq!(names(&mut topology, "a", "c"), None);
        assert_eq!(names(&mut topology, "a", "h"), None);
        assert_eq!(names(&mut topology, "b", "h").unwrap(), ["bh forward"]);
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        let mut scenario = world();
        scenario.nodes = vec![nodes("a", NodeKind::Host, 2), nodes("b", NodeKind::Host, 3)];
        scenario.links = vec![link_group("l", ("a", "b"), 1)];
        let error = Topology::new(&scenario).unwrap_err();
        assert_eq!(
            error.to_string(),
            "link.l: 2 nodes cannot be joined with 3; one of the two must be 1, or both equal"
        );
        scenario.links = vec![link_group("l", ("a", "c"), 1)];
        assert_eq!(Topology::new(&scenario).unwrap_err().to_string(), "link.l: there is no node group \"c\"");
    }
}
