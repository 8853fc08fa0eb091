//! Quantities of a run, with the names used in checks.

use std::borrow::Cow;

use bentpipe_lab::RunOutput;
use bentpipe_outcome::FlowSeries;
use serde_json::{Map, Value};

use crate::check::Quantity;

/// A quantity of a check, resolved by an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Measured quantity.
    pub measure: Measure,
    /// Index of the arm.
    pub arm: usize,
    /// Axis position, if it differs from the rest of the check.
    pub elsewhere: Option<f64>,
}

/// A quantity of a run, independent of the arm.
#[derive(Clone, PartialEq, Debug)]
pub enum Measure {
    /// A field of the result as written by `run --json`.
    Field {
        /// Name of the quantity, with dots for nested tables.
        name: String,
        /// Subject of the field.
        of: Subject,
    },
    /// A property of a flow's curve over time.
    Course {
        /// Name of the curve.
        curve: Curve,
        /// Property of the curve.
        what: Moment,
        /// Flows of the curve.
        of: Whose,
    },
}

/// Subject of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The totals, or the mean over all flows.
    World,
    /// Mean over the flows of a group.
    Group(String),
    /// A single flow.
    Flow(String),
    /// A link in the forward direction, or in the direction after the dot. For a group: the mean over
    /// its links.
    Link(String),
    /// A channel shared by the links of a group, named like a link.
    Medium(String),
}

/// Flows of a curve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whose {
    /// The first flow of the scenario.
    First,
    /// A named flow.
    Flow(String),
    /// Mean over the flows of a group.
    Group(String),
}

/// A curve over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// Congestion window, in segments.
    Cwnd,
    /// Slow-start threshold, in segments.
    Ssthresh,
    /// Smoothed round-trip time, in milliseconds.
    Srtt,
    /// Highest segment number sent.
    Sent,
    /// Number of retransmitted segments.
    Retransmitted,
    /// Number of acknowledged segments.
    Acked,
    /// Segments acknowledged per second, over the last second, every half second.
    Throughput,
}

/// A property of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Moment {
    /// Value at a time in seconds.
    At(f64),
    /// First time after a start (in seconds) at which the value is at least the given one.
    Reaches(f64, f64),
    /// Time of the first point after a time in seconds.
    Next(f64),
    /// Slope between two times, per second.
    Rate(f64, f64),
    /// Minimum between two times.
    Lowest(f64, f64),
    /// Maximum between two times.
    Highest(f64, f64),
    /// Time average between two times.
    Mean(f64, f64),
    /// Jain's fairness index of the flows' slopes between two times.
    Jain(f64, f64),
}

impl Curve {
    /// Returns the curve of this name.
    fn named(name: &str) -> Option<Self> {
        use serde::Deserialize;
        use serde::de::IntoDeserializer;
        use serde::de::value::{Error, StrDeserializer};
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// Returns the points of the curve for a flow.
    pub fn points(self, of: &FlowSeries) -> Cow<'_, [(f64, f64)]> {
        Cow::Borrowed(match self {
            Self::Cwnd => &of.cwnd,
            Self::Ssthresh => &of.ssthresh,
            Self::Srtt => &of.srtt_ms,
            Self::Sent => &of.sent,
            Self::Retransmitted => &of.retransmitted,
            Self::Acked => &of.acked,
            Self::Throughput => return Cow::Owned(throughput(&of.acked)),
        })
    }
}

/// Returns how many segments were acknowledged per second, from the number of acknowledged segments.
fn throughput(acked: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Some(&(end, _)) = acked.last() else { return Vec::new() };
    let acked_by = |time: f64| at(acked, time).unwrap_or(0.0);
    let times = (2..).map(|half| f64::from(half) / 2.0).take_while(|time| *time <= end);
    times.map(|time| (time, acked_by(time) - acked_by(time - 1.0))).collect()
}

/// Returns the value of a step curve at a time; `None` before its first point.
fn at(points: &[(f64, f64)], time: f64) -> Option<f64> {
    points[..points.partition_point(|point| point.0 <= time)].last().map(|point| point.1)
}

/// Words in a quantity that select a property of a curve.
pub(crate) const MOMENTS: [&str; 8] = ["t", "reaches", "next", "rate", "lowest", "highest", "mean", "jain"];

