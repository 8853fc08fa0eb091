//! Files that are written while a world runs: packets for analysers, events for notebooks.

use std::io::{self, Write};

use bentpipe_base::{Duration, Instant};
use bentpipe_outcome::{LinkEvent, Observer, Passing};
use bentpipe_scenario::{FlowGroup, Scenario, Topology, Transport};
use bentpipe_sim::{BuildError, RunOptions};
use bentpipe_trace::{Capture, Event, From, JsonLines, PacketLog, Protocol, Record, Seen, Sink};

/// Names of the parts of a world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// Flows, by index, and after them the legs of flows behind proxies.
    pub flows: Vec<String>,
    /// Directions of links, by index.
    pub links: Vec<(String, &'static str)>,
    /// Ends and transport of each flow.
    pub carriers: Vec<Carrier>,
}

/// Ends and transport of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carrier {
    /// Numbers of the nodes at which the flow begins and ends.
    pub hosts: [u32; 2],
    /// Protocol of its packets, with the bytes of a header; `None` for TCP.
    pub protocol: Option<(Protocol, u32)>,
}

/// Returns the protocol of a flow group, and the bytes of its packets in front of what an end sends; `None` for TCP.
fn protocol(group: &FlowGroup) -> Option<(Protocol, u32)> {
    let other = |name| Some((Protocol::Other(name), IP_HEADER));
    match group.transport {
        Transport::Tcp => None,
        Transport::Udp => Some((Protocol::Udp, group.headers_on_wire())),
        Transport::Quic => Some((Protocol::Udp, IP_HEADER)),
        Transport::Sctp => Some((Protocol::Sctp, IP_HEADER)),
        Transport::Tfrc => other("TFRC"),
        Transport::Admission => other("datagrams with admission by probes"),
        Transport::Stp => other("STP"),
        Transport::Dtn => other("DTN bundles"),
        Transport::Petra => other("PETRA"),
    }
}

/// Bytes of the IP header of packets without TCP.
const IP_HEADER: u32 = 20;

impl Names {
    /// Reads the names from the world of a scenario at its start.
    ///
    /// # Errors
    /// If there is no such world.
    pub fn of(scenario: &Scenario) -> Result<Self, BuildError> {
        // A constellation has the links that are used in all the time.
        let topology = Topology::new(scenario).map_err(BuildError::from)?;
        let mut carriers = Vec::new();
        for group in &scenario.flows {
            let user = || format!("flow.{}", group.name);
            let [from, to] = [&group.from, &group.to].map(|name| topology.group(user, name));
            let (from, to) = (from.map_err(BuildError::from)?, to.map_err(BuildError::from)?);
            let member = |nodes: &std::ops::Range<u32>, index: u32| nodes.start + index % nodes.len() as u32;
            let protocol = protocol(group);
            let carrier = |index| Carrier { hosts: [member(&from, index), member(&to, index)], protocol };
            carriers.extend((0..group.count).map(carrier));
        }
        let idle = Scenario { duration: Duration::ZERO, ..scenario.clone() };
        let outcome = bentpipe_sim::run(&idle, &RunOptions::default())?.outcome;
        let split = outcome.flows.iter().filter_map(|flow| flow.split.as_ref());
        let legs: Vec<_> = split.flat_map(|split| &split.legs).map(|leg| leg.name.clone()).collect();
        Ok(Self {
            flows: outcome.flows.into_iter().map(|flow| flow.name).chain(legs).collect(),
            links: topology.links().map(|link| (link.name.to_string(), link.direction)).collect(),
            carriers,
        })
    }

    /// Number of sources of records.
    pub fn sources(&self) -> u32 {
        (2 * self.flows.len() + self.links.len()) as u32
    }

    /// Returns the name of a source. Ends are numbered before links; those of flow `f` are `2 f` and `2 f + 1`.
    pub fn source(&self, source: u32) -> String {
        let end = source as usize;
        match self.flows.get(end / 2) {
            Some(flow) => format!("flow.{flow}.{}", ["sender", "receiver"][end % 2]),
            None => {
                let link = self.links.get(end - 2 * self.flows.len());
                link.map_or_else(String::new, |(name, direction)| format!("link.{name}.{direction}"))
            }
        }
    }
}

/// Writes every event as a line of JSON.
pub struct EventLog<W> {
    lines: JsonLines<W, Box<dyn Fn(u32) -> String + Send>>,
    first_link: u32,
}

impl<W: Write> EventLog<W> {
    /// Writes to `out`.
    pub fn new(out: W, names: Names) -> Self {
        let first_link = 2 * names.flows.len() as u32;
        Self { lines: JsonLines::new(out, Box::new(move |source| names.source(source))), first_link }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.lines.finish()
    }
}

impl<W: Write> Observer for EventLog<W> {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        if let Some(event) = event.traced(passing.bytes) {
            self.lines.record(&Record { at, source: self.first_link + passing.link, event });
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        self.lines.record(&Record { at, source: end, event: *event });
    }
}

/// Place where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tap {
    /// At every sender, as it would see them itself.
    Senders,
    /// At the near end of a link, before its queue.
    Link {
        /// Index of the forward direction.
        forward: u32,
        /// Index of the other.
        reverse: u32,
    },
}

impl Tap {
    /// The near end of the link `name`, if there is one.
    pub fn link(name: &str, names: &Names) -> Option<Self> {
        let of =
            |direction| names.links.iter().position(|link| (link.0.as_str(), link.1) == (name, direction));
        Some(Self::Link { forward: of("forward")? as u32, reverse: of("reverse")? as u32 })
    }
}

