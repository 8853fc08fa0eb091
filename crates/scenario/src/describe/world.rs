use bentpipe_tcp::Config;

use super::ends::{flow, mss_in, sender_tcp};
use super::link::link;
use crate::form::{Form, Named, Shorthand};
use crate::model::{NodeGroup, NodeKind, Scenario};
use crate::tree::Node;
use crate::unit::{COUNT, Count, TEXT, TIME_ABOVE_ZERO, Words};

/// A whole scenario; `defaults` is its `tcp` table.
pub(crate) fn world(form: &mut Form<'_>, scenario: &mut Scenario, defaults: Option<&Node>) {
    form.field("title", &mut scenario.title, &TEXT);
    form.required("duration", &mut scenario.duration, &TIME_ABOVE_ZERO);
    form.field("seed", &mut scenario.seed, &Count::FROM_ZERO);
    match (&mut *form, defaults) {
        (Form::Show(table), Some(defaults)) => table.put("tcp", defaults.clone()),
        _ => check_defaults(form, defaults),
    }
    form.named("node", &mut scenario.nodes, node);
    let duration = scenario.duration;
    form.named("link", &mut scenario.links, |form, group| link(form, group, duration));
    form.named("flow", &mut scenario.flows, |form, group| flow(form, group, defaults));
}

/// Reads the `tcp` table for its mistakes; each flow reads it again for its values.
fn check_defaults(form: &mut Form<'_>, defaults: Option<&Node>) {
    let mut config = Config::default();
    let mss = mss_in(defaults).unwrap_or(config.mss);
    form.table("tcp", Shorthand::NONE, |form| sender_tcp(form, &mut config, &mut 0, mss));
}

impl Named for NodeGroup {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), kind: NodeKind::Host, count: 1 }
    }
    fn name(&self) -> &str {
        &self.name
    }
}

const NODE_KINDS: Words<NodeKind> = Words(&[("host", NodeKind::Host), ("router", NodeKind::Router)]);

/// `[node.<name>]`.
fn node(form: &mut Form<'_>, node: &mut NodeGroup) {
    form.field("kind", &mut node.kind, &NODE_KINDS);
    form.field("count", &mut node.count, &COUNT);
}
