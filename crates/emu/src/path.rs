//! Selection of the emulated links of a scenario.

use bentpipe_base::{Duration, Rate};
use bentpipe_mac::{MediumConfig, TerminalConfig};
use bentpipe_net::{ConfigError, LinkConfig, LossConfig, QueueConfig, Schedule};
use bentpipe_scenario::{
    ConstellationGroup, Crossing, Edge, FlowGroup, LinkId, NodeKind, Routing, Scenario, SkyLinks, Topology,
    TopologyError, initial, shared_channel, sky_as_links,
};

/// Maximum packet of an emulated path in bytes, as on Ethernet.
pub const LARGEST_PACKET: u16 = 1500;
/// Minimum MTU for IPv4 in Linux, in bytes.
const LEAST_MTU: u16 = 68;
/// Minimum MTU of a link with IPv6, in bytes (RFC 8200, section 5).
pub const LEAST_MTU_OF_IPV6: u16 = 1280;

/// Place of the command in the scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum At {
    /// The receiver of the compared flows: the command downloads.
    #[default]
    Receiver,
    /// The sender of the compared flows: the command uploads.
    Sender,
}

/// One direction of an emulated link.
#[derive(Clone, PartialEq, Debug)]
pub struct Hop {
    /// Name of the link.
    pub link: String,
    /// Name of its group, which is its part of the scenario.
    pub group: String,
    /// Direction in the scenario: `forward` or `reverse`.
    pub direction: &'static str,
    /// Its properties.
    pub config: LinkConfig,
    /// The channel, if other terminals share it.
    pub channel: Option<Channel>,
    /// True if it leads up to a constellation or down from one.
    pub through_sky: bool,
}

/// Overrides of a link's properties, also of those from a constellation, a modem or the weather.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Override {
    /// Rate in both directions.
    pub rate: Option<Schedule<Rate>>,
    /// Delay of each direction.
    pub delay_one_way: Option<Schedule<Duration>>,
    /// Loss probability of each direction.
    pub loss: Option<LossConfig>,
    /// Queue of each hop.
    pub queue: Option<QueueConfig>,
}

impl Override {
    fn apply(&self, config: &mut LinkConfig, first: bool) {
        if let Some(rate) = &self.rate {
            (config.rate, config.opportunities) = (rate.clone(), None);
        }
        if let Some(delay) = &self.delay_one_way {
            config.delay_one_way = if first { delay.clone() } else { Schedule::Constant(Duration::ZERO) };
        }
        if let Some(loss) = &self.loss {
            config.loss = if first { loss.clone() } else { LossConfig::default() };
        }
        if let Some(queue) = &self.queue {
            config.queue = queue.clone();
        }
    }
}

/// A channel that the members of a group of links share.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Rate, delay and access scheme.
    pub medium: MediumConfig,
    /// Queue and errors of each terminal.
    pub terminal: TerminalConfig,
    /// Number of terminals; only one of them sends.
    pub terminals: usize,
    /// Number of that terminal.
    pub own: u32,
}

impl Hop {
    /// Name of the random streams, as of the same link in the simulator.
    pub fn stream(&self) -> String {
        format!("link.{}.{}", self.link, self.direction)
    }
}

/// Links between the command and the far host, from first to last.
///
/// These are the links on the routes between the first host of `from` and the first host of `to` of the compared flow
/// group. The command replaces its flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// From the command to the far host.
    pub up: Vec<Hop>,
    /// From the far host to the command.
    pub down: Vec<Hop>,
    /// Maximum IP packet in bytes: a full segment of the compared flow group with its headers, but at most
    /// [`LARGEST_PACKET`].
    pub mtu: u16,
    /// Seed of all random streams.
    pub seed: u64,
    /// Parts of the scenario that are not emulated: middleboxes on the path, other flows, route changes.
    pub left_out: Vec<String>,
}

