//! Plan of a comparison: algorithms, varied values, seeds.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::metric::Metric;

/// One setting of a scenario: a path and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Path through the scenario, `link.satellite.loss.rate`.
    pub key: String,
    /// Value as typed.
    pub value: Value,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A path and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vary {
    /// Path through the scenario.
    pub key: String,
    /// Values in the order of the rows.
    pub values: Vec<Value>,
}

/// A value as typed; in JSON a number if it is one, else a string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value(pub String);

impl Value {
    /// Splits a value into number and unit, `250` and `ms`; `None` if it does not begin with a number.
    pub fn quantity(&self) -> Option<(f64, &str)> {
        let text = self.0.trim();
        let number = |end: &usize| text[..*end].trim_end().parse::<f64>().ok().filter(|n| n.is_finite());
        let ends = text.char_indices().map(|(i, c)| i + c.len_utf8());
        let (end, number) = ends.rev().find_map(|end| Some((end, number(&end)?)))?;
        Some((number, text[end..].trim()))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0.parse::<i64>(), self.quantity(), self.0.as_str()) {
            (Ok(integer), ..) => serializer.serialize_i64(integer),
            (_, Some((number, "")), _) => serializer.serialize_f64(number),
            (_, _, "true") => serializer.serialize_bool(true),
            (_, _, "false") => serializer.serialize_bool(false),
            (_, _, text) => serializer.serialize_str(text),
        }
    }
}

/// A `KEY=...` argument that is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSetting(String);

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSetting {}

fn split(text: &str) -> Result<(&str, &str), BadSetting> {
    match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key, value)),
        _ => Err(BadSetting(format!("expected KEY=VALUE, found `{text}`"))),
    }
}

impl FromStr for Setting {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Self, BadSetting> {
        let (key, value) = split(text)?;
        Ok(Self { key: key.into(), value: Value(value.into()) })
    }
}

impl Vary {
    /// A path and its values.
    ///
    /// # Errors
    /// If there is none, an empty one, or one twice.
    pub fn new(key: String, values: Vec<Value>) -> Result<Self, BadSetting> {
        let text = || Self { key: key.clone(), values: values.clone() }.to_string();
        if key.is_empty() || values.is_empty() {
            return Err(BadSetting(format!("expected KEY=VALUE, found `{}`", text())));
        }
        if values.iter().any(|value| value.0.is_empty()) {
            return Err(BadSetting(format!("`{}` has an empty value between its commas", text())));
        }
        if let Some(twice) = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
            return Err(BadSetting(format!("`{}` names the value {} twice", text(), twice.1)));
        }
        Ok(Self { key, values })
    }
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.values.iter().map(|value| value.0.as_str()).collect();
        write!(f, "{}={}", self.key, values.join(","))
    }
}

impl FromStr for Vary {
    type Err = BadSetting;

    /// Values are separated by commas outside brackets, braces and quotation marks.
    fn from_str(text: &str) -> Result<Self, BadSetting> {
        let (key, list) = split(text)?;
        Self::new(key.into(), split_list(list).into_iter().map(|v| Value(v.trim().into())).collect())
    }
}

fn split_list(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut begin) = (0_i32, false, 0);
    let mut parts = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    parts
}

/// A comparison to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Name of the scenario.
    pub scenario: String,
    /// Algorithms as the user named them.
    pub algorithms: Vec<String>,
    /// Baseline of the comparison.
    pub baseline: String,
    /// Varied settings; every combination is compared.
    pub vary: Vec<Vary>,
    /// First seed; the others follow in sequence.
    pub first_seed: u64,
    /// Number of seeds.
    pub seeds: u32,
    /// Main metric of the scenario.
    pub measures: Metric,
    /// Names of its groups of flows, in its order.
    pub groups: Vec<String>,
    /// Groups whose flows run the algorithm under comparison.
    pub compared: Vec<String>,
    /// Unit that each varied loss rate counts (packets or bits), a sentence for each.
    pub notes: Vec<String>,
}

/// One algorithm at one combination of the varied values: a row of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Algorithm as the user named it.
    pub cc: String,
    /// One value of each varied path.
    pub vary: Vec<Setting>,
}