impl Measure {
    /// Resolves a quantity of a check in an experiment whose axis has this name.
    ///
    /// # Errors
    /// A message with the unknown name and the accepted ones.
    pub fn of(quantity: &Quantity, axis: Option<&str>) -> Result<Self, String> {
        let Some(curve) = Curve::named(&quantity.metric) else {
            known(quantity, &["group", "flow", "link", "medium"], axis)?;
            let of = Subject::of(quantity)?;
            return Ok(Self::Field { name: quantity.metric.clone(), of });
        };
        let words: Vec<&str> = MOMENTS.iter().chain(&["from", "to", "flow", "group"]).copied().collect();
        known(quantity, &words, axis)?;
        let what = Moment::of(quantity)?;
        let named = |key: &str| quantity.selector(key).unwrap_or_default().to_owned();
        let of = match only(quantity, &["flow", "group"])? {
            Some("flow") => Whose::Flow(named("flow")),
            Some(_) => Whose::Group(named("group")),
            None => Whose::First,
        };
        if matches!(what, Moment::Jain(..)) && !matches!(of, Whose::Group(_)) {
            return Err(format!("{}: `jain` is of several flows, accepted: with `group`", quantity.metric));
        }
        Ok(Self::Course { curve, what, of })
    }

    /// True if the run must record time series.
    pub const fn needs_series(&self) -> bool {
        matches!(self, Self::Course { .. })
    }

    /// Returns a key that only equal measures share.
    pub fn key(&self) -> String {
        format!("{self:?}")
    }

    /// True if the unit is bit/s.
    pub fn is_rate(&self) -> bool {
        matches!(self, Self::Field { name, .. } if name.ends_with("_bps"))
    }

    /// Returns the value in a run; `None` if the run has none.
    pub fn value(&self, run: &RunOutput, document: &Value) -> Option<f64> {
        match self {
            Self::Field { name, of } => of.value(name, document),
            Self::Course { curve, what, of } => what.over(&of.flows(&run.series.flows), *curve),
        }
    }
}

impl Whose {
    fn flows<'a>(&self, all: &'a [FlowSeries]) -> Vec<&'a FlowSeries> {
        match self {
            Self::First => all.iter().take(1).collect(),
            Self::Flow(name) => all.iter().filter(|flow| flow.name == *name).take(1).collect(),
            Self::Group(group) => all.iter().filter(|flow| is_member(&flow.name, group)).collect(),
        }
    }
}

/// True if `name` is the group or one of its members, such as `bulk.3` of `bulk`.
fn is_member(name: &str, group: &str) -> bool {
    let index = name.strip_prefix(group).and_then(|rest| rest.strip_prefix('.'));
    name == group || index.is_some_and(|index| index.chars().all(|c| c.is_ascii_digit()))
}

/// Returns an error for a selector that is neither one of `words` nor the name of the axis.
fn known(quantity: &Quantity, words: &[&str], axis: Option<&str>) -> Result<(), String> {
    let is_known = |key: &str| words.contains(&key) || Some(key) == axis;
    match quantity.selectors.iter().find(|(key, _)| !is_known(key)) {
        None => Ok(()),
        Some((key, _)) => {
            let accepted: Vec<&str> = words.iter().copied().chain(axis).collect();
            Err(format!("{}: found `{key}`, accepted: {}", quantity.metric, accepted.join(", ")))
        }
    }
}

/// Returns the number of a selector.
fn number(quantity: &Quantity, word: &str) -> Result<Option<f64>, String> {
    let parse = |text: &str| {
        text.parse().map_err(|_| format!("{}: {word}: found `{text}`, accepted: a number", quantity.metric))
    };
    quantity.selector(word).map(parse).transpose()
}

/// Returns the one selector of `words` in the quantity.
fn only<'a>(quantity: &Quantity, words: &[&'a str]) -> Result<Option<&'a str>, String> {
    let mut found = words.iter().filter(|word| quantity.selector(word).is_some());
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => {
            Err(format!("{}: found `{one}` and `{other}`, accepted: one of them", quantity.metric))
        }
        (one, _) => Ok(one.copied()),
    }
}

