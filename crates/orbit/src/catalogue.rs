//! Files of mean elements: two-line elements, and messages in other forms.

use std::collections::BTreeMap;

use sgp4::chrono::NaiveDateTime;

use crate::entry::{Broken, Entry};
use crate::error::OrbitError;
use crate::omm;

/// Length of an element line.
const LINE_LENGTH: usize = 69;

/// Maximum length of a line with a name.
const NAME_LENGTH: usize = 24;

/// Content of a file.
pub(crate) struct Catalogue {
    /// Satellites in the order of the file, each once.
    pub entries: Vec<Entry>,
    /// Time zero.
    pub zero: NaiveDateTime,
    /// Elements that cannot be read.
    pub broken: Vec<Broken>,
}

impl Catalogue {
    /// Reads a text. A satellite is identified by its catalogue number; of several epochs the one nearest to time zero counts.
    /// Without `start`, time zero is the latest epoch.
    ///
    /// # Errors
    /// The first mistake of a text without satellites.
    pub fn read(text: &str, start: Option<NaiveDateTime>) -> Result<Self, OrbitError> {
        let (read, broken) = if omm::is_omm(text) { omm::read(text) } else { lines(text) };
        let Some(latest) = read.iter().map(|entry| entry.elements.datetime).max() else {
            let none = || (1, "no elements in the text".to_owned());
            return Err(error(broken.into_iter().next().unwrap_or_else(none)));
        };
        let zero = start.unwrap_or(latest);
        Ok(Self { entries: unique(read, &zero), zero, broken })
    }

    /// Returns the name of each satellite. A name that several have, or none, gets the catalogue number.
    pub fn names(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let named = || self.entries.iter().map(|entry| entry.elements.object_name.as_deref().unwrap_or(""));
        named().for_each(|name| *counts.entry(name).or_default() += 1);
        let unique = |(name, entry): (&str, &Entry)| match (name, counts[name]) {
            ("", _) => entry.elements.norad_id.to_string(),
            (name, 1) => name.to_owned(),
            (name, _) => format!("{name} {}", entry.elements.norad_id),
        };
        named().zip(&self.entries).map(unique).collect()
    }
}

pub(crate) fn error((line, what): Broken) -> OrbitError {
    OrbitError::Elements { line, what }
}

/// Returns the entry nearest to `zero` for each catalogue number, in the order of first appearance.
fn unique(read: Vec<Entry>, zero: &NaiveDateTime) -> Vec<Entry> {
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut entries: Vec<Entry> = Vec::with_capacity(read.len());
    let distance = |entry: &Entry| (entry.elements.datetime - *zero).abs();
    for entry in read {
        match places.get(&entry.elements.norad_id) {
            Some(place) if distance(&entry) < distance(&entries[*place]) => entries[*place] = entry,
            Some(_) => {}
            None => {
                places.insert(entry.elements.norad_id, entries.len());
                entries.push(entry);
            }
        }
    }
    entries
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    First,
    Second,
    Name,
}

/// Returns the kind of a line. A name is shorter than an element line, and may begin with a digit.
fn kind(line: &str) -> Kind {
    match line.get(..2) {
        Some("1 ") if line.len() > NAME_LENGTH => Kind::First,
        Some("2 ") if line.len() > NAME_LENGTH => Kind::Second,
        _ => Kind::Name,
    }
}

/// True for the first line of Hypatia's files: the number of planes and that of satellites in each.
fn is_header(line: &str) -> bool {
    let numbers: Vec<_> = line.split_whitespace().map(str::parse::<u32>).collect();
    numbers.len() == 2 && numbers.iter().all(Result::is_ok)
}

