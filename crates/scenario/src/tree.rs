//! A TOML document with the place of every key and value.

use std::fmt;

use crate::error::Place;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub place: Place,
}

/// A TOML value. A date is kept as its text, since no scenario contains one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

/// A table in the order of the file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
    /// The value that stood here before `--set` reached into it: `loss = "none"` with `loss.rate` set.
    pub bare: Option<Box<Node>>,
}

/// A key of a table and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    /// Where the key was written.
    pub place: Place,
    pub node: Node,
}

impl Node {
    /// A value that was not written anywhere.
    pub fn computed(value: Value) -> Self {
        Self { value, place: Place::Computed }
    }

    /// The table that this is, or becomes at `place` by keeping a bare value aside.
    pub fn table_mut(&mut self, place: &Place) -> &mut Table {
        if !matches!(self.value, Value::Table(_)) {
            let table = Self { value: Value::Table(Table::default()), place: place.clone() };
            let bare = std::mem::replace(self, table);
            self.value = Value::Table(Table { entries: Vec::new(), bare: Some(Box::new(bare)) });
        }
        match &mut self.value {
            Value::Table(table) => table,
            _ => unreachable!("made a table above"),
        }
    }

    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl PartialEq for Node {
    /// Equal values, wherever they were written.
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Table {
    /// Equal entries in any order.
    fn eq(&self, other: &Self) -> bool {
        self.bare == other.bare
            && self.entries.len() == other.entries.len()
            && self.entries.iter().all(|entry| other.get(&entry.key) == Some(&entry.node))
    }
}

impl Table {
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The node at a dotted path below this table.
    pub fn find(&self, path: &str) -> Option<&Entry> {
        match path.split_once('.') {
            None => self.entry(path),
            Some((key, rest)) => self.get(key)?.as_table()?.find(rest),
        }
    }

    /// Replaces or appends an entry.
    pub fn put(&mut self, key: &str, node: Node) {
        let new = Entry { key: key.to_owned(), place: node.place.clone(), node };
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => *entry = new,
            None => self.entries.push(new),
        }
    }

    /// The table under `key`, made at `place` if there is none.
    pub fn sub_table(&mut self, key: &str, place: &Place) -> &mut Table {
        let index = self.entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let node = Node { value: Value::Table(Table::default()), place: place.clone() };
            self.entries.push(Entry { key: key.to_owned(), place: place.clone(), node });
            self.entries.len() - 1
        });
        self.entries[index].node.table_mut(place)
    }

    /// Removes what `base` says as well.
    pub fn keep_what_differs_from(&mut self, base: &Table) {
        self.entries.retain(|entry| base.get(&entry.key) != Some(&entry.node));
    }
}

impl fmt::Display for Value {
    /// As TOML on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", toml::Value::from(text.as_str())),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number:?}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| item.value.to_string()).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Table(table) if table.entries.is_empty() => f.write_str("{}"),
            Self::Table(table) => {
                let entry = |entry: &Entry| format!("{} = {}", entry.key, entry.node.value);
                let entries: Vec<_> = table.entries.iter().map(entry).collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
        }
    }
}
