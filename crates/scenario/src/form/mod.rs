//! One description of a table serves to read it, to show it and to list its keys for the reference.
//!
//! A describing function names a table's keys in order, each with its variable. When a [`Form`] reads, a present key
//! replaces the variable; an absent key keeps its value, which is the default. When a [`Form`] shows, every variable
//! becomes an entry. When it lists, every key of every kind becomes a line of the reference. All keys that are not named are
//! mistakes.

mod kind;
mod listing;
mod reading;

pub use listing::Key;
pub(crate) use listing::{Listing, list};
pub(crate) use reading::{Reading, Report};

use crate::tree::{Node, Table, Value};
use crate::unit::Codec;

/// A table that is read, shown or listed.
pub(crate) enum Form<'a> {
    /// Reads the present keys.
    Read(Reading<'a>),
    /// Collects the entries to show.
    Show(Table),
    /// Collects the keys of all kinds for the reference.
    List(Listing),
}

/// Name of a kind, and the keys that only this kind has, besides `kind`.
pub(crate) type Keys = (&'static str, &'static [&'static str]);

/// Keys of a table for which a bare value may replace the table.
#[derive(Clone, Copy)]
pub(crate) struct Shorthand {
    /// Key for a word: `loss = "none"`.
    pub word: Option<&'static str>,
    /// Key for a number, with or without a unit: `queue = "50 packets"`.
    pub number: Option<&'static str>,
    /// Key for a list: `rate = [["0 s", "10 Mbit/s"], ["20 s", "5 Mbit/s"]]`.
    pub list: Option<&'static str>,
}

impl Shorthand {
    /// Accepts only a table.
    pub const NONE: Self = Self { word: None, number: None, list: None };
    /// Accepts the name of a kind.
    pub const KIND: Self = Self { word: Some("kind"), ..Self::NONE };

    /// Returns the key that `value` sets.
    fn key_of(self, value: &Value) -> Option<&'static str> {
        let fitting = match value {
            Value::Text(text) if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => self.word,
            Value::Text(_) | Value::Whole(_) | Value::Real(_) => self.number,
            Value::List(_) => self.list,
            Value::Flag(_) | Value::Table(_) => None,
        };
        // A value of another kind is given to some key, whose codec then reports what is accepted.
        fitting.or(self.word).or(self.number).or(self.list)
    }

    /// Returns the value of a table with one entry, if the shorthand allows it.
    fn abbreviate(self, table: Table) -> Value {
        match table.entries.as_slice() {
            [entry] if self.key_of(&entry.node.value) == Some(entry.key.as_str()) => entry.node.value.clone(),
            _ => Value::Table(table),
        }
    }
}

impl Form<'_> {
    /// True when reading.
    pub fn reads(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// True when listing.
    pub fn lists(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// True if `key` is written in this table.
    pub fn has(&self, key: &str) -> bool {
        match self {
            Self::Read(reading) => reading.get(key).is_some(),
            Self::Show(_) | Self::List(_) => false,
        }
    }

    /// True if `key` holds a bare value. It replaces all entries, while a table changes some.
    pub fn is_bare(&self, key: &str) -> bool {
        match self {
            Self::Read(reading) => {
                reading.get(key).is_some_and(|node| node.as_table().is_none_or(|table| table.bare.is_some()))
            }
            Self::Show(_) | Self::List(_) => false,
        }
    }

    /// Names keys that belong to the table but are not accepted in this form.
    pub fn also_has(&mut self, keys: &[&'static str]) {
        if let Self::Read(reading) = self {
            reading.other_keys.extend_from_slice(keys);
        }
    }

    /// Names an optional key.
    pub fn field<T>(&mut self, key: &'static str, typed: &mut T, codec: &impl Codec<T>) {
        match self {
            Self::Read(reading) => reading.field(key, typed, codec),
            Self::Show(table) => table.put(key, Node::computed(codec.show(typed))),
            Self::List(listing) => listing.add(key, codec.accepted(), Some(codec.show(typed).to_string())),
        }
    }

    /// Names a required key. In a table of differences it is optional.
    pub fn required<T>(&mut self, key: &'static str, typed: &mut T, codec: &impl Codec<T>) {
        match self {
            Self::Read(reading) => reading.require(key, &codec.accepted()),
            Self::List(listing) => return listing.add(key, codec.accepted(), None),
            Self::Show(_) => {}
        }
        self.field(key, typed, codec);
    }

    /// Names a key with a table, or with a bare value that replaces a table of one entry.
    pub fn table(&mut self, key: &'static str, shorthand: Shorthand, describe: impl FnOnce(&mut Form<'_>)) {
        match self {
            Self::Read(reading) => reading.table(key, shorthand, describe),
            Self::Show(table) => {
                let shown = show(describe);
                table.put(key, Node::computed(shorthand.abbreviate(shown)));
            }
            Self::List(listing) => listing.table(key, shorthand, describe),
        }
    }

    /// As [`Form::table`], but required.
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

    /// Names a table of the keys of this one whose values differ, such as the other direction of a link.
    pub fn differing(&mut self, key: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        let base = match self {
            Self::Show(table) => table.clone(),
            Self::Read(_) | Self::List(_) => Table::default(),
        };
        self.differing_from(&base, key, describe);
    }

    /// Names a table of the keys of `base` whose values differ.
    pub fn differing_from(&mut self, base: &Table, key: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        match self {
            Self::List(listing) => {
                listing.add(key, "a table of the keys that differ".to_owned(), Some(String::new()))
            }
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

    /// Names a key whose entries have names chosen by the user.
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
            Self::List(listing) => listing.named(key, |form| describe(form, &mut T::named("NAME"))),
        }
    }
}

/// A named entry, made before its table is read.
pub(crate) trait Named {
    /// Makes the entry with default values.
    fn named(name: &str) -> Self;
    /// Returns the entry's name.
    fn name(&self) -> &str;
}

/// Returns the table that `describe` shows.
pub(crate) fn show(describe: impl FnOnce(&mut Form<'_>)) -> Table {
    let mut form = Form::Show(Table::default());
    describe(&mut form);
    match form {
        Form::Show(table) => table,
        _ => unreachable!("a form does not change what it is for"),
    }
}

/// Reads `table` at `path`, and reports every mistake in it.
pub(crate) fn read(table: &Node, path: &str, report: &mut Report, describe: impl FnOnce(&mut Form<'_>)) {
    reading::read(reading::Reading::of(table, path, report), describe);
}
