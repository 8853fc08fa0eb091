//! Metrics for Prometheus.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bentpipe_scenario::deployment::Deployment;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::report::{UdpCount, UdpReport};
use crate::udp::SIDES;

/// Packets and bytes of a counter in the packet filter.
pub(crate) type Count = [u64; 2];

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfClass {
    class: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfSide {
    class: String,
    side: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Ended {
    class: String,
    how: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

/// Reason why a new connection is forwarded untouched, or refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The limit of connections is reached.
    Connections,
    /// The limit of memory is reached.
    Memory,
    /// The server is unreachable; the network reports the error to the client.
    Unreachable,
    /// The proxy is about to end.
    Draining,
    /// A packet filter of this machine does not admit the proxy's packets.
    Firewall,
    /// Rules, routes or devices of the proxy are missing.
    Rules,
    /// The route depends on the arrival interface of the packet, so the engine's packets would take another route.
    Route,
    /// The destination of the packet has been translated.
    Translated,
    /// A helper of connection tracking reads the connection.
    Helper,
    /// Options of TCP that hold between the ends only (MD5, AO, ENO).
    Signed,
    /// The packet arrived by IPsec, or would leave by it.
    Ipsec,
    /// Options of IP.
    Options,
    /// A time to live near its ends.
    Ttl,
    /// The limit of half-open connections is reached.
    HalfOpen,
    /// The limit of one client is reached.
    HalfOpenOfClient,
    /// The limit of connections of one client is reached.
    ConnectionsOfClient,
}

impl Reason {
    /// Number for no reason.
    pub const NONE: u8 = 0;
    const ALL: [Self; 16] = [
        Self::Connections,
        Self::Memory,
        Self::Unreachable,
        Self::Draining,
        Self::Firewall,
        Self::Rules,
        Self::Route,
        Self::Translated,
        Self::Helper,
        Self::Signed,
        Self::Ipsec,
        Self::Options,
        Self::Ttl,
        Self::HalfOpen,
        Self::HalfOpenOfClient,
        Self::ConnectionsOfClient,
    ];

    /// A number other than [`Self::NONE`].
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The reason of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// Name in metrics and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Memory => "memory",
            Self::Unreachable => "unreachable",
            Self::Draining => "draining",
            Self::Firewall => "firewall",
            Self::Rules => "rules",
            Self::Route => "route",
            Self::Translated => "translated",
            Self::Helper => "helper",
            Self::Signed => "signed",
            Self::Ipsec => "ipsec",
            Self::Options => "options",
            Self::Ttl => "ttl",
            Self::HalfOpen => "half-open",
            Self::HalfOpenOfClient => "half-open-per-client",
            Self::ConnectionsOfClient => "connections-per-client",
        }
    }
}

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    classes: Mutex<HashMap<String, Arc<ClassMetrics>>>,
    opened: Family<OfClass, Counter>,
    active: Family<OfClass, Gauge>,
    ended: Family<Ended, Counter>,
    bytes: Family<OfSide, Counter>,
    retransmitted: Family<OfSide, Counter>,
    rtt: Family<OfSide, Histogram>,
    goodput: Family<OfSide, Histogram>,
    bypassed: Family<Why, Counter>,
    /// Last values of the counters in the packet filter, by their names.
    counters: Mutex<HashMap<String, Count>>,
    refused: Counter,
    udp_packets: Family<OfSide, Counter>,
    udp_bytes: Family<OfSide, Counter>,
    refused_quic: Family<OfClass, Counter>,
    pub lines_lost: Counter,
    pub memory: Gauge,
    /// 1 while new connections are forwarded untouched.
    pub bypassing: Gauge,
}

/// Metrics of one class, and of its halves over the satellite and towards the clients.
pub(crate) struct ClassMetrics {
    pub opened: Counter,
    pub active: Gauge,
    pub closed: Counter,
    pub reset: Counter,
    sides: [SideMetrics; 2],
}

struct SideMetrics {
    bytes: Counter,
    retransmitted: Counter,
    rtt: Histogram,
    goodput: Histogram,
}