impl Moment {
    fn of(quantity: &Quantity) -> Result<Self, String> {
        let name = &quantity.metric;
        let Some(word) = only(quantity, &MOMENTS)? else {
            let all = MOMENTS.map(|word| format!("`{word}`")).join(", ");
            return Err(format!("{name}: accepted: one of {all}"));
        };
        let value = number(quantity, word)?.unwrap_or_default();
        let (from, to) = (number(quantity, "from")?, number(quantity, "to")?);
        let refused = |strange: &str| format!("{name}: found `{strange}`, which says nothing with `{word}`");
        match (word, from, to) {
            ("reaches", from, None) => Ok(Self::Reaches(value, from.unwrap_or(0.0))),
            ("t", None, None) => Ok(Self::At(value)),
            ("next", None, None) => Ok(Self::Next(value)),
            ("t" | "next", None, _) | ("reaches", ..) => Err(refused("to")),
            (_, Some(_), _) => Err(refused("from")),
            (_, None, Some(to)) if to > value => Ok(match word {
                "rate" => Self::Rate(value, to),
                "lowest" => Self::Lowest(value, to),
                "mean" => Self::Mean(value, to),
                "jain" => Self::Jain(value, to),
                _ => Self::Highest(value, to),
            }),
            _ => Err(format!("{name}: found a beginning {value}, accepted: with a later `to`")),
        }
    }
}

impl Subject {
    fn of(quantity: &Quantity) -> Result<Self, String> {
        let named = |key: &str| quantity.selector(key).unwrap_or_default().to_owned();
        Ok(match only(quantity, &["flow", "group", "link", "medium"])? {
            Some("flow") => Self::Flow(named("flow")),
            Some("group") => Self::Group(named("group")),
            Some("medium") => Self::Medium(named("medium")),
            Some(_) => Self::Link(named("link")),
            None => Self::World,
        })
    }

    fn value(&self, name: &str, document: &Value) -> Option<f64> {
        let list = |key: &str| document.get(key).and_then(Value::as_array).into_iter().flatten();
        let is =
            |item: &&Value, key: &str, wanted: &str| item.get(key).and_then(Value::as_str) == Some(wanted);
        match self {
            Self::World => field(document.get("totals")?, name)
                .or_else(|| field(document, name))
                .or_else(|| mean(list("flows").filter_map(|flow| field(flow, name)))),
            Self::Group(group) => mean(
                list("flows").filter(|flow| is(flow, "group", group)).filter_map(|flow| field(flow, name)),
            ),
            Self::Flow(flow) => {
                list("flows").find(|item| is(item, "name", flow)).and_then(|flow| field(flow, name))
            }
            Self::Medium(link) => {
                let (link, direction) = direction(link);
                let is_it = |item: &&Value| is(item, "name", link) && is(item, "direction", direction);
                list("media").find(is_it).and_then(|medium| field(medium, name))
            }
            Self::Link(link) => {
                let (link, direction) = direction(link);
                let of_group = |item: &&Value| {
                    item.get("name").and_then(Value::as_str).is_some_and(|name| is_member(name, link))
                };
                let found = list("links").filter(|item| of_group(item) && is(item, "direction", direction));
                mean(found.filter_map(|link| field(link, name)))
            }
        }
    }
}

/// Splits a link's name into name and direction.
fn direction(link: &str) -> (&str, &str) {
    link.rsplit_once('.').filter(|(_, direction)| *direction == "reverse").unwrap_or((link, "forward"))
}

/// Returns a number of a table, with dots for nested tables.
fn field(of: &Value, name: &str) -> Option<f64> {
    let found =
        name.split('.').try_fold(of, |of, key| of.as_object().and_then(|of: &Map<_, _>| of.get(key)))?;
    found.as_f64().or_else(|| found.as_bool().map(|flag| f64::from(u8::from(flag))))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    bentpipe_lab::stats::mean(&values.collect::<Vec<_>>())
}

impl Moment {
    /// Returns the value over several flows; `None` if one flow has none.
    fn over(self, flows: &[&FlowSeries], curve: Curve) -> Option<f64> {
        let values: Vec<f64> = flows.iter().filter_map(|flow| self.value(&curve.points(flow))).collect();
        if values.len() < flows.len() {
            return None;
        }
        if matches!(self, Self::Jain(..)) {
            bentpipe_lab::stats::jain(&values)
        } else {
            bentpipe_lab::stats::mean(&values)
        }
    }

