//! Worlds built from their parts, for tests and measurements.

#![allow(dead_code, reason = "each test file uses its share")]

pub mod rounds;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate, Rng};
use bentpipe_cc::Algorithm;
use bentpipe_net::{Limit, LinkConfig, LossConfig, LossModel, QueueConfig};
use bentpipe_scenario::{Draft, FlowGroup, LinkGroup, NodeGroup, NodeKind, Routing, Scenario, Traffic};
use bentpipe_tcp::{Config, DelayedAck, InitialWindow, ReceiveWindow, Recovery, RtoBounds};

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn hosts(name: &str, count: u32) -> NodeGroup {
    NodeGroup { name: name.to_owned(), kind: NodeKind::Host, count }
}

pub fn router(name: &str) -> NodeGroup {
    NodeGroup { name: name.to_owned(), kind: NodeKind::Router, count: 1 }
}

/// A drop-tail queue of the given number of packets.
pub fn drop_tail(packets: u32) -> QueueConfig {
    QueueConfig::DropTail { limit: Limit::Packets(packets) }
}

/// Links that are the same in both directions.
pub fn links(name: &str, (from, to): (&str, &str), config: LinkConfig) -> LinkGroup {
    LinkGroup {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        forward: config.clone(),
        reverse: config,
        radio: Default::default(),
    }
}

/// `count` flows from `senders` to `receivers`, whose ends have the same configuration.
pub fn flows(name: &str, count: u32, traffic: Traffic, config: Config) -> FlowGroup {
    let (cc, default_recovery) = (config.sender.cc.name().to_owned(), config.sender.recovery);
    let config = Arc::new(config);
    FlowGroup {
        name: name.to_owned(),
        from: "senders".to_owned(),
        to: "receivers".to_owned(),
        count,
        fixed: false,
        start: Duration::ZERO,
        stagger: Duration::ZERO,
        cc,
        default_recovery,
        sender: config.clone(),
        receiver: config,
        header_bytes: 40,
        udp_header_bytes: 40,
        transport: traffic.carriers()[0],
        second_path: None,
        options: Default::default(),
        esp: None,
        plain_receiver: false,
        traffic,
    }
}

/// A dumbbell of `pairs` hosts on either side of a satellite link.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    pub pairs: u32,
    pub access: LinkConfig,
    pub satellite: LinkConfig,
}

impl Dumbbell {
    /// Access links of 1 ms, a satellite of 273 ms one way, `buffer` packets in front of it: 550 ms there and back.
    pub fn geo(pairs: u32, rates: (Rate, Rate), buffer: u32) -> Self {
        Self {
            pairs,
            access: LinkConfig::new(rates.0, ms(1), drop_tail(100_000)),
            satellite: LinkConfig::new(rates.1, ms(273), drop_tail(buffer)),
        }
    }

    /// Loses data packets on the satellite link with this probability.
    pub fn with_loss(mut self, probability: f64) -> Self {
        self.satellite.loss = LossConfig::data(LossModel::Packet { probability });
        self
    }

    pub fn scenario(&self, duration: Duration, flows: Vec<FlowGroup>) -> Scenario {
        Scenario {
            name: "dumbbell".to_owned(),
            title: String::new(),
            duration,
            seed: 1,
            routing: Routing::Fixed,
            measure_from: Duration::ZERO,
            constellations: Vec::new(),
            nodes: vec![
                hosts("senders", self.pairs),
                router("west"),
                router("east"),
                hosts("receivers", self.pairs),
            ],
            links: vec![
                links("left", ("senders", "west"), self.access.clone()),
                links("satellite", ("west", "east"), self.satellite.clone()),
                links("right", ("east", "receivers"), self.access.clone()),
            ],
            flows,
            draws: bentpipe_scenario::Draws::default(),
        }
    }
}