impl Metrics {
    pub fn new() -> Self {
        // 1 ms to 16 s; 1 kbit/s to 17 Gbit/s.
        let rtt: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-3, 2.0, 15));
        let goodput: fn() -> Histogram = || Histogram::new(exponential_buckets(125.0, 4.0, 13));
        let mut metrics = Self {
            registry: Registry::with_prefix("bentpipe_pep"),
            classes: Mutex::default(),
            opened: Family::default(),
            active: Family::default(),
            ended: Family::default(),
            bytes: Family::default(),
            retransmitted: Family::default(),
            rtt: Family::new_with_constructor(rtt),
            goodput: Family::new_with_constructor(goodput),
            bypassed: Family::default(),
            counters: Mutex::default(),
            refused: Counter::default(),
            udp_packets: Family::default(),
            udp_bytes: Family::default(),
            refused_quic: Family::default(),
            lines_lost: Counter::default(),
            memory: Gauge::default(),
            bypassing: Gauge::default(),
        };
        metrics.register();
        // A counter that appears with its first event looks like a gap before.
        for reason in Reason::ALL {
            let _ = metrics.bypassed.get_or_create(&Why { reason: reason.word() });
        }
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("connections_opened", "Connections that were split", self.opened.clone());
        registry.register("connections", "Connections that exist", self.active.clone());
        registry.register("connections_ended", "Connections that have ended", self.ended.clone());
        registry.register(
            "sent",
            "Bytes of payload that the proxy has sent, up to two seconds ago",
            self.bytes.clone(),
        );
        registry.register(
            "retransmitted_segments",
            "Segments that the proxy has retransmitted",
            self.retransmitted.clone(),
        );
        registry.register_with_unit(
            "rtt",
            "Smoothed round-trip time of a half when its connection ended",
            Unit::Seconds,
            self.rtt.clone(),
        );
        registry.register(
            "goodput_bytes_per_second",
            "Payload sent over a half by the time that its connection lasted",
            self.goodput.clone(),
        );
        registry.register("bypassed", "New connections that were forwarded untouched, one by one; those of no class, and those during a bypass, are not seen", self.bypassed.clone());
        registry.register(
            "refused",
            "New connections that a RST of the server has refused",
            self.refused.clone(),
        );
        registry.register(
            "udp_packets",
            "Packets of UDP that were forwarded, by the side to which they went",
            self.udp_packets.clone(),
        );
        registry.register(
            "udp_bytes",
            "Bytes of these packets, with their IP headers",
            self.udp_bytes.clone(),
        );
        registry.register(
            "quic_refused",
            "Packets to UDP port 443 that were refused (quic = \"refuse\")",
            self.refused_quic.clone(),
        );
        registry.register(
            "log_lines_lost",
            "Lines about connections that could not be written",
            self.lines_lost.clone(),
        );
        registry.register_with_unit(
            "memory",
            "Memory in all buffers, those of the kernel included",
            Unit::Bytes,
            self.memory.clone(),
        );
        registry.register(
            "bypassing",
            "1 while all new connections are forwarded untouched",
            self.bypassing.clone(),
        );
    }

    /// The metrics of the class of this name.
    pub fn class(&self, name: &str) -> Arc<ClassMetrics> {
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(class) = classes.get(name) {
            return Arc::clone(class);
        }
        let class = name.to_owned();
        let of_class = OfClass { class: class.clone() };
        let ended = |how| self.ended.get_or_create(&Ended { class: class.clone(), how }).clone();
        let sides = SIDES.map(|side| {
            let of_side = OfSide { class: class.clone(), side };
            SideMetrics {
                bytes: self.bytes.get_or_create(&of_side).clone(),
                retransmitted: self.retransmitted.get_or_create(&of_side).clone(),
                rtt: self.rtt.get_or_create(&of_side).clone(),
                goodput: self.goodput.get_or_create(&of_side).clone(),
            }
        });
        let made = Arc::new(ClassMetrics {
            opened: self.opened.get_or_create(&of_class).clone(),
            active: self.active.get_or_create(&of_class).clone(),
            closed: ended("closed"),
            reset: ended("reset"),
            sides,
        });
        classes.insert(name.to_owned(), Arc::clone(&made));
        made
    }

    /// Makes the metrics of all classes that are split, and those of UDP of all classes.
    pub fn name_classes(&self, deployment: &Deployment) {
        for class in &deployment.classes {
            if class.proxy {
                self.class(&class.name);
            }
            self.name_udp(&class.name);
        }
    }

    /// Makes the metrics of UDP of a class.
    pub fn name_udp(&self, class: &str) {
        SIDES.into_iter().for_each(|side| self.forward_udp(class, side, [0; 2]));
        self.refuse_quic(class, 0);
    }

    pub fn bypass(&self, reason: Reason) {
        self.leave_alone(reason, 1);
    }

    /// Counts SYNs that were forwarded untouched.
    pub fn leave_alone(&self, reason: Reason, syns: u64) {
        self.bypassed.get_or_create(&Why { reason: reason.word() }).inc_by(syns);
    }

    /// Counts packets and bytes of UDP that were forwarded to a side.
    pub fn forward_udp(&self, class: &str, side: &'static str, [packets, bytes]: Count) {
        let of_side = OfSide { class: class.to_owned(), side };
        self.udp_packets.get_or_create(&of_side).inc_by(packets);
        self.udp_bytes.get_or_create(&of_side).inc_by(bytes);
    }

    /// Counts packets to UDP port 443 that were refused.
    pub fn refuse_quic(&self, class: &str, packets: u64) {
        self.refused_quic.get_or_create(&OfClass { class: class.to_owned() }).inc_by(packets);
    }

    /// Returns what the counters of UDP of a class have reached.
    pub fn udp(&self, class: &str) -> UdpReport {
        let [to_satellite, to_clients] = SIDES.map(|side| {
            let of_side = OfSide { class: class.to_owned(), side };
            let [packets, bytes] =
                [&self.udp_packets, &self.udp_bytes].map(|family| family.get_or_create(&of_side).get());
            UdpCount { packets, bytes }
        });
        let refused_packets = self.refused_quic.get_or_create(&OfClass { class: class.to_owned() }).get();
        UdpReport { class: class.to_owned(), to_satellite, to_clients, refused_packets }
    }

    /// Last values of the counters in the packet filter.
    pub fn counters_seen(&self) -> MutexGuard<'_, HashMap<String, Count>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn refuse(&self) {
        self.refused.inc();
    }

    /// In the format OpenMetrics 1.0.
    pub fn open_metrics(&self) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// In the text format 0.0.4 of Prometheus: a counter has the same name in its descriptions and in its values, and there are neither units nor
    /// an end.
    pub fn text(&self) -> String {
        let open = self.open_metrics();
        let mut counters: HashSet<&str> = HashSet::new();
        for line in open.lines() {
            if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
                counters.insert(name);
            }
        }
        let mut text = String::with_capacity(open.len());
        for line in open.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(name) => {
                    text.extend(["# ", what, " ", name, "_total ", rest, "\n"]);
                }
                _ => text.extend([line, "\n"]),
            }
        }
        text
    }
}

