use super::{Form, Reading};
use crate::suggest::did_you_mean;
use crate::tree::{Entry, Node, Value};

/// One kind of thing that a table may describe, and the keys it has then.
#[derive(Debug)]
pub(crate) struct Kind {
    /// What the table says under `kind`.
    pub name: &'static str,
    /// The other keys.
    pub keys: &'static [&'static str],
}

impl Form<'_> {
    /// The key `kind`, by which a table says what it describes; `current` is what it describes unless it says so.
    ///
    /// A key that only another kind has says it as well: `loss = { rate = 1e-4 }` is packet loss. The command line wins
    /// over the file, be it by a kind or by such a key.
    pub fn kind(&mut self, current: &'static str, kinds: &'static [Kind]) -> &'static str {
        match self {
            Self::Read(reading) => {
                reading.name_key("kind");
                reading.kind(current, kinds)
            }
            Self::Show(table) => {
                table.put("kind", Node::computed(Value::Text(current.to_owned())));
                current
            }
        }
    }

    /// As [`Form::kind`] for a table that says it by its other keys only.
    pub fn implied_kind(&mut self, current: &'static str, kinds: &'static [Kind]) -> &'static str {
        match self {
            Self::Read(reading) => reading.kind(current, kinds),
            Self::Show(_) => current,
        }
    }
}

impl Reading<'_> {
    fn kind(&mut self, current: &'static str, kinds: &'static [Kind]) -> &'static str {
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
