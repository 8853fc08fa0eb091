//! Worlds built from their parts, for tests and measurements.

#![allow(dead_code, reason = "each test file uses its share")]

pub mod rounds;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use bentpipe_net::{Limit, LinkConfig, LossConfig, LossModel, QueueConfig};
use bentpipe_scenario::{FlowGroup, LinkGroup, NodeGroup, NodeKind, Routing, Scenario, Traffic};
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

/// A drop-tail queue of so many packets.
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
    let (cc, default_recovery) = (config.cc.name().to_owned(), config.recovery);
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
        }
    }
}

/// The TCP of the common world: 960-byte payloads so that a packet has 1000 bytes, a window of `window` segments, one ACK per
/// segment, an initial window of two, SACK.
pub fn paper_tcp(window: u64) -> Config {
    Config {
        cc: Algorithm::from_name("reno").expect("Reno is registered"),
        mss: 960,
        recovery: Recovery::Sack,
        timestamps: false,
        limited_transmit: false,
        delayed_ack: DelayedAck::Off,
        initial_window: InitialWindow::Segments(2),
        receive_window: ReceiveWindow::Fixed(window * 960),
        send_buffer: 2 * window * 960,
        // RFC 6298 and RFC 6675 without what came later.
        rto: RtoBounds { margin: Duration::ZERO, ..Config::default().rto },
        prr: false,
        undo: false,
        ..Config::default()
    }
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
