//! Checks that involve more than one key: consistency of a world's parts.

use bentpipe_cc::packets::{PacketControl, Settings, supported};
use bentpipe_net::{ConfigError, LinkConfig};
use bentpipe_orbit::OrbitError;
use bentpipe_traffic::{adaptive, on_off};

use crate::algorithm::{algorithm_names, stack_control, stack_controls};
use crate::describe::{TRANSPORTS, kind_of};
use crate::error::{Mistake, Place};
use crate::form::Report;
use crate::model::{
    FlowGroup, LinkGroup, NodeGroup, NodeKind, Radio, Routing, Scenario, Streaming, Traffic, Transport,
};
use crate::network::{Hop, Network};
use crate::shared::shared_channel;
use crate::sky::{ConstellationGroup, Links, Orbits};
use crate::suggest::did_you_mean;
use crate::tree::Node;
use crate::unit::{Codec, MOST_PACKET_BYTES};

/// Reports inconsistencies of the world. `root` is the document that the scenario was read from.
pub(crate) fn check(scenario: &Scenario, root: &Node, report: &mut Report) {
    let mut checker = Checker { scenario, root, report };
    checker.window();
    scenario.nodes.iter().for_each(|node| checker.node(node));
    scenario.links.iter().for_each(|link| checker.link(link));
    scenario.flows.iter().for_each(|flow| checker.flow(flow));
    checker.constellations();
    if checker.report.is_empty() {
        checker.routes();
    }
}

/// Smallest initial window of a QUIC flow in segments, the one that RFC 9002 recommends.
pub const LEAST_QUIC_WINDOW: u32 = 10;
/// Keys of a `tcp` table that QUIC uses, too.
const KEYS_OF_QUIC: [&str; 5] = ["mss", "header", "initial-window", "receive-window", "careful-resume"];
/// Smallest full packet of a path that carries QUIC, IP and UDP headers included (RFC 9000, section 14).
pub const LEAST_QUIC_PACKET: u32 = 1228;
/// Maximum number of computation steps for satellite positions.
const MOST_STEPS: u64 = 1_000_000;
/// Maximum number of satellites, above all known plans.
const MOST_SATELLITES: u64 = 100_000;
/// Maximum number of ground stations: each pair may need a path.
const MOST_STATIONS: usize = 1000;

struct Checker<'a> {
    scenario: &'a Scenario,
    root: &'a Node,
    report: &'a mut Report,
}

