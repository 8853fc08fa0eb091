//! Collection of all mistakes in a study file, with their lines.

use std::fmt;

use bentpipe_scenario::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Error of a study file, with at least one mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StudyError {
    /// The file.
    pub file: String,
    /// Line numbers from 1 (if known), each with what was found and what is accepted.
    pub mistakes: Vec<(Option<usize>, String)>,
}

impl StudyError {
    /// Makes an error with one mistake about the whole file.
    pub(crate) fn new(file: &str, what: String) -> Self {
        Self { file: file.to_owned(), mistakes: vec![(None, what)] }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, what)) in self.mistakes.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            write!(f, "{newline}{}{line}: {what}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for StudyError {}

/// Mistakes of a file, collected during reading.
pub(crate) struct Mistakes<'a> {
    file: &'a str,
    text: &'a str,
    table: DeTable<'a>,
    found: Vec<(Option<usize>, String)>,
}

impl<'a> Mistakes<'a> {
    /// Makes an empty collection for `text`.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn of(file: &'a str, text: &'a str) -> Result<Self, StudyError> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let of = |error: &toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let found = if line.trim().is_empty() { "the end of a line" } else { line };
            let why = error.message().replace('\n', ", ");
            (
                Some(line_at(text, at)),
                format!(
                    "found `{found}`, which is not TOML ({why}), accepted: lines such as `key = \"value\"`"
                ),
            )
        };
        let found: Vec<_> = errors.iter().map(of).collect();
        if !found.is_empty() {
            return Err(StudyError { file: file.to_owned(), mistakes: found });
        }
        Ok(Self { file, text, table: table.into_inner(), found: Vec::new() })
    }

    /// Adds a mistake below `path`. The longest part of the path that exists in the file determines
    /// the line.
    pub fn add(&mut self, path: &[&str], what: &str) {
        let line = self.line_of(path, what);
        let what = if path.is_empty() { what.to_owned() } else { format!("{}: {what}", path.join(".")) };
        if !self.found.iter().any(|(_, known)| *known == what) {
            self.found.push((line, what));
        }
    }

    /// Adds an error of the table reader below `path`.
    pub fn add_unread(&mut self, path: &[&str], error: &toml::de::Error) {
        self.add(path, &reworded(error));
    }

    /// Returns `value` if there are no mistakes.
    pub fn unless_any<T>(mut self, value: T) -> Result<T, StudyError> {
        self.found.sort_by_key(|(line, _)| *line);
        let mistakes = self.found;
        if mistakes.is_empty() { Ok(value) } else { Err(StudyError { file: self.file.to_owned(), mistakes }) }
    }

    fn line_of(&self, path: &[&str], what: &str) -> Option<usize> {
        let said = what.split(": ").take_while(|word| !word.contains(' ')).flat_map(|word| word.split('.'));
        let mut table = &self.table;
        let mut line = None;
        for (depth, key) in path.iter().copied().chain(said).enumerate() {
            let entry = table.iter().find(|(known, _)| known.get_ref().as_ref() == key);
            let Some((known, value)) = entry else { if depth < path.len() { continue } else { break } };
            line = Some(line_at(self.text, Spanned::span(known).start));
            let DeValue::Table(inner) = value.get_ref() else { break };
            table = inner;
        }
        line
    }
}

fn line_at(text: &str, at: usize) -> usize {
    1 + text.get(..at).map_or(0, |before| before.matches('\n').count())
}

/// Rewords an error of the TOML reader as found and accepted.
fn reworded(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let within = text.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    let path = within.map_or(String::new(), |path| format!("{path}: "));
    let message = error.message();
    let words = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, expected) = rest.split_once('`').unwrap_or((rest, ""));
        let known = words(expected);
        let hint =
            did_you_mean(name, &known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return format!("{path}{name}: found an unknown key, accepted: {}{hint}", known.join(", "));
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("{path}found no `{name}`, accepted: with it");
    }
    if let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "))
    {
        return format!("{path}found {}, accepted: {}", plain(found), plain(expected));
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (name, expected) = rest.split_once('`').unwrap_or((rest, ""));
        let known = words(expected);
        let hint =
            did_you_mean(name, &known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return format!("{path}found `{name}`, accepted: {}{hint}", known.join(", "));
    }
    if message.contains("untagged enum Arm") {
        let accepted = "the name of an algorithm, or a table with `cc` and `set`";
        return format!("{path}found something else, accepted: {accepted}");
    }
    format!("{path}found something else, accepted: what the reader of TOML says: {message}")
}

/// Rewords a value or a type for messages.
fn plain(of_reader: &str) -> String {
    let value = ["string ", "integer ", "floating point ", "boolean "]
        .iter()
        .find_map(|kind| of_reader.strip_prefix(kind));
    let words = [
        ("u32", "a whole number"),
        ("u64", "a whole number"),
        ("f64", "a number"),
        ("a boolean", "true or false"),
        ("a string", "a text"),
        ("a map", "a table"),
        ("map", "a table"),
        ("a sequence", "a list"),
        ("sequence", "a list"),
    ];
    let word = words.iter().find(|(theirs, _)| *theirs == of_reader).map(|(_, ours)| *ours);
    word.or(value).unwrap_or(of_reader).replace('`', "")
}

/// Message that `found` is not one of `known`.
pub(crate) fn unknown<'a>(what: &str, found: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let hint = did_you_mean(found, &known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("found {what} `{found}`, accepted: {}{hint}", known.join(", "))
}
