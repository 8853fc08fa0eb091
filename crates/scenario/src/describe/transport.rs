use bentpipe_transports::Options;
use bentpipe_transports::dtn::{Convergence, Policy, RouterConfig};
use bentpipe_transports::petra::{self, RelayConfig};

use crate::form::{Form, Shorthand};
use crate::model::{FlowGroup, Transport};
use crate::unit::{Bytes, FLAG, OrWord, PART, PROBABILITY, RATE, TIME, TIME_ABOVE_ZERO, Words};

/// Transport protocols, keyed by name.
pub(crate) const TRANSPORTS: Words<Transport> = Words(&[
    ("tcp", Transport::Tcp),
    ("udp", Transport::Udp),
    ("tfrc", Transport::Tfrc),
    ("admission", Transport::Admission),
    ("stp", Transport::Stp),
    ("sctp", Transport::Sctp),
    ("dtn", Transport::Dtn),
    ("petra", Transport::Petra),
    ("quic", Transport::Quic),
]);

const CONVERGENCES: Words<Convergence> =
    Words(&[("ltp", Convergence::Ltp), ("udp", Convergence::Udp), ("tcp", Convergence::Tcp)]);

/// Key `transport` of a flow.
pub(super) fn transport(form: &mut Form<'_>, flow: &mut FlowGroup) {
    let Options { admission, stp, sctp, dtn, petra, quic } = &mut flow.options;
    let udp_header_bytes = &mut flow.udp_header_bytes;
    let each = TRANSPORTS.0.iter().map(|(_, transport)| *transport).collect();
    form.table("transport", Shorthand::KIND, |form| {
        form.variant(
            &mut flow.transport,
            |transport| TRANSPORTS.word(transport),
            each,
            |form, transport| match transport {
                Transport::Tcp | Transport::Tfrc => {}
                Transport::Udp => form.field("header", udp_header_bytes, &Bytes::PACKET),
                Transport::Admission => {
                    form.field("rate", &mut admission.rate, &RATE);
                    form.field("probe", &mut admission.probe, &TIME_ABOVE_ZERO);
                    form.field("threshold", &mut admission.threshold, &PROBABILITY);
                }
                Transport::Stp => {
                    form.field("rate", &mut stp.rate, &OrWord("window", RATE));
                    form.field("outage-tolerant", &mut stp.outage_tolerant, &FLAG);
                }
                Transport::Sctp => form.field("unordered", &mut sctp.unordered, &FLAG),
                Transport::Dtn => bundles(form, dtn),
                Transport::Petra => units(form, petra),
                Transport::Quic => {
                    form.field("zero-rtt", &mut quic.resumes, &FLAG);
                    form.field("idle-timeout", &mut quic.idle_timeout, &OrWord("never", TIME_ABOVE_ZERO));
                }
            },
        );
    });
}

fn bundles(form: &mut Form<'_>, policy: &mut Policy) {
    form.field("bundle", &mut policy.bundle_bytes, &Bytes::ANY);
    form.field("lifetime", &mut policy.lifetime, &TIME_ABOVE_ZERO);
    form.field("custody", &mut policy.custody, &FLAG);
    form.field("custody-timer", &mut policy.custody_timer, &TIME_ABOVE_ZERO);
    form.field("report", &mut policy.report, &FLAG);
    form.field("store", &mut policy.store_bytes, &Bytes::ANY);
    form.field("convergence", &mut policy.convergence, &CONVERGENCES);
    form.field("rate", &mut policy.rate, &OrWord("link", RATE));
}

fn units(form: &mut Form<'_>, options: &mut petra::Options) {
    form.field("retention", &mut options.retention_bytes, &OrWord("path", Bytes::at_least(1)));
    form.field("confirm-bytes", &mut options.confirm_bytes, &Bytes::at_least(1));
    form.field("confirm-after", &mut options.confirm_after, &TIME_ABOVE_ZERO);
    form.field("timeout", &mut options.timeout, &TIME_ABOVE_ZERO);
    form.field("rate", &mut options.rate, &OrWord("share", RATE));
}

/// Keys of a relay entity in addition to those of every node.
pub(super) fn relay_entity(form: &mut Form<'_>, relay: &mut RelayConfig) {
    form.field("buffer", &mut relay.buffer, &OrWord("hop", Bytes::at_least(1)));
    form.field("high", &mut relay.high, &PART);
    form.field("low", &mut relay.low, &PART);
    form.field("dies-at", &mut relay.dies_at, &OrWord("never", TIME));
    form.field("back-after", &mut relay.back_after, &OrWord("never", TIME));
}

/// Keys of a bundle router in addition to those of every node.
pub(super) fn bundle_router(form: &mut Form<'_>, router: &mut RouterConfig) {
    form.field("store", &mut router.store_bytes, &Bytes::ANY);
    form.field("custody", &mut router.custody, &FLAG);
}
