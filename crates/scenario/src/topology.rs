//! Nodes and links of a scenario one by one, and the shortest routes between them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_mac::Access;
use bentpipe_net::{LinkConfig, Quantity, Schedule};

use bentpipe_orbit::OrbitError;

use crate::sky::{ConstellationGroup, SkyNode, SkyPlan, shared_plan};
use crate::{LinkGroup, NodeKind, Scenario};

/// Index of a node.
pub type NodeId = u32;
/// Index of one direction of a link: forward directions are even, their reverse follows.
pub type LinkId = u32;

/// Groups of which no graph can be made.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TopologyError {
    /// A link or flow group names a node group that does not exist.
    #[error("{user}: there is no node group \"{name}\"")]
    UnknownNode {
        /// `link` or `flow` with its name.
        user: String,
        /// Name that was looked for.
        name: String,
    },
    /// Two groups share a name, or a group is empty.
    #[error("{0}")]
    Unnameable(String),
    /// A constellation cannot fly, or not until the end.
    #[error("constellation.{constellation}: {error}")]
    Orbit {
        /// Name of the constellation.
        constellation: String,
        /// What is wrong.
        error: OrbitError,
    },
    /// Two ground stations that no path through the constellation ever joins.
    #[error(
        "constellation.{constellation}: found no path from {from} to {to} at any time, accepted: an elevation-mask, orbits and places that give one"
    )]
    NeverJoined {
        /// Name of the constellation.
        constellation: String,
        /// Ground station at which packets would enter.
        from: String,
        /// Ground station at which they would leave.
        to: String,
    },
    /// The two node groups of a link group cannot be paired.
    #[error("link.{link}: {from} nodes cannot be joined with {to}; one of the two must be 1, or both equal")]
    Unpairable {
        /// Name of the link group.
        link: String,
        /// Nodes at the near end.
        from: u32,
        /// Nodes at the far end.
        to: u32,
    },
}

/// The graph of a world.
#[derive(Debug)]
pub struct Topology<'a> {
    /// All nodes in the order of the scenario.
    pub nodes: Vec<Node>,
    /// All directions of all links in the order of the scenario.
    pub links: Vec<Edge<'a>>,
    groups: BTreeMap<&'a str, std::ops::Range<NodeId>>,
    /// Nodes and links as routes see them.
    pub graph: Graph,
    /// What the constellation does, if there is one; its satellites and links come after all others.
    pub sky: Option<Arc<SkyPlan>>,
    trees: BTreeMap<NodeId, Tree>,
}

/// A host or a router.
#[derive(Debug)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// What routes are found in.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// One for each direction of each link.
    pub hops: Vec<Hop>,
    /// Directions of links that lead to each node.
    into: Vec<Vec<LinkId>>,
    /// Nodes that the packets of others pass through.
    forwards: Vec<bool>,
    /// Ground stations, in the order of the nodes: a constellation joins each with each.
    pub stations: Vec<NodeId>,
}

/// The next hops of all nodes on their shortest routes to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// By node; [`NOWHERE`] at the root and where no way leads on, [`THROUGH_SKY`] where the constellation is next.
    pub next_hops: Vec<LinkId>,
    /// The ground station at which packets leave the sky: number among [`Graph::stations`].
    pub landing: Option<u32>,
}

/// A direction of a link as routes see it.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Where it begins.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// Typical one-way delay.
    pub delay_one_way: Duration,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Edge<'a> {
    /// Name of the link, the same for both directions.
    pub name: String,
    /// Group of the link.
    pub group: &'a str,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// What it does to packets.
    pub config: Cow<'a, LinkConfig>,
    /// How the members of its group share one channel, if they do; `config` is then that of the channel and of each member's queue.
    pub medium: Option<&'a Access>,
}

