use bentpipe_tcp::Config;

use super::constellation::constellation;
use super::ends::{DEFAULT_HEADER_BYTES, flow, mss_in, sender_tcp};
use super::link::link;
use super::node::node;
use crate::form::{Form, Shorthand};
use crate::model::{Routing, Scenario};
use crate::tree::Node;
use crate::unit::{Count, TEXT, TIME, TIME_ABOVE_ZERO, Words};

/// Tables of a whole scenario; `defaults` is its `tcp` table.
pub(crate) fn world(form: &mut Form<'_>, scenario: &mut Scenario, defaults: Option<&Node>) {
    form.field("title", &mut scenario.title, &TEXT);
    form.required("duration", &mut scenario.duration, &TIME_ABOVE_ZERO);
    form.table("measure", Shorthand::NONE, |form| form.field("from", &mut scenario.measure_from, &TIME));
    form.field("seed", &mut scenario.seed, &Count::ANY);
    form.field("routing", &mut scenario.routing, &ROUTINGS);
    match (&mut *form, defaults) {
        (Form::Show(table), Some(defaults)) => table.put("tcp", defaults.clone()),
        _ => check_defaults(form, defaults),
    }
    form.named("constellation", &mut scenario.constellations, constellation);
    form.named("node", &mut scenario.nodes, |form, group| node(form, group, defaults));
    let duration = scenario.duration;
    form.named("link", &mut scenario.links, |form, group| link(form, group, duration));
    form.named("flow", &mut scenario.flows, |form, group| flow(form, group, defaults));
}

/// Reports the mistakes of the `tcp` table; each flow reads the table again for its
/// values.
fn check_defaults(form: &mut Form<'_>, defaults: Option<&Node>) {
    let mut config = Config::default();
    let mut header_bytes = DEFAULT_HEADER_BYTES;
    let mss = mss_in(defaults).unwrap_or(config.mss);
    form.table("tcp", Shorthand::NONE, |form| sender_tcp(form, &mut config, &mut header_bytes, mss));
}

const ROUTINGS: Words<Routing> =
    Words(&[("fixed", Routing::Fixed), ("avoid-outages", Routing::AvoidOutages)]);
