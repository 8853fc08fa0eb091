use bentpipe_base::{Duration, Rate};

use super::model::{
    ClientPrefix, Datapath, Opening, RateLimit, Scope, Side, Split, USUAL, registered, without_kernel,
};
use crate::algorithm::{algorithm_names, resolve_cc};
use crate::form::{Form, Reading, Shorthand};
use crate::parameters;
use crate::suggest::did_you_mean;
use crate::tree::{Node, Value};
use crate::unit::{Bytes, Codec, OrWord, RATE, Refused, TEXT, TIME, Words};

const DATAPATHS: Words<Datapath> = Words(&[("kernel", Datapath::Kernel), ("engine", Datapath::Engine)]);
const OPENINGS: Words<Opening> = Words(&[("server-first", Opening::ServerFirst), ("early", Opening::Early)]);
/// Minimum pacing rate. Below it the kernel sends less than one segment per minute.
const LEAST_RATE_BPS: u64 = 1_000;
const CC: Shorthand = Shorthand { word: Some("name"), number: None, list: None };

/// User of a proxy's description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A proxy on a real link.
    Deployed,
    /// A proxy in a scenario.
    Simulated,
}

/// Keys that proxies of scenarios and of real links share.
pub(crate) const KEYS: [&str; 4] = ["satellite", "clients", "buffer", "syn"];

/// Reads or shows these keys.
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
        let accepted = "\"kernel\": the engine terminates the satellite-side connection".to_owned();
        reading.refuse("datapath", node, accepted, None);
    }
    let datapath = side.datapath;
    form.table("cc", CC, |form| algorithm(form, side, purpose, datapath));
    rate_limit(form, &mut side.rate_limit);
    form.field("keepalive", &mut side.keepalive, &OrWord("off", Keepalive));
    form.table("careful-resume", Shorthand::KIND, |form| {
        crate::describe::resume(form, &mut side.careful_resume);
    });
    if let Form::Read(reading) = form
        && let (Some(node), Datapath::Kernel, Purpose::Deployed) =
            (reading.get("careful-resume"), datapath, purpose)
        && side.careful_resume.is_some()
    {
        let accepted =
            "\"off\": Linux has no Careful Resume; with datapath = \"engine\" the satellite side has it";
        reading.refuse("careful-resume", node, accepted.to_owned(), None);
    }
}

/// Reads or shows a rate limit: `"20 Mbit/s"` for each connection, or a table with the connections that share the
/// rate.
fn rate_limit(form: &mut Form<'_>, limit: &mut Option<RateLimit>) {
    const KEY: &str = "rate-limit";
    if matches!(form, Form::Show(_)) && limit.is_none_or(|limit| limit.per == Scope::Connection) {
        return form.field(KEY, &mut limit.map(|limit| limit.rate), &OrWord("none", PacedRate));
    }
    let (mut rate, mut per) = limit.map_or((None, Scope::default()), |limit| (Some(limit.rate), limit.per));
    form.table(KEY, Shorthand { word: Some("rate"), number: Some("rate"), list: None }, |form| {
        form.required("rate", &mut rate, &OrWord("none", PacedRate));
        form.field("per", &mut per, &SharedBy);
    });
    *limit = rate.map(|rate| RateLimit { rate, per });
}

/// Reads or shows an algorithm's name and, with the engine, its parameters.
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
        Form::List(_) => {}
    }
}

