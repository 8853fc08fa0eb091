//! Tables of `pep.toml`.

use std::path::Path;
use std::sync::Arc;

use super::codec::{InterfaceNames, Marks, Networks, Ports, Socket};
use super::model::{Class, Deployment, FqCodel, Opener, Quic, interface_fits};
use crate::error::{Error, Mistake, Place};
use crate::file::read_text;
use crate::form::{self, Form, Key, Report, Shorthand};
use crate::parse;
use crate::split::{CLIENT, Purpose, split};
use crate::tree::{Node, Table, Value};
use crate::unit::{
    Bytes, COUNT, Codec, FLAG, OrWord, RATE, ROOM, Refused, TEXT, TIME, TIME_ABOVE_ZERO, Words,
};

const OPENERS: Words<Opener> = Words(&[("clients", Opener::Clients), ("satellite", Opener::Satellite)]);
const QUIC: Words<Quic> = Words(&[("forward", Quic::Forward), ("refuse", Quic::Refuse)]);
/// More than any machine's descriptors, ports and memory allow.
const MOST_CONNECTIONS: u32 = 10_000_000;
const MOST_THREADS: u32 = 256;

impl Deployment {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`Error::Unreadable`], or [`Error::Mistakes`] with every mistake in the file.
    pub fn load(path: &str) -> Result<Self, Error> {
        Self::load_with_tables(path).map(|(deployment, _)| deployment)
    }

    /// As [`Deployment::load`], with the tables of the classes as written.
    pub(crate) fn load_with_tables(path: &str) -> Result<(Self, Vec<Table>), Error> {
        let text = read_text(Path::new(path))
            .map_err(|source| Error::Unreadable { file: path.to_owned(), source })?;
        let deployment = Self::parse(path, &text)?;
        let classes = match parse::document(path, &text)?.get("class").map(|node| node.value.clone()) {
            Some(Value::List(classes)) => classes,
            _ => Vec::new(),
        };
        let tables = classes.iter().filter_map(Node::as_table).cloned().collect();
        Ok((deployment, tables))
    }

    /// Reads `text`; mistakes name `file`.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with every mistake in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let table = parse::document(file, text)?;
        let place = Place::File { file: Arc::from(file), line: 1, column: 1 };
        let root = Node { value: Value::Table(table), place };
        let (mut deployment, mut report) = (Self::default(), Report::default());
        form::read(&root, "", &mut report, |form| describe(form, &mut deployment));
        classes(&root, &mut deployment, &mut report);
        interfaces_differ(&root, &deployment, &mut report);
        report.unless_mistaken(deployment)
    }
}

/// Returns the keys of the file, for the reference.
pub fn keys() -> Vec<Key> {
    let mut keys = form::list(None, |form| describe(form, &mut Deployment::default()));
    keys.extend(form::list(Some("class"), |form| class(form, &mut Class::default())));
    keys
}

fn describe(form: &mut Form<'_>, deployment: &mut Deployment) {
    let interfaces = &mut deployment.interfaces;
    form.required_table("interfaces", Shorthand::NONE, "a table with clients and satellite", |form| {
        form.required("clients", &mut interfaces.clients, &InterfaceNames);
        form.required("satellite", &mut interfaces.satellite, &InterfaceNames);
    });
    let queue = &mut deployment.queue;
    form.table("satellite-queue", Shorthand::KIND, |form| {
        form.option(queue, ["unchanged", "fq-codel"], FqCodel::default(), |form, queue| {
            form.field("rate", &mut queue.rate, &OrWord("none", RATE));
            form.field("target", &mut queue.target, &TIME_ABOVE_ZERO);
            form.field("interval", &mut queue.interval, &TIME_ABOVE_ZERO);
            form.field("limit", &mut queue.limit, &ROOM);
        });
    });
    let limits = &mut deployment.limits;
    form.table("limits", Shorthand::NONE, |form| {
        form.field("connections", &mut limits.connections, &AtMost(MOST_CONNECTIONS));
        form.field("memory", &mut limits.memory, &Bytes::at_least(1 << 20));
        form.field(
            "connections-per-client",
            &mut limits.per_client,
            &OrWord("none", AtMost(MOST_CONNECTIONS)),
        );
        form.field("half-open", &mut limits.half_open, &AtMost(MOST_CONNECTIONS));
        form.field("half-open-per-client", &mut limits.half_open_per_client, &AtMost(MOST_CONNECTIONS));
        form.field("client", &mut limits.client, &CLIENT);
        form.field("reset-after", &mut limits.reset_after, &TIME_ABOVE_ZERO);
    });
    let watch = &mut deployment.watch;
    form.table("watch", Shorthand::NONE, |form| {
        form.field("listen", &mut watch.listen, &OrWord("off", Socket));
        form.field("connections", &mut watch.connections, &OrWord("off", TEXT));
    });
    let workings = &mut deployment.workings;
    form.table("daemon", Shorthand::NONE, |form| {
        form.field("threads", &mut workings.threads, &OrWord("auto", AtMost(MOST_THREADS)));
        form.field("drain", &mut workings.drain, &TIME);
        form.field("user", &mut workings.user, &OrWord("unchanged", TEXT));
        form.field("marks", &mut workings.marks, &Marks);
    });
    if let Form::Read(reading) = form {
        // `classes` reads this list.
        reading.name_key("class");
    }
}