    fn value(self, points: &[(f64, f64)]) -> Option<f64> {
        let at = |time: f64| at(points, time);
        let between = |from: f64, to: f64| {
            let inside =
                points.iter().filter(move |point| point.0 > from && point.0 <= to).map(|point| point.1);
            at(from).into_iter().chain(inside)
        };
        match self {
            Self::At(time) => at(time),
            Self::Reaches(bound, from) => {
                let at_once = at(from).filter(|value| *value >= bound).map(|_| from);
                let later = || points.iter().find(|point| point.0 >= from && point.1 >= bound);
                at_once.or_else(|| later().map(|point| point.0))
            }
            Self::Next(after) => points.iter().find(|point| point.0 > after).map(|point| point.0),
            Self::Rate(from, to) | Self::Jain(from, to) => {
                Some((at(to)? - at(from).unwrap_or(0.0)) / (to - from))
            }
            Self::Mean(from, to) => mean_over_time(at(from), points, from, to),
            Self::Lowest(from, to) => between(from, to).reduce(f64::min),
            Self::Highest(from, to) => between(from, to).reduce(f64::max),
        }
    }
}

/// Returns the time average of a step curve between `from` and `to`; `first` is its value at `from`.
fn mean_over_time(first: Option<f64>, points: &[(f64, f64)], from: f64, to: f64) -> Option<f64> {
    let (mut since, mut value, mut area) = (from, first?, 0.0);
    for (at, next) in points.iter().filter(|point| point.0 > from && point.0 <= to) {
        area += value * (at - since);
        (since, value) = (*at, *next);
    }
    Some((area + value * (to - since)) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Expr;
    use serde_json::json;

    fn measure(text: &str) -> Result<Measure, String> {
        let Expr::Quantity(quantity) = Expr::parse(text).unwrap() else { panic!("{text}") };
        Measure::of(&quantity, Some("loss"))
    }

    #[test]
    fn fields_are_found_where_run_writes_them() {
        let document = json!({
            "flows": [
                { "name": "a.0", "group": "a", "srtt_ms": 100.0, "video": { "late": 0.5 } },
                { "name": "a.1", "group": "a", "srtt_ms": 300.0 },
                { "name": "b", "group": "b", "srtt_ms": 800.0 },
            ],
            "links": [
                { "name": "l", "direction": "forward", "dropped_by_queue": 3 },
                { "name": "l", "direction": "reverse", "dropped_by_queue": 4 },
                { "name": "m.0", "direction": "forward", "dropped_by_queue": 10 },
                { "name": "m.1", "direction": "forward", "dropped_by_queue": 20 },
            ],
            "media": [{ "name": "m", "direction": "reverse", "carried_bps": 7.0 }],
            "totals": { "jain_index": 0.9 },
        });
        let value = |text: &str| {
            let Measure::Field { name, of } = measure(text).unwrap() else { panic!() };
            of.value(&name, &document)
        };
        assert_eq!(value("jain_index(x)"), Some(0.9));
        assert_eq!(value("srtt_ms(x)"), Some(400.0));
        assert_eq!(value("srtt_ms(x, group=a)"), Some(200.0));
        assert_eq!(value("srtt_ms(x, flow=b)"), Some(800.0));
        assert_eq!(value("video.late(x, flow=a.0)"), Some(0.5));
        assert_eq!(value("dropped_by_queue(x, link=l)"), Some(3.0));
        assert_eq!(value("dropped_by_queue(x, link=l.reverse)"), Some(4.0));
        assert_eq!(value("dropped_by_queue(x, link=m)"), Some(15.0));
        assert_eq!(value("carried_bps(x, medium=m.reverse)"), Some(7.0));
        assert_eq!(value("carried_bps(x, medium=m)"), None);
        assert_eq!(value("nonsense(x)"), None);
    }

    /// Ten segments arrive in the second that ends at 1 s, none in the next, and two in the last.
    #[test]
    fn throughput_counts_the_segments_of_a_second() {
        let acked = [(0.2, 4.0), (0.9, 10.0), (2.4, 11.0), (2.5, 12.0), (3.0, 12.0)];
        let expected = [(1.0, 10.0), (1.5, 6.0), (2.0, 0.0), (2.5, 2.0), (3.0, 2.0)];
        assert_eq!(throughput(&acked), expected);
        assert_eq!(throughput(&[]), []);
    }

    #[test]
    fn moments_of_a_curve_that_holds_its_value() {
        let curve = [(1.0, 10.0), (2.0, 20.0), (4.0, 5.0)];
        assert_eq!(Moment::At(0.5).value(&curve), None);
        assert_eq!(Moment::At(3.9).value(&curve), Some(20.0));
        assert_eq!(Moment::Reaches(15.0, 0.0).value(&curve), Some(2.0));
        assert_eq!(Moment::Reaches(15.0, 3.0).value(&curve), Some(3.0), "it is that large already");
        assert_eq!(Moment::Reaches(10.0, 3.9).value(&curve), Some(3.9));
        assert_eq!(Moment::Reaches(10.0, 4.1).value(&curve), None);
        assert_eq!(Moment::Reaches(99.0, 0.0).value(&curve), None);
        assert_eq!(Moment::Next(2.0).value(&curve), Some(4.0));
        assert_eq!(Moment::Next(4.0).value(&curve), None);
        assert_eq!(Moment::Lowest(1.5, 3.0).value(&curve), Some(10.0));
        assert_eq!(Moment::Highest(2.5, 9.0).value(&curve), Some(20.0));
        assert_eq!(Moment::Rate(1.0, 3.0).value(&curve), Some(5.0));
        assert_eq!(Moment::Mean(1.5, 5.5).value(&curve), Some((0.5 * 10.0 + 2.0 * 20.0 + 1.5 * 5.0) / 4.0));
        assert_eq!(Moment::Mean(0.5, 2.0).value(&curve), None, "it begins later");
    }

    #[test]
    fn the_course_of_a_group_is_the_mean_of_its_members() {
        let flow = |name: &str, acked: f64| FlowSeries {
            name: name.into(),
            acked: vec![(1.0, acked)],
            ..FlowSeries::default()
        };
        let flows = [flow("bulk.0", 10.0), flow("bulk.1", 20.0), flow("bulk.0.hub", 99.0), flow("web", 5.0)];
        let value = |text: &str| {
            let Measure::Course { curve, what, of } = measure(text).unwrap() else { panic!() };
            what.over(&of.flows(&flows), curve)
        };
        assert_eq!(value("acked(x, t=2)"), Some(10.0));
        assert_eq!(value("acked(x, t=2, flow=web)"), Some(5.0));
        assert_eq!(value("acked(x, t=2, group=bulk)"), Some(15.0));
        assert_eq!(value("acked(x, reaches=15, group=bulk)"), None, "not all members get there");
        assert_eq!(value("acked(x, t=2, group=nobody)"), None);
        assert_eq!(value("acked(x, jain=0, to=2, group=bulk)"), Some(0.9));
    }

    #[test]
    fn strange_selectors_are_refused() {
        assert!(measure("jain_index(x, loss=1e-3)").is_ok());
        assert!(measure("jain_index(x, colour=red)").unwrap_err().contains("colour"));
        assert!(measure("cwnd(x)").unwrap_err().contains("reaches"));
        assert!(measure("cwnd(x, rate=1)").unwrap_err().contains("to"));
        assert!(measure("cwnd(x, t=soon)").unwrap_err().contains("soon"));
        assert!(measure("cwnd(x, t=1, reaches=2)").unwrap_err().contains("`t` and `reaches`"));
        assert!(measure("cwnd(x, rate=3, to=1)").unwrap_err().contains("later"));
        assert!(measure("cwnd(x, t=3, from=1)").unwrap_err().contains("from"));
        assert!(measure("cwnd(x, t=3, to=4)").unwrap_err().contains("to"));
        assert!(measure("jain_index(x, flow=a, group=b)").unwrap_err().contains("`flow` and `group`"));
        assert!(measure("cwnd(x, reaches=4, from=2)").is_ok());
        assert!(measure("acked(x, jain=3, to=4)").unwrap_err().contains("with `group`"));
        assert!(measure("acked(x, jain=3, group=a)").unwrap_err().contains("to"));
    }
}