impl Checker<'_> {
    fn mistake(&mut self, key: String, found: String, accepted: &str) {
        let place = place_of(self.root, &key);
        let accepted = accepted.to_owned();
        self.report.add(Mistake { place, key, found, accepted, suggestion: None });
    }

    fn node(&mut self, node: &NodeGroup) {
        if let NodeKind::RelayEntity(relay) = &node.kind
            && relay.low >= relay.high
        {
            let found = format!("{} with high = {}", relay.low, relay.high);
            self.mistake(format!("node.{}.low", node.name), found, "less than high");
        }
    }

    fn link(&mut self, link: &LinkGroup) {
        let path = format!("link.{}", link.name);
        let near = self.node_group(&link.from, format!("{path}.between"), false);
        let far = self.node_group(&link.to, format!("{path}.between"), false);
        if let (Some(near), Some(far)) = (near, far) {
            self.pairing(&path, &near, &far);
        }
        let reverse = format!("{path}.reverse");
        let same = link.reverse == link.forward && link.radio[0] == link.radio[1];
        self.direction(&path, &link.forward, &link.radio[0], [&link.from, &link.to]);
        if !same || link.radio[1].medium.is_some() {
            let path = if same { &path } else { &reverse };
            self.direction(path, &link.reverse, &link.radio[1], [&link.to, &link.from]);
        }
    }

    /// Checks that two groups differ and have equal sizes, unless one is a single node.
    fn pairing(&mut self, path: &str, near: &NodeGroup, far: &NodeGroup) {
        let found = if near.name == far.name {
            format!("both ends at \"{}\"", near.name)
        } else if near.count != far.count && near.count != 1 && far.count != 1 {
            format!("{} nodes \"{}\" and {} nodes \"{}\"", near.count, near.name, far.count, far.name)
        } else {
            return;
        };
        let accepted = "two groups of nodes of equal count, or one of them a single node";
        self.mistake(format!("{path}.between"), found, accepted);
    }

    /// Checks one direction of a link group between these groups of nodes.
    fn direction(&mut self, path: &str, link: &LinkConfig, radio: &Radio, ends: [&str; 2]) {
        let mut checks = vec![];
        if let Some(modem) = &radio.modem {
            checks.push(modem.validate().map_err(|error| error.within("modem")));
            checks.push(radio.weather.validate().map_err(|error| error.within("weather")));
        }
        checks.push(link.validate());
        if let Some(access) = &radio.medium {
            let [tail, head] = ends.map(|name| self.count(name));
            let single = head == 1;
            let wrong_way = ConfigError::new(
                "medium",
                access.name(),
                "a medium in the direction that leads to a single node",
            );
            checks.push(if single { Ok(()) } else { Err(wrong_way) });
            checks.push(shared_channel(link, access, tail as usize).map(|_| ()));
        }
        if let Some(Err(ConfigError { field, found, accepted })) = checks.into_iter().find(Result::is_err) {
            self.mistake(format!("{path}.{}", field.replace('_', "-")), found, accepted);
        }
    }

    /// Returns the number of members of the node group `name`.
    fn count(&self, name: &str) -> u32 {
        self.scenario.nodes.iter().find(|group| group.name == name).map_or(1, |group| group.count)
    }

    fn flow(&mut self, flow: &FlowGroup) {
        let path = format!("flow.{}", flow.name);
        self.node_group(&flow.from, format!("{path}.from"), true);
        self.node_group(&flow.to, format!("{path}.to"), true);
        let rto = &flow.sender.sender.rto;
        if rto.floor > rto.ceiling {
            let found = format!("a floor of {} above the ceiling of {}", rto.floor, rto.ceiling);
            let own = format!("{path}.tcp.rto");
            let is_own = self.root.as_table().is_some_and(|root| root.find(&own).is_some());
            let key = if is_own { own } else { "tcp.rto".to_owned() };
            self.mistake(format!("{key}.floor"), found, "a floor of at most the ceiling");
        }
        let packet = u64::from(flow.sender.mss) + u64::from(flow.headers_on_wire());
        if packet > MOST_PACKET_BYTES {
            let own = format!("{path}.tcp.mss");
            let is_own = self.root.as_table().is_some_and(|root| root.find(&own).is_some());
            let key = if is_own { own } else { "tcp.mss".to_owned() };
            let found = format!("{} bytes with {} of headers", flow.sender.mss, flow.headers_on_wire());
            self.mistake(key, found, "packets of at most 65535 bytes");
        }
        self.transport(&path, flow);
        self.second_path(&path, flow);
        self.traffic(&path, flow);
    }

    /// Checks that the measurement window is in the run, and that what the flows measure can be told for a part of it.
    fn window(&mut self) {
        let Scenario { measure_from, duration, flows, .. } = self.scenario;
        if measure_from.is_zero() {
            return;
        }
        if measure_from >= duration {
            let accepted = format!("a time before the end, {duration}");
            self.mistake("measure.from".to_owned(), measure_from.to_string(), &accepted);
        }
        let tells = |flow: &&FlowGroup| {
            matches!(flow.transport, Transport::Tcp | Transport::Udp)
                && !matches!(
                    flow.traffic,
                    Traffic::Video { .. }
                        | Traffic::Frames { .. }
                        | Traffic::Voice { .. }
                        | Traffic::Adaptive(_)
                )
        };
        if let Some(flow) = flows.iter().find(|flow| !tells(flow)) {
            let found = format!(
                "a window with flow.{}, traffic of kind \"{}\" over {}",
                flow.name,
                kind_of(&flow.traffic),
                TRANSPORTS.show(&flow.transport)
            );
            let accepted = "bulk, file, pages, web, ftp, cbr and on-off over tcp or udp";
            self.mistake("measure.from".to_owned(), found, accepted);
        }
    }

    /// Checks that the transport can carry the flow's traffic.
    fn transport(&mut self, path: &str, flow: &FlowGroup) {
        let carriers = flow.traffic.carriers();
        if !carriers.contains(&flow.transport) {
            let name = |transport: &Transport| TRANSPORTS.show(transport).to_string();
            let found =
                format!("{} under traffic of kind \"{}\"", name(&flow.transport), kind_of(&flow.traffic));
            let accepted = carriers.iter().map(name).collect::<Vec<_>>().join(", ");
            self.mistake(format!("{path}.transport"), found, &accepted);
        }
        self.congestion_control(path, flow);
        let tcp_header = format!("{path}.tcp.header");
        if flow.transport == Transport::Udp
            && self.root.as_table().is_some_and(|root| root.find(&tcp_header).is_some())
        {
            let found = "headers of TCP for a flow over \"udp\"".to_owned();
            self.mistake(tcp_header, found, "transport = { kind = \"udp\", header = \"28 bytes\" }");
        }
        if flow.esp.is_some() && flow.transport != Transport::Tcp {
            let found = format!("encapsulation of {}", TRANSPORTS.show(&flow.transport));
            self.mistake(format!("{path}.esp"), found, "\"none\", or flows over \"tcp\"");
        }
        let rate = match flow.transport {
            Transport::Petra => flow.options.petra.rate,
            _ => flow.options.dtn.rate,
        };
        let is_planned = self.scenario.constellations.is_empty() || rate.is_some();
        if matches!(flow.transport, Transport::Dtn | Transport::Petra) && !is_planned {
            let word = if flow.transport == Transport::Petra { "share" } else { "link" };
            let found = format!("\"{word}\" where the links on the way change");
            self.mistake(format!("{path}.transport.rate"), found, "a rate such as \"10 Mbit/s\"");
        }
        if flow.transport == Transport::Dtn
            && u64::from(flow.options.dtn.bundle_bytes) > flow.options.dtn.store_bytes
        {
            let dtn = &flow.options.dtn;
            let found = format!("{} bytes for bundles of {}", dtn.store_bytes, dtn.bundle_bytes);
            self.mistake(format!("{path}.transport.store"), found, "room for a bundle");
        }
    }

    /// Checks that the transport has the congestion control, and room for the smallest packet of QUIC.
    fn congestion_control(&mut self, path: &str, flow: &FlowGroup) {
        let is_of_stack = stack_control(&flow.cc).is_some();
        if flow.transport != Transport::Quic {
            if is_of_stack {
                let accepted = format!("{}, or transport = \"quic\"", algorithm_names().join(", "));
                self.mistake(format!("{path}.cc"), format!("\"{}\" without QUIC", flow.cc), &accepted);
            }
            return;
        }
        let refused = PacketControl::new(&flow.sender.sender.cc, &Settings::default()).err();
        let refused = refused.map(|refused| refused.to_string());
        let recovery =
            flow.cc.contains('+').then(|| format!("\"{}\": QUIC has its own loss recovery", flow.cc));
        if let Some(found) = refused.or(recovery).filter(|_| !is_of_stack) {
            let names = supported().map(|entry| entry.name).chain(stack_controls());
            self.mistake(format!("{path}.cc"), found, &names.collect::<Vec<_>>().join(", "));
        }
        self.options_of_tcp(path);
        self.initial_window_of_quic(path, flow);
        let packet = flow.sender.mss + flow.header_bytes;
        if packet < LEAST_QUIC_PACKET {
            let found = format!("{packet} bytes for a packet with its headers, over QUIC");
            self.mistake(format!("{path}.tcp.mss"), found, "packets of at least 1228 bytes");
        }
    }

    /// Refuses an initial window in which the handshake of the QUIC stack can lock itself: padded ACKs of its first packets count as
    /// in flight until it ends.
    fn initial_window_of_quic(&mut self, path: &str, flow: &FlowGroup) {
        let segments = flow.sender.sender.initial_window.segments(flow.sender.mss);
        if segments < LEAST_QUIC_WINDOW {
            let found = format!("{segments} segments over QUIC");
            self.mistake(format!("{path}.tcp.initial-window"), found, "at least 10 segments");
        }
    }

    /// Refuses keys of a flow's own `tcp` tables that QUIC has no use for. Defaults for all flows may have them.
    fn options_of_tcp(&mut self, path: &str) {
        for table in ["tcp", "receiver.tcp"].map(|table| format!("{path}.{table}")) {
            let entry = self.root.as_table().and_then(|root| root.find(&table));
            let entries = entry.and_then(|entry| entry.node.as_table()).map(|table| &table.entries);
            let keys = entries.into_iter().flatten().map(|entry| entry.key.clone());
            for key in keys.filter(|key| !KEYS_OF_QUIC.contains(&key.as_str())).collect::<Vec<_>>() {
                let accepted = KEYS_OF_QUIC.join(", ");
                self.mistake(
                    format!("{table}.{key}"),
                    "an option of TCP for a flow over QUIC".to_owned(),
                    &accepted,
                );
            }
        }
    }

    /// Checks a second path: only associations have one; it needs routers and fixed routes.
    fn second_path(&mut self, path: &str, flow: &FlowGroup) {
        let (Some(name), key) = (&flow.second_path, format!("{path}.second-path")) else { return };
        let Some(group) = self.node_group(name, key.clone(), false) else { return };
        let moves = self.scenario.routing != Routing::Fixed;
        let (found, accepted) = match flow.transport {
            Transport::Sctp if group.kind == NodeKind::Host => (format!("the host \"{name}\""), "a router"),
            Transport::Sctp if moves => ("a second path where routes change".to_owned(), "fixed routing"),
            Transport::Sctp => return,
            _ => (format!("a second path under {}", TRANSPORTS.show(&flow.transport)), "\"sctp\""),
        };
        self.mistake(key, found, accepted);
    }

    fn traffic(&mut self, path: &str, flow: &FlowGroup) {
        let key = |key: &str| format!("{path}.traffic.{key}");
        match &flow.traffic {
            Traffic::OnOff(on_off::Config { packet_bytes, .. }) | Traffic::Cbr { packet_bytes, .. }
                if *packet_bytes <= flow.headers() =>
            {
                let found = format!("{packet_bytes} bytes with {} of headers", flow.headers());
                self.mistake(key("packet"), found, "a packet larger than its headers");
            }
            Traffic::Video { video, stream } => self.pace(key("threshold"), video.frames_per_s, stream),
            Traffic::Frames { frames_per_s, stream, .. } => {
                self.pace(key("threshold"), *frames_per_s, stream);
            }
            Traffic::Adaptive(config) => self.player(&key, config),
            _ => {}
        }
    }

    /// Checks that the threshold for late packets is at least the time between two frames;
    /// otherwise every frame is late.
    fn pace(&mut self, key: String, frames_per_s: f64, stream: &Streaming) {
        if stream.threshold.as_secs_f64() * frames_per_s < 1.0 {
            let found = format!("{} at {frames_per_s} frames a second", stream.threshold);
            self.mistake(key, found, "at least the time between two frames");
        }
    }

    fn player(&mut self, key: &dyn Fn(&str) -> String, config: &adaptive::Config) {
        let whole = config.segment * (config.buffer.as_nanos() / config.segment.as_nanos());
        if whole < config.startup || whole.is_zero() {
            let found = format!("{} for segments of {}", config.buffer, config.segment);
            let accepted = "room for a segment, and in whole segments for what playing begins with";
            self.mistake(key("buffer"), found, accepted);
        }
        if let adaptive::Logic::Buffer { reservoir, cushion } = config.logic
            && (cushion <= 0.0 || reservoir + cushion > 1.0)
        {
            let found = format!("a reservoir of {reservoir} and a cushion of {cushion}");
            self.mistake(key("player.cushion"), found, "a cushion above 0, both together at most 1");
        }
    }

    /// Returns the group `name`, or reports a mistake at `key`.
    fn node_group(&mut self, name: &str, key: String, must_be_host: bool) -> Option<NodeGroup> {
        let fits = |group: &&NodeGroup| !must_be_host || group.kind.ends_connections();
        let forwarder = self.scenario.nodes.iter().find(|group| group.name == name);
        if let Some(group) = forwarder.filter(fits) {
            return Some(group.clone());
        }
        let known: Vec<_> = self.scenario.nodes.iter().filter(fits).map(|group| group.name.clone()).collect();
        let kind = if must_be_host { "host" } else { "node" };
        self.report.add(Mistake {
            place: place_of(self.root, &key),
            key,
            found: match forwarder {
                Some(group) => format!("the {} \"{name}\"", group.kind.name()),
                None => format!("no {kind} \"{name}\""),
            },
            accepted: if known.is_empty() {
                format!("a {kind}, of which there is none")
            } else {
                known.join(", ")
            },
            suggestion: did_you_mean(name, &known)
                .filter(|_| forwarder.is_none())
                .map(|name| format!("\"{name}\"")),
        });
        None
    }

    /// Checks the constellation: at most one, with valid orbits and reachable ground stations.
    fn constellations(&mut self) {
        let scenario = self.scenario;
        let is_station =
            |node: &&NodeGroup| matches!(node.kind, NodeKind::GroundStation(_) | NodeKind::Satellite(_));
        for station in scenario.nodes.iter().filter(is_station).filter(|station| station.count > 1) {
            let (key, found) = (format!("node.{}.count", station.name), station.count.to_string());
            self.mistake(key, found, "1: a ground station is one place, and a satellite is one host");
        }
        let stations = scenario.nodes.iter().filter(is_station).count();
        if stations > MOST_STATIONS {
            let found = format!("{stations} ground stations and satellites");
            return self.mistake("node".to_owned(), found, "at most 1000");
        }
        match scenario.constellations.as_slice() {
            [] => {
                if let Some(station) = scenario.nodes.iter().find(is_station) {
                    let key = format!("node.{}.kind", station.name);
                    let found =
                        format!("a {} without a constellation", station.kind.name().replace('-', " "));
                    self.mistake(key, found, "a constellation");
                }
            }
            [group] if stations == 0 => {
                let found = "no ground station".to_owned();
                self.mistake(
                    format!("constellation.{}", group.name),
                    found,
                    "nodes of kind \"ground-station\"",
                );
            }
            [group] => self.constellation(group),
            [_, second, ..] => {
                let key = format!("constellation.{}", second.name);
                self.mistake(key, "another constellation".to_owned(), "one constellation");
            }
        }
    }

    fn sky_link(&mut self, path: &str, link: &LinkConfig) {
        if let Err(ConfigError { field, found, accepted }) = link.validate() {
            self.mistake(format!("{path}.{}", field.replace('_', "-")), found, accepted);
        }
    }

    fn constellation(&mut self, group: &ConstellationGroup) {
        let path = format!("constellation.{}", group.name);
        self.sky_link(&format!("{path}.ground"), &group.up);
        if group.down != group.up {
            self.sky_link(&format!("{path}.ground.down"), &group.down);
        }
        if group.links.is_some() {
            self.sky_link(&format!("{path}.between"), &group.between);
        }
        let steps = self.scenario.duration.as_nanos() / group.step.as_nanos().max(1);
        if steps > MOST_STEPS {
            let found = format!("{} for {}", group.step, self.scenario.duration);
            return self.mistake(
                format!("{path}.step"),
                found,
                "a step of at least a millionth of the duration",
            );
        }
        if let Orbits::Shell(shell) = &group.orbits
            && u64::from(shell.planes) * u64::from(shell.per_plane) > MOST_SATELLITES
        {
            let found = format!("{} planes of {} satellites", shell.planes, shell.per_plane);
            return self.mistake(format!("{path}.planes"), found, "at most 100000 satellites");
        }
        let flies = group.fly(self.scenario.duration).and_then(|satellites| {
            self.scenario.sky(group, &satellites)?;
            Ok(satellites)
        });
        match flies {
            Ok(satellites) => {
                let mask = group.elevation_mask_deg;
                for station in self.scenario.ground_stations() {
                    if station.way.is_empty() && !satellites.reaches(&station, mask) {
                        let found = format!("{} deg", station.place.latitude_deg);
                        let accepted = format!(
                            "a place over which satellites of \"{}\" rise above {mask} deg",
                            group.name
                        );
                        self.mistake(format!("node.{}.latitude", station.name), found, &accepted);
                    }
                }
            }
            Err(OrbitError::Impossible { place, found, accepted }) => {
                let of_station = self
                    .scenario
                    .nodes
                    .iter()
                    .any(|node| place.split('.').next() == Some(node.name.as_str()));
                let key = if of_station { format!("node.{place}") } else { format!("{path}.{place}") };
                self.mistake(key, found, accepted);
            }
            Err(OrbitError::Link { line, column, found, accepted }) => {
                if let Some(Links::File(links)) = &group.links {
                    let place = Place::File { file: links.name.clone(), line, column };
                    let key = format!("{path}.links.file");
                    self.report.add(Mistake { place, key, found, accepted, suggestion: None });
                }
            }
            Err(error) => {
                self.mistake(format!("{path}.file"), error.to_string(), "elements that fly");
            }
        }
    }

    /// Checks that every flow has a path; hosts do not forward.
    fn routes(&mut self) {
        let network = Network::of(self.scenario);
        for flow in &self.scenario.flows {
            let nodes = |name: &str| self.scenario.nodes.iter().find(|group| group.name == name);
            let (Some(from), Some(to)) = (nodes(&flow.from), nodes(&flow.to)) else { continue };
            let ends = |i: u32| [(from.name.as_str(), i % from.count), (to.name.as_str(), i % to.count)];
            let stranded = (0..flow.count).map(ends).find(|[from, to]| !network.connects(*from, *to));
            if let Some([from, to]) = stranded {
                let found = format!(
                    "no route from {} to {}",
                    spelled(self.scenario, from),
                    spelled(self.scenario, to)
                );
                let accepted = "two hosts joined by a link, or by links through routers";
                self.mistake(format!("flow.{}", flow.name), found, accepted);
            }
        }
    }
}

/// Returns the name of a node as in the results.
fn spelled(scenario: &Scenario, (group, index): Hop<'_>) -> String {
    let single = scenario.nodes.iter().any(|node| node.name == group && node.count == 1);
    if single { group.to_owned() } else { format!("{group}.{index}") }
}

/// Returns the place of the key at `path`, or of the nearest key above it.
fn place_of(root: &Node, path: &str) -> Place {
    let table = root.as_table();
    let mut path = path;
    loop {
        if let Some(entry) = table.and_then(|table| table.find(path)) {
            // A message shows a table by its name, and any other entry by its value.
            let is_table = entry.node.as_table().is_some();
            return if is_table { entry.place.clone() } else { entry.node.place.clone() };
        }
        match path.rsplit_once('.') {
            Some((above, _)) => path = above,
            None => return root.place.clone(),
        }
    }
}
