//! Link measurements in files: time series as CSV, and packet-delivery traces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Outage, Outages};

use crate::embedded::{SERIES, text};
use crate::file::read_text;

/// Maximum number of rows of a time series, and of opportunities of a trace.
const MOST_ROWS: usize = 1_000_000;
const MOST_OPPORTUNITIES: usize = 10_000_000;
/// Maximum number of outages caused by zero rates in a file.
const MOST_OUTAGES: u64 = 1_000_000;

/// Files from which one direction of a link was read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recordings {
    /// Rate series.
    pub rate: Option<Series>,
    /// Packet-delivery trace, instead of a rate.
    pub deliveries: Option<Deliveries>,
    /// Delay series.
    pub delay_one_way: Option<Series>,
    /// Loss probability series.
    pub loss: Option<Series>,
    /// Outages caused by zero rates in the file, and the period after which they repeat.
    pub(crate) gaps: (Vec<(Duration, Duration)>, Option<Duration>),
}

/// Time series: one column of a CSV file over another one that holds times.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Path of the file in the scenario.
    pub file: String,
    /// Name of the column, from the header line.
    pub column: String,
    /// Unit of the column; empty if it has none, or if the fields include it.
    pub unit: String,
    /// Factor that the numbers of the column are multiplied by.
    pub factor: f64,
    /// Name of the time column; empty for the first column.
    pub time: String,
    /// Unit of the times, if they are numbers.
    pub time_unit: Duration,
    /// Time when the series repeats.
    pub repeat: Repeat,
    /// Folder that the file's path is relative to.
    pub(crate) folder: PathBuf,
}

/// Time when a series repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// Never: the last row holds for the rest of the run.
    Never,
    /// After the last row has lasted as long as the one before it.
    AtEnd,
    /// After this period.
    Every(Duration),
}

/// Packet-delivery trace: each line is a time in whole milliseconds at which the link carries 1504 bytes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Deliveries {
    /// Path of the file in the scenario.
    pub file: String,
    /// True to restart after the last line.
    pub repeat: bool,
    /// Folder that the file's path is relative to.
    pub(crate) folder: PathBuf,
}

impl Default for Series {
    /// Returns a series without a file, with times in seconds in the first column.
    fn default() -> Self {
        Self {
            file: String::new(),
            column: String::new(),
            unit: String::new(),
            factor: 1.0,
            time: String::new(),
            time_unit: Duration::from_secs(1),
            repeat: Repeat::Never,
            folder: PathBuf::new(),
        }
    }
}

/// Mistake in a file, with its line, what was found and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    /// Line number from 1.
    pub line: usize,
    pub found: String,
    pub accepted: String,
}

impl Wrong {
    fn new(line: usize, found: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self { line, found: found.into(), accepted: accepted.into() }
    }
}

/// Maximum number of reported mistakes per file.
const TOLD: usize = 10;

/// Returns the text of a file and its name in messages. The file is built in, or at a path relative to `folder`.
pub(crate) fn text_of(folder: &Path, file: &str) -> Result<(Arc<str>, String), String> {
    if let Some(text) = text(SERIES, file) {
        return Ok((file.into(), text.to_owned()));
    }
    let path = folder.join(file);
    let text = read_text(&path).map_err(|error| error.to_string())?;
    Ok((path.display().to_string().into(), text))
}

/// Field of the column with its time and line.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Field {
    pub line: usize,
    pub at: Duration,
    pub text: String,
}

/// Reads the fields of a series in a CSV file, the first at time zero. Also returns the time between the last two rows. Empty
/// fields are left out: the value does not change.
pub(crate) fn fields(series: &Series, text: &str) -> Result<(Vec<Field>, Duration), Vec<Wrong>> {
    let head = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or("");
    let delimiter =
        [b',', b';', b'\t'].into_iter().find(|byte| head.as_bytes().contains(byte)).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .comment(Some(b'#'))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| vec![unreadable(&error)])?.clone();
    let column = |wanted: &str| names.iter().position(|name| name == wanted);
    let missing = |wanted: &str| {
        let names: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
        vec![Wrong::new(1, format!("no column \"{wanted}\""), names.join(", "))]
    };
    let value = column(&series.column).ok_or_else(|| missing(&series.column))?;
    let time =
        if series.time.is_empty() { 0 } else { column(&series.time).ok_or_else(|| missing(&series.time))? };
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    let (mut first, mut last) = (None, None);
    let mut step = Duration::ZERO;
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                wrong.push(unreadable(&error));
                break;
            }
        };
        let line = record.position().map_or(0, |position| position.line() as usize);
        match row(series, (record.get(time), record.get(value)), (line, &mut first, &mut last)) {
            Ok((field, since)) => {
                step = since;
                found.extend(field);
            }
            Err(mistake) => wrong.push(mistake),
        }
        if found.len() > MOST_ROWS {
            wrong.push(Wrong::new(
                line,
                format!("more than {MOST_ROWS} rows"),
                format!("at most {MOST_ROWS}"),
            ));
        }
        if wrong.len() >= TOLD {
            break;
        }
    }
    if found.is_empty() && wrong.is_empty() {
        wrong.push(Wrong::new(
            1,
            "no rows",
            "a line with the names of the columns, and at least one below it",
        ));
    }
    if wrong.is_empty() { Ok((found, step)) } else { Err(wrong) }
}

