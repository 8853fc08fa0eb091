use bentpipe_middlebox::{AckDecimatorConfig, MiddleboxConfig};

use crate::form::{Form, Kind, Named};
use crate::model::{NodeGroup, NodeKind};
use crate::unit::{COUNT, TIME_ABOVE_ZERO};

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
    Kind { name: "ack-filter", keys: &[] },
    Kind { name: "ack-decimator", keys: &["every", "patience"] },
];

/// `[node.<name>]`.
pub(super) fn node(form: &mut Form<'_>, node: &mut NodeGroup) {
    let kind = form.kind(node.kind.name(), KINDS);
    if kind != node.kind.name() {
        node.kind = of_kind(kind);
    }
    form.field("count", &mut node.count, &COUNT);
    match &mut node.kind {
        NodeKind::Host | NodeKind::Router => {}
        NodeKind::Middlebox(config) => middlebox(form, config),
    }
}

fn of_kind(kind: &str) -> NodeKind {
    match MiddleboxConfig::from_name(kind) {
        Some(config) => NodeKind::Middlebox(config),
        None if kind == "router" => NodeKind::Router,
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
    }
}