/// Next hop of a node from which no way leads on.
pub const NOWHERE: LinkId = LinkId::MAX;
/// Next hop of a ground station that sends through the constellation.
pub const THROUGH_SKY: LinkId = LinkId::MAX - 1;

/// The name of member `index` of a group: the group's own if there is only one.
pub fn member_name(group: &str, index: u32, count: u32) -> String {
    if count == 1 { group.to_owned() } else { format!("{group}.{index}") }
}

/// A typical value of a quantity that may vary: where it begins.
pub fn initial<T: Quantity>(schedule: &Schedule<T>) -> u64 {
    match schedule {
        Schedule::Constant(value) => value.raw(),
        Schedule::Table { points, .. } => points.first().map_or(0, |(_, value)| value.raw()),
        Schedule::Sine { mean, .. } => mean.raw(),
    }
}

impl<'a> Topology<'a> {
    /// The graph that a scenario describes.
    ///
    /// # Errors
    /// [`TopologyError`] for scenarios that were not read from a file: those are checked.
    pub fn new(scenario: &'a Scenario) -> Result<Self, TopologyError> {
        let mut topology = Self {
            nodes: Vec::new(),
            links: Vec::new(),
            groups: BTreeMap::new(),
            graph: Graph::default(),
            sky: None,
            trees: BTreeMap::new(),
        };
        for group in &scenario.nodes {
            let first = topology.nodes.len() as NodeId;
            let unnameable = |what: &str| TopologyError::Unnameable(format!("node.{}: {what}", group.name));
            if group.count == 0 {
                return Err(unnameable("a group of no nodes"));
            }
            let names = (0..group.count).map(|index| member_name(&group.name, index, group.count));
            topology.nodes.extend(names.map(|name| Node { name, kind: group.kind.clone() }));
            topology.graph.forwards.resize(topology.nodes.len(), group.kind.forwards());
            if matches!(group.kind, NodeKind::GroundStation(_)) {
                topology.graph.stations.push(first);
            }
            if topology.groups.insert(&group.name, first..first + group.count).is_some() {
                return Err(unnameable("two groups have this name"));
            }
        }
        topology.graph.into.resize(topology.nodes.len(), Vec::new());
        for group in &scenario.links {
            topology.add_links(group)?;
        }
        for group in &scenario.constellations {
            topology.add_sky(scenario, group)?;
        }
        Ok(topology)
    }

    /// Adds the satellites and links that the flows of a scenario use. Routes lead through them as the plan says, so they are no part of
    /// what routes are found in.
    fn add_sky(&mut self, scenario: &Scenario, group: &'a ConstellationGroup) -> Result<(), TopologyError> {
        let constellation = &group.name;
        let refused = |error| TopologyError::Orbit { constellation: constellation.clone(), error };
        let crossings = self.crossings(scenario)?;
        let plan = shared_plan(scenario, group, &crossings).map_err(refused)?;
        // Of no time at all nothing can be said.
        let never = plan.never.first().filter(|_| !scenario.duration.is_zero());
        if let Some(&(from, to)) = never {
            let name = |station: u32| self.nodes[self.graph.stations[station as usize] as usize].name.clone();
            let (from, to) = (name(from), name(to));
            return Err(TopologyError::NeverJoined { constellation: constellation.clone(), from, to });
        }
        let satellites = group.fly().map_err(refused)?;
        let first = self.nodes.len() as NodeId;
        for satellite in &plan.satellites {
            let name = format!("{constellation}.{}", satellites.name(*satellite));
            self.nodes.push(Node { name, kind: NodeKind::Router });
        }
        self.graph.into.resize(self.nodes.len(), Vec::new());
        self.graph.forwards.resize(self.nodes.len(), true);
        for link in &plan.links {
            let ends = link.ends.map(|end| plan.node(end, &self.graph.stations, first));
            let [near, far] = link.ends.map(|end| match end {
                SkyNode::Station(station) => {
                    self.nodes[self.graph.stations[station as usize] as usize].name.as_str()
                }
                SkyNode::Satellite(satellite) => satellites.name(satellite),
            });
            let name = format!("{constellation}.{near}~{far}");
            let configs = link.configs(group);
            for (direction, (from, to)) in [(0, (ends[0], ends[1])), (1, (ends[1], ends[0]))] {
                let config = &configs[direction];
                let delay_one_way = Duration::from_nanos(initial(&config.delay_one_way));
                self.graph.hops.push(Hop { from, to, delay_one_way });
                self.links.push(Edge {
                    name: name.clone(),
                    group: &group.name,
                    direction: ["forward", "reverse"][direction],
                    config: Cow::Owned(config.clone()),
                    medium: None,
                });
            }
        }
        self.sky = Some(plan);
        Ok(())
    }