/// Reads one row: its field unless empty, and the time since the previous row.
fn row(
    series: &Series,
    (time, value): (Option<&str>, Option<&str>),
    (line, first, last): (usize, &mut Option<f64>, &mut Option<Duration>),
) -> Result<(Option<Field>, Duration), Wrong> {
    let found = time.unwrap_or_default();
    let seconds = seconds(found, series.time_unit).ok_or_else(|| {
        let accepted = "a time: a number, or a date such as 2026-11-23T12:00:00Z";
        Wrong::new(line, format!("\"{found}\""), accepted)
    })?;
    let at = Duration::from_secs_f64(seconds - *first.get_or_insert(seconds));
    let since = match *last {
        Some(last) if at <= last => {
            return Err(Wrong::new(line, format!("\"{found}\""), "a time after that of the row before"));
        }
        Some(last) => at.saturating_sub(last),
        None => Duration::ZERO,
    };
    let is_first = last.replace(at).is_none();
    let text = value.unwrap_or_default();
    let is_empty = text.is_empty() || text.eq_ignore_ascii_case("nan");
    if is_first && is_empty {
        return Err(Wrong::new(
            line,
            format!("\"{text}\""),
            "a value: only later rows may leave it as it was",
        ));
    }
    Ok(((!is_empty).then(|| Field { line, at, text: text.to_owned() }), since))
}

/// Returns the seconds of a number, or of a date since 1970.
fn seconds(text: &str, unit: Duration) -> Option<f64> {
    match text.parse::<f64>() {
        Ok(number) => Some(number * unit.as_secs_f64()).filter(|seconds| seconds.is_finite()),
        Err(_) => {
            let date = humantime::parse_rfc3339_weak(text.trim_end_matches("+00:00")).ok()?;
            Some(date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs_f64())
        }
    }
}

fn unreadable(error: &csv::Error) -> Wrong {
    let line = error.position().map_or(1, |position| position.line() as usize);
    Wrong::new(line, error.to_string(), "lines of fields, separated by commas, semicolons or tabs")
}

/// Reads the milliseconds of a packet-delivery trace.
pub(crate) fn deliveries(text: &str) -> Result<Vec<u32>, Vec<Wrong>> {
    let (mut millis, mut wrong) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        match line.trim().parse::<u32>() {
            Err(_) => {
                let accepted = "a whole number of milliseconds from 0 to 4294967295, one on each line";
                wrong.push(Wrong::new(line_number, format!("\"{}\"", line.trim()), accepted));
            }
            Ok(at) if millis.last().is_some_and(|last| at < *last) => {
                let last = millis.last().copied().unwrap_or_default();
                wrong.push(Wrong::new(
                    line_number,
                    at.to_string(),
                    format!("{last} or more, as on the line before"),
                ));
            }
            Ok(at) => millis.push(at),
        }
        if millis.len() > MOST_OPPORTUNITIES {
            let accepted = format!("at most {MOST_OPPORTUNITIES}");
            wrong.push(Wrong::new(line_number, format!("more than {MOST_OPPORTUNITIES} lines"), accepted));
        }
        if wrong.len() >= TOLD || millis.len() > MOST_OPPORTUNITIES {
            break;
        }
    }
    if wrong.is_empty() && millis.last().is_none_or(|last| *last == 0) {
        let line = millis.len().max(1);
        wrong.push(Wrong::new(line, "no opportunity after 0 ms", "a trace whose last line is above 0"));
    }
    if wrong.is_empty() { Ok(millis) } else { Err(wrong) }
}

