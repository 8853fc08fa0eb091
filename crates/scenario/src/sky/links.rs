//! Links between satellites that a file lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_orbit::{Constellation, Listed, OrbitError};

use crate::column::Wrong;
use crate::tree::Value;
use crate::unit::{Codec, RATE, TIME};

/// Form of a line.
const ACCEPTED: &str =
    "two satellites, then optionally a rate, then optionally two times: `0, 1, 10 Gbit/s, 0 s, 60 s`";

/// File with links between satellites.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinksFile {
    /// Path of the file in the scenario.
    pub file: String,
    /// Name of the file in messages.
    pub(crate) name: Arc<str>,
    pub(crate) lines: Arc<[Line]>,
}

/// A link as a line of the file has it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line {
    number: usize,
    /// Satellites: index or name, with the column at which each begins.
    ends: [(usize, String); 2],
    rate: Option<Rate>,
    during: [Instant; 2],
}

/// Reads a file. Empty lines and lines that begin with `#` are ignored.
pub(crate) fn read(text: &str) -> Result<Arc<[Line]>, Vec<Wrong>> {
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match self::line(index + 1, line) {
            Ok(line) => lines.push(line),
            Err(mistake) if wrong.len() < 10 => wrong.push(mistake),
            Err(_) => {}
        }
    }
    if wrong.is_empty() { Ok(lines.into()) } else { Err(wrong) }
}

fn line(number: usize, line: &str) -> Result<Line, Wrong> {
    let fields = fields(line);
    let [a, b, rest @ ..] = fields.as_slice() else {
        return Err(Wrong::new((number, 1), format!("\"{line}\""), ACCEPTED));
    };
    let wrong = |(column, text): &(usize, &str), accepted: String| {
        Wrong::new((number, *column), format!("\"{text}\""), accepted)
    };
    let rate = match rest.first() {
        Some(field) if !field.1.is_empty() => {
            let read = RATE.read(&Value::Text(field.1.to_owned()));
            Some(read.map_err(|_| wrong(field, Codec::<Rate>::accepted(&RATE)))?)
        }
        _ => None,
    };
    let time = |field: &(usize, &str)| {
        let read: Result<Duration, _> = TIME.read(&Value::Text(field.1.to_owned()));
        let time = read.map_err(|_| wrong(field, Codec::<Duration>::accepted(&TIME)))?;
        Ok(Instant::ZERO + time)
    };
    let during = match rest {
        [] | [_] => [Instant::ZERO, Instant::FAR_FUTURE],
        [_, from, to] => {
            let during = [time(from)?, time(to)?];
            if during[0] >= during[1] {
                return Err(wrong(to, format!("a time after {}", from.1)));
            }
            during
        }
        [_, .., last] => return Err(wrong(last, ACCEPTED.to_owned())),
    };
    let ends = [a, b].map(|(column, text)| (*column, (*text).to_owned()));
    Ok(Line { number, ends, rate, during })
}

/// Splits a line at commas, or else at spaces. Returns each field with its column in characters, from 1.
fn fields(line: &str) -> Vec<(usize, &str)> {
    let commas = line.contains(',');
    let parts = line.split(|c: char| if commas { c == ',' } else { c.is_whitespace() });
    let mut column = 1;
    let place = |part: &'_ str| {
        let begin = column + part.chars().take_while(|c| c.is_whitespace()).count();
        column += part.chars().count() + 1;
        begin
    };
    let columns: Vec<usize> = parts.clone().map(place).collect();
    let fields = columns.into_iter().zip(parts.map(str::trim));
    fields.filter(|(_, text)| commas || !text.is_empty()).collect()
}

/// Returns the links between the satellites of a constellation.
///
/// # Errors
/// [`OrbitError::Link`] for an unknown satellite, a link of a satellite to itself, or two rates of a pair.
pub(crate) fn resolve(lines: &[Line], constellation: &Constellation) -> Result<Vec<Listed>, OrbitError> {
    let mut rates = BTreeMap::new();
    let mut links = Vec::with_capacity(lines.len());
    for Line { number, ends, rate, during } in lines {
        let mistake = |column, found: String, accepted: String| OrbitError::Link {
            line: *number,
            column,
            found,
            accepted,
        };
        let [a, b] = ends.each_ref().map(|(column, name)| {
            let count = constellation.len();
            let accepted = || format!("a number from 0 to {}, a catalogue number or a name", count - 1);
            constellation.find(name).ok_or_else(|| mistake(*column, format!("\"{name}\""), accepted()))
        });
        let pair = [a?, b?];
        let pair = [pair[0].min(pair[1]), pair[0].max(pair[1])];
        if pair[0] == pair[1] {
            return Err(mistake(ends[1].0, format!("\"{}\"", ends[1].1), "another satellite".to_owned()));
        }
        let (known, before) = rates.entry(pair).or_insert((*rate, *number));
        if known != rate {
            let accepted = format!("the rate of line {before}, which has the same satellites");
            return Err(mistake(1, "another rate".to_owned(), accepted));
        }
        links.push(Listed { ends: pair, rate: *rate, during: during[0]..during[1] });
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_orbit::Shell;

    fn resolved(text: &str) -> Result<Vec<Listed>, String> {
        let said = |wrong: &Wrong| format!("{}:{}: {}", wrong.line, wrong.column, wrong.found);
        let lines = read(text).map_err(|all| all.iter().map(said).collect::<Vec<_>>().join("; "))?;
        let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
        resolve(&lines, &constellation).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_has_two_satellites_a_rate_and_times() {
        let text = "# Hypatia's form\n0 1\n\n12  3\n1-0, 0-2, 10 Gbit/s\n5, 4, , 1 s, 1 min\n";
        let s = |secs| Instant::ZERO + Duration::from_secs(secs);
        let always = || Instant::ZERO..Instant::FAR_FUTURE;
        let expected = [
            Listed { ends: [0, 1], rate: None, during: always() },
            Listed { ends: [3, 12], rate: None, during: always() },
            Listed { ends: [2, 11], rate: Some(Rate::from_mbps(10_000)), during: always() },
            Listed { ends: [4, 5], rate: None, during: s(1)..s(60) },
        ];
        assert_eq!(resolved(text).unwrap(), expected);
    }

    #[test]
    fn mistakes_have_line_and_column() {
        let refused = |text: &str| resolved(text).unwrap_err();
        assert_eq!(refused("0 1\n7\n"), "2:1: \"7\"");
        assert_eq!(refused("0, 1, fast\n0, 1, 1 Gbit/s, 0 s, soon"), "1:7: \"fast\"; 2:22: \"soon\"");
        assert_eq!(refused("0, 1, , 2 s, 2 s"), "1:14: \"2 s\"");
        assert_eq!(refused("0, 1, , 2 s"), "1:9: \"2 s\"");
        assert_eq!(refused("0, 1, , 2 s, 3 s, 4"), "1:19: \"4\"");
        let unknown =
            "line 1, column 3: found \"66\", accepted: a number from 0 to 65, a catalogue number or a name";
        assert_eq!(refused("0 66"), unknown);
        assert!(
            refused("0 1\n4 4\n").starts_with("line 2, column 3: found \"4\", accepted: another satellite")
        );
        let rates = "line 2, column 1: found another rate, accepted: the rate of line 1, which has the same satellites";
        assert_eq!(refused("0, 1, 1 Gbit/s\n1, 0\n"), rates);
    }
}
