//! Orbit mean-elements messages (OMM, CCSDS 502.0-B) as CSV, JSON or XML. Catalogue numbers above 99999 exist only there.

use std::collections::BTreeMap;

use sgp4::chrono::NaiveDateTime;
use sgp4::{Classification, Elements};

use crate::entry::{Broken, Entry};

/// A keyword that every message has.
const NUMBER: &str = "NORAD_CAT_ID";

/// A message with its line: keywords and values.
type Message = (usize, BTreeMap<String, String>);

/// True for a text of messages.
pub(crate) fn is_omm(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with(['[', '{', '<']) || text.lines().next().is_some_and(|head| head.contains(NUMBER))
}

/// Reads the messages of a text.
pub(crate) fn read(text: &str) -> (Vec<Entry>, Vec<Broken>) {
    let text = text.trim_start_matches('\u{feff}');
    let messages = match text.trim_start().chars().next() {
        Some('[' | '{') => json(text),
        Some('<') => xml(text),
        _ => csv(text),
    };
    let (mut read, mut broken) = (Vec::new(), Vec::new());
    match messages {
        Ok(messages) => {
            for (line, values) in messages {
                match elements(&values) {
                    Ok(elements) => read.push(Entry { line, elements }),
                    Err(what) => broken.push((line, what)),
                }
            }
        }
        Err(mistake) => broken.push(mistake),
    }
    (read, broken)
}

fn csv(text: &str) -> Result<Vec<Message>, Broken> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let broken = |error: csv::Error| {
        let line = error.position().map_or(1, |position| position.line() as usize);
        (line, error.to_string())
    };
    let names = reader.headers().map_err(broken)?.clone();
    let mut messages = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, |position| position.line() as usize);
        let pairs = names.iter().zip(record.iter());
        messages.push((line, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()));
    }
    Ok(messages)
}

fn json(text: &str) -> Result<Vec<Message>, Broken> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))?;
    let list = match value {
        serde_json::Value::Array(list) => list,
        one => vec![one],
    };
    // Every message has this keyword once.
    let mut lines = text.lines().enumerate().flat_map(|(index, line)| {
        line.match_indices(&format!("\"{NUMBER}\"")).map(move |_| index + 1).collect::<Vec<_>>()
    });
    let message = |value: serde_json::Value| {
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        };
        let pairs = value.as_object().into_iter().flatten();
        let values: BTreeMap<_, _> = pairs.map(|(name, value)| (name.clone(), text(value))).collect();
        let line = if values.contains_key(NUMBER) { lines.next() } else { None };
        (line.unwrap_or(1), values)
    };
    Ok(list.into_iter().map(message).collect())
}

fn xml(text: &str) -> Result<Vec<Message>, Broken> {
    let document =
        roxmltree::Document::parse(text).map_err(|error| (error.pos().row as usize, error.to_string()))?;
    let messages = document.descendants().filter(|node| node.has_tag_name("segment"));
    let message = |node: roxmltree::Node<'_, '_>| {
        let line = document.text_pos_at(node.range().start).row as usize;
        let leaves = node.descendants().filter(|leaf| leaf.is_element() && leaf.text().is_some());
        let pair = |leaf: roxmltree::Node<'_, '_>| {
            (leaf.tag_name().name().to_owned(), leaf.text().unwrap_or_default().trim().to_owned())
        };
        (line, leaves.map(pair).collect())
    };
    Ok(messages.map(message).collect())
}

/// Makes elements of the keywords of a message.
///
/// # Errors
/// The first keyword that is missing or wrong.
fn elements(values: &BTreeMap<String, String>) -> Result<Elements, String> {
    let text = |key: &str| values.get(key).map(String::as_str).filter(|text| !text.is_empty());
    let wrong = |key: &str, accepted: &str| match text(key) {
        Some(found) => format!("{key}: found \"{found}\", accepted: {accepted}"),
        None => format!("{key} is missing, accepted: {accepted}"),
    };
    let number = |key: &str| {
        let number = text(key).and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite());
        number.ok_or_else(|| wrong(key, "a number"))
    };
    let or_zero = |key: &str| if text(key).is_some() { number(key) } else { Ok(0.0) };
    for (key, accepted) in [("TIME_SYSTEM", &["UTC"][..]), ("MEAN_ELEMENT_THEORY", &["SGP4", "SGP/SGP4"])] {
        if text(key).is_some_and(|found| !accepted.contains(&found)) {
            return Err(wrong(key, accepted[0]));
        }
    }
    let whole = |key: &str| text(key).and_then(|text| text.parse::<u64>().ok());
    let epoch = text("EPOCH").and_then(date);
    Ok(Elements {
        object_name: text("OBJECT_NAME").map(str::to_owned),
        international_designator: text("OBJECT_ID").map(str::to_owned),
        norad_id: whole(NUMBER).ok_or_else(|| wrong(NUMBER, "a whole number"))?,
        classification: Classification::Unclassified,
        datetime: epoch.ok_or_else(|| wrong("EPOCH", "a date such as 2026-11-28T12:00:00"))?,
        mean_motion_dot: or_zero("MEAN_MOTION_DOT")?,
        mean_motion_ddot: or_zero("MEAN_MOTION_DDOT")?,
        drag_term: or_zero("BSTAR")?,
        element_set_number: whole("ELEMENT_SET_NO").unwrap_or(0),
        inclination: number("INCLINATION")?,
        right_ascension: number("RA_OF_ASC_NODE")?,
        eccentricity: number("ECCENTRICITY")?,
        argument_of_perigee: number("ARG_OF_PERICENTER")?,
        mean_anomaly: number("MEAN_ANOMALY")?,
        mean_motion: number("MEAN_MOTION")?,
        revolution_number: whole("REV_AT_EPOCH").unwrap_or(0),
        ephemeris_type: 0,
    })
}

