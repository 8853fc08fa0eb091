use bentpipe_middlebox::{
    AckDecimatorConfig, BaTcpConfig, DVegasConfig, FuzzyConfig, LinkNoticesConfig, MIDDLEBOXES,
    MiddleboxConfig, SatPepConfig, SnoopConfig, SpoofingConfig, Tells, Told, WtcpConfig, XcpConfig,
};
use bentpipe_transports::dtn::RouterConfig;
use bentpipe_transports::petra::RelayConfig;

use super::constellation::position;
use super::proxy::proxy;
use super::transport::{bundle_router, relay_entity};
use crate::form::{Form, Named};
use crate::model::{NodeGroup, NodeKind};
use crate::sky::Position;
use crate::tree::Node;
use crate::unit::{
    Bytes, COUNT, FACTOR, FLAG, MEMBERS, OrWord, PART, PROBABILITY, ROOM, TEXT, TIME, TIME_ABOVE_ZERO, Words,
};

impl Named for NodeGroup {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), kind: NodeKind::Host, count: 1 }
    }
    fn name(&self) -> &str {
        &self.name
    }
}

const TOLD: Words<Told> = Words(&[("sender", Told::Sender), ("receiver", Told::Receiver)]);

const TELLS: Words<Tells> =
    Words(&[("receiver", Tells::Receiver), ("sender", Tells::Sender), ("graded", Tells::Graded)]);

/// Table `[node.<name>]`; `defaults` is the scenario's `tcp` table.
pub(super) fn node(form: &mut Form<'_>, node: &mut NodeGroup, defaults: Option<&Node>) {
    form.variant(&mut node.kind, NodeKind::name, each(), |form, kind| match kind {
        NodeKind::Host | NodeKind::Router => {}
        NodeKind::GroundStation(position) => self::position(form, position),
        NodeKind::Satellite(satellite) => form.required("satellite", satellite, &TEXT),
        NodeKind::Middlebox(config) => middlebox(form, config),
        NodeKind::Proxy(config) => proxy(form, config, defaults),
        NodeKind::BundleRouter(config) => bundle_router(form, config),
        NodeKind::RelayEntity(config) => relay_entity(form, config),
    });
    form.field("count", &mut node.count, &MEMBERS);
}

/// Returns a node of each kind.
fn each() -> Vec<NodeKind> {
    let middleboxes = MIDDLEBOXES.iter().filter_map(|(name, _)| MiddleboxConfig::from_name(name));
    [
        NodeKind::Host,
        NodeKind::Router,
        NodeKind::Proxy(Box::default()),
        NodeKind::BundleRouter(RouterConfig::default()),
        NodeKind::RelayEntity(RelayConfig::default()),
        NodeKind::GroundStation(Position::default()),
        NodeKind::Satellite(String::new()),
    ]
    .into_iter()
    .chain(middleboxes.map(NodeKind::Middlebox))
    .collect()
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
