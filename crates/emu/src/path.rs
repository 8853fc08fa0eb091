//! Which links of a scenario are emulated.

use bentpipe_mac::{MediumConfig, TerminalConfig};
use bentpipe_net::{ConfigError, LinkConfig};
use bentpipe_scenario::{
    ConstellationGroup, Edge, FlowGroup, LinkId, Scenario, Topology, TopologyError, shared_channel,
    sky_as_links,
};

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
    /// The channel that it shares with other terminals, if it does.
    pub channel: Option<Channel>,
}

/// A channel that the members of a group of links share.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Rate, delay and access scheme.
    pub medium: MediumConfig,
    /// Queue and errors of each terminal.
    pub terminal: TerminalConfig,
    /// How many terminals there are. Only one has anything to send.
    pub terminals: usize,
    /// Which one that is.
    pub own: u32,
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
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
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
    /// A link is one of several that cannot share a channel.
    #[error("link.{link}: {error}")]
    Shared {
        /// Name of the link.
        link: String,
        /// What prevents it.
        error: ConfigError,
    },
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
        let group = scenario.compared_flow().ok_or(PathError::NoFlow)?;
        let (forward, reverse) = (route(scenario, group, false)?, route(scenario, group, true)?);
        let (up, down) = match at {
            At::Receiver => (reverse, forward),
            At::Sender => (forward, reverse),
        };
        Ok(Self { up, down, seed: scenario.seed })
    }

    /// True if it has the same links as `other`, whatever they do to packets.
    pub(crate) fn has_links_of(&self, other: &Self) -> bool {
        // A shared channel cannot change while packets are in it.
        let alike =
            |(ours, theirs): (&Hop, &Hop)| ours.stream() == theirs.stream() && ours.channel == theirs.channel;
        let same =
            |ours: &[Hop], theirs: &[Hop]| ours.len() == theirs.len() && ours.iter().zip(theirs).all(alike);
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
    let crossing = topology.crossing(from, to);
    let station = |number: u32| topology.graph.stations[number as usize];
    let (entry, landing) = crossing.map_or((to, to), |(entry, landing)| (station(entry), station(landing)));
    let (mut there, mut onward) = (Vec::new(), Vec::new());
    let mut join = |from, to, links: &mut Vec<LinkId>| from == to || topology.route(from, to, links);
    let joined = join(from, entry, &mut there) && join(landing, to, &mut onward);
    if from == to || !joined {
        let name = |node| topology.nodes[node as usize].name.clone();
        return Err(PathError::NoRoute { flow: flow.name.clone(), from: name(from), to: name(to) });
    }
    let hop = |link: &LinkId| {
        let edge = &topology.links[*link as usize];
        let (name, group) = (edge.name.clone(), edge.group.to_owned());
        let channel = channel(&topology.links, *link)
            .map_err(|error| PathError::Shared { link: name.clone(), error })?;
        let config = edge.config.clone().into_owned();
        Ok::<_, PathError>(Hop { link: name, group, direction: edge.direction, config, channel })
    };
    let mut hops: Vec<Hop> = there.iter().map(hop).collect::<Result<_, _>>()?;
    if let (Some(crossing), Some(group)) = (crossing, scenario.constellations.first()) {
        hops.extend(through_sky(scenario, group, crossing)?);
    }
    for link in &onward {
        hops.push(hop(link)?);
    }
    Ok(hops)
}

/// The channel behind a link, if it shares one.
fn channel(links: &[Edge<'_>], link: LinkId) -> Result<Option<Channel>, ConfigError> {
    let edge = &links[link as usize];
    let Some(access) = edge.medium else { return Ok(None) };
    let member = |other: &&Edge<'_>| other.group == edge.group && other.direction == edge.direction;
    let terminals = links.iter().filter(member).count();
    let own = links[..link as usize].iter().filter(member).count() as u32;
    let (medium, terminal) = shared_channel(&edge.config, access, terminals)?;
    Ok(Some(Channel { medium, terminal, terminals, own }))
}

/// The way through a constellation: its up- and its downlink.
fn through_sky(
    scenario: &Scenario,
    group: &ConstellationGroup,
    crossing: (u32, u32),
) -> Result<[Hop; 2], PathError> {
    let [up, down] = sky_as_links(scenario, group, crossing)
        .map_err(|error| TopologyError::Orbit { constellation: group.name.clone(), error })?;
    let hop = |end: &str, direction, config| Hop {
        link: format!("{}.{end}", group.name),
        group: group.name.clone(),
        direction,
        config,
        channel: None,
    };
    Ok([hop("up", "forward", up), hop("down", "reverse", down)])
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Duration;
    use bentpipe_net::Schedule;

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
    fn a_way_through_a_constellation_is_an_uplink_and_a_downlink_with_the_delay_of_the_path() {
        let scenario = bentpipe_scenario::load("leo-iridium").unwrap();
        let path = Path::of(&scenario, At::Receiver).unwrap();
        for hops in [&path.up, &path.down] {
            assert_eq!(names(hops), ["link.iridium.up.forward", "link.iridium.down.reverse"]);
            let Schedule::Table { points, .. } = &hops[0].config.delay_one_way else { panic!("{hops:?}") };
            // Two ground links of at least 780 km; no path to the other coast is longer than 53 ms.
            let within = |delay: &Duration| (15.0..53.0).contains(&delay.as_millis_f64());
            assert!(points.iter().all(|(_, delay)| within(delay)) && points.len() > 120, "{points:?}");
            assert!(hops[0].config.outages.intervals.is_empty());
        }
        let scenario = bentpipe_scenario::load("leo-starlink").unwrap();
        let path = Path::of(&scenario, At::Receiver).unwrap();
        let down = ["link.lease.forward", "link.starlink.up.forward", "link.starlink.down.reverse"];
        assert_eq!(names(&path.down), down);
    }

    #[test]
    fn a_shared_channel_is_one_terminal_of_several() {
        let mut draft = bentpipe_scenario::Draft::load("geo-vsat").unwrap();
        let path = Path::of(&draft.scenario().unwrap(), At::Receiver).unwrap();
        let shared = path.up.iter().find(|hop| hop.channel.is_some()).unwrap();
        assert_eq!(shared.stream(), "link.spot.0.reverse");
        let channel = shared.channel.as_ref().unwrap();
        assert_eq!((channel.terminals, channel.own), (5, 0));
        assert!(path.down.iter().all(|hop| hop.channel.is_none()));
        draft.set("link.spot.reverse.medium=aloha").unwrap();
        let other = Path::of(&draft.scenario().unwrap(), At::Receiver).unwrap();
        assert!(!path.has_links_of(&other) && path.has_links_of(&path));
    }

    #[test]
    fn without_a_flow_nothing_says_where() {
        let mut scenario = bentpipe_scenario::load("geo-single").unwrap();
        scenario.flows.clear();
        assert_eq!(Path::of(&scenario, At::Receiver), Err(PathError::NoFlow));
    }
}
