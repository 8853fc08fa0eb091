//! Rows of files with measurements: text with separators, and the outputs of irtt, iperf3 and ping.

use serde_json::Value;

use crate::column::{Series, Wrong};

/// Rows of a file.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub rows: Vec<Row>,
    /// Unit of the values, if the format defines it.
    pub unit: &'static str,
    /// Unit of the times, if the format defines it: a part of a second.
    pub seconds: Option<f64>,
}

/// Time and value of a row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Row {
    /// Line number from 1; of JSON the number of the entry.
    pub line: usize,
    pub time: Cell,
    pub value: Cell,
}

/// A field and its column in characters, from 1; 0 without a field.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Cell {
    pub column: usize,
    pub text: String,
}

/// Reads the rows of a file. Its content decides the format.
pub(crate) fn read(series: &Series, text: &str) -> Result<Measured, Vec<Wrong>> {
    if text.trim_start().starts_with('{') {
        return json(series, text);
    }
    if text.lines().take(20).any(|line| line.contains("icmp_seq=")) {
        return ping(series, text);
    }
    table(series, text)
}

/// Refuses a column that a format does not have.
fn no_column(line: usize, wanted: &str, known: &[&str]) -> Vec<Wrong> {
    let known: Vec<_> = known.iter().map(|name| format!("\"{name}\"")).collect();
    vec![Wrong::new((line, 1), format!("no column \"{wanted}\""), known.join(", "))]
}

/// Reads lines of fields. Empty lines and lines that begin with `#` are ignored.
fn table(series: &Series, text: &str) -> Result<Measured, Vec<Wrong>> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).peekable();
    let Some((number, head)) = lines.peek().copied() else { return Ok(Measured::default()) };
    let separator = [',', ';', '\t'].into_iter().find(|one| split(head, *one).is_ok_and(|all| all.len() > 1));
    let separator = separator.unwrap_or(',');
    let names = split(head, separator).map_err(|column| vec![open_quote((number, column))])?;
    let has_names = names.iter().any(|cell| cell.text == series.column) || index_of(&series.column).is_none();
    let place = |wanted: &str| match names.iter().position(|cell| has_names && cell.text == wanted) {
        Some(place) => Ok(place),
        None => index_of(wanted).filter(|place| *place < names.len()).ok_or_else(|| {
            let known: Vec<_> = names.iter().map(|cell| format!("\"{}\"", cell.text)).collect();
            let accepted = format!("{}, or a number from 1 to {}", known.join(", "), known.len());
            vec![Wrong::new((number, 1), format!("no column \"{wanted}\""), accepted)]
        }),
    };
    let value = place(&series.column)?;
    let time = if series.time.is_empty() { 0 } else { place(&series.time)? };
    if has_names {
        lines.next();
    }
    let mut measured = Measured::default();
    for (line, text) in lines {
        let mut fields = split(text, separator).map_err(|column| vec![open_quote((line, column))])?;
        fields.iter_mut().for_each(|field| decimal_point(&mut field.text, separator));
        let end = Cell { column: text.chars().count() + 1, text: String::new() };
        let field = |place: usize| fields.get(place).unwrap_or(&end).clone();
        let time = if series.has_times() { field(time) } else { Cell::default() };
        measured.rows.push(Row { line, time, value: field(value) });
    }
    Ok(measured)
}

fn open_quote(place: (usize, usize)) -> Wrong {
    Wrong::new(place, "a quotation mark without its end", "fields of one line, in quotation marks or without")
}

/// Returns the place of a column that is given by its number from 1.
fn index_of(column: &str) -> Option<usize> {
    column.parse::<usize>().ok()?.checked_sub(1)
}

/// Splits a line into fields (RFC 4180). A field in quotation marks may contain separators, and two marks for one.
///
/// # Errors
/// The column of a quotation mark without its end.
fn split(line: &str, separator: char) -> Result<Vec<Cell>, usize> {
    let mut fields = vec![Cell { column: 1, text: String::new() }];
    let mut quote = None;
    let mut before = separator;
    for (index, c) in line.chars().enumerate() {
        let field = fields.last_mut().expect("one field from the start");
        match (c, quote) {
            ('"', Some(_)) => quote = None,
            ('"', None) if before == '"' => {
                field.text.push('"');
                quote = Some(index + 1);
            }
            ('"', None) if field.text.trim().is_empty() => {
                field.text.clear();
                quote = Some(index + 1);
            }
            (c, None) if c == separator => fields.push(Cell { column: index + 2, text: String::new() }),
            _ => field.text.push(c),
        }
        before = c;
    }
    for field in &mut fields {
        let start = field.text.len() - field.text.trim_start().len();
        field.column += field.text[..start].chars().count();
        field.text = field.text.trim().to_owned();
    }
    quote.map_or(Ok(fields), Err)
}