fn of_the_engine(reading: &mut Reading<'_>, side: &mut Side, purpose: Purpose, node: &Node) {
    // In a simulation `default` is the flow's algorithm.
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

/// Linux congestion controls with the name of an engine algorithm.
const OF_LINUX_TOO: [&str; 10] =
    ["reno", "cubic", "bbr", "bic", "highspeed", "hybla", "scalable", "vegas", "veno", "westwood"];

fn of_the_kernel(reading: &mut Reading<'_>, side: &Side, node: &Node) {
    let name = side.cc.as_str();
    if !OF_LINUX_TOO.contains(&name) && name != USUAL && resolve_cc(name).is_ok() {
        let accepted = format!(
            "the name of a congestion control of Linux; {name} is an algorithm of the engine: add datapath = \"engine\", or load it into \
             the kernel (bentpipe kernel load {name}) and write \"kernel:{}\"",
            kernel_name(name)
        );
        return reading.refuse("name", node, accepted, None);
    }
    if !is_kernel_name(&side.cc) {
        let accepted =
            "the name of a congestion control of Linux such as \"bbr\" or \"kernel:bbr\", or \"default\"";
        reading.refuse("name", node, accepted.to_owned(), None);
    }
}

/// Returns the Linux name of an algorithm that `bentpipe kernel load` loads.
fn kernel_name(name: &str) -> String {
    let name = name.replace('-', "_");
    if name.len() + 3 < 16 { format!("bp_{name}") } else { format!("bp_{}", name.replace('_', "")) }
}

/// True for a possible name of a Linux congestion control: at most 15 characters.
fn is_kernel_name(name: &str) -> bool {
    let name = without_kernel(name);
    (1..16).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Codec of the connections that share a rate.
struct SharedBy;

impl Codec<Scope> for SharedBy {
    fn read(&self, value: &Value) -> Result<Scope, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        match text.as_str() {
            "connection" => Ok(Scope::Connection),
            "class" => Ok(Scope::Class),
            "client" => Ok(Scope::Client(ClientPrefix::default())),
            text if text.starts_with('/') => CLIENT.read(value).map(Scope::Client),
            text => Err(Refused::meant(did_you_mean(text, &["connection", "class", "client"]))),
        }
    }
    fn show(&self, typed: &Scope) -> Value {
        match typed {
            Scope::Connection => Value::Text("connection".into()),
            Scope::Class => Value::Text("class".into()),
            Scope::Client(prefix) if *prefix == ClientPrefix::default() => Value::Text("client".into()),
            Scope::Client(prefix) => CLIENT.show(prefix),
        }
    }
    fn accepted(&self) -> String {
        "\"connection\", \"class\", \"client\" (an IPv4 address or an IPv6 /64), or prefix lengths such as \"/24\" or \"/24, /56\""
            .to_owned()
    }
}

/// Codec of prefix lengths such as `"/32, /64"`: the bits of IPv4 and IPv6 addresses that identify a client.
pub(crate) struct PrefixLengths;

/// Codec of prefix lengths.
pub(crate) const CLIENT: PrefixLengths = PrefixLengths;

impl Codec<ClientPrefix> for PrefixLengths {
    fn read(&self, value: &Value) -> Result<ClientPrefix, Refused> {
        let length = |text: &str, most: u8| {
            text.trim().strip_prefix('/')?.parse().ok().filter(|length| (1..=most).contains(length))
        };
        let read = |text: &str| {
            let (v4, v6) = text.split_once(',').map_or((text, None), |(v4, v6)| (v4, Some(v6)));
            let usual = ClientPrefix::default().v6;
            Some(ClientPrefix { v4: length(v4, 32)?, v6: v6.map_or(Some(usual), |text| length(text, 128))? })
        };
        match value {
            Value::Text(text) => read(text),
            _ => None,
        }
        .ok_or_else(Refused::default)
    }
    fn show(&self, typed: &ClientPrefix) -> Value {
        Value::Text(typed.to_string())
    }
    fn accepted(&self) -> String {
        "prefix lengths of IPv4 and IPv6 such as \"/32, /64\", or of IPv4 alone such as \"/24\"".to_owned()
    }
}

/// Codec of an idle time before the kernel probes the peer.
struct Keepalive;

/// Limit of Linux: 15 bits of seconds (`MAX_TCP_KEEPIDLE`).
const LONGEST_KEEPALIVE: Duration = Duration::from_secs(32_767);

impl Codec<Duration> for Keepalive {
    fn read(&self, value: &Value) -> Result<Duration, Refused> {
        let time: Duration = TIME.read(value)?;
        let fits = (Duration::from_secs(1)..=LONGEST_KEEPALIVE).contains(&time);
        if fits { Ok(time) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &Duration) -> Value {
        TIME.show(typed)
    }
    fn accepted(&self) -> String {
        "a time from \"1 s\" to \"9 h\" such as \"3 min\"".to_owned()
    }
}

/// Codec of a rate that the kernel can pace.
struct PacedRate;

impl Codec<Rate> for PacedRate {
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
