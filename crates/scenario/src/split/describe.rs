use bentpipe_base::Rate;

use super::model::{Datapath, Opening, Side, Split, USUAL, registered, without_kernel};
use crate::algorithm::{algorithm_names, resolve_cc};
use crate::form::{Form, Reading, Shorthand};
use crate::parameters;
use crate::suggest::did_you_mean;
use crate::tree::{Node, Value};
use crate::unit::{Bytes, Codec, OrWord, RATE, Refused, TEXT, Words};

const DATAPATHS: Words<Datapath> = Words(&[("kernel", Datapath::Kernel), ("engine", Datapath::Engine)]);
const OPENINGS: Words<Opening> = Words(&[("server-first", Opening::ServerFirst), ("early", Opening::Early)]);
/// Slowest pacing rate: the kernel sends less than a segment a minute below it.
const LEAST_RATE_BPS: u64 = 1_000;
const CC: Shorthand = Shorthand { word: Some("name"), number: None, list: None };

/// What a description of a proxy is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A proxy on a real link.
    Deployed,
    /// A proxy in a scenario.
    Simulated,
}

/// The keys that proxies of scenarios and of real links have in common.
pub(crate) const KEYS: [&str; 4] = ["satellite", "clients", "buffer", "syn"];

/// Reads or shows them.
pub(crate) fn split(form: &mut Form<'_>, split: &mut Split, purpose: Purpose) {
    for (key, side) in [("satellite", &mut split.satellite), ("clients", &mut split.clients)] {
        form.table(key, Shorthand { word: Some("cc"), ..Shorthand::NONE }, |form| {
            one_side(form, key, side, purpose);
        });
    }
    form.field("buffer", &mut split.buffer, &OrWord("auto", Bytes::at_least(4096)));
    form.field("syn", &mut split.syn, &OPENINGS);
}

fn one_side(form: &mut Form<'_>, which: &str, side: &mut Side, purpose: Purpose) {
    form.field("datapath", &mut side.datapath, &DATAPATHS);
    if let Form::Read(reading) = form
        && let (Some(node), "clients", Datapath::Engine) = (reading.get("datapath"), which, side.datapath)
    {
        let accepted = "\"kernel\": the engine terminates the half over the satellite".to_owned();
        reading.refuse("datapath", node, accepted, None);
    }
    let datapath = side.datapath;
    form.table("cc", CC, |form| algorithm(form, side, purpose, datapath));
    form.field("rate-limit", &mut side.rate_limit, &OrWord("none", RateLimit));
}

/// The name of an algorithm and, with our own TCP, its parameters.
fn algorithm(form: &mut Form<'_>, side: &mut Side, purpose: Purpose, datapath: Datapath) {
    form.field("name", &mut side.cc, &TEXT);
    let is_ours = purpose == Purpose::Simulated || datapath == Datapath::Engine;
    match form {
        Form::Read(reading) => {
            let Some(node) = reading.get("name") else { return };
            if is_ours {
                of_the_engine(reading, side, purpose, node)
            } else {
                of_the_kernel(reading, side, node)
            }
        }
        Form::Show(table) => {
            for entry in side.law.iter().flat_map(|law| parameters::show(law).entries) {
                table.put(&entry.key, entry.node);
            }
        }
    }
}

fn of_the_engine(reading: &mut Reading<'_>, side: &mut Side, purpose: Purpose, node: &Node) {
    // A simulation has no kernel whose algorithm the word could leave alone: it is that of the flow.
    let name = match purpose {
        Purpose::Simulated if side.cc == USUAL => return,
        Purpose::Simulated => registered(&side.cc),
        Purpose::Deployed => side.cc.as_str(),
    };
    if resolve_cc(name).is_err() {
        let known = algorithm_names();
        let suggestion = did_you_mean(name, &known).map(|name| format!("\"{name}\""));
        let usual = if purpose == Purpose::Simulated { "\"default\", " } else { "" };
        return reading.refuse("name", node, format!("{usual}{}", known.join(", ")), suggestion);
    }
    if reading.entries().iter().all(|entry| matches!(entry.key.as_str(), "name")) {
        return;
    }
    side.law = crate::describe::read_parameters(reading, name);
}

fn of_the_kernel(reading: &mut Reading<'_>, side: &Side, node: &Node) {
    if !is_kernel_name(&side.cc) {
        let accepted =
            "the name of a congestion control of Linux such as \"bbr\" or \"kernel:bbr\", or \"default\"";
        reading.refuse("name", node, accepted.to_owned(), None);
    }
}

/// Names of congestion controls in Linux have at most 15 characters.
fn is_kernel_name(name: &str) -> bool {
    let name = without_kernel(name);
    (1..16).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// A rate that the kernel can pace.
struct RateLimit;

impl Codec<Rate> for RateLimit {
    fn read(&self, value: &Value) -> Result<Rate, Refused> {
        let rate: Rate = RATE.read(value)?;
        if rate.bps() >= LEAST_RATE_BPS { Ok(rate) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &Rate) -> Value {
        RATE.show(typed)
    }
    fn accepted(&self) -> String {
        format!("{}, of at least 1 kbit/s", Codec::<Rate>::accepted(&RATE))
    }
}
