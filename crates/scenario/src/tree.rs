//! TOML document with the place of every key and value.

use std::fmt;

use crate::error::Place;

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub place: Place,
}

/// A TOML value. A date is kept as text, since scenarios have no dates.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Table in the order of the file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
    /// Value before `--set` changed a key below it, such as `loss = "none"` before `loss.rate`.
    pub bare: Option<Box<Node>>,
}

/// Key of a table with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    /// Place of the key.
    pub place: Place,
    pub node: Node,
}

impl Node {
    /// Makes a value without a place in a text.
    pub fn computed(value: Value) -> Self {
        Self { value, place: Place::Computed }
    }

    /// Returns the table in this node. A bare value is moved aside into a new table at `place`.
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

    /// Replaces or appends the entry at a dotted path below this table. Absent tables on the way are made at the node's place.
    pub fn put(&mut self, path: &str, node: Self) {
        let place = node.place.clone();
        let mut keys: Vec<_> = path.split('.').collect();
        let last = keys.pop().unwrap_or_default();
        let mut table = self.table_mut(&place);
        for key in keys {
            table = table.sub_table(key, &place);
        }
        table.put(last, node);
    }

    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl PartialEq for Node {
    /// Compares values, not places.
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Table {
    /// Compares entries in any order.
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

    /// Returns the node at a dotted path below this table.
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

    /// Returns the table under `key`, which is made at `place` if absent.
    pub fn sub_table(&mut self, key: &str, place: &Place) -> &mut Table {
        let index = self.entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let node = Node { value: Value::Table(Table::default()), place: place.clone() };
            self.entries.push(Entry { key: key.to_owned(), place: place.clone(), node });
            self.entries.len() - 1
        });
        self.entries[index].node.table_mut(place)
    }

    /// Removes the entries that are equal in `base`.
    pub fn keep_what_differs_from(&mut self, base: &Table) {
        self.entries.retain(|entry| base.get(&entry.key) != Some(&entry.node));
    }
}

impl fmt::Display for Value {
    /// Formats the value as TOML on one line.
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