impl Recordings {
    /// Adds the intervals without a rate to the outages of a link, until `end`.
    ///
    /// # Errors
    /// The number of outages, if it is too large.
    pub(crate) fn add_gaps(&self, outages: &mut Outages, end: Duration) -> Result<(), u64> {
        let (gaps, period) = &self.gaps;
        if gaps.is_empty() {
            return Ok(());
        }
        let rounds = period.map_or(1, |period| end.as_nanos().div_ceil(period.as_nanos().max(1)));
        let all = rounds.saturating_mul(gaps.len() as u64);
        if all > MOST_OUTAGES {
            return Err(all);
        }
        let begin = |round: u64| period.map_or(0, |period| period.as_nanos() * round);
        let of_round = |round: u64| {
            gaps.iter().map(move |(from, to)| {
                let at = |time: &Duration| Instant::from_nanos(begin(round).saturating_add(time.as_nanos()));
                Outage { from: at(from), to: at(to) }
            })
        };
        let mut intervals = std::mem::take(&mut outages.intervals);
        intervals.extend((0..rounds).flat_map(of_round));
        intervals.sort_by_key(|outage| (outage.from, outage.to));
        for outage in intervals {
            match outages.intervals.last_mut() {
                Some(last) if outage.from <= last.to => last.to = last.to.max(outage.to),
                _ => outages.intervals.push(outage),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(column: &str) -> Series {
        Series { column: column.into(), ..Series::default() }
    }

    fn read(series: &Series, text: &str) -> Vec<(f64, String)> {
        let (fields, _) = fields(series, text).unwrap();
        fields.into_iter().map(|field| (field.at.as_secs_f64(), field.text)).collect()
    }

    #[test]
    fn columns_are_found_by_name_whatever_separates_them() {
        for separator in [",", ";", "\t", " , "] {
            let text = "# measured\nt,down,up\n5,80,10\n6,,12\n7.5,90,\n".replace(',', separator);
            assert_eq!(read(&series("down"), &text), [(0.0, "80".into()), (2.5, "90".into())], "{separator}");
            assert_eq!(read(&series("up"), &text), [(0.0, "10".into()), (1.0, "12".into())]);
        }
    }

    #[test]
    fn times_are_numbers_in_their_unit_or_dates() {
        let of = |time: [&str; 2], time_unit| {
            let text = format!("when,v\n{},1\n{},2\n", time[0], time[1]);
            read(&Series { time_unit, time: "when".into(), ..series("v") }, &text)[1].0
        };
        let second = Duration::from_secs(1);
        assert_eq!(of(["1700000000.5", "1700000002.5"], second), 2.0);
        assert_eq!(of(["15", "40"], Duration::from_millis(1)), 0.025);
        assert_eq!(of(["2026-11-23T12:00:00Z", "2026-11-23T12:00:01.5Z"], second), 1.5);
        assert_eq!(of(["2026-11-23 12:00:00", "2026-11-23 12:01:00+00:00"], second), 60.0);
    }

    #[test]
    fn mistakes_have_their_lines() {
        let lines = |text: &str| {
            fields(&series("v"), text).unwrap_err().into_iter().map(|wrong| wrong.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("t,v\n0,1\nx,2\n1,3\n1,4\n"), [3, 5]);
        assert_eq!(lines("t,v\n0,\n1,2\n"), [2], "the first must say something");
        assert_eq!(lines("t,w\n0,1\n"), [1]);
        assert_eq!(lines("t,v\n"), [1]);
        assert_eq!(lines(""), [1]);
        assert_eq!(lines(&format!("t,v\n{}", "x,1\n".repeat(50))).len(), TOLD);
        let wrong = fields(&series("v"), "t,w\n0,1\n").unwrap_err();
        assert_eq!(
            (wrong[0].found.as_str(), wrong[0].accepted.as_str()),
            ("no column \"v\"", "\"t\", \"w\"")
        );
    }

    #[test]
    fn traces_are_whole_milliseconds_that_do_not_descend() {
        assert_eq!(deliveries("0\n5\n5\n7\n"), Ok(vec![0, 5, 5, 7]));
        let lines =
            |text: &str| deliveries(text).unwrap_err().iter().map(|wrong| wrong.line).collect::<Vec<_>>();
        assert_eq!(lines("1\n\n2\n1.5\n1\n"), [2, 4, 5]);
        assert_eq!(lines("0\n0\n"), [2]);
        assert_eq!(lines(""), [1]);
        assert_eq!(lines("-1\n"), [1]);
    }

    #[test]
    fn gaps_join_the_outages_in_every_round() {
        let second = Duration::from_secs;
        let at = |s| Instant::ZERO + second(s);
        let outage = |from, to| Outage { from: at(from), to: at(to) };
        let mut outages = Outages { intervals: vec![outage(2, 3), outage(15, 40)], ..Outages::default() };
        let recordings =
            Recordings { gaps: (vec![(second(3), second(4))], Some(second(10))), ..Recordings::default() };
        recordings.add_gaps(&mut outages, second(50)).unwrap();
        assert_eq!(outages.intervals, [outage(2, 4), outage(13, 14), outage(15, 40), outage(43, 44)]);
        let before = outages.clone();
        recordings.add_gaps(&mut outages, second(50)).unwrap();
        assert_eq!(outages, before, "once more changes nothing");
        assert_eq!(recordings.add_gaps(&mut outages, second(100_000_000)), Err(10_000_000));
    }
}