    /// Where the packets of the flows enter the sky and where they leave it: pairs of ground stations by number, each once.
    fn crossings(&mut self, scenario: &Scenario) -> Result<Vec<(u32, u32)>, TopologyError> {
        let mut crossings = BTreeSet::new();
        for flow in &scenario.flows {
            let user = || format!("flow.{}", flow.name);
            let (from, to) = (self.group(user, &flow.from)?, self.group(user, &flow.to)?);
            for index in 0..flow.count {
                let from = from.start + index % from.len() as NodeId;
                let to = to.start + index % to.len() as NodeId;
                crossings.extend(self.crossing(from, to));
                crossings.extend(self.crossing(to, from));
            }
        }
        Ok(crossings.into_iter().collect())
    }

    /// The nodes of a group that `user` names.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], which names the user.
    pub fn group(
        &self,
        user: impl Fn() -> String,
        name: &str,
    ) -> Result<std::ops::Range<NodeId>, TopologyError> {
        self.groups
            .get(name)
            .cloned()
            .ok_or_else(|| TopologyError::UnknownNode { user: user(), name: name.to_owned() })
    }

    fn add_links(&mut self, group: &'a LinkGroup) -> Result<(), TopologyError> {
        let user = || format!("link.{}", group.name);
        let (from, to) = (self.group(user, &group.from)?, self.group(user, &group.to)?);
        if self.links.iter().rev().any(|link| link.group == group.name) {
            return Err(TopologyError::Unnameable(format!("link.{}: two groups have this name", group.name)));
        }
        let (n, m) = (from.len() as u32, to.len() as u32);
        if n != m && n != 1 && m != 1 {
            return Err(TopologyError::Unpairable { link: group.name.clone(), from: n, to: m });
        }
        for index in 0..n.max(m) {
            let name = member_name(&group.name, index, n.max(m));
            let ends = (from.start + index % n, to.start + index % m);
            self.add_direction((name.clone(), "forward"), (group, 0), ends);
            self.add_direction((name, "reverse"), (group, 1), (ends.1, ends.0));
        }
        Ok(())
    }

    /// Where packets from one node to another enter the sky and where they leave it, by number of ground station; none if they stay on
    /// the ground.
    pub fn crossing(&mut self, from: NodeId, to: NodeId) -> Option<(u32, u32)> {
        let graph = &self.graph;
        let tree = self.trees.entry(to).or_insert_with(|| graph.tree(to, |_| true));
        graph.crossing(tree, from)
    }

