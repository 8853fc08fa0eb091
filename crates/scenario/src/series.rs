//! Link measurements in files: time series as CSV, and packet-delivery traces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Outage, Outages};

pub(crate) use crate::column::Wrong;
pub use crate::column::{Repeat, Series};
use crate::embedded::{SERIES, text};
use crate::file::read_text;
use crate::measured::{self, Cell, Row, is_missing};
use crate::unit::since_1970;

/// Maximum number of rows of a time series, and of opportunities of a trace.
const MOST_ROWS: usize = 1_000_000;
const MOST_OPPORTUNITIES: usize = 10_000_000;
/// Maximum number of outages caused by zero rates in a file.
const MOST_OUTAGES: u64 = 1_000_000;

/// Files from which one direction of a link was read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recordings {
    /// Time series of the data rate.
    pub rate: Option<Series>,
    /// Packet-delivery trace, instead of a rate.
    pub deliveries: Option<Deliveries>,
    /// Time series of the one-way delay.
    pub delay_one_way: Option<Series>,
    /// Measured delays of the jitter.
    pub jitter: Option<Series>,
    /// Loss probability series.
    pub loss: Option<Series>,
    /// Outages caused by zero rates in the file, and the period after which they repeat.
    pub(crate) gaps: (Vec<(Duration, Duration)>, Option<Duration>),
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
    pub column: usize,
    pub at: Duration,
    pub text: String,
}

/// Fields of a series.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Fields in the order of time, the first at time zero.
    pub fields: Vec<Field>,
    /// Time between the last two rows.
    pub step: Duration,
    /// Unit of the values, if the format defines it.
    pub unit: &'static str,
}

/// Reads the fields of a series in a file. Fields without a measurement are left out: the value does not change. Before the first
/// one its value holds.
pub(crate) fn fields(series: &Series, text: &str) -> Result<Fields, Vec<Wrong>> {
    let measured = measured::read(series, text)?;
    let unit = measured.seconds.unwrap_or(series.time_unit.as_secs_f64());
    let (mut fields, mut wrong): (Vec<Field>, Vec<Wrong>) = (Vec::new(), Vec::new());
    let (mut clock, mut step) = (Clock { unit, first: None, last: None }, Duration::ZERO);
    let rows = measured.rows.len();
    if rows > MOST_ROWS {
        let accepted = format!("at most {MOST_ROWS}");
        return Err(vec![Wrong::new((measured.rows[MOST_ROWS].line, 1), format!("{rows} rows"), accepted)]);
    }
    for (index, row) in measured.rows.into_iter().enumerate() {
        match time(series, index, &row, &mut clock) {
            Ok(at) => {
                step = clock.last.replace(at).map_or(Duration::ZERO, |last| at.saturating_sub(last));
                let Row { line, value: Cell { column, text }, .. } = row;
                if !is_missing(&text, &series.missing) {
                    let at = if fields.is_empty() { Duration::ZERO } else { at };
                    fields.push(Field { line, column, at, text });
                }
            }
            Err(mistake) => wrong.push(mistake),
        }
        if wrong.len() >= TOLD {
            break;
        }
    }
    if fields.is_empty() && wrong.is_empty() {
        let found = if rows == 0 { "no rows".to_owned() } else { format!("{rows} rows without a value") };
        let accepted = "a line with the names of the columns, and at least one value below it";
        wrong.push(Wrong::new((1, 1), found, accepted));
    }
    if wrong.is_empty() { Ok(Fields { fields, step, unit: measured.unit }) } else { Err(wrong) }
}

/// Time of the rows read so far.
struct Clock {
    /// Seconds in the unit of a number.
    unit: f64,
    /// Seconds of the first row.
    first: Option<f64>,
    /// Time of the last row after the first one.
    last: Option<Duration>,
}

