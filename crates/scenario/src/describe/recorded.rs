//! Schedules read from files.

use std::path::{Path, PathBuf};

use bentpipe_base::Duration;
use bentpipe_net::{LinkConfig, Opportunities};

use crate::error::{Mistake, Place};
use crate::form::{Form, Reading};
use crate::series::{self, Deliveries, Fields, Repeat, Series, Wrong};
use crate::sky::{self, LinksFile};
use crate::tree::{Node, Value};
use crate::unit::{Codec, FACTOR, FLAG, OrWord, Refused, TEXT, TIME_ABOVE_ZERO, Words, number_length};

const TIME_UNITS: Words<Duration> = Words(&[
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
    ("us", Duration::from_micros(1)),
    ("ns", Duration::from_nanos(1)),
    ("min", Duration::from_secs(60)),
    ("h", Duration::from_secs(3600)),
]);

/// Codec of `"never"`, `"end"`, or a time.
struct Repeats;

impl Codec<Repeat> for Repeats {
    fn read(&self, value: &Value) -> Result<Repeat, Refused> {
        match value {
            Value::Text(text) if text == "never" => Ok(Repeat::Never),
            Value::Text(text) if text == "end" => Ok(Repeat::AtEnd),
            value => TIME_ABOVE_ZERO.read(value).map(Repeat::Every),
        }
    }
    fn show(&self, typed: &Repeat) -> Value {
        match typed {
            Repeat::Never => Value::Text("never".to_owned()),
            Repeat::AtEnd => Value::Text("end".to_owned()),
            Repeat::Every(period) => TIME_ABOVE_ZERO.show(period),
        }
    }
    fn accepted(&self) -> String {
        format!("\"never\", \"end\", or {}", Codec::<Duration>::accepted(&TIME_ABOVE_ZERO))
    }
}

/// Codec of a column by its name, or by its number from 1.
struct Column;

impl Codec<String> for Column {
    fn read(&self, value: &Value) -> Result<String, Refused> {
        match value {
            Value::Whole(number) if *number > 0 => Ok(number.to_string()),
            value => TEXT.read(value),
        }
    }
    fn show(&self, typed: &String) -> Value {
        typed.parse().map_or_else(|_| TEXT.show(typed), Value::Whole)
    }
    fn accepted(&self) -> String {
        "a name in quotes, or a number from 1".to_owned()
    }
}

/// Codec of values that mean that nothing was measured.
struct Missing;

impl Codec<Vec<String>> for Missing {
    fn read(&self, value: &Value) -> Result<Vec<String>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        let word = |item: &Node| match &item.value {
            Value::Whole(number) => Ok(number.to_string()),
            Value::Real(number) => Ok(number.to_string()),
            value => TEXT.read(value),
        };
        items.iter().map(word).collect()
    }
    fn show(&self, typed: &Vec<String>) -> Value {
        Value::List(typed.iter().map(|word| Node::computed(TEXT.show(word))).collect())
    }
    fn accepted(&self) -> String {
        "a list of numbers and words such as [-1, 0, \"lost\"]".to_owned()
    }
}

/// Additional keys of a table whose points come from a file.
pub(super) const KEYS: &[&str] =
    &["file", "column", "unit", "factor", "time", "time-unit", "every", "missing"];

/// True if the points come from a file: named in this table, or earlier if no other points are set.
pub(super) fn is_meant(form: &Form<'_>, series: &Option<Series>) -> bool {
    (series.is_some() && !form.has("table")) || KEYS.iter().any(|key| form.has(key))
}

/// Reader of a field, with the accepted form. It returns `None` if the link is out.
pub(super) type Reader<'a, T> = (&'a dyn Fn(&Value) -> Result<Option<T>, Refused>, &'a str);

/// Outages of the link, and the period after which they repeat.
type Gaps = (Vec<(Duration, Duration)>, Option<Duration>);

/// Reads a column of a CSV file as points of a schedule. Returns the outages of the link.
pub(super) fn series<T: Copy>(
    form: &mut Form<'_>,
    points: &mut Vec<(Duration, T)>,
    repeat_every: &mut Option<Duration>,
    series: &mut Option<Series>,
    reader: Reader<'_, T>,
) -> Gaps {
    let series = series.get_or_insert_with(Series::default);
    fields(form, series);
    form.field("repeat-every", &mut series.repeat, &Repeats);
    let Form::Read(reading) = form else { return Gaps::default() };
    let Some(read) = of_file(reading, series, reader) else { return Gaps::default() };
    (*points, *repeat_every) = (read.points, read.repeat_every);
    (read.gaps, read.repeat_every)
}

