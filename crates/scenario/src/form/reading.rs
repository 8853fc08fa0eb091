use super::{Form, Named, Shorthand};
use crate::error::{Error, Mistake, Place};
use crate::suggest::did_you_mean;
use crate::tree::{Entry, Node, Table, Value};
use crate::unit::{Codec, Refused};

/// Names of keys in other tools, with the accepted names.
const SYNONYMS: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("bw", "rate"),
    ("capacity", "rate"),
    ("speed", "rate"),
    ("bitrate", "rate"),
    ("latency", "delay-one-way"),
    ("propagation-delay", "delay-one-way"),
    ("buffer", "queue"),
    ("buffer-size", "queue"),
    ("packet-loss", "loss"),
    ("per", "loss"),
    ("plr", "loss"),
    ("ber", "loss"),
    ("algorithm", "cc"),
    ("congestion-control", "cc"),
    ("source", "from"),
    ("destination", "to"),
    ("time", "duration"),
    ("number", "count"),
];

/// Maximum number of groups of nodes, links and flows each. All are searched by name.
const MOST_GROUPS: usize = 10_000;
/// Maximum number of mistakes; further ones are discarded.
const MOST_MISTAKES: usize = 1000;

/// The mistakes found so far.
#[derive(Default, Debug)]
pub(crate) struct Report {
    mistakes: Vec<Mistake>,
}

impl Report {
    /// Adds a mistake, unless it was already reported.
    pub fn add(&mut self, mistake: Mistake) {
        if self.mistakes.len() < MOST_MISTAKES && !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Returns `value` if there was no mistake.
    pub fn unless_mistaken<T>(self, value: T) -> Result<T, Error> {
        if self.mistakes.is_empty() { Ok(value) } else { Err(Error::Mistakes(self.mistakes)) }
    }

    pub fn is_empty(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Adds the mistakes of another report.
    pub fn append(&mut self, other: Self) {
        other.mistakes.into_iter().for_each(|mistake| self.add(mistake));
    }
}

/// One of the kinds that a table may describe.
#[derive(Debug)]
pub(super) struct Kind {
    /// Name of the kind, the value of `kind`.
    pub name: &'static str,
    /// Keys of the table other than `kind`.
    pub keys: Vec<&'static str>,
}

/// A table that is read.
pub(crate) struct Reading<'a> {
    /// Place of the table.
    place: &'a Place,
    /// Path of the table.
    path: String,
    /// Entries; `None` if the table is a bare value or could not be read.
    table: Option<&'a Table>,
    /// A bare value in place of the table, and the key that it sets.
    bare: Option<(&'static str, &'a Node)>,
    /// True for a table of differences, whose keys are all optional.
    partial: bool,
    /// Keys named so far.
    keys: Vec<&'static str>,
    /// Keys that belong to the table but are not accepted in this form.
    pub(super) other_keys: Vec<&'static str>,
    /// Kinds that the table may describe, if there are several.
    pub(super) kinds: Vec<Kind>,
    /// True if another reader handles keys that are not named.
    open: bool,
    /// True if the command line chose another kind than the file. The file's keys of its kind are
    /// then ignored.
    pub(super) overruled: bool,
    /// The mistakes found so far.
    pub report: &'a mut Report,
}

/// Runs a description, then reports keys that it did not name.
pub(super) fn read(reading: Reading<'_>, describe: impl FnOnce(&mut Form<'_>)) {
    let mut form = Form::Read(reading);
    describe(&mut form);
    if let Form::Read(mut reading) = form {
        reading.refuse_unknown_keys();
    }
}

impl<'a> Reading<'a> {
    /// Makes a reading of a node that holds a table.
    pub fn of(node: &'a Node, path: &str, report: &'a mut Report) -> Self {
        Self {
            place: &node.place,
            path: path.to_owned(),
            table: node.as_table(),
            bare: None,
            partial: false,
            keys: Vec::new(),
            other_keys: Vec::new(),
            kinds: Vec::new(),
            open: false,
            overruled: false,
            report,
        }
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        let written = self.table.and_then(|table| table.get(key));
        written.or_else(|| self.bare.filter(|(stands_for, _)| *stands_for == key).map(|(_, node)| node))
    }

    /// Returns the key that the bare value sets.
    pub(super) fn bare_key(&self) -> Option<(&'static str, &'a Place)> {
        self.bare.map(|(key, node)| (key, &node.place))
    }

    pub(super) fn names_key(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }

    /// Returns the entries, without a bare value.
    pub fn entries(&self) -> &'a [Entry] {
        self.table.map_or(&[], |table| &table.entries)
    }

    /// Returns the path of `key` in this table.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Records a key as named.
    pub fn name_key(&mut self, key: &'static str) {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    /// Returns the entries not named, which the caller reads and reports.
    pub fn rest(&mut self) -> impl Iterator<Item = &'a Entry> + use<'a> {
        self.open = true;
        let keys = self.keys.clone();
        self.entries().iter().filter(move |entry| !keys.iter().any(|key| *key == entry.key))
    }

    /// Reports the value of `key` as a mistake.
    pub fn refuse(&mut self, key: &str, node: &Node, accepted: String, suggestion: Option<String>) {
        let found = match &node.value {
            Value::Table(_) => "a table".to_owned(),
            Value::List(items) if items.len() > 20 => format!("a list of {}", items.len()),
            value => value.to_string(),
        };
        let is_bare = self.bare.is_some_and(|(_, bare)| std::ptr::eq(bare, node));
        let key = if is_bare { self.path.clone() } else { self.path_of(key) };
        self.report.add(Mistake { place: node.place.clone(), key, found, accepted, suggestion });
    }

    pub(super) fn field<T>(&mut self, key: &'static str, typed: &mut T, codec: &impl Codec<T>) {
        self.name_key(key);
        let Some(node) = self.get(key) else { return };
        match codec.read(&node.value) {
            Ok(value) => *typed = value,
            Err(Refused { suggestion, limit }) => {
                self.refuse(key, node, limit.unwrap_or_else(|| codec.accepted()), suggestion);
            }
        }
    }

    pub(super) fn require(&mut self, key: &'static str, accepted: &str) {
        if self.get(key).is_some() || self.partial {
            return;
        }
        let place = self.place.clone();
        let (key, accepted) = (self.path_of(key), accepted.to_owned());
        self.report.add(Mistake { place, key, found: "nothing".to_owned(), accepted, suggestion: None });
    }

    pub(super) fn table(
        &mut self,
        key: &'static str,
        shorthand: Shorthand,
        describe: impl FnOnce(&mut Form<'_>),
    ) {
        self.name_key(key);
        let Some(node) = self.get(key) else { return };
        let table = node.as_table();
        let stand_in =
            if table.is_some() { table.and_then(|table| table.bare.as_deref()) } else { Some(node) };
        let bare = stand_in.and_then(|bare| Some((shorthand.key_of(&bare.value)?, bare)));
        if stand_in.is_some() && bare.is_none() {
            let accepted = match keys_of(describe) {
                keys if keys.is_empty() => {
                    format!("tables with names of your own, [{}.NAME]", self.path_of(key))
                }
                keys => format!("a table with {}", keys.join(", ")),
            };
            return self.refuse(key, node, accepted, None);
        }
        let partial = self.partial;
        self.inside(key, node, |inner| read(Reading { bare, partial, ..inner }, describe));
    }

    pub(super) fn differing(&mut self, key: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        let before = std::mem::replace(&mut self.partial, true);
        self.table(key, Shorthand::NONE, describe);
        self.partial = before;
    }

    pub(super) fn named<T: Named>(
        &mut self,
        key: &'static str,
        things: &mut Vec<T>,
        mut describe: impl FnMut(&mut Form<'_>, &mut T),
    ) {
        self.table(key, Shorthand::NONE, |form| {
            let Form::Read(group) = form else { return };
            let all = group.entries();
            if let Some(first) = all.get(MOST_GROUPS) {
                let found = format!("{} of them", all.len());
                let accepted = format!("at most {MOST_GROUPS}; a group may have many members (count)");
                let (place, key) = (first.place.clone(), group.path.clone());
                return group.report.add(Mistake { place, key, found, accepted, suggestion: None });
            }
            for entry in group.rest() {
                let mut thing = T::named(&entry.key);
                group.named_entry(entry, |form| describe(form, &mut thing));
                things.push(thing);
            }
        });
    }

    fn named_entry(&mut self, entry: &'a Entry, describe: impl FnOnce(&mut Form<'_>)) {
        let accepted = "a name of small letters, digits, - and _";
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if entry.key.is_empty() || !entry.key.chars().all(fits) {
            let found = Node { value: Value::Text(entry.key.clone()), place: entry.place.clone() };
            return self.refuse(&entry.key, &found, accepted.to_owned(), None);
        }
        if entry.node.as_table().is_none() {
            let accepted = format!("a table with {}", keys_of(describe).join(", "));
            return self.refuse(&entry.key, &entry.node, accepted, None);
        }
        // A mistake about an absent key is shown at the entry's name.
        self.inside(&entry.key, &entry.node, |inner| {
            read(Reading { place: &entry.place, ..inner }, describe)
        });
    }

    /// Reads the table `node` under `key`.
    fn inside(&mut self, key: &str, node: &'a Node, read: impl FnOnce(Reading<'_>)) {
        let path = self.path_of(key);
        read(Reading::of(node, &path, self.report));
    }

    /// Returns the accepted name of a key of other tools.
    fn synonym(&self, key: &str) -> Option<String> {
        let (_, ours) = SYNONYMS.iter().find(|(theirs, ours)| *theirs == key && self.keys.contains(ours))?;
        Some(format!("`{ours}`"))
    }

    fn refuse_unknown_keys(&mut self) {
        if self.open {
            return;
        }
        for entry in self.entries() {
            let known = self.keys.iter().any(|key| *key == entry.key);
            let of_kind = self.kinds.iter().find(|kind| kind.keys.contains(&entry.key.as_str()));
            if known || (self.overruled && of_kind.is_some() && !entry.place.is_argument()) {
                continue;
            }
            let suggestion = did_you_mean(&entry.key, &self.keys).map(|key| format!("`{key}`"));
            let having = self.kinds.iter().filter(|kind| kind.keys.contains(&entry.key.as_str()));
            let kinds: Vec<String> = having.map(|kind| format!("\"{}\"", kind.name)).collect();
            let (found, suggestion) = match of_kind {
                Some(_) => (format!("a key that belongs to {}", kinds.join(", ")), None),
                None => ("an unknown key".to_owned(), suggestion.or_else(|| self.synonym(&entry.key))),
            };
            self.report.add(Mistake {
                place: entry.place.clone(),
                key: self.path_of(&entry.key),
                found,
                accepted: self.keys.join(", "),
                suggestion,
            });
        }
    }
}

/// Returns the keys of a description, those that it names first.
pub(super) fn keys_of(describe: impl FnOnce(&mut Form<'_>)) -> Vec<&'static str> {
    let nothing = Node::computed(Value::Table(Table::default()));
    let mut report = Report::default();
    let mut form = Form::Read(Reading::of(&nothing, "", &mut report));
    describe(&mut form);
    match form {
        Form::Read(mut reading) => {
            reading.keys.append(&mut reading.other_keys);
            reading.keys
        }
        _ => unreachable!("a form does not change what it is for"),
    }
}