/// Reason why a scenario cannot be emulated.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PathError {
    /// Without a flow group the two hosts are unknown.
    #[error("the scenario has no flow group: a [flow.NAME] table says between which hosts to emulate")]
    NoFlow,
    /// No route connects the two hosts.
    #[error("flow.{flow}: no route leads from {from} to {to}")]
    NoRoute {
        /// Name of the flow group.
        flow: String,
        /// Start of the route.
        from: String,
        /// End of the route.
        to: String,
    },
    /// A link that cannot be part of a shared channel.
    #[error("link.{link}: {error}")]
    Shared {
        /// Name of the link.
        link: String,
        /// Reason.
        error: ConfigError,
    },
    /// The groups form no graph.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl Path {
    /// Returns the path of a scenario for a command at `at`.
    ///
    /// # Errors
    /// [`PathError`] if no flow names two hosts, or no route connects them.
    pub fn of(scenario: &Scenario, at: At) -> Result<Self, PathError> {
        let group = scenario.compared_flow().ok_or(PathError::NoFlow)?;
        let mut left_out = Vec::new();
        let forward = route(scenario, group, false, &mut left_out)?;
        let reverse = route(scenario, group, true, &mut left_out)?;
        let (up, down) = match at {
            At::Receiver => (reverse, forward),
            At::Sender => (forward, reverse),
        };
        let others = scenario.flows.iter().filter(|other| other.name != group.name);
        left_out.extend(others.map(|other| format!("flow.{}", other.name)));
        if scenario.routing == Routing::AvoidOutages && scenario.constellations.is_empty() {
            left_out.push("ways around outages (routing)".to_owned());
        }
        let packet = group.sender.mss + group.headers_on_wire();
        let mtu = u16::try_from(packet).unwrap_or(LARGEST_PACKET).clamp(LEAST_MTU, LARGEST_PACKET);
        Ok(Self { up, down, mtu, seed: scenario.seed, left_out })
    }

    /// Returns the part of the scenario that an [`Override`] changes: the link group `satellite`, the only group, the
    /// constellation, or else the link with the lowest initial rate.
    pub fn bottleneck(&self) -> &str {
        let groups = self.groups();
        if let [only] = groups[..] {
            return only;
        }
        if groups.contains(&"satellite") {
            return "satellite";
        }
        let hops = || self.up.iter().chain(&self.down);
        let slowest = hops().min_by_key(|hop| initial(&hop.config.rate));
        let through_sky = hops().find(|hop| hop.through_sky);
        through_sky.or(slowest).map_or("", |hop| &hop.group)
    }

    /// Changes the hops of the group `name`. Of several consecutive hops, such as uplink and downlink of a
    /// constellation, the first one gets the whole delay and loss.
    pub fn change(&mut self, name: &str, change: &Override) {
        for hops in [&mut self.up, &mut self.down] {
            let mut first = true;
            for hop in hops.iter_mut().filter(|hop| hop.group == name) {
                change.apply(&mut hop.config, std::mem::take(&mut first));
            }
        }
    }

    /// True if the links are those of `other`, whatever their properties.
    pub(crate) fn has_links_of(&self, other: &Self) -> bool {
        // A shared channel with packets in it cannot change.
        let alike =
            |(ours, theirs): (&Hop, &Hop)| ours.stream() == theirs.stream() && ours.channel == theirs.channel;
        let same =
            |ours: &[Hop], theirs: &[Hop]| ours.len() == theirs.len() && ours.iter().zip(theirs).all(alike);
        self.mtu == other.mtu && same(&self.up, &other.up) && same(&self.down, &other.down)
    }

    /// Returns the names of the groups of its links, each once, in the order of `up`.
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

/// Returns the hops of one direction, and adds nodes that do more than forward to `left_out`.
fn route(
    scenario: &Scenario,
    flow: &FlowGroup,
    backwards: bool,
    left_out: &mut Vec<String>,
) -> Result<Vec<Hop>, PathError> {
    let mut topology = Topology::new(scenario)?;
    let user = || format!("flow.{}", flow.name);
    let (mut from, mut to) = (topology.group(user, &flow.from)?.start, topology.group(user, &flow.to)?.start);
    if backwards {
        (from, to) = (to, from);
    }
    let crossing = topology.crossing(from, to);
    let ends = crossing.as_ref().and_then(Crossing::nearest);
    let end = |number: u32| topology.graph.sky_ends[number as usize];
    let (entry, landing) = ends.map_or((to, to), |(entry, landing)| (end(entry), end(landing)));
    let (mut there, mut onward) = (Vec::new(), Vec::new());
    let mut join = |from, to, links: &mut Vec<LinkId>| from == to || topology.route(from, to, links);
    let joined = join(from, entry, &mut there) && join(landing, to, &mut onward);
    if from == to || !joined {
        let name = |node| topology.node(node).name.to_string();
        return Err(PathError::NoRoute { flow: flow.name.clone(), from: name(from), to: name(to) });
    }
    for link in there.iter().chain(&onward) {
        let node = topology.node(topology.graph.hop(*link).to);
        let plain = matches!(
            node.kind,
            NodeKind::Host | NodeKind::Router | NodeKind::GroundStation(_) | NodeKind::Satellite(_)
        );
        let found = format!("node.{} ({})", node.name, node.kind.name());
        if !plain && !left_out.contains(&found) {
            left_out.push(found);
        }
    }
    let hop = |link: &LinkId| {
        let edge = topology.link(*link);
        let (name, group) = (edge.name.to_string(), edge.group.to_owned());
        let channel =
            channel(&topology, *link).map_err(|error| PathError::Shared { link: name.clone(), error })?;
        let config = edge.config.clone();
        let (direction, through_sky) = (edge.direction, false);
        Ok::<_, PathError>(Hop { link: name, group, direction, config, channel, through_sky })
    };
    let mut hops: Vec<Hop> = there.iter().map(hop).collect::<Result<_, _>>()?;
    if let (Some(crossing), Some(ends), Some(group)) = (crossing, ends, scenario.constellations.first()) {
        let direction = if backwards { "reverse" } else { "forward" };
        let (links, mut missing) = through_sky((scenario, group), ends, direction)?;
        hops.extend(links);
        if crossing.entry.ways.len() * crossing.landings.len() > 1 {
            let [entry, landing] = [entry, landing].map(|node| topology.node(node).name);
            missing.push(format!(
                "constellation.{} (the choice of ground stations: always {entry} and {landing})",
                group.name
            ));
        }
        for what in missing {
            if !left_out.contains(&what) {
                left_out.push(what);
            }
        }
    }
    for link in &onward {
        hops.push(hop(link)?);
    }
    Ok(hops)
}