/// Returns the time of a row after the first one, which must be after that of the row before.
fn time(series: &Series, index: usize, row: &Row, clock: &mut Clock) -> Result<Duration, Wrong> {
    if let Some(every) = series.every.filter(|_| row.time.column == 0) {
        return Ok(every * index as u64);
    }
    let Cell { column, text } = &row.time;
    let wrong = |accepted: &str| Wrong::new((row.line, *column), format!("\"{text}\""), accepted);
    let seconds = seconds(text, clock.unit)
        .ok_or_else(|| wrong("a time: a number, or a date such as 2026-11-23T12:00:00Z"))?;
    let at = Duration::from_secs_f64(seconds - *clock.first.get_or_insert(seconds));
    match clock.last {
        Some(last) if at <= last => Err(wrong("a time after that of the row before")),
        _ => Ok(at),
    }
}

/// Returns the seconds of a number whose unit is `unit` seconds, or of a date since 1970.
fn seconds(text: &str, unit: f64) -> Option<f64> {
    match text.parse::<f64>() {
        Ok(number) => Some(number * unit).filter(|seconds| seconds.is_finite()),
        Err(_) => since_1970(text).map(Duration::as_secs_f64),
    }
}

/// Reads the milliseconds of a packet-delivery trace.
pub(crate) fn deliveries(text: &str) -> Result<Vec<u32>, Vec<Wrong>> {
    let (mut millis, mut wrong) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        match line.trim().parse::<u32>() {
            Err(_) => {
                let accepted = "a whole number of milliseconds from 0 to 4294967295, one on each line";
                wrong.push(Wrong::new((line_number, 1), format!("\"{}\"", line.trim()), accepted));
            }
            Ok(at) if millis.last().is_some_and(|last| at < *last) => {
                let last = millis.last().copied().unwrap_or_default();
                wrong.push(Wrong::new(
                    (line_number, 1),
                    at.to_string(),
                    format!("{last} or more, as on the line before"),
                ));
            }
            Ok(at) => millis.push(at),
        }
        if millis.len() > MOST_OPPORTUNITIES {
            let accepted = format!("at most {MOST_OPPORTUNITIES}");
            wrong.push(Wrong::new(
                (line_number, 1),
                format!("more than {MOST_OPPORTUNITIES} lines"),
                accepted,
            ));
        }
        if wrong.len() >= TOLD || millis.len() > MOST_OPPORTUNITIES {
            break;
        }
    }
    if wrong.is_empty() && millis.last().is_none_or(|last| *last == 0) {
        let line = millis.len().max(1);
        wrong.push(Wrong::new((line, 1), "no opportunity after 0 ms", "a trace whose last line is above 0"));
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
        let fields = fields(series, text).unwrap().fields;
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
        assert_eq!(of(["2026-11-23T23:59:00-05:00", "2026-11-24T06:00:00+01:00"], second), 60.0);
    }

    #[test]
    fn the_first_value_holds_from_the_beginning() {
        let lost = Series { missing: vec!["-1".into()], ..series("v") };
        let expected = [(0.0, "7".to_owned()), (3.0, "9".to_owned())];
        assert_eq!(read(&lost, "t,v\n5,-1\n6,7\n7,-1\n8,9\n"), expected);
    }

    #[test]
    fn rows_without_times_follow_one_another() {
        let every = Series { every: Some(Duration::from_millis(10)), ..series("1") };
        let expected = [(0.0, "12".to_owned()), (0.01, "16".to_owned()), (0.03, "14".to_owned())];
        assert_eq!(read(&every, "12\n16\n-\n14\n"), expected);
    }

    #[test]
    fn mistakes_have_their_lines() {
        let lines = |text: &str| {
            fields(&series("v"), text).unwrap_err().into_iter().map(|wrong| wrong.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("t,v\n0,1\nx,2\n1,3\n1,4\n"), [3, 5]);
        assert_eq!(lines("t,v\n0,\n1,NA\n"), [1], "no row says something");
        assert_eq!(lines("t,w\n0,1\n"), [1]);
        assert_eq!(lines("t,v\n"), [1]);
        assert_eq!(lines(""), [1]);
        assert_eq!(lines(&format!("t,v\n{}", "x,1\n".repeat(50))).len(), TOLD);
        let wrong = fields(&series("v"), "t,w\n0,1\n").unwrap_err();
        assert_eq!(
            (wrong[0].found.as_str(), wrong[0].accepted.as_str()),
            ("no column \"v\"", "\"t\", \"w\", or a number from 1 to 2")
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