/// Reads a column of a CSV file as values without times. Returns `None` if there is no file, or after a mistake.
pub(super) fn samples<T: Copy>(
    form: &mut Form<'_>,
    series: &mut Series,
    reader: Reader<'_, T>,
) -> Option<Vec<T>> {
    form.required("file", &mut series.file, &TEXT);
    form.required("column", &mut series.column, &Column);
    form.field("unit", &mut series.unit, &TEXT);
    form.field("factor", &mut series.factor, &FACTOR);
    form.field("missing", &mut series.missing, &Missing);
    let Form::Read(reading) = form else { return None };
    // Rows at a fixed distance need no times.
    series.every = Some(Duration::from_secs(1));
    Some(of_file(reading, series, reader)?.points.into_iter().map(|(_, value)| value).collect())
}

/// Reads the file of a series, or reports its mistakes.
fn of_file<T: Copy>(
    reading: &mut Reading<'_>,
    series: &mut Series,
    reader: Reader<'_, T>,
) -> Option<Read<T>> {
    if series.file.is_empty() || series.column.is_empty() {
        return None;
    }
    series.folder = folder(reading, "file").unwrap_or_else(|| series.folder.clone());
    let (name, text) = text(reading, "file", &series.folder, &series.file)?;
    let read = series::fields(series, &text).and_then(|fields| read(series, fields, reader));
    read.map_err(|wrong| tell(reading, "file", &name, wrong)).ok()
}

fn fields(form: &mut Form<'_>, series: &mut Series) {
    form.required("file", &mut series.file, &TEXT);
    form.required("column", &mut series.column, &Column);
    form.field("unit", &mut series.unit, &TEXT);
    form.field("factor", &mut series.factor, &FACTOR);
    form.field("time", &mut series.time, &Column);
    form.field("time-unit", &mut series.time_unit, &TIME_UNITS);
    form.field("every", &mut series.every, &OrWord("time", TIME_ABOVE_ZERO));
    form.field("missing", &mut series.missing, &Missing);
}

/// Lists the keys of a table whose points come from a file.
pub(super) fn list_keys(form: &mut Form<'_>) {
    fields(form, &mut Series::default());
}

/// Result of reading a column.
struct Read<T> {
    points: Vec<(Duration, T)>,
    repeat_every: Option<Duration>,
    gaps: Vec<(Duration, Duration)>,
}

fn read<T: Copy>(
    series: &Series,
    Fields { fields, step, unit }: Fields,
    (read, accepted): Reader<'_, T>,
) -> Result<Read<T>, Vec<Wrong>> {
    let unit = if series.unit.is_empty() { unit } else { series.unit.as_str() };
    let last = fields.last().map_or(Duration::ZERO, |field| field.at);
    let repeat_every = match series.repeat {
        Repeat::Never => None,
        Repeat::AtEnd => Some(last + step).filter(|period| !period.is_zero()),
        Repeat::Every(period) => Some(period),
    };
    let mut values = Vec::with_capacity(fields.len());
    let mut wrong = Vec::new();
    for field in &fields {
        match read(&value(series, unit, &field.text)) {
            Ok(value) => values.push((field.at, value)),
            Err(Refused { limit, .. }) if wrong.len() < 10 => {
                let space = if unit.is_empty() { "" } else { " " };
                let found = format!("\"{}{space}{unit}\"", field.text);
                let accepted = limit.unwrap_or_else(|| accepted.to_owned());
                wrong.push(Wrong { line: field.line, column: field.column, found, accepted });
            }
            Err(_) => {}
        }
    }
    if wrong.is_empty()
        && let Repeat::Every(period) = series.repeat
        && period <= last
    {
        let line = fields.last().map_or(1, |field| field.line);
        let accepted = format!("rows before repeat-every, {period}");
        wrong.push(Wrong::new((line, 1), format!("a row at {last}"), accepted));
    }
    let first = values.iter().find_map(|(_, value)| *value);
    let (true, Some(first)) = (wrong.is_empty(), first) else {
        if wrong.is_empty() {
            let accepted = "at least one row in which the link carries something".to_owned();
            wrong.push(Wrong::new((1, 1), "only zeros", accepted));
        }
        return Err(wrong);
    };
    Ok(Read { gaps: gaps(&values, repeat_every), points: points(&values, first), repeat_every })
}

