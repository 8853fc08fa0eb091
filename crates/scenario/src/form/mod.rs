//! One description of a table serves three purposes: reading it, showing it, and knowing its keys.
//!
//! A function that describes a table names its keys one after another, each with the variable it stands for. With a
//! [`Form`] that reads, a key that is present replaces the variable and one that is absent leaves it, so that what the
//! variable held before is the default. With a [`Form`] that shows, every variable becomes an entry. What was named is
//! what is accepted: any other key is a mistake.

mod kind;
mod reading;

pub(crate) use reading::{Reading, Report};

use crate::tree::{Node, Table, Value};
use crate::unit::Codec;

/// A table being read or shown.
pub(crate) enum Form<'a> {
    /// Reads what is there.
    Read(Reading<'a>),
    /// Collects what there is to show.
    Show(Table),
}

/// The name of a kind and the keys that only it has, besides `kind`.
pub(crate) type Keys = (&'static str, &'static [&'static str]);

/// Which key of a table a value stands for that is written in place of the table.
#[derive(Clone, Copy)]
pub(crate) struct Shorthand {
    /// For a word: `loss = "none"`.
    pub word: Option<&'static str>,
    /// For a number, with or without a unit: `queue = "50 packets"`.
    pub number: Option<&'static str>,
    /// For a list: `rate = [["0 s", "10 Mbit/s"], ["20 s", "5 Mbit/s"]]`.
    pub list: Option<&'static str>,
}

impl Shorthand {
    /// Only a table will do.
    pub const NONE: Self = Self { word: None, number: None, list: None };
    /// The name of a kind will do.
    pub const KIND: Self = Self { word: Some("kind"), ..Self::NONE };

    /// The key that `value` stands for.
    fn key_of(self, value: &Value) -> Option<&'static str> {
        let fitting = match value {
            Value::Text(text) if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => self.word,
            Value::Text(_) | Value::Whole(_) | Value::Real(_) => self.number,
            Value::List(_) => self.list,
            Value::Flag(_) | Value::Table(_) => None,
        };
        // A value of the wrong kind goes to some key, whose codec then says what is accepted.
        fitting.or(self.word).or(self.number).or(self.list)
    }

    /// A table of one entry, which the shorthand can say, as that entry's value.
    fn abbreviate(self, table: Table) -> Value {
        match table.entries.as_slice() {
            [entry] if self.key_of(&entry.node.value) == Some(entry.key.as_str()) => entry.node.value.clone(),
            _ => Value::Table(table),
        }
    }
}

impl Form<'_> {
    /// True when reading, false when showing.
    pub fn reads(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// True if `key` is written in this table.
    pub fn has(&self, key: &str) -> bool {
        match self {
            Self::Read(reading) => reading.get(key).is_some(),
            Self::Show(_) => false,
        }
    }

    /// True if `key` holds a value in place of a table: it says everything, where a table says what differs.
    pub fn is_bare(&self, key: &str) -> bool {
        match self {
            Self::Read(reading) => {
                reading.get(key).is_some_and(|node| node.as_table().is_none_or(|table| table.bare.is_some()))
            }
            Self::Show(_) => false,
        }
    }

    /// Keys that belong to what is described, although it is read in a way that does not accept them.
    pub fn also_has(&mut self, keys: &[&'static str]) {
        if let Self::Read(reading) = self {
            reading.other_keys.extend_from_slice(keys);
        }
    }

    /// A key that may be absent.
    pub fn field<T>(&mut self, key: &'static str, typed: &mut T, codec: &impl Codec<T>) {
        match self {
            Self::Read(reading) => reading.field(key, typed, codec),
            Self::Show(table) => table.put(key, Node::computed(codec.show(typed))),
        }
    }

    /// A key that must be present, unless this table only says what differs from another.
    pub fn required<T>(&mut self, key: &'static str, typed: &mut T, codec: &impl Codec<T>) {
        if let Self::Read(reading) = self {
            reading.require(key, &codec.accepted());
        }
        self.field(key, typed, codec);
    }

    /// A key whose value is a table, or a value that stands for a table of one entry.
    pub fn table(&mut self, key: &'static str, shorthand: Shorthand, describe: impl FnOnce(&mut Form<'_>)) {
        match self {
            Self::Read(reading) => reading.table(key, shorthand, describe),
            Self::Show(table) => {
                let shown = show(describe);
                table.put(key, Node::computed(shorthand.abbreviate(shown)));
            }
        }
    }

    /// As [`Form::table`], but must be present.
    pub fn required_table(
        &mut self,
        key: &'static str,
        shorthand: Shorthand,
        accepted: &str,
        describe: impl FnOnce(&mut Form<'_>),
    ) {
        if let Self::Read(reading) = self {
            reading.require(key, accepted);
        }
        self.table(key, shorthand, describe);
    }

    /// A table of those keys of this one that have another value, such as the other direction of a link.
    pub fn differing(&mut self, key: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        let base = match self {
            Self::Read(_) => Table::default(),
            Self::Show(table) => table.clone(),
        };
        self.differing_from(&base, key, describe);
    }

    /// A table of those keys of `base` that have another value.
    pub fn differing_from(&mut self, base: &Table, key: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        match self {
            Self::Read(reading) => reading.differing(key, describe),
            Self::Show(table) => {
                let mut shown = show(describe);
                shown.keep_what_differs_from(base);
                if !shown.entries.is_empty() {
                    table.put(key, Node::computed(Value::Table(shown)));
                }
            }
        }
    }

    /// A key whose entries are things with names of the user's choice.
    pub fn named<T: Named>(
        &mut self,
        key: &'static str,
        things: &mut Vec<T>,
        mut describe: impl FnMut(&mut Form<'_>, &mut T),
    ) {
        match self {
            Self::Read(reading) => reading.named(key, things, describe),
            Self::Show(table) => {
                for thing in things {
                    let shown = show(|form| describe(form, thing));
                    let group = table.sub_table(key, &crate::error::Place::Computed);
                    group.put(thing.name(), Node::computed(Value::Table(shown)));
                }
            }
        }
    }
}

/// A thing with a name, made before its table is read.
pub(crate) trait Named {
    /// The thing before anything is known of it.
    fn named(name: &str) -> Self;
    /// Its name.
    fn name(&self) -> &str;
}

/// What `describe` shows.
pub(crate) fn show(describe: impl FnOnce(&mut Form<'_>)) -> Table {
    let mut form = Form::Show(Table::default());
    describe(&mut form);
    match form {
        Form::Show(table) => table,
        Form::Read(_) => unreachable!("a form does not change what it is for"),
    }
}

/// Reads `table`, which stands at `path`, and reports every mistake in it.
pub(crate) fn read(table: &Node, path: &str, report: &mut Report, describe: impl FnOnce(&mut Form<'_>)) {
    reading::read(reading::Reading::of(table, path, report), describe);
}