    fn add_direction(
        &mut self,
        (name, direction): (String, &'static str),
        (group, side): (&'a LinkGroup, usize),
        (from, to): (NodeId, NodeId),
    ) {
        let config = [&group.forward, &group.reverse][side];
        let (group, medium) = (group.name.as_str(), group.radio[side].medium.as_ref());
        let delay_one_way = Duration::from_nanos(initial(&config.delay_one_way));
        self.graph.into[to as usize].push(self.links.len() as LinkId);
        self.graph.hops.push(Hop { from, to, delay_one_way });
        self.links.push(Edge { name, group, direction, config: Cow::Borrowed(config), medium });
    }

    /// Rate of a link, the first if it varies.
    pub fn rate(&self, link: LinkId) -> Rate {
        Rate::from_bps(initial(&self.links[link as usize].config.rate))
    }

    /// Appends the links of the shortest route to `route`, except those through the sky: fewest hops, of these the least delay, of
    /// these the links named first. Hosts do not forward. False if no way leads there.
    pub fn route(&mut self, from: NodeId, to: NodeId, route: &mut Vec<LinkId>) -> bool {
        // The routes to a node with one link are those to its neighbour and that link: a tree for each neighbour will do.
        let graph = &self.graph;
        let (root, last) = match graph.into[to as usize][..] {
            [only] => (graph.hops[only as usize].from, Some(only)),
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
                THROUGH_SKY => {
                    let landing = tree.landing.expect("who sends through the sky has a place to land");
                    node = graph.stations[landing as usize];
                }
                link => {
                    route.push(link);
                    node = graph.hops[link as usize].to;
                }
            }
        }
        route.extend(last);
        true
    }
}

impl Graph {
    /// The next hop of every node on its shortest route to `root` over links that are `usable` (Dijkstra 1959, backwards);
    /// [`NOWHERE`] at the root and where no way leads on. A way through a constellation counts as one hop; all who use it land at the
    /// ground station that is nearest to the root.
    pub fn tree(&self, root: NodeId, usable: impl Fn(LinkId) -> bool) -> Tree {
        let mut landing = None;
        let mut next_hop = vec![NOWHERE; self.into.len()];
        let mut costs = vec![(u32::MAX, u64::MAX); self.into.len()];
        let mut frontier = BinaryHeap::from([Reverse(((0, 0), root))]);
        costs[root as usize] = (0, 0);
        while let Some(Reverse((cost, node))) = frontier.pop() {
            let forwards = node == root || self.forwards[node as usize];
            if cost > costs[node as usize] || !forwards {
                continue;
            }
            let links = self.into[node as usize].iter().copied().filter(|link| usable(*link));
            let over_links = links.map(|link| (link, self.hops[link as usize]));
            let station = self.stations.iter().position(|station| *station == node);
            let lands = landing.is_none().then_some(station).flatten();
            landing = landing.or(lands.map(|station| station as u32));
            let takers = lands.map_or(&[][..], |_| &self.stations).iter().filter(|station| **station != node);
            let over_sky = |from: &NodeId| Hop { from: *from, to: node, delay_one_way: Duration::ZERO };
            for (link, Hop { from, delay_one_way, .. }) in
                over_links.chain(takers.map(|from| (THROUGH_SKY, over_sky(from))))
            {
                let from = from as usize;
                let further = (cost.0 + 1, cost.1.saturating_add(delay_one_way.as_nanos()));
                if further < costs[from] {
                    costs[from] = further;
                    next_hop[from] = link;
                    frontier.push(Reverse((further, from as NodeId)));
                }
            }
        }
        Tree { next_hops: next_hop, landing }
    }

    /// Where a packet from a node enters the sky and where it leaves it, by number of ground station; none if it stays on the ground.
    fn crossing(&self, tree: &Tree, from: NodeId) -> Option<(u32, u32)> {
        let mut node = from;
        loop {
            match tree.next_hops[node as usize] {
                NOWHERE => return None,
                THROUGH_SKY => {
                    let entry = self.stations.iter().position(|station| *station == node)?;
                    return Some((entry as u32, tree.landing?));
                }
                link => node = self.hops[link as usize].to,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeGroup;
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
        let find = |name: &str| topology.nodes.iter().position(|node| node.name == name).unwrap() as NodeId;
        let (from, to) = (find(from), find(to));
        let mut route = Vec::new();
        let found = topology.route(from, to, &mut route);
        let name = |link: &LinkId| {
            let edge = &topology.links[*link as usize];
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
