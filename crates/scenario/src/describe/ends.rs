use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_tcp::Config;

use super::cc;
use super::tcp::tcp;
use super::{esp, traffic, transport};
use crate::algorithm::resolve_cc;
use crate::form::{self, Form, Named, Report, Shorthand};
use crate::model::{FlowGroup, Traffic, Transport};
use crate::tree::{Node, Table};
use crate::unit::{Bytes, COUNT, Codec, FLAG, OrWord, TEXT, TIME};

/// Algorithm of flows without `cc`.
const DEFAULT_CC: &str = "cubic";
/// Bytes of IP and TCP headers with the timestamps option.
pub(super) const DEFAULT_HEADER_BYTES: u32 = 52;
/// Bytes of IPv4 and UDP headers.
const UDP_HEADER_BYTES: u32 = 28;

impl Named for FlowGroup {
    fn named(name: &str) -> Self {
        let config = Arc::new(Config::default());
        Self {
            name: name.to_owned(),
            from: String::new(),
            to: String::new(),
            count: 1,
            fixed: false,
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            cc: DEFAULT_CC.to_owned(),
            default_recovery: config.sender.recovery,
            sender: config.clone(),
            receiver: config,
            header_bytes: DEFAULT_HEADER_BYTES,
            udp_header_bytes: UDP_HEADER_BYTES,
            traffic: Traffic::Bulk,
            transport: Transport::Tcp,
            second_path: None,
            options: Default::default(),
            esp: None,
            plain_receiver: false,
        }
    }
    fn name(&self) -> &str {
        &self.name
    }
}

/// Table `[flow.<name>]`; `defaults` is the scenario's `tcp` table.
pub(super) fn flow(form: &mut Form<'_>, flow: &mut FlowGroup, defaults: Option<&Node>) {
    form.required("from", &mut flow.from, &TEXT);
    form.required("to", &mut flow.to, &TEXT);
    form.field("count", &mut flow.count, &COUNT);
    form.field("start", &mut flow.start, &TIME);
    form.field("stagger", &mut flow.stagger, &TIME);
    form.field("fixed", &mut flow.fixed, &FLAG);
    sender(form, flow, defaults);
    algorithm(form, flow);
    let mss = flow.sender.mss;
    form.table("traffic", Shorthand::KIND, |form| traffic::traffic(form, &mut flow.traffic, mss));
    if form.reads() {
        flow.transport = flow.traffic.carriers()[0];
    }
    transport::transport(form, flow);
    if form.reads() && flow.transport == Transport::Udp {
        // It has no headers of TCP, and none are shown.
        flow.header_bytes = DEFAULT_HEADER_BYTES;
    }
    form.table("esp", Shorthand::KIND, |form| esp::esp(form, &mut flow.esp));
    form.field("second-path", &mut flow.second_path, &OrWord("none", TEXT));
    form.field("plain-receiver", &mut flow.plain_receiver, &FLAG);
    receiver(form, flow);
}

/// `tcp` table of a sender.
pub(crate) fn sender_tcp(form: &mut Form<'_>, config: &mut Config, header_bytes: &mut u32, mss: u32) {
    tcp(form, config, mss);
    form.field("header", header_bytes, &Bytes::PACKET);
}

/// Tables `cc` and `tcp` of a connection end without a scenario.
pub(crate) fn connection_end(form: &mut Form<'_>, name: &mut String, config: &mut Config) {
    form.table("cc", cc::SHORTHAND, |form| cc::cc(form, name, &mut config.sender.cc));
    let mss = match form {
        Form::Read(reading) => mss_in(reading.get("tcp")).unwrap_or(config.mss),
        Form::Show(_) | Form::List(_) => config.mss,
    };
    form.table("tcp", Shorthand::NONE, |form| tcp(form, config, mss));
}

/// Configuration of the sending end: the scenario's defaults, then this flow's keys.
fn sender(form: &mut Form<'_>, flow: &mut FlowGroup, defaults: Option<&Node>) {
    let mut config = Config::clone(&flow.sender);
    let mss = match form {
        Form::Read(reading) => mss_in(reading.get("tcp")).or(mss_in(defaults)).unwrap_or(config.mss),
        Form::Show(_) | Form::List(_) => config.mss,
    };
    if let (Form::Read(_), Some(defaults)) = (&*form, defaults) {
        // Mistakes in the defaults are reported where that table is read, not again here.
        let mut ignored = Report::default();
        form::read(defaults, "tcp", &mut ignored, |form| {
            sender_tcp(form, &mut config, &mut flow.header_bytes, mss);
        });
    }
    let nothing = Table::default();
    let base = defaults.and_then(Node::as_table).unwrap_or(&nothing);
    if !form.reads() {
        config.sender.recovery = flow.default_recovery;
    }
    // A flow over UDP has no headers of TCP to show.
    let shows_udp = !form.reads() && flow.transport == Transport::Udp;
    form.differing_from(base, "tcp", |form| {
        if shows_udp {
            tcp(form, &mut config, mss);
        } else {
            sender_tcp(form, &mut config, &mut flow.header_bytes, mss);
        }
    });
    if form.reads() {
        flow.default_recovery = config.sender.recovery;
        flow.sender = Arc::new(config);
    }
}

/// Returns the segment size set by a `tcp` table.
pub(super) fn mss_in(table: Option<&Node>) -> Option<u32> {
    Bytes::ANY.read(&table?.as_table()?.get("mss")?.value).ok()
}

/// Reads the algorithm, which determines the recovery of both ends.
fn algorithm(form: &mut Form<'_>, flow: &mut FlowGroup) {
    let mut algorithm = flow.sender.sender.cc.clone();
    if form.reads() {
        algorithm = resolve_cc(&flow.cc).map_or(algorithm, |(default, _)| default);
    }
    form.table("cc", cc::SHORTHAND, |form| cc::flow_cc(form, &mut flow.cc, &mut algorithm));
    if form.reads() {
        let recovery = resolve_cc(&flow.cc).ok().and_then(|(_, recovery)| recovery);
        flow.receiver = flow.sender.clone();
        flow.set_ends(algorithm, recovery.unwrap_or(flow.default_recovery));
    }
}

/// Configuration of the receiving end: the sender's, then the keys of `receiver`.
fn receiver(form: &mut Form<'_>, flow: &mut FlowGroup) {
    let mss = flow.sender.mss;
    let sender = form::show(|form| tcp(form, &mut Config::clone(&flow.sender), mss));
    let mut config = Config::clone(&flow.receiver);
    // The receiver's `tcp` is compared with the sender's; the flow's own `tcp` is not its base.
    form.differing_from(&Table::default(), "receiver", |form| {
        form.differing_from(&sender, "tcp", |form| tcp(form, &mut config, mss));
    });
    if form.reads() {
        flow.receiver = Arc::new(config);
    }
}