/// Returns the channel of a link that shares one.
fn channel(topology: &Topology<'_>, link: LinkId) -> Result<Option<Channel>, ConfigError> {
    let edge = topology.link(link);
    let Some(access) = edge.medium else { return Ok(None) };
    let member = |other: &Edge<'_>| other.group == edge.group && other.direction == edge.direction;
    let terminals = topology.links().filter(member).count();
    let own = topology.links().take(link as usize).filter(member).count() as u32;
    let (medium, terminal) = shared_channel(edge.config, access, terminals)?;
    Ok(Some(Channel { medium, terminal, terminals, own }))
}

/// Returns the links up to a constellation, between its satellites and down, and what they leave out.
fn through_sky(
    (scenario, group): (&Scenario, &ConstellationGroup),
    ends: (u32, u32),
    between: &'static str,
) -> Result<(Vec<Hop>, Vec<String>), PathError> {
    let SkyLinks { links, left_out } = sky_as_links(scenario, group, ends)
        .map_err(|error| TopologyError::Orbit { constellation: group.name.clone(), error })?;
    let hop = |(name, config): (&str, LinkConfig)| Hop {
        link: format!("{}.{name}", group.name),
        group: group.name.clone(),
        direction: match name {
            "up" => "forward",
            "down" => "reverse",
            _ => between,
        },
        config,
        channel: None,
        through_sky: true,
    };
    Ok((links.into_iter().map(hop).collect(), left_out))
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
    fn a_path_through_a_constellation_is_an_uplink_with_its_delay_a_link_between_satellites_and_a_downlink() {
        let scenario = bentpipe_scenario::load("leo-iridium").unwrap();
        let path = Path::of(&scenario, At::Receiver).unwrap();
        for (hops, between) in
            [(&path.up, "link.iridium.between.reverse"), (&path.down, "link.iridium.between.forward")]
        {
            assert_eq!(names(hops), ["link.iridium.up.forward", between, "link.iridium.down.reverse"]);
            assert_eq!(initial(&hops[1].config.rate), 25_000_000);
            let Schedule::Table { points, .. } = &hops[0].config.delay_one_way else { panic!("{hops:?}") };
            // Two ground links have at least 780 km each. No path to the other coast takes more than 53 ms.
            let within = |delay: &Duration| (15.0..53.0).contains(&delay.as_millis_f64());
            assert!(points.iter().all(|(_, delay)| within(delay)) && points.len() > 120, "{points:?}");
            assert!(hops[0].config.outages.intervals.is_empty());
        }
        let scenario = bentpipe_scenario::load("leo-starlink").unwrap();
        let path = Path::of(&scenario, At::Receiver).unwrap();
        let sky = ["up.forward", "between.forward", "down.reverse"].map(|end| format!("link.starlink.{end}"));
        assert_eq!(names(&path.down), [&["link.lease.forward".to_owned()][..], &sky].concat());
    }

    #[test]
    fn a_satellite_has_no_link_to_itself_and_of_several_gateways_the_nearest_is_emulated() {
        let text = include_str!("../../scenario/scenarios/leo-iridium.toml");
        let more = r#"
            [node.computer]
            kind = "satellite"
            satellite = "2-5"
            [node.office]
            [link.near]
            between = ["boston", "office"]
            rate = "1 Gbit/s"
            delay-one-way = "1 ms"
            [link.far]
            between = ["berkeley", "office"]
            rate = "1 Gbit/s"
            delay-one-way = "20 ms"
        "#;
        let path = |to: &str, from: &str| {
            let mut draft = bentpipe_scenario::Draft::parse("orbit.toml", &format!("{text}{more}")).unwrap();
            draft.set(&format!("flow.bulk.from={from}")).unwrap();
            draft.set(&format!("flow.bulk.to={to}")).unwrap();
            Path::of(&draft.scenario().unwrap(), At::Sender).unwrap()
        };
        let Path { up, down, left_out, .. } = path("computer", "boston");
        let between = |direction: &str| format!("link.iridium.between.{direction}");
        assert_eq!(names(&up), ["link.iridium.up.forward".to_owned(), between("forward")]);
        assert_eq!(names(&down), [between("reverse"), "link.iridium.down.reverse".to_owned()]);
        assert!(matches!(down[0].config.delay_one_way, Schedule::Table { .. }) && left_out.is_empty());
        let Path { up, left_out, .. } = path("computer", "office");
        let sky = ["link.iridium.up.forward".to_owned(), between("forward")];
        assert_eq!(names(&up), [&["link.near.reverse".to_owned()][..], &sky].concat());
        let always = |from, to| {
            format!("constellation.iridium (the choice of ground stations: always {from} and {to})")
        };
        assert_eq!(left_out, [always("boston", "computer"), always("computer", "boston")]);
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
    fn the_mtu_is_a_full_packet_of_the_flows() {
        let mut draft = bentpipe_scenario::Draft::load("geo-single").unwrap();
        let mtu = |draft: &bentpipe_scenario::Draft| {
            Path::of(&draft.scenario().unwrap(), At::Receiver).unwrap().mtu
        };
        assert_eq!(mtu(&draft), 1500);
        draft.set("tcp.mss=948 bytes").unwrap();
        assert_eq!(mtu(&draft), 1000);
        draft.set("flow.bulk.tcp.header=40 bytes").unwrap();
        assert_eq!(mtu(&draft), 988);
        draft.set("tcp.mss=8948 bytes").unwrap();
        assert_eq!(mtu(&draft), LARGEST_PACKET);
    }

    #[test]
    fn what_is_not_emulated_is_named() {
        let left_out = |name: &str, settings: &[&str]| {
            let mut draft = bentpipe_scenario::Draft::load(name).unwrap();
            settings.iter().for_each(|setting| draft.set(setting).unwrap());
            Path::of(&draft.scenario().unwrap(), At::Receiver).unwrap().left_out
        };
        assert_eq!(left_out("wired-snoop", &[]), ["node.station (snoop)"]);
        assert_eq!(left_out("geo-vsat", &[]), ["node.hub (proxy)"]);
        assert!(left_out("wired-snoop", &["node.station.kind=router"]).is_empty());
        assert!(left_out("geo-dumbbell", &[]).is_empty());
        let loss = ["constellation.iridium.between.loss={ kind = \"list\", packets = [1] }"];
        let between = "constellation.iridium.between.loss (that of one link only)";
        assert_eq!(left_out("leo-iridium", &loss), [between]);
        let around = ["routing=avoid-outages"];
        assert_eq!(left_out("geo-fairness", &around), ["flow.newreno", "ways around outages (routing)"]);
    }

    #[test]
    fn any_path_has_a_link_to_change() {
        let path = |name: &str| Path::of(&bentpipe_scenario::load(name).unwrap(), At::Receiver).unwrap();
        for (name, link) in [
            ("geo-single", "satellite"),
            ("geo-dumbbell", "satellite"),
            ("vsat-rain", "satellite"),
            ("leo-iridium", "iridium"),
            ("leo-starlink", "starlink"),
            ("wired-snoop", "air"),
        ] {
            assert_eq!(path(name).bottleneck(), link, "{name}");
        }
        let mut changed = path("leo-starlink");
        let rate = Schedule::Constant(Rate::from_mbps(10));
        let delay = Schedule::Constant(Duration::from_millis(275));
        let wish =
            Override { rate: Some(rate.clone()), delay_one_way: Some(delay.clone()), ..Override::default() };
        changed.change("starlink", &wish);
        let of_sky = |hop: &&Hop| hop.through_sky;
        for hops in [&changed.up, &changed.down] {
            let delays: Vec<_> =
                hops.iter().filter(of_sky).map(|hop| hop.config.delay_one_way.clone()).collect();
            let none = Schedule::Constant(Duration::ZERO);
            assert_eq!(delays, [delay.clone(), none.clone(), none]);
            assert!(hops.iter().filter(of_sky).all(|hop| hop.config.rate == rate));
        }
        let lease = |path: &Path| path.down[0].clone();
        assert_eq!(lease(&changed), lease(&path("leo-starlink")), "other links stay as they are");
    }

    #[test]
    fn without_a_flow_nothing_says_where() {
        let mut scenario = bentpipe_scenario::load("geo-single").unwrap();
        scenario.flows.clear();
        assert_eq!(Path::of(&scenario, At::Receiver), Err(PathError::NoFlow));
    }
}