/// Replaces a decimal comma by a point. Between commas, three digits behind one could be thousands.
fn decimal_point(text: &mut String, separator: char) {
    let Some((whole, decimals)) = text.split_once(',') else { return };
    let digits = decimals.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = whole.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !whole.is_empty() && digits > 0 && !(separator == ',' && digits == 3) {
        *text = format!("{whole}.{decimals}");
    }
}

/// Reads the JSON of irtt or iperf3.
fn json(series: &Series, text: &str) -> Result<Measured, Vec<Wrong>> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let found = error.to_string();
        vec![Wrong::new((error.line(), error.column()), found, "JSON of irtt or iperf3")]
    })?;
    let list = |key: &str| value.get(key).and_then(Value::as_array);
    match (list("round_trips"), list("intervals")) {
        (Some(round_trips), _) => irtt(series, round_trips),
        (_, Some(intervals)) => iperf3(series, intervals),
        _ => {
            let accepted = "\"round_trips\" of irtt, or \"intervals\" of iperf3";
            Err(vec![Wrong::new((1, 1), "JSON with neither of them", accepted)])
        }
    }
}

/// Makes rows of entries; `read` returns the time and the value of an entry.
fn rows(entries: &[Value], read: impl Fn(&Value) -> (Option<&Value>, Option<&Value>)) -> Vec<Row> {
    let text = |value: Option<&Value>| Cell {
        column: 1,
        text: value.filter(|value| value.is_number()).map(Value::to_string).unwrap_or_default(),
    };
    let row = |(index, entry): (usize, &Value)| {
        let (time, value) = read(entry);
        Row { line: index + 1, time: text(time), value: text(value) }
    };
    entries.iter().enumerate().map(row).collect()
}

/// Reads delays of irtt in nanoseconds. A lost round trip has none.
fn irtt(series: &Series, round_trips: &[Value]) -> Result<Measured, Vec<Wrong>> {
    const COLUMNS: [&str; 3] = ["rtt", "send", "receive"];
    let column = series.column.as_str();
    if !COLUMNS.contains(&column) {
        return Err(no_column(1, column, &COLUMNS));
    }
    const CLOCKS: [&str; 2] = ["/timestamps/client/send/monotonic", "/timestamps/client/send/wall"];
    let delay = format!("/delay/{column}");
    let rows = rows(round_trips, |entry| {
        (CLOCKS.iter().find_map(|clock| entry.pointer(clock)), entry.pointer(&delay))
    });
    Ok(Measured { rows, unit: "ns", seconds: Some(1e-9) })
}

/// Reads the intervals of iperf3.
fn iperf3(series: &Series, intervals: &[Value]) -> Result<Measured, Vec<Wrong>> {
    const COLUMNS: [(&str, &str); 2] = [("bits_per_second", "bit/s"), ("lost_percent", "%")];
    let column = series.column.as_str();
    let Some((_, unit)) = COLUMNS.iter().find(|(name, _)| *name == column) else {
        return Err(no_column(1, column, &COLUMNS.map(|(name, _)| name)));
    };
    let value = format!("/sum/{column}");
    let rows = rows(intervals, |entry| (entry.pointer("/sum/start"), entry.pointer(&value)));
    Ok(Measured { rows, unit, seconds: Some(1.0) })
}

/// Reads the lines of ping. Times are those of `ping -D`, or else the sequence number times `every`.
fn ping(series: &Series, text: &str) -> Result<Measured, Vec<Wrong>> {
    if series.column != "time" {
        return Err(no_column(1, &series.column, &["time"]));
    }
    let every_s = series.every.map_or(1.0, |every| every.as_secs_f64());
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let behind = |mark: &str| {
            let begin = line.find(mark)? + mark.len();
            let number: String =
                line[begin..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            Some(Cell { column: line[..begin].chars().count() + 1, text: number })
        };
        let Some((number, value)) = behind("icmp_seq=").zip(behind("time=")) else { continue };
        let stamp = line.starts_with('[').then(|| behind("[")).flatten();
        let sequence = number.text.parse::<f64>().unwrap_or_default() * every_s;
        let time = stamp.unwrap_or(Cell { text: sequence.to_string(), ..number });
        rows.push(Row { line: index + 1, time, value });
    }
    Ok(Measured { rows, unit: "ms", seconds: Some(1.0) })
}

