use super::reading::{Kind, Reading, keys_of};
use super::{Form, Keys};
use crate::suggest::did_you_mean;
use crate::tree::{Entry, Node, Value};

impl Form<'_> {
    /// Key `kind`, which selects one of several kinds for a table's value, and the keys of that kind.
    ///
    /// `each` holds one default value per kind, `name` returns the kind of a value, and `describe` names its keys.
    pub fn variant<T: Clone>(
        &mut self,
        typed: &mut T,
        name: impl Fn(&T) -> &'static str,
        each: Vec<T>,
        mut describe: impl FnMut(&mut Form<'_>, &mut T),
    ) {
        self.choose(typed, name, each, &mut describe);
        if !self.lists() {
            describe(self, typed);
        }
    }

    /// As [`Form::variant`] without the keys of the kind, which the caller describes.
    ///
    /// A key of only one other kind also selects that kind: `loss = { rate = 1e-4 }` is packet loss. The command line overrides
    /// the file, with a kind or with such a key.
    pub fn choose<T: Clone>(
        &mut self,
        typed: &mut T,
        name: impl Fn(&T) -> &'static str,
        each: Vec<T>,
        mut describe: impl FnMut(&mut Form<'_>, &mut T),
    ) {
        let current = name(typed);
        match self {
            Self::Read(reading) => {
                let mut keys = |one: &T| keys_of(|form| describe(form, &mut one.clone()));
                let kinds = each.iter().map(|one| Kind { name: name(one), keys: keys(one) }).collect();
                reading.name_key("kind");
                let chosen = reading.kind(current, kinds);
                if chosen != current {
                    *typed = each.into_iter().find(|one| name(one) == chosen).expect("one of the kinds");
                }
            }
            Self::Show(table) => table.put("kind", Node::computed(Value::Text(current.to_owned()))),
            Self::List(listing) => {
                let names: Vec<_> = each.iter().map(&name).collect();
                listing.kinds(current, &names);
                for (mut one, name) in each.into_iter().zip(names) {
                    listing.of_kind(name, |form| describe(form, &mut one));
                }
            }
        }
    }

    /// Optional value: `kind` is the first of two names if it is absent, else the second. `default` is the initial value of a
    /// present one.
    pub fn option<T: Clone>(
        &mut self,
        typed: &mut Option<T>,
        [absent, present]: [&'static str; 2],
        default: T,
        mut describe: impl FnMut(&mut Form<'_>, &mut T),
    ) {
        let name = |typed: &Option<T>| if typed.is_some() { present } else { absent };
        self.variant(typed, name, vec![None, Some(default)], |form, typed| {
            if let Some(typed) = typed {
                describe(form, typed);
            }
        });
    }

    /// Key `kind` alone, if the kinds are not variants of one value. `current` is the kind if the table names none. `describe`
    /// gets the kind.
    pub fn kinds(
        &mut self,
        current: &'static str,
        kinds: &[Keys],
        describe: impl FnMut(&mut Form<'_>, &'static str),
    ) {
        match self {
            Self::Read(reading) => reading.name_key("kind"),
            Self::Show(table) => table.put("kind", Node::computed(Value::Text(current.to_owned()))),
            Self::List(listing) => {
                listing.kinds(current, &kinds.iter().map(|(name, _)| *name).collect::<Vec<_>>());
            }
        }
        self.implied_kinds(current, kinds, describe);
    }

    /// As [`Form::kinds`] for a table whose other keys alone select the kind.
    pub fn implied_kinds(
        &mut self,
        current: &'static str,
        kinds: &[Keys],
        mut describe: impl FnMut(&mut Form<'_>, &'static str),
    ) {
        let kind = match self {
            Self::Read(reading) => {
                let kinds = kinds.iter().map(|&(name, keys)| Kind { name, keys: keys.to_vec() });
                reading.kind(current, kinds.collect())
            }
            Self::Show(_) => current,
            Self::List(listing) => {
                return kinds.iter().for_each(|(kind, _)| listing.of_kind(kind, |form| describe(form, kind)));
            }
        };
        describe(self, kind);
    }
}

impl Reading<'_> {
    /// Returns the one of `kinds` that the table describes.
    fn kind(&mut self, current: &'static str, kinds: Vec<Kind>) -> &'static str {
        self.kinds = kinds;
        let written = self.get("kind").filter(|_| self.names_key("kind"));
        let said = written.and_then(|node| self.said_kind(node));
        let ordered = |entry: &Entry| entry.key == "kind" && entry.node.place.is_argument();
        if written.is_some() && self.entries().iter().any(ordered) {
            self.overruled = true;
            return said.unwrap_or(current);
        }
        let of_file = match (written, said) {
            (Some(_), said) => said.unwrap_or(current),
            (None, _) => self.implied(current, false).unwrap_or(current),
        };
        let by_argument = self.implied(of_file, true);
        self.overruled = by_argument.is_some();
        by_argument.unwrap_or(of_file)
    }

    /// Returns the kind written under `kind`, or reports a mistake.
    fn said_kind(&mut self, node: &Node) -> Option<&'static str> {
        let names: Vec<_> = self.kinds.iter().map(|kind| kind.name).collect();
        let text = match &node.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        let name = names.iter().copied().find(|name| *name == text);
        if name.is_none() {
            let suggestion = did_you_mean(text, &names).map(|name| format!("\"{name}\""));
            let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            self.refuse("kind", node, quoted.join(", "), suggestion);
        }
        name
    }

    /// Returns the first kind with a key that `before` lacks, among keys of the command line or of the file.
    fn implied(&self, before: &str, by_argument: bool) -> Option<&'static str> {
        let has = |kind: &Kind, key: &str| kind.keys.contains(&key);
        let before = self.kinds.iter().find(|kind| kind.name == before);
        let written = self.entries().iter().map(|entry| (entry.key.as_str(), &entry.place));
        written
            .chain(self.bare_key())
            .filter(|(_, place)| place.is_argument() == by_argument)
            .filter(|(key, _)| !before.is_some_and(|before| has(before, key)))
            .find_map(|(key, _)| self.kinds.iter().find(|kind| has(kind, key)))
            .map(|kind| kind.name)
    }
}
