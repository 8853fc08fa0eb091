//! Which links of a scenario are emulated.

use bentpipe_net::LinkConfig;
use bentpipe_scenario::{FlowGroup, LinkId, Scenario, Topology, TopologyError};

/// The place of the command in the scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum At {
    /// Where the flows under comparison end: the command downloads.
    #[default]
    Receiver,
    /// Where they begin: the command uploads.
    Sender,
}

/// One direction of an emulated link.
#[derive(Clone, PartialEq, Debug)]
pub struct Hop {
    /// Name of the link.
    pub link: String,
    /// Name of its group: the part of the scenario that describes it.
    pub group: String,
    /// `forward` or `reverse`, as the scenario has it.
    pub direction: &'static str,
    /// What it does to packets.
    pub config: LinkConfig,
}

impl Hop {
    /// Name of the random streams: those of the same link in the simulator.
    pub fn stream(&self) -> String {
        format!("link.{}.{}", self.link, self.direction)
    }
}

/// The links between the command and the host beyond, in the order in which packets meet them.
///
/// These are the links on the routes between the first host of `from` and the first host of `to` of the flow group under
/// comparison. The flows of the scenario themselves are left out: the command is the traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// From the command to the host beyond.
    pub up: Vec<Hop>,
    /// From the host beyond to the command.
    pub down: Vec<Hop>,
    /// Seed of all random streams.
    pub seed: u64,
}

/// A scenario between whose hosts nothing can be emulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// There is no flow group, so it is not known which hosts are meant.
    #[error("the scenario has no flow group: a [flow.NAME] table says between which hosts to emulate")]
    NoFlow,
    /// No way leads from one host to the other.
    #[error("flow.{flow}: no route leads from {from} to {to}")]
    NoRoute {
        /// Name of the flow group.
        flow: String,
        /// Where the route would begin.
        from: String,
        /// Where it would end.
        to: String,
    },
    /// A link is one of several that share a channel: a path has only one of them.
    #[error(
        "link.{0}: a medium is shared with terminals that are not there; the emulator has one path (set medium to \"none\")"
    )]
    Shared(String),
    /// The groups do not make a graph.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl Path {
    /// The path of a scenario for a command at `at`.
    ///
    /// # Errors
    /// [`PathError`] if no flow says between which hosts, or no route joins them.
    pub fn of(scenario: &Scenario, at: At) -> Result<Self, PathError> {
        let compared = scenario.flows.iter().find(|group| !group.fixed);
        let group = compared.or(scenario.flows.first()).ok_or(PathError::NoFlow)?;
        let (forward, reverse) = (route(scenario, group, false)?, route(scenario, group, true)?);
        let (up, down) = match at {
            At::Receiver => (reverse, forward),
            At::Sender => (forward, reverse),
        };
        Ok(Self { up, down, seed: scenario.seed })
    }

    /// True if it has the same links as `other`, whatever they do to packets.
    pub(crate) fn has_links_of(&self, other: &Self) -> bool {
        let same =
            |ours: &[Hop], theirs: &[Hop]| ours.iter().map(Hop::stream).eq(theirs.iter().map(Hop::stream));
        same(&self.up, &other.up) && same(&self.down, &other.down)
    }

    /// Names of the groups of its links, each once, in the order of `up`.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for hop in self.up.iter().chain(&self.down) {
            if !groups.contains(&hop.group.as_str()) {
                groups.push(&hop.group);
            }
        }
        groups
    }
}

fn route(scenario: &Scenario, flow: &FlowGroup, backwards: bool) -> Result<Vec<Hop>, PathError> {
    let mut topology = Topology::new(scenario)?;
    let user = || format!("flow.{}", flow.name);
    let (mut from, mut to) = (topology.group(user, &flow.from)?.start, topology.group(user, &flow.to)?.start);
    if backwards {
        (from, to) = (to, from);
    }
    let mut links = Vec::new();
    if from == to || !topology.route(from, to, &mut links) {
        let name = |node| topology.nodes[node as usize].name.clone();
        return Err(PathError::NoRoute { flow: flow.name.clone(), from: name(from), to: name(to) });
    }
    let hop = |link: &LinkId| {
        let edge = &topology.links[*link as usize];
        let (link, group) = (edge.name.clone(), edge.group.to_owned());
        if edge.medium.is_some() {
            return Err(PathError::Shared(link));
        }
        Ok(Hop { link, group, direction: edge.direction, config: edge.config.clone() })
    };
    links.iter().map(hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hops: &[Hop]) -> Vec<String> {
        hops.iter().map(Hop::stream).collect()
    }

    #[test]
    fn the_path_joins_the_hosts_of_the_flows_under_comparison() {
        let scenario = bentpipe_scenario::load("geo-dumbbell").unwrap();
        let path = Path::of(&scenario, At::Receiver).unwrap();
        let down = ["link.uplink.0.forward", "link.satellite.forward", "link.downlink.0.forward"];
        let up = ["link.downlink.0.reverse", "link.satellite.reverse", "link.uplink.0.reverse"];
        assert_eq!(names(&path.down), down);
        assert_eq!(names(&path.up), up);
        assert_eq!(path.groups(), ["downlink", "satellite", "uplink"]);
        let sender = Path::of(&scenario, At::Sender).unwrap();
        assert_eq!((sender.up, sender.down), (path.down, path.up));
    }

    #[test]
    fn without_a_flow_nothing_says_where() {
        let mut scenario = bentpipe_scenario::load("geo-single").unwrap();
        scenario.flows.clear();
        assert_eq!(Path::of(&scenario, At::Receiver), Err(PathError::NoFlow));
    }
}