/// One run: a cell with a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Index of the cell in [`Plan::cells`].
    pub cell: usize,
    /// Seed of the run.
    pub seed: u64,
}

impl Plan {
    /// Every combination of the varied values, the last path fastest.
    pub fn combinations(&self) -> Vec<Vec<Setting>> {
        self.vary.iter().fold(vec![Vec::new()], |begun, vary| {
            let with = |head: &Vec<Setting>, value: &Value| {
                let setting = Setting { key: vary.key.clone(), value: value.clone() };
                head.iter().cloned().chain([setting]).collect()
            };
            begun.iter().flat_map(|head| vary.values.iter().map(move |value| with(head, value))).collect()
        })
    }

    /// The cells in the order of the result: algorithms, and for each the combinations.
    pub fn cells(&self) -> Vec<Cell> {
        let combinations = self.combinations();
        let cell = |cc: &String, vary: &Vec<Setting>| Cell { cc: cc.clone(), vary: vary.clone() };
        self.algorithms.iter().flat_map(|cc| combinations.iter().map(move |vary| cell(cc, vary))).collect()
    }

    /// The runs in the order of work: every cell with the first seed, then with the second, so that a comparison that
    /// is stopped early is complete with fewer seeds.
    pub fn points(&self) -> Vec<Point> {
        let cells = self.algorithms.len() * self.vary.iter().map(|v| v.values.len()).product::<usize>();
        let seeds = (0..self.seeds).map(|n| self.first_seed.wrapping_add(u64::from(n)));
        seeds.flat_map(|seed| (0..cells).map(move |cell| Point { cell, seed })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let vary = ["a=1,2", "b=x,y,z"].map(|text| text.parse().unwrap());
        Plan {
            scenario: "s".into(),
            algorithms: vec!["reno".into(), "peach".into()],
            baseline: "reno".into(),
            vary: vary.into(),
            first_seed: 5,
            seeds: 2,
            measures: Metric::Goodput,
            groups: Vec::new(),
            compared: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn every_combination_once_and_seed_by_seed() {
        let cells = plan().cells();
        assert_eq!(cells.len(), 12);
        let shown =
            |cell: &Cell| (cell.cc.clone(), cell.vary[0].value.0.clone(), cell.vary[1].value.0.clone());
        assert_eq!(shown(&cells[1]), ("reno".into(), "1".into(), "y".into()));
        assert_eq!(shown(&cells[9]), ("peach".into(), "2".into(), "x".into()));
        let points = plan().points();
        assert_eq!(points.len(), 24);
        assert_eq!((points[11].seed, points[12].seed, points[12].cell), (5, 6, 0));
    }

    #[test]
    fn settings_and_lists() {
        let vary: Vary = r#"link.x.rate=10 Mbit/s, [1,2] ,"a,b",{c = 1, d = 2}"#.parse().unwrap();
        let values: Vec<_> = vary.values.iter().map(|v| v.0.as_str()).collect();
        assert_eq!(values, ["10 Mbit/s", "[1,2]", r#""a,b""#, "{c = 1, d = 2}"]);
        assert!("a".parse::<Setting>().is_err());
        assert!("=1".parse::<Setting>().is_err());
        assert!("a=1,,2".parse::<Vary>().unwrap_err().to_string().contains("empty value"));
        assert!("a=1,2,1".parse::<Vary>().unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn values_are_numbers_in_json_if_they_are_numbers() {
        let json = |text: &str| serde_json::to_string(&Value(text.into())).unwrap();
        assert_eq!(json("1e-4"), "0.0001");
        assert_eq!(json("20"), "20");
        assert_eq!(json("10 Mbit/s"), "\"10 Mbit/s\"");
        assert_eq!(json("true"), "true");
        assert_eq!(json("inf"), "\"inf\"");
        assert_eq!(Value("250 ms".into()).quantity(), Some((250.0, "ms")));
        assert_eq!(Value("1.5e3kbit/s".into()).quantity(), Some((1500.0, "kbit/s")));
        assert_eq!(Value("cubic".into()).quantity(), None);
    }
}