impl ClassMetrics {
    /// Counts `bytes` of payload and `again` segments sent again on side 0 (satellite) or 1 (clients).
    pub fn progress(&self, side: usize, bytes: u64, again: u64) {
        self.sides[side].bytes.inc_by(bytes);
        self.sides[side].retransmitted.inc_by(again);
    }

    /// The connection has ended; `bytes` have been sent on this side in `lasted_s`, with a round trip of `srtt` in the end.
    pub fn end(&self, side: usize, srtt: Duration, bytes: u64, lasted_s: f64) {
        self.sides[side].rtt.observe(srtt.as_secs_f64());
        if lasted_s > 0.0 && bytes > 0 {
            self.sides[side].goodput.observe(bytes as f64 / lasted_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_there_before_their_first_event_in_both_formats() {
        let metrics = Metrics::new();
        metrics.class("all");
        let (open, text) = (metrics.open_metrics(), metrics.text());
        assert!(open.ends_with("# EOF\n") && !text.contains("# EOF") && !text.contains("# UNIT"));
        for value in [
            "bentpipe_pep_bypassed_total{reason=\"connections\"} 0\n",
            "bentpipe_pep_bypassed_total{reason=\"half-open-per-client\"} 0\n",
            "bentpipe_pep_connections_opened_total{class=\"all\"} 0\n",
        ] {
            assert!(open.contains(value) && text.contains(value), "{text}");
        }
        assert!(open.contains("# TYPE bentpipe_pep_bypassed counter\n"));
        assert!(text.contains("# TYPE bentpipe_pep_bypassed_total counter\n"), "{text}");
        assert!(text.contains("# HELP bentpipe_pep_bypassed_total New connections"), "{text}");
        assert!(text.contains("# TYPE bentpipe_pep_memory_bytes gauge\n"), "{text}");
    }
}
