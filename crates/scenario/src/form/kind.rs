use super::reading::{Kind, Reading, keys_of};
use super::{Form, Keys};
use crate::suggest::did_you_mean;
use crate::tree::{Entry, Node, Value};

impl Form<'_> {
    /// The key `kind`, by which a table says which of several kinds its value is, and the keys of that kind.
    ///
    /// `each` is one value of each kind with its defaults, `name` says the kind of a value, and `describe` names its keys.
    pub fn variant<T: Clone>(
        &mut self,
        typed: &mut T,
        name: impl Fn(&T) -> &'static str,
        each: Vec<T>,
        mut describe: impl FnMut(&mut Form<'_>, &mut T),
    ) {
        self.choose(typed, name, each, &mut describe);
        describe(self, typed);
    }

    /// As [`Form::variant`] without the keys of the kind, which the caller describes.
    ///
    /// A key that only another kind has says the kind as well: `loss = { rate = 1e-4 }` is packet loss. The command line wins over the
    /// file, be it by a kind or by such a key.
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
        }
    }

    /// A value that may be absent: `kind` is then the first of two names, and otherwise the second. `default` is what a present one begins with.
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

    /// The key `kind` alone, where the kinds are no variants of one value; `current` is what the table describes unless it says so.
    pub fn kind(&mut self, current: &'static str, kinds: &[Keys]) -> &'static str {
        match self {
            Self::Read(reading) => reading.name_key("kind"),
            Self::Show(table) => table.put("kind", Node::computed(Value::Text(current.to_owned()))),
        }
        self.implied_kind(current, kinds)
    }

    /// As [`Form::kind`] for a table that says it by its other keys only.
    pub fn implied_kind(&mut self, current: &'static str, kinds: &[Keys]) -> &'static str {
        match self {
            Self::Read(reading) => {
                let kinds = kinds.iter().map(|&(name, keys)| Kind { name, keys: keys.to_vec() });
                reading.kind(current, kinds.collect())
            }
            Self::Show(_) => current,
        }
    }
}

impl Reading<'_> {
    /// The one of `kinds` that the table describes.
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

    /// The kind that is written, or a mistake.
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

    /// The first kind with a key that `before` does not have, looking only at keys of the command line or of the file.
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
