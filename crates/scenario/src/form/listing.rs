use super::{Form, Shorthand};
use crate::meanings;

/// A key of a file as its reader accepts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// Header of its table without brackets, such as `link.NAME.queue`; empty for the top of the file.
    pub table: String,
    /// Kind of the table that has this key; `None` if every kind has it.
    pub kind: Option<&'static str>,
    /// Name of the key.
    pub name: String,
    /// Accepted values: type, unit and range.
    pub accepted: String,
    /// Default, as the file writes it; `None` if the key is required.
    pub default: Option<String>,
    /// Meaning.
    pub meaning: &'static str,
    /// For the key `kind`: each kind with its meaning.
    pub kinds: Vec<(&'static str, &'static str)>,
}

/// A table on the path to a key, with its kind if it has several.
#[derive(Clone, Debug)]
struct Segment {
    key: &'static str,
    named: bool,
    kind: Option<&'static str>,
}

/// Keys listed so far, and the path to the present table.
#[derive(Default)]
pub(crate) struct Listing {
    path: Vec<Segment>,
    keys: Vec<Key>,
}

impl Listing {
    /// Adds a key of the present table. `default` is `None` for a required key.
    pub fn add(&mut self, name: &'static str, accepted: String, default: Option<String>) {
        let path = self.path.iter().map(|segment| (segment.key, segment.kind)).chain([(name, None)]);
        let meaning = meanings::of_key(&path.collect::<Vec<_>>());
        let table = self
            .path
            .iter()
            .map(|one| if one.named { format!("{}.NAME", one.key) } else { one.key.to_owned() });
        self.keys.push(Key {
            table: table.collect::<Vec<_>>().join("."),
            kind: self.path.last().and_then(|segment| segment.kind),
            name: name.to_owned(),
            accepted,
            default,
            meaning,
            kinds: Vec::new(),
        });
    }

    /// Adds the key `kind` of the present table.
    pub fn kinds(&mut self, current: &str, names: &[&'static str]) {
        let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
        let table = self.path.last().map_or("", |segment| segment.key);
        let kinds = names.iter().map(|name| (*name, meanings::of_kind(table, name))).collect();
        self.add("kind", quoted.join(", "), Some(format!("\"{current}\"")));
        if let Some(key) = self.keys.last_mut() {
            key.kinds = kinds;
        }
    }

    /// Lists the keys of one kind of the present table.
    pub fn of_kind(&mut self, kind: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        let before = self.path.last_mut().and_then(|segment| segment.kind.replace(kind));
        self.inside(describe);
        if let Some(segment) = self.path.last_mut() {
            segment.kind = before;
        }
    }

    /// Lists a table that also accepts the value of one of its keys.
    pub fn table(&mut self, key: &'static str, shorthand: Shorthand, describe: impl FnOnce(&mut Form<'_>)) {
        let bare = [shorthand.word, shorthand.number, shorthand.list].into_iter().flatten();
        let mut bare: Vec<_> = bare.map(|key| format!("`{key}`")).collect();
        bare.dedup();
        let accepted = match bare.as_slice() {
            [] => "a table".to_owned(),
            bare => format!("a table, or the value of its key {}", bare.join(" or ")),
        };
        self.add(key, accepted, Some(String::new()));
        self.enter(key, false, describe);
    }

    /// Lists a table for each name that the user chooses.
    pub fn named(&mut self, key: &'static str, describe: impl FnOnce(&mut Form<'_>)) {
        self.enter(key, true, describe);
    }

    pub fn enter(&mut self, key: &'static str, named: bool, describe: impl FnOnce(&mut Form<'_>)) {
        self.path.push(Segment { key, named, kind: None });
        self.inside(describe);
        self.path.pop();
    }

    fn inside(&mut self, describe: impl FnOnce(&mut Form<'_>)) {
        let mut form = Form::List(std::mem::take(self));
        describe(&mut form);
        match form {
            Form::List(listing) => *self = listing,
            _ => unreachable!("a form does not change what it is for"),
        }
    }
}

/// Returns the keys of a description in order. A key that several kinds share is listed once for each.
pub(crate) fn list(table: Option<&'static str>, describe: impl FnOnce(&mut Form<'_>)) -> Vec<Key> {
    let mut listing = Listing::default();
    match table {
        Some(table) => listing.enter(table, false, describe),
        None => listing.inside(describe),
    }
    listing.keys
}