/// Returns the value of a field with its unit, or else with the unit of the column.
fn value(series: &Series, unit: &str, text: &str) -> Value {
    let (number, own_unit) = text.split_at(number_length(text));
    let Ok(number) = number.trim().parse::<f64>() else { return Value::Text(text.to_owned()) };
    let number = number * series.factor;
    match (own_unit.trim(), unit) {
        ("", "") => Value::Real(number),
        ("%", _) | ("", "%") => Value::Real(number / 100.0),
        ("", unit) | (unit, _) => Value::Text(format!("{number} {unit}")),
    }
}

/// Returns the points with a value; the first one starts at time zero.
fn points<T: Copy>(values: &[(Duration, Option<T>)], first: T) -> Vec<(Duration, T)> {
    let some = values.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
    let begins = values.first().is_some_and(|(_, value)| value.is_none()).then_some((Duration::ZERO, first));
    begins.into_iter().chain(some).collect()
}

/// Returns the intervals from each row without a value to the next row with one, or to the end.
fn gaps<T>(values: &[(Duration, Option<T>)], end: Option<Duration>) -> Vec<(Duration, Duration)> {
    let mut gaps = Vec::new();
    let mut since = None;
    for (at, value) in values {
        match (value, since) {
            (None, None) => since = Some(*at),
            (Some(_), Some(from)) => {
                gaps.push((from, *at));
                since = None;
            }
            _ => {}
        }
    }
    gaps.extend(since.map(|from| (from, end.unwrap_or(Duration::MAX))));
    gaps
}

/// Reads a packet-delivery trace, which replaces a rate.
pub(super) fn deliveries(form: &mut Form<'_>, link: &mut LinkConfig, deliveries: &mut Option<Deliveries>) {
    let deliveries = deliveries.get_or_insert_with(|| Deliveries { repeat: true, ..Deliveries::default() });
    form.required("deliveries", &mut deliveries.file, &TEXT);
    form.field("repeat", &mut deliveries.repeat, &FLAG);
    let Form::Read(reading) = form else { return };
    if deliveries.file.is_empty() {
        return;
    }
    deliveries.folder = folder(reading, "deliveries").unwrap_or_else(|| deliveries.folder.clone());
    let Some((name, text)) = text(reading, "deliveries", &deliveries.folder, &deliveries.file) else {
        return;
    };
    match series::deliveries(&text) {
        Ok(millis) => {
            let opportunities = Opportunities::mahimahi(&millis, deliveries.repeat);
            link.rate = opportunities.rate();
            link.opportunities = Some(opportunities);
        }
        Err(wrong) => tell(reading, "deliveries", &name, wrong),
    }
}

/// Reads a file with links between satellites.
pub(super) fn links(form: &mut Form<'_>, links: &mut LinksFile) {
    form.required("file", &mut links.file, &TEXT);
    let Form::Read(reading) = form else { return };
    let Some(folder) = folder(reading, "file") else { return };
    let Some((name, text)) = text(reading, "file", &folder, &links.file) else { return };
    match sky::links::read(&text) {
        Ok(lines) => (links.name, links.lines) = (name, lines),
        Err(wrong) => tell(reading, "file", &name, wrong),
    }
}

/// Returns the folder of a path under `key`: that of the scenario file, or the working directory for the command line.
fn folder(reading: &Reading<'_>, key: &str) -> Option<PathBuf> {
    let node = reading.get(key)?;
    Some(match &node.place {
        Place::File { file, .. } => Path::new(&**file).parent().unwrap_or(Path::new("")).to_owned(),
        _ => PathBuf::new(),
    })
}

/// Returns the text and the name of a file, or reports a mistake if it cannot be read.
fn text(
    reading: &mut Reading<'_>,
    key: &str,
    folder: &Path,
    file: &str,
) -> Option<(std::sync::Arc<str>, String)> {
    let error = match series::text_of(folder, file) {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    let found = Node::computed(Value::Text(file.to_owned()));
    let node = reading.get(key).unwrap_or(&found);
    reading.refuse(key, node, format!("a file ({error})"), None);
    None
}

/// Reports the mistakes of a file.
fn tell(reading: &mut Reading<'_>, key: &str, name: &std::sync::Arc<str>, wrong: Vec<Wrong>) {
    for Wrong { line, column, found, accepted } in wrong {
        let place = Place::File { file: name.clone(), line, column };
        let key = reading.path_of(key);
        reading.report.add(Mistake { place, key, found, accepted, suggestion: None });
    }
}