/// Reads the tables `[[class]]`.
fn classes(root: &Node, deployment: &mut Deployment, report: &mut Report) {
    let written = root.as_table().and_then(|table| table.get("class"));
    let accepted = "at least one table [[class]] with match, satellite, clients";
    let refuse = |report: &mut Report, place: &Place, found: &str| {
        report.add(Mistake {
            place: place.clone(),
            key: "class".into(),
            found: found.into(),
            accepted: accepted.into(),
            suggestion: None,
        });
    };
    let Some(node) = written else { return refuse(report, &root.place, "nothing") };
    let Value::List(items) = &node.value else { return refuse(report, &node.place, "no list of tables") };
    if items.is_empty() {
        return refuse(report, &node.place, "an empty list");
    }
    for (number, item) in items.iter().enumerate() {
        let path = format!("class.{}", number + 1);
        if item.as_table().is_none() {
            refuse(report, &item.place, "something else than a table");
            continue;
        }
        let mut read = Class { name: format!("class-{}", number + 1), ..Class::default() };
        form::read(item, &path, report, |form| class(form, &mut read));
        if let Some(other) = deployment.classes.iter().position(|other| other.name == read.name) {
            let place =
                item.as_table().and_then(|table| table.get("name")).map_or(&item.place, |node| &node.place);
            report.add(Mistake {
                place: place.clone(),
                key: format!("{path}.name"),
                found: format!("\"{}\", the name of class {}", read.name, other + 1),
                accepted: "a name that no other class has".into(),
                suggestion: None,
            });
        }
        deployment.classes.push(read);
    }
}

/// Table `[[class]]`: one class of connections.
fn class(form: &mut Form<'_>, class: &mut Class) {
    form.field("name", &mut class.name, &TEXT);
    let matches = &mut class.matches;
    form.table("match", Shorthand { number: Some("ports"), ..Shorthand::NONE }, |form| {
        optional(form, "ports", &mut matches.ports, &Ports);
        optional(form, "from", &mut matches.from, &Networks);
        optional(form, "to", &mut matches.to, &Networks);
        optional(form, "out", &mut matches.out, &InterfaceNames);
        form.field("opened-by", &mut matches.opener, &OPENERS);
    });
    form.field("proxy", &mut class.proxy, &FLAG);
    form.field("quic", &mut class.quic, &QUIC);
    split(form, &mut class.split, Purpose::Deployed);
}

/// Names a key with a list. An empty list accepts everything and is not shown.
fn optional<T>(form: &mut Form<'_>, key: &'static str, list: &mut Vec<T>, codec: &impl Codec<Vec<T>>) {
    if !matches!(form, Form::Show(_)) || !list.is_empty() {
        form.field(key, list, codec);
    }
}

fn interfaces_differ(root: &Node, deployment: &Deployment, report: &mut Report) {
    let interfaces = &deployment.interfaces;
    let overlap = |one: &str, other: &str| {
        let begin = |pattern: &str| pattern.strip_suffix('*').unwrap_or(pattern).to_owned();
        interface_fits(one, &begin(other)) || interface_fits(other, &begin(one))
    };
    let of_satellite = |name: &&String| interfaces.satellite.iter().any(|other| overlap(name, other));
    let Some(both) = interfaces.clients.iter().find(of_satellite) else { return };
    let table: Option<&Table> = root.as_table();
    let entry = table.and_then(|table| table.find("interfaces.satellite"));
    report.add(Mistake {
        place: entry.map_or(root.place.clone(), |entry| entry.node.place.clone()),
        key: "interfaces.satellite".into(),
        found: format!("\"{both}\", which also leads to the clients"),
        accepted: "interfaces that do not lead to the clients".into(),
        suggestion: None,
    });
}

/// A whole number from 1 to a limit.
struct AtMost(u32);

impl Codec<u32> for AtMost {
    fn read(&self, value: &Value) -> Result<u32, Refused> {
        let count: u32 = COUNT.read(value)?;
        if count <= self.0 { Ok(count) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &u32) -> Value {
        Value::Whole(i64::from(*typed))
    }
    fn accepted(&self) -> String {
        format!("a whole number from 1 to {}", self.0)
    }
}
