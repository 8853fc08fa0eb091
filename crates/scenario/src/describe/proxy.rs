use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_tcp::Config;

use super::ends::{mss_in, sender_tcp};
use super::tcp::tcp;
use crate::form::{self, Form, Report};
use crate::model::{Connect, ProxyConfig};
use crate::split::{Purpose, Split, split};
use crate::tree::{Node, Table};
use crate::unit::{OrWord, TIME, Words};

const CONNECTS: Words<Connect> = Words(&[("early", Connect::Early), ("late", Connect::Late)]);

/// Keys of a proxy in addition to those of every node; `defaults` is the scenario's `tcp` table.
pub(super) fn proxy(form: &mut Form<'_>, proxy: &mut ProxyConfig, defaults: Option<&Node>) {
    split(form, &mut proxy.split, Purpose::Simulated);
    form.field("connect", &mut proxy.connect, &CONNECTS);
    form.field("dies-at", &mut proxy.dies_at, &OrWord("never", TIME));
    own_tcp(form, proxy, defaults);
}

/// TCP configuration of the proxy: the scenario's, then the proxy's own `tcp` keys.
fn own_tcp(form: &mut Form<'_>, proxy: &mut ProxyConfig, defaults: Option<&Node>) {
    let mut config = Config::clone(&proxy.tcp);
    let mss = match form {
        Form::Read(reading) => mss_in(reading.get("tcp")).or(mss_in(defaults)).unwrap_or(config.mss),
        Form::Show(_) | Form::List(_) => config.mss,
    };
    if let (Form::Read(_), Some(defaults)) = (&*form, defaults) {
        // Mistakes in the defaults are reported where that table is read. The header size is the flow's.
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

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            split: Split::default(),
            connect: Connect::Early,
            dies_at: None::<Duration>,
            tcp: Arc::new(Config::default()),
        }
    }
}