/// Reads two-line elements with or without names. Empty lines and lines that begin with `#` are ignored.
fn lines(text: &str) -> (Vec<Entry>, Vec<Broken>) {
    let lines = text.lines().map(str::trim_end).enumerate().map(|(index, line)| (index + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let (mut read, mut broken) = (Vec::new(), Vec::new());
    let mut is_first = true;
    while let Some((number, line)) = lines.next() {
        let next = lines.peek().map(|(_, line)| kind(line));
        let may_be_header = std::mem::take(&mut is_first) && next == Some(Kind::Name);
        match kind(line) {
            Kind::Name if next == Some(Kind::First) => {
                let name = line.strip_prefix("0 ").unwrap_or(line).trim();
                let Some(first) = lines.next() else { continue };
                let second = lines.next_if(|(_, line)| line.starts_with("2 "));
                keep(parse(Some(name), first, second), (&mut read, &mut broken));
            }
            Kind::First => {
                let second = lines.next_if(|(_, line)| line.starts_with("2 "));
                keep(parse(None, (number, line), second), (&mut read, &mut broken));
            }
            _ if may_be_header && is_header(line) => {}
            _ => broken.push((number, "neither an element line nor a name before one".to_owned())),
        }
    }
    (read, broken)
}

fn keep(parsed: Result<Entry, Broken>, (read, broken): (&mut Vec<Entry>, &mut Vec<Broken>)) {
    match parsed {
        Ok(entry) => read.push(entry),
        Err(mistake) => broken.push(mistake),
    }
}

/// A line with its number.
type Line<'a> = (usize, &'a str);

/// Reads two lines with a checked length, characters and checksum.
fn parse(name: Option<&str>, first: Line<'_>, second: Option<Line<'_>>) -> Result<Entry, Broken> {
    let line = first.0;
    let missing = || (line, "its second line, which begins with 2, is missing".to_owned());
    let second = second.ok_or_else(missing)?;
    check(first)?;
    check(second)?;
    let name = name.map(str::to_owned);
    let elements = sgp4::Elements::from_tle(name, first.1.as_bytes(), second.1.as_bytes())
        .map_err(|error| (line, error.to_string()))?;
    Ok(Entry { line, elements })
}

/// Checks length, characters and checksum of a line.
fn check((number, line): Line<'_>) -> Result<(), Broken> {
    if !line.is_ascii() {
        return Err((number, "found a character that is not ASCII".to_owned()));
    }
    if line.len() != LINE_LENGTH {
        return Err((number, format!("found {} characters, accepted: {LINE_LENGTH}", line.len())));
    }
    let (body, found) = line.split_at(LINE_LENGTH - 1);
    let value = |byte: u8| match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        b'-' => 1,
        _ => 0,
    };
    let sum = body.bytes().map(value).sum::<u32>() % 10;
    if found != sum.to_string() {
        return Err((number, format!("found checksum {found}, but the line adds up to {sum}")));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const FIRST: &str = "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753";
    pub(crate) const SECOND: &str = "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667";

    /// Returns an element line with a corrected checksum.
    fn summed(line: &str) -> String {
        let body = &line[..LINE_LENGTH - 1];
        let value = |c: char| if c == '-' { 1 } else { c.to_digit(10).unwrap_or(0) };
        format!("{body}{}", body.chars().map(value).sum::<u32>() % 10)
    }

    /// Returns the lines of a satellite with this number and day of the year 2000.
    fn satellite(number: u32, day: &str) -> String {
        let first = FIRST.replace("00005", &format!("{number:05}")).replace("179.78495062", day);
        let second = SECOND.replace("00005", &format!("{number:05}"));
        format!("{}\n{}\n", summed(&first), summed(&second))
    }

    fn read(text: &str) -> Catalogue {
        Catalogue::read(text, None).unwrap()
    }

    fn refused(text: &str) -> String {
        Catalogue::read(text, None).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn names_and_comments_are_read() {
        let other = satellite(6, "179.78495062");
        let catalogue = read(&format!("# one\n0 VANGUARD 1\n{FIRST}\n{SECOND}\n\n{other}"));
        assert_eq!(catalogue.names(), ["VANGUARD 1", "6"]);
        assert_eq!(catalogue.entries.iter().map(|entry| entry.line).collect::<Vec<_>>(), [3, 6]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong_sum = FIRST.replace("4753", "4754");
        let found = refused(&format!("# made up\n{wrong_sum}\n{SECOND}"));
        assert_eq!(found, "line 2: found checksum 4, but the line adds up to 3");
        let found = refused(&format!("NAME\n{FIRST}\n{}", &SECOND[..60]));
        assert_eq!(found, "line 3: found 60 characters, accepted: 69");
        let found = refused(FIRST);
        assert_eq!(found, "line 1: its second line, which begins with 2, is missing");
        assert_eq!(refused("\n\n"), "line 1: no elements in the text");
        assert_eq!(refused("nonsense"), "line 1: neither an element line nor a name before one");
        let garbled = FIRST.replace("58002B", "5800ß");
        assert!(refused(&format!("{garbled}\n{SECOND}")).starts_with("line 1: found a character"));
        let other = SECOND.replace("00005", "00006").replace("413667", "413668");
        assert!(refused(&format!("{FIRST}\n{other}")).starts_with("line 1: "));
    }

    #[test]
    fn satellites_that_cannot_be_read_do_not_refuse_the_others() {
        let wrong_sum = FIRST.replace("4753", "4754");
        let other = satellite(6, "179.00000000");
        let catalogue = read(&format!("BAD\n{wrong_sum}\n{SECOND}\nstray\n{FIRST}\nGOOD\n{other}{SECOND}"));
        assert_eq!(catalogue.names(), ["GOOD"]);
        let lines: Vec<_> = catalogue.broken.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 5, 9], "{:?}", catalogue.broken);
    }

    #[test]
    fn a_satellite_flies_once_with_the_epoch_nearest_to_time_zero() {
        let days = ["170.00000000", "179.00000000", "175.00000000"].map(|day| satellite(5, day));
        let text = format!("{}{}{}{}", days[0], days[1], satellite(6, "174.00000000"), days[2]);
        let lines = |start: Option<NaiveDateTime>| {
            let catalogue = Catalogue::read(&text, start).unwrap();
            catalogue.entries.iter().map(|entry| entry.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(None), [3, 5]);
        let third = read(&days[2]).zero;
        assert_eq!(lines(Some(third)), [7, 5]);
    }

    #[test]
    fn satellites_of_the_same_name_are_told_apart_by_their_numbers() {
        let (first, second) = (satellite(5, "179.00000000"), satellite(6, "179.00000000"));
        let catalogue = read(&format!("DEB\n{first}DEB\n{second}OTHER\n{}", satellite(7, "179.00000000")));
        assert_eq!(catalogue.names(), ["DEB 5", "DEB 6", "OTHER"]);
    }

    #[test]
    fn a_short_line_with_a_digit_is_a_name_and_two_numbers_are_a_header() {
        let elements = satellite(5, "179.00000000");
        for header in ["12 8", "1 17"] {
            let catalogue = read(&format!("{header}\n1 WEB 0\n{elements}"));
            assert_eq!((catalogue.names(), catalogue.broken.len()), (vec!["1 WEB 0".to_owned()], 0));
        }
    }
}
