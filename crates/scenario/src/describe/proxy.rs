use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_tcp::Config;

use super::cc;
use super::ends::{mss_in, sender_tcp};
use super::tcp::tcp;
use crate::algorithm::resolve_cc;
use crate::form::{self, Form, Report};
use crate::model::{Connect, ProxyConfig};
use crate::tree::{Node, Table, Value};
use crate::unit::{Bytes, OrWord, TIME, Words};

const CONNECTS: Words<Connect> = Words(&[("early", Connect::Early), ("late", Connect::Late)]);

/// What stands for the algorithm of the flow that is relayed.
const OF_THE_FLOW: &str = "flow";

/// The keys of a proxy besides those of every node; `defaults` is the `tcp` table of the scenario.
pub(super) fn proxy(form: &mut Form<'_>, proxy: &mut ProxyConfig, defaults: Option<&Node>) {
    form.field("buffer", &mut proxy.buffer, &Bytes::at_least(1));
    form.field("connect", &mut proxy.connect, &CONNECTS);
    form.field("dies-at", &mut proxy.dies_at, &OrWord("never", TIME));
    own_tcp(form, proxy, defaults);
    algorithm(form, proxy);
}

/// The proxy's TCP: that of the scenario, then what its own `tcp` says.
fn own_tcp(form: &mut Form<'_>, proxy: &mut ProxyConfig, defaults: Option<&Node>) {
    let mut config = Config::clone(&proxy.tcp);
    let mss = match form {
        Form::Read(reading) => mss_in(reading.get("tcp")).or(mss_in(defaults)).unwrap_or(config.mss),
        Form::Show(_) => config.mss,
    };
    if let (Form::Read(_), Some(defaults)) = (&*form, defaults) {
        // Mistakes there are reported where the table itself is read; the headers are those of the flow.
        let mut ignored = Report::default();
        form::read(defaults, "tcp", &mut ignored, |form| sender_tcp(form, &mut config, &mut 0, mss));
    }
    let nothing = Table::default();
    let base = defaults.and_then(Node::as_table).unwrap_or(&nothing);
    form.differing_from(base, "tcp", |form| tcp(form, &mut config, mss));
    if form.reads() {
        proxy.tcp = Arc::new(config);
    }
}

/// The algorithm of the connections onward: the flow's, or one of the proxy's own.
fn algorithm(form: &mut Form<'_>, proxy: &mut ProxyConfig) {
    let of_flow = match form {
        Form::Read(reading) => reading
            .get("cc")
            .is_none_or(|node| matches!(&node.value, Value::Text(text) if text == OF_THE_FLOW)),
        Form::Show(_) => proxy.cc.is_none(),
    };
    if of_flow {
        match form {
            Form::Read(reading) => reading.name_key("cc"),
            Form::Show(table) => table.put("cc", Node::computed(Value::Text(OF_THE_FLOW.to_owned()))),
        }
        return;
    }
    let (mut name, mut law) = match &proxy.cc {
        Some((name, law)) => (name.clone(), law.clone()),
        None => ("cubic".to_owned(), proxy.tcp.cc.clone()),
    };
    form.table("cc", cc::SHORTHAND, |form| cc::cc(form, &mut name, &mut law));
    if form.reads() {
        if let Ok((_, Some(recovery))) = resolve_cc(&name) {
            proxy.tcp = Arc::new(Config { recovery, ..Config::clone(&proxy.tcp) });
        }
        proxy.cc = Some((name, law));
    }
}

impl Default for ProxyConfig {
    /// Room for two bandwidth-delay products of 15 Mbit/s over a geostationary satellite.
    fn default() -> Self {
        Self {
            buffer: 2_000_000,
            connect: Connect::Early,
            dies_at: None::<Duration>,
            tcp: Arc::new(Config::default()),
            cc: None,
        }
    }
}
