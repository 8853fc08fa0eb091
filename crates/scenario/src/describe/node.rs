use bentpipe_middlebox::{
    AckDecimatorConfig, BaTcpConfig, DVegasConfig, FuzzyConfig, LinkNoticesConfig, MiddleboxConfig,
    SatPepConfig, SnoopConfig, SpoofingConfig, Tells, Told, WtcpConfig, XcpConfig,
};
use bentpipe_transports::dtn::RouterConfig;
use bentpipe_transports::petra::RelayConfig;

use super::constellation::position;
use super::proxy::proxy;
use super::transport::{bundle_router, relay_entity};
use crate::form::{Form, Kind, Named};
use crate::model::{NodeGroup, NodeKind};
use crate::sky::Position;
use crate::tree::Node;
use crate::unit::{
    Bytes, COUNT, FACTOR, FLAG, MEMBERS, OrWord, PART, PROBABILITY, ROOM, TIME, TIME_ABOVE_ZERO, Words,
};

impl Named for NodeGroup {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), kind: NodeKind::Host, count: 1 }
    }
    fn name(&self) -> &str {
        &self.name
    }
}

const KINDS: &[Kind] = &[
    Kind { name: "host", keys: &[] },
    Kind { name: "router", keys: &[] },
    Kind { name: "proxy", keys: &["satellite", "clients", "buffer", "syn", "connect", "dies-at", "tcp"] },
    Kind { name: "bundle-router", keys: &["store", "custody"] },
    Kind { name: "relay-entity", keys: &["buffer", "high", "low", "dies-at", "back-after"] },
    Kind { name: "ground-station", keys: &["latitude", "longitude", "gateway"] },
    Kind { name: "ack-filter", keys: &[] },
    Kind { name: "ack-decimator", keys: &["every", "patience"] },
    Kind { name: "snoop", keys: &["congested-at", "most-repairs", "least-timeout", "dies-at"] },
    Kind { name: "wtcp", keys: &["buffer"] },
    Kind { name: "spoofing", keys: &["buffer", "initial-window", "dies-at"] },
    Kind { name: "satpep", keys: &["buffer", "utilisation", "dies-at"] },
    Kind { name: "xcp", keys: &["alpha", "beta", "gamma"] },
    Kind { name: "p-xcp", keys: &["alpha", "beta", "gamma"] },
    Kind { name: "ba-tcp", keys: &["utilisation"] },
    Kind { name: "link-notices", keys: &["errors-to", "repeat"] },
    Kind { name: "dvegas", keys: &["frame", "low", "high", "room"] },
    Kind { name: "fuzzy", keys: &["room", "target", "interval", "most", "tells", "drops"] },
];

const TOLD: Words<Told> = Words(&[("sender", Told::Sender), ("receiver", Told::Receiver)]);

const TELLS: Words<Tells> =
    Words(&[("receiver", Tells::Receiver), ("sender", Tells::Sender), ("graded", Tells::Graded)]);

/// `[node.<name>]`; `defaults` is the `tcp` table of the scenario.
pub(super) fn node(form: &mut Form<'_>, node: &mut NodeGroup, defaults: Option<&Node>) {
    let kind = form.kind(node.kind.name(), KINDS);
    if kind != node.kind.name() {
        node.kind = of_kind(kind);
    }
    form.field("count", &mut node.count, &MEMBERS);
    match &mut node.kind {
        NodeKind::Host | NodeKind::Router => {}
        NodeKind::GroundStation(position) => self::position(form, position),
        NodeKind::Middlebox(config) => middlebox(form, config),
        NodeKind::Proxy(config) => proxy(form, config, defaults),
        NodeKind::BundleRouter(config) => bundle_router(form, config),
        NodeKind::RelayEntity(config) => relay_entity(form, config),
    }
}

fn of_kind(kind: &str) -> NodeKind {
    match MiddleboxConfig::from_name(kind) {
        Some(config) => NodeKind::Middlebox(config),
        None if kind == "router" => NodeKind::Router,
        None if kind == "bundle-router" => NodeKind::BundleRouter(RouterConfig::default()),
        None if kind == "relay-entity" => NodeKind::RelayEntity(RelayConfig::default()),
        None if kind == "proxy" => NodeKind::Proxy(Box::default()),
        None if kind == "ground-station" => {
            NodeKind::GroundStation(Position { latitude_deg: 0.0, longitude_deg: 0.0, gateway: false })
        }
        None => NodeKind::Host,
    }
}

fn middlebox(form: &mut Form<'_>, config: &mut MiddleboxConfig) {
    match config {
        MiddleboxConfig::AckFilter => {}
        MiddleboxConfig::AckDecimator(AckDecimatorConfig { every, patience }) => {
            form.field("every", every, &COUNT);
            form.field("patience", patience, &TIME_ABOVE_ZERO);
        }
        MiddleboxConfig::Snoop(SnoopConfig { congested_at, most_repairs, least_timeout, dies_at }) => {
            form.field("congested-at", congested_at, &ROOM);
            form.field("most-repairs", most_repairs, &COUNT);
            form.field("least-timeout", least_timeout, &TIME_ABOVE_ZERO);
            form.field("dies-at", dies_at, &OrWord("never", TIME));
        }
        MiddleboxConfig::Wtcp(WtcpConfig { buffer }) => form.field("buffer", buffer, &Bytes::at_least(1)),
        MiddleboxConfig::Spoofing(SpoofingConfig { buffer, initial_window, dies_at }) => {
            form.field("buffer", buffer, &Bytes::at_least(1));
            form.field("initial-window", initial_window, &COUNT);
            form.field("dies-at", dies_at, &OrWord("never", TIME));
        }
        MiddleboxConfig::SatPep(SatPepConfig { buffer, utilisation, dies_at }) => {
            form.field("buffer", buffer, &Bytes::at_least(1));
            form.field("utilisation", utilisation, &PART);
            form.field("dies-at", dies_at, &OrWord("never", TIME));
        }
        MiddleboxConfig::Xcp(XcpConfig { alpha, beta, gamma, compensates: _ }) => {
            form.field("alpha", alpha, &PART);
            form.field("beta", beta, &PART);
            form.field("gamma", gamma, &PROBABILITY);
        }
        MiddleboxConfig::BaTcp(BaTcpConfig { utilisation }) => {
            form.field("utilisation", utilisation, &PART);
        }
        MiddleboxConfig::LinkNotices(LinkNoticesConfig { errors_to, repeat }) => {
            form.field("errors-to", errors_to, &TOLD);
            form.field("repeat", repeat, &TIME_ABOVE_ZERO);
        }
        MiddleboxConfig::Fuzzy(FuzzyConfig { room, target, interval, most, tells, drops }) => {
            form.field("room", room, &ROOM);
            form.field("target", target, &PART);
            form.field("interval", interval, &TIME_ABOVE_ZERO);
            form.field("most", most, &PART);
            form.field("tells", tells, &TELLS);
            form.field("drops", drops, &FLAG);
        }
        MiddleboxConfig::DVegas(DVegasConfig { frame, low, high, room }) => {
            form.field("frame", frame, &TIME_ABOVE_ZERO);
            form.field("low", low, &FACTOR);
            form.field("high", high, &FACTOR);
            form.field("room", room, &ROOM);
        }
    }
}