/// True for a text that says that nothing was measured: empty, a usual word, or one of `missing`. Numbers are compared by value.
pub(crate) fn is_missing(text: &str, missing: &[String]) -> bool {
    const WORDS: [&str; 7] = ["", "nan", "na", "n/a", "null", "none", "-"];
    let number = text.parse::<f64>().ok();
    let is = |word: &str| {
        text.eq_ignore_ascii_case(word) || number.is_some() && word.parse::<f64>().ok() == number
    };
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) || missing.iter().any(|word| is(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;

    fn series(column: &str) -> Series {
        Series { column: column.into(), ..Series::default() }
    }

    /// Returns line, time, value and column of the value of each row.
    fn rows(series: &Series, text: &str) -> Vec<(usize, String, String, usize)> {
        let rows = read(series, text).unwrap().rows.into_iter();
        rows.map(|row| (row.line, row.time.text, row.value.text, row.value.column)).collect()
    }

    #[test]
    fn quoted_fields_may_contain_separators() {
        let text = "t,\"rate, down\",x\n0,\"1,5\",\"say \"\"a\"\"\"\n\n1, 2.5 ,b\n";
        let found = rows(&series("rate, down"), text);
        assert_eq!(found, [(2, "0".into(), "1.5".into(), 3), (4, "1".into(), "2.5".into(), 4)]);
        assert_eq!(rows(&series("x"), text)[0].2, "say \"a\"");
        let wrong = read(&series("v"), "t,v\n0,1\n1,\"2\n").unwrap_err();
        assert_eq!((wrong[0].line, wrong[0].column), (3, 3));
    }

    #[test]
    fn a_decimal_comma_is_no_thousand() {
        let value = |text: &str, separator| {
            let mut text = text.to_owned();
            decimal_point(&mut text, separator);
            text
        };
        assert_eq!(value("12,5", ';'), "12.5");
        assert_eq!(value("-0,125", ';'), "-0.125");
        assert_eq!(value("1,000", ','), "1,000");
        assert_eq!(value("a,5", ';'), "a,5");
        assert_eq!(rows(&series("v"), "t;v\n0,5;12,5\n")[0].1, "0.5");
    }

    #[test]
    fn columns_of_files_without_names_have_numbers() {
        let found = rows(&series("2"), "0 ,10\n1,20\n");
        assert_eq!(found, [(1, "0".into(), "10".into(), 4), (2, "1".into(), "20".into(), 3)]);
        assert_eq!(rows(&series("1"), "12\n14\n").len(), 2);
        let wrong = read(&series("3"), "0,10\n").unwrap_err();
        assert_eq!(wrong[0].accepted, "\"0\", \"10\", or a number from 1 to 2");
    }

    #[test]
    fn outputs_of_tools_are_read() {
        let irtt = r#"{"round_trips": [
            {"lost": "false", "timestamps": {"client": {"send": {"wall": 9, "monotonic": 100}}}, "delay": {"rtt": 40000000}},
            {"lost": "true", "timestamps": {"client": {"send": {"monotonic": 200}}}, "delay": {}}]}"#;
        let found = rows(&series("rtt"), irtt);
        assert_eq!(found, [(1, "100".into(), "40000000".into(), 1), (2, "200".into(), String::new(), 1)]);
        let iperf3 = r#"{"intervals": [{"sum": {"start": 0, "end": 1, "bits_per_second": 5e6}},
            {"sum": {"start": 1.5, "end": 2, "bits_per_second": 4e6}}]}"#;
        let found = read(&series("bits_per_second"), iperf3).unwrap();
        assert_eq!((found.unit, found.rows[1].time.text.as_str(), found.rows.len()), ("bit/s", "1.5", 2));
        let ping = "PING a (192.0.2.1) 56(84) bytes of data.\n\
                    64 bytes from a: icmp_seq=1 ttl=57 time=12.3 ms\nno answer yet for icmp_seq=2\n\
                    64 bytes from a: icmp_seq=3 ttl=57 time=14 ms\n";
        let spaced = Series { every: Some(Duration::from_millis(200)), ..series("time") };
        let found = rows(&spaced, ping);
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].1.as_str(), found[1].2.as_str()), ("0.6000000000000001", "14"));
        let stamped = "[1700000000.5] 64 bytes from a: icmp_seq=1 ttl=57 time=12.3 ms\n";
        assert_eq!(rows(&series("time"), stamped)[0].1, "1700000000.5");
        assert!(read(&series("down"), ping).is_err() && read(&series("rtt"), "{\"a\": 1}").is_err());
    }

    #[test]
    fn words_and_given_values_mean_that_nothing_was_measured() {
        let given = ["-1".to_owned(), "0".to_owned(), "lost".to_owned()];
        for text in ["", "NaN", "NA", "null", "-", "-1", "-1.0", "0.000", "LOST"] {
            assert!(is_missing(text, &given), "{text}");
        }
        for text in ["1", "0.1", "12 ms"] {
            assert!(!is_missing(text, &given), "{text}");
        }
        assert!(!is_missing("0", &[]));
    }
}
