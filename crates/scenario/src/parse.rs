//! Parser from TOML text to a tree with line and column numbers.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error as TomlError};

use crate::error::{Error, Mistake, Place};
use crate::tree::{Entry, Node, Table, Value};

/// Maximum number of reported lines that are not TOML.
const MOST_ERRORS: usize = 3;

/// Parses the text of a whole file.
pub(crate) fn document(file: &str, text: &str) -> Result<Table, Error> {
    let source = Source::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // After a few of them the file is probably none of TOML.
        let first = errors.iter().take(MOST_ERRORS).map(|error| source.mistake(error));
        return Err(Error::Mistakes(first.collect()));
    }
    Ok(source.table(table.get_ref()))
}

/// Parses the value of `--set KEY=VALUE`: a TOML number, boolean, list, table or quoted string. Everything else is
/// text.
pub(crate) fn argument(text: &str, place: &Place) -> Node {
    let value = match DeValue::parse(text) {
        Ok(value) => Source::new("", text).value(value.get_ref()),
        Err(_) => Value::Text(text.to_owned()),
    };
    let mut node = Node { value, place: place.clone() };
    relocate(&mut node, place);
    node
}

/// Sets the place of a node and of all nodes below it.
fn relocate(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| relocate(item, place)),
        Value::Table(table) => {
            for entry in &mut table.entries {
                entry.place = place.clone();
                relocate(&mut entry.node, place);
            }
        }
        _ => {}
    }
}

struct Source<'a> {
    file: Arc<str>,
    text: &'a str,
    /// Start of each line.
    lines: Vec<usize>,
    /// A byte that starts a character, and the number of characters before it in its line. The next column is counted from here.
    counted: Cell<(usize, usize)>,
}

impl<'a> Source<'a> {
    fn new(file: &str, text: &'a str) -> Self {
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(behind).collect();
        Self { file: file.into(), text, lines, counted: Cell::new((0, 0)) }
    }

    fn place(&self, span: Range<usize>) -> Place {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        Place::File { file: self.file.clone(), line, column: self.column(self.lines[line - 1], span.start) }
    }

    /// Column of the byte `at` of the line that begins at `begin`. Counts from the place before, so that a long line takes linear time.
    fn column(&self, begin: usize, at: usize) -> usize {
        let (known, characters) = match self.counted.get() {
            (known, characters) if (begin..=at).contains(&known) => (known, characters),
            _ => (begin, 0),
        };
        let Some(since) = self.text.get(known..at) else { return characters + 1 };
        let characters = characters + since.chars().count();
        self.counted.set((at, characters));
        characters + 1
    }

    fn table(&self, table: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            Entry {
                key: key.get_ref().to_string(),
                place: self.place(key.span()),
                node: Node { value: self.value(value.get_ref()), place: self.place(value.span()) },
            }
        };
        Table { entries: table.iter().map(entry).collect(), bare: None }
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(date) => Value::Text(date.to_string()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Whole(number),
                // Beyond the range of every count: refused if a count is required.
                Err(_) => Value::Real(number.as_str().parse().unwrap_or(f64::INFINITY)),
            },
            DeValue::Float(number) => Value::Real(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Array(items) => {
                let item = |item: &Spanned<DeValue<'_>>| Node {
                    value: self.value(item.get_ref()),
                    place: self.place(item.span()),
                };
                Value::List(items.iter().map(item).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        }
    }

    fn mistake(&self, error: &TomlError) -> Mistake {
        let span = error.span().unwrap_or(0..0);
        let line = self.text.get(span.start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let found = if line.trim().is_empty() { "the end of a line".to_owned() } else { format!("`{line}`") };
        Mistake {
            place: self.place(span),
            key: String::new(),
            found: format!("{found}, which is not TOML ({})", error.message().replace('\n', ", ")),
            accepted: "lines such as `key = \"value\"` and `[table]`".to_owned(),
            suggestion: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_characters_in_any_order_of_places() {
        let text = "a = 1\nwörter = [1, \"ü\", 3]\n";
        let source = Source::new("f", text);
        let column = |part: &str| {
            let at = text.find(part).unwrap();
            match source.place(at..at) {
                Place::File { line, column, .. } => (line, column),
                place => panic!("{place:?}"),
            }
        };
        for (part, place) in [
            ("wörter", (2, 1)),
            ("1, ", (2, 11)),
            ("3]", (2, 19)),
            ("\"ü", (2, 14)),
            ("1\n", (1, 5)),
            ("3]", (2, 19)),
        ] {
            assert_eq!(column(part), place, "{part}");
        }
    }

    #[test]
    fn the_next_column_of_a_line_is_counted_from_the_last_one() {
        let text = "a = [1, 2, 3]\n";
        let source = Source::new("f", text);
        for at in [5, 8, 11] {
            source.place(at..at + 1);
            assert_eq!(source.counted.get(), (at, at));
        }
    }
}