/// Reads a date of CCSDS 301.0-B, by month and day or by the day of the year.
fn date(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim_end_matches('Z');
    let read = |format| NaiveDateTime::parse_from_str(text, format).ok();
    read("%Y-%m-%dT%H:%M:%S%.f").or_else(|| read("%Y-%jT%H:%M:%S%.f"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "OBJECT_NAME,EPOCH,MEAN_MOTION,ECCENTRICITY,INCLINATION,RA_OF_ASC_NODE,ARG_OF_PERICENTER,MEAN_ANOMALY,NORAD_CAT_ID,BSTAR\n\
        \"BIG, NUMBER\",2026-09-01T00:00:00.000000,15.06,.0001,53.05,10.0,90.0,20.0,100123,.0001\n\
        OTHER,2026-244T12:00:00,15.06,.0001,53.05,40.0,90.0,20.0,100124,\n";

    #[test]
    fn the_three_forms_have_the_same_elements() {
        let json = r#"[{"OBJECT_NAME": "BIG, NUMBER", "EPOCH": "2026-09-01T00:00:00.000000", "MEAN_MOTION": 15.06,
            "ECCENTRICITY": 0.0001, "INCLINATION": 53.05, "RA_OF_ASC_NODE": 10.0, "ARG_OF_PERICENTER": "90.0",
            "MEAN_ANOMALY": 20.0, "NORAD_CAT_ID": 100123, "BSTAR": 0.0001},
            {"OBJECT_NAME": "OTHER", "EPOCH": "2026-09-01T12:00:00Z", "MEAN_MOTION": 15.06, "ECCENTRICITY": 0.0001,
            "INCLINATION": 53.05, "RA_OF_ASC_NODE": 40.0, "ARG_OF_PERICENTER": 90, "MEAN_ANOMALY": 20,
            "NORAD_CAT_ID": "100124", "BSTAR": null}]"#;
        let segment = |name: &str, number: u32, epoch: &str, node: f64, drag: &str| {
            format!(
                "<omm><body><segment><metadata><OBJECT_NAME>{name}</OBJECT_NAME><TIME_SYSTEM>UTC</TIME_SYSTEM></metadata>
                <data><meanElements><EPOCH>{epoch}</EPOCH><MEAN_MOTION units=\"rev/day\">15.06</MEAN_MOTION>
                <ECCENTRICITY>0.0001</ECCENTRICITY><INCLINATION>53.05</INCLINATION>
                <RA_OF_ASC_NODE>{node}</RA_OF_ASC_NODE><ARG_OF_PERICENTER>90</ARG_OF_PERICENTER>
                <MEAN_ANOMALY>20</MEAN_ANOMALY></meanElements><tleParameters><NORAD_CAT_ID>{number}</NORAD_CAT_ID>
                <BSTAR>{drag}</BSTAR></tleParameters></data></segment></body></omm>\n"
            )
        };
        let xml = format!(
            "<?xml version=\"1.0\"?>\n<ndm>\n{}{}</ndm>\n",
            segment("BIG, NUMBER", 100_123, "2026-09-01T00:00:00", 10.0, "0.0001"),
            segment("OTHER", 100_124, "2026-09-01T12:00:00", 40.0, "0")
        );
        let read = |text: &str| {
            let (entries, broken) = read(text);
            assert!(is_omm(text) && broken.is_empty(), "{broken:?}");
            let lines: Vec<_> = entries.iter().map(|entry| entry.line).collect();
            (lines, entries.into_iter().map(|entry| entry.elements).collect::<Vec<_>>())
        };
        let (lines, of_csv) = read(CSV);
        assert_eq!((lines, of_csv[0].norad_id), (vec![2, 3], 100_123));
        assert_eq!(of_csv[0].object_name.as_deref(), Some("BIG, NUMBER"));
        assert_eq!(read(json), (vec![3, 6], of_csv.clone()));
        assert_eq!(read(&xml), (vec![3, 9], of_csv));
    }

    #[test]
    fn a_wrong_keyword_is_named_with_its_line() {
        let wrong = CSV.replace("40.0", "east").replace("15.06,.0001,53.05,10.0", ",.0001,53.05,10.0");
        let (entries, broken) = read(&wrong);
        assert!(entries.is_empty());
        let expected = [
            (2, "MEAN_MOTION is missing, accepted: a number".to_owned()),
            (3, "RA_OF_ASC_NODE: found \"east\", accepted: a number".to_owned()),
        ];
        assert_eq!(broken, expected);
        for text in ["{\n\"a\": }", "<ndm>\n</nd>"] {
            let (_, broken) = read(text);
            assert_eq!(broken.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2], "{broken:?}");
        }
    }
}