/// Writes the packets that pass a place as a capture file.
pub struct PacketFile<W> {
    log: PacketLog<W>,
    tap: Tap,
    carriers: Vec<Carrier>,
}

impl<W: Write> PacketFile<W> {
    /// Begins the file; the name of the place is that of its interface, and `carriers` are those of each flow.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, (tap, place): (Tap, &str), carriers: Vec<Carrier>) -> io::Result<Self> {
        let application = concat!("Bentpipe ", env!("CARGO_PKG_VERSION"));
        let capture = Capture::new(out, application, [place])?;
        let hosts = carriers.iter().map(|carrier| carrier.hosts).collect();
        Ok(Self { log: PacketLog::new(capture, hosts), tap, carriers })
    }

    /// Returns the protocol of a flow with the bytes of a header; `None` for TCP, and for the legs behind proxies.
    fn protocol(&self, flow: u32) -> Option<(Protocol, u32)> {
        self.carriers.get(flow as usize)?.protocol
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.log.finish()
    }
}

impl<W: Write> Observer for PacketFile<W> {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        let Tap::Link { forward, reverse } = self.tap else { return };
        let leaves = passing.link == forward && matches!(event, LinkEvent::Offered { .. });
        let comes = passing.link == reverse && event == LinkEvent::Delivered;
        if leaves || comes {
            // A packet for the receiver was sent by the sender.
            let from = if passing.to_end % 2 == 1 { From::Opener } else { From::Listener };
            let seen = Seen { interface: 0, connection: passing.to_end / 2, from };
            match (passing.segment, self.protocol(seen.connection)) {
                (Some(segment), _) => self.log.packet(at, seen, segment),
                (None, Some((protocol, _))) => self.log.datagram(at, seen, (protocol, passing.bytes)),
                (None, None) => {}
            }
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        let (from, segment) = match event {
            _ if self.tap != Tap::Senders || end % 2 == 1 => return,
            Event::Sent(segment) => (From::Opener, segment),
            Event::Received(segment) => (From::Listener, segment),
            _ => return,
        };
        let seen = Seen { interface: 0, connection: end / 2, from };
        match self.protocol(seen.connection) {
            Some((protocol, header)) => self.log.datagram(at, seen, (protocol, header + segment.len)),
            None => self.log.packet(at, seen, segment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Flags, Segment};

    fn names() -> Names {
        let links =
            ["a.0", "b"].into_iter().flat_map(|l| [(l.to_owned(), "forward"), (l.to_owned(), "reverse")]);
        Names { flows: vec!["bulk".into()], links: links.collect(), carriers: Vec::new() }
    }

    #[test]
    fn names_are_found() {
        assert_eq!(names().source(1), "flow.bulk.receiver");
        assert_eq!(names().source(2 + 3), "link.b.reverse");
        assert_eq!(Tap::link("b", &names()), Some(Tap::Link { forward: 2, reverse: 3 }));
        assert_eq!(Tap::link("c", &names()), None);
    }

    #[test]
    fn a_built_in_world_has_the_names_of_its_result() {
        let names = Names::of(&bentpipe_scenario::load("geo-dumbbell").unwrap()).unwrap();
        assert_eq!((names.flows.len(), names.flows[19].as_str()), (20, "bulk.19"));
        assert!(names.links.contains(&("satellite".into(), "forward")));
    }

    /// Counts the packets that a tap sees of one segment over two links.
    fn captured(tap: Tap) -> usize {
        let empty = PacketFile::new(Vec::new(), (tap, "x"), Vec::new()).unwrap().finish().unwrap().len();
        let mut file = PacketFile::new(Vec::new(), (tap, "x"), Vec::new()).unwrap();
        let segment = Segment { flags: Flags::ACK, ..Segment::default() };
        file.on_end(Instant::ZERO, 0, &Event::Sent(segment));
        for link in [0, 2] {
            let passing = Passing { link, bytes: 40, to_end: 1, segment: Some(&segment) };
            file.on_link(Instant::ZERO, LinkEvent::Offered { waiting: 0 }, &passing);
            file.on_link(Instant::ZERO, LinkEvent::Delivered, &passing);
        }
        file.on_end(Instant::ZERO, 1, &Event::Received(segment));
        (file.finish().unwrap().len() - empty) / 72
    }

    #[test]
    fn packets_without_tcp_are_captured_at_senders_and_links() {
        let carriers = vec![Carrier { hosts: [0, 1], protocol: Some((Protocol::Udp, 28)) }];
        let file = |tap| PacketFile::new(Vec::new(), (tap, "x"), carriers.clone()).unwrap();
        let empty = file(Tap::Senders).finish().unwrap().len();
        let segment = Segment { len: 1_000, ..Segment::default() };
        let passing = Passing { link: 2, bytes: 1_028, to_end: 1, segment: None };
        for tap in [Tap::Senders, Tap::Link { forward: 2, reverse: 3 }] {
            let mut file = file(tap);
            file.on_end(Instant::ZERO, 0, &Event::Sent(segment));
            file.on_link(Instant::ZERO, LinkEvent::Offered { waiting: 0 }, &passing);
            let bytes = file.finish().unwrap();
            // A block of 32 bytes around headers of 28, which say the whole length.
            assert_eq!(bytes.len() - empty, 60, "{tap:?}");
            assert_eq!(bytes[empty + 24..][..4], 1_028_u32.to_le_bytes());
        }
    }

    #[test]
    fn each_place_sees_a_packet_once() {
        assert_eq!(captured(Tap::Senders), 1);
        assert_eq!(captured(Tap::Link { forward: 2, reverse: 3 }), 1);
        assert_eq!(captured(Tap::Link { forward: 4, reverse: 5 }), 0);
    }
}