/// The TCP of the common world: 960-byte payloads so that a packet has 1000 bytes, a window of `window` segments, one ACK per
/// segment, an initial window of two, SACK.
pub fn paper_tcp(window: u64) -> Config {
    Config::default().with(|config| {
        config.sender.cc = Algorithm::from_name("reno").expect("Reno is registered");
        config.mss = 960;
        config.sender.recovery = Recovery::Sack;
        config.timestamps = false;
        config.sender.limited_transmit = false;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.sender.initial_window = InitialWindow::Segments(2);
        config.receiver.receive_window = ReceiveWindow::Fixed(window * 960);
        config.sender.send_buffer = 2 * window * 960; // RFC 6298 and RFC 6675 without what came later.
        config.sender.rto = RtoBounds { margin: Duration::ZERO, ..Config::default().sender.rto };
        config.sender.prr = false;
        config.sender.undo = false;
    })
}

/// `count` bulk flows over the common GEO world, its satellite link scaled up to `rate`.
pub fn geo_bulk(count: u32, rate: Rate, duration: Duration) -> Scenario {
    // As many packets as the link sends in 40 ms, like 50 at 10 Mbit/s.
    let buffer = (rate.bps() / 200_000) as u32;
    let access = Rate::from_mbps(10);
    let mut bulk = flows("bulk", count, Traffic::Bulk, paper_tcp(64));
    bulk.stagger = Duration::from_secs(1);
    Dumbbell::geo(count, (access, rate), buffer).with_loss(1e-4).scenario(duration, vec![bulk])
}

/// Flows between pairs of ground stations of their own under satellites that hand over: many have no link in common at any time, but take over
/// links of each other while packets are still on them.
pub fn under_satellites(seed: u64) -> Scenario {
    let mut rng = Rng::stream(seed, "under satellites");
    let pick = |rng: &mut Rng, words: &[&str]| words[rng.below(words.len() as u64) as usize].to_owned();
    let mut text = format!(
        r#"
        seed = {seed}
        duration = "{} s"
        [constellation.sky]
        kind = "walker-star"
        altitude = "780 km"
        inclination = "86.4 deg"
        planes = 6
        satellites-per-plane = 11
        plane-separation = "31.6 deg"
        phasing = 3
        elevation-mask = "8.2 deg"
        handover = "{}"
        step = "{} s"
        in-flight = "{}"
        interruption = "{} ms"
        [constellation.sky.ground]
        rate = "{} kbit/s"
        queue = "{} packets"
        [constellation.sky.between]
        rate = "{} kbit/s"
        queue = "{} packets"
        loss = {{ kind = "packet", rate = {} }}
        "#,
        100 + rng.below(200),
        pick(&mut rng, &["nearest", "in-plane", "longest-visible"]),
        1 + rng.below(10),
        pick(&mut rng, &["rerouted", "lost"]),
        rng.below(2) * rng.below(300),
        100 + rng.below(1_400),
        2 + rng.below(60),
        // Slow links between satellites hold many packets when they are given up or change hands.
        if rng.below(2) == 0 { 200 + rng.below(400) } else { 25_000 },
        2 + rng.below(60),
        pick(&mut rng, &["0.0", "1e-3", "1e-2"]),
    );
    for number in 0..3 + rng.below(4) {
        for side in ["from", "to"] {
            let (latitude, longitude) = (rng.uniform() * 140.0 - 70.0, rng.uniform() * 360.0 - 180.0);
            text += &format!(
                "[node.{side}-{number}]\nkind = \"ground-station\"\nlatitude = \"{latitude:.1} deg\"\nlongitude = \"{longitude:.1} deg\"\n"
            );
        }
        let traffic = match rng.below(4) {
            0 => format!("{{ kind = \"file\", size = \"{} kB\" }}", 1 + rng.below(3_000)),
            1 => "{ kind = \"cbr\", rate = \"100 kbit/s\", packet = \"500 bytes\" }".to_owned(),
            _ => "\"bulk\"".to_owned(),
        };
        text += &format!(
            "[flow.flow-{number}]\nfrom = \"from-{number}\"\nto = \"to-{number}\"\ntraffic = {traffic}\ncc = \"{}\"\ncount = {}\nstagger = \"20 s\"\n",
            pick(&mut rng, &["newreno", "cubic", "sack"]),
            1 + rng.below(2),
        );
    }
    let scenario = Draft::parse("under-satellites.toml", &text).and_then(|draft| draft.scenario());
    scenario.unwrap_or_else(|error| panic!("{error}"))
}
