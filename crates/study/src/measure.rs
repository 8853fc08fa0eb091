//! What can be measured of a run, by the names that checks use.

use bentpipe_lab::Simulated;
use bentpipe_sim::FlowSeries;
use serde_json::{Map, Value};

use crate::check::Quantity;

/// A quantity of a run, independent of the arm.
#[derive(Clone, PartialEq, Debug)]
pub enum Measure {
    /// A field of the result as `run --json` writes it.
    Field {
        /// Name, with dots into nested tables.
        name: String,
        /// Whose.
        of: Subject,
    },
    /// Something of a flow's course over time.
    Course {
        /// Which curve.
        series: Curve,
        /// What of it.
        what: Moment,
        /// Name of the flow; the first without this.
        flow: Option<String>,
    },
}

/// Whose field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Of the totals, or the mean over all flows.
    World,
    /// Mean over the flows of a group.
    Group(String),
    /// A flow.
    Flow(String),
    /// A link's forward direction, or the one after the dot.
    Link(String),
}

/// A curve over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Curve {
    /// Congestion window, in segments.
    Cwnd,
    /// Slow-start threshold, in segments.
    Ssthresh,
    /// Smoothed round-trip time, in milliseconds.
    Srtt,
    /// Highest segment sent.
    Sent,
    /// Segments acknowledged.
    Acked,
}

/// What of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Moment {
    /// Its value at a time in seconds.
    At(f64),
    /// The first time at which it is at least this.
    Reaches(f64),
    /// Its slope between two times, per second.
    Rate(f64, f64),
    /// Its smallest value between two times.
    Lowest(f64, f64),
    /// Its largest value between two times.
    Highest(f64, f64),
}

impl Curve {
    const NAMES: [(&'static str, Self); 5] = [
        ("cwnd", Self::Cwnd),
        ("ssthresh", Self::Ssthresh),
        ("srtt", Self::Srtt),
        ("sent", Self::Sent),
        ("acked", Self::Acked),
    ];

    /// The curve of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, curve)| *curve)
    }

    /// Its points.
    pub fn points(self, of: &FlowSeries) -> &[(f64, f64)] {
        match self {
            Self::Cwnd => &of.cwnd,
            Self::Ssthresh => &of.ssthresh,
            Self::Srtt => &of.srtt_ms,
            Self::Sent => &of.sent,
            Self::Acked => &of.acked,
        }
    }
}

impl Measure {
    /// What a quantity of a check means in an experiment whose axis has this name.
    ///
    /// # Errors
    /// Found and accepted.
    pub fn of(quantity: &Quantity, axis: Option<&str>) -> Result<Self, String> {
        let name = &quantity.metric;
        let number = |key: &str| -> Result<Option<f64>, String> {
            let parse =
                |text: &str| text.parse().map_err(|_| format!("{key}: found `{text}`, accepted: a number"));
            quantity.selector(key).map(parse).transpose()
        };
        let known = |keys: &[&str]| {
            let strange = quantity
                .selectors
                .iter()
                .find(|(key, _)| !keys.contains(&key.as_str()) && Some(key.as_str()) != axis);
            strange.map_or(Ok(()), |(key, _)| {
                Err(format!(
                    "{name}: found `{key}`, accepted: {}",
                    keys.iter().copied().chain(axis).collect::<Vec<_>>().join(", ")
                ))
            })
        };
        let Some(series) = Curve::named(name) else {
            known(&["group", "flow", "link"])?;
            return Ok(Self::Field { name: name.clone(), of: Subject::of(quantity) });
        };
        known(&["t", "reaches", "rate", "lowest", "highest", "to", "flow"])?;
        let to = number("to")?;
        let span = |from: f64| {
            to.ok_or_else(|| format!("{name}: found a beginning {from}, accepted: with `to`"))
                .map(|to| (from, to))
        };
        let what = if let Some(at) = number("t")? {
            Moment::At(at)
        } else if let Some(bound) = number("reaches")? {
            Moment::Reaches(bound)
        } else if let Some(from) = number("rate")? {
            span(from).map(|(from, to)| Moment::Rate(from, to))?
        } else if let Some(from) = number("lowest")? {
            span(from).map(|(from, to)| Moment::Lowest(from, to))?
        } else if let Some(from) = number("highest")? {
            span(from).map(|(from, to)| Moment::Highest(from, to))?
        } else {
            return Err(format!("{name}: accepted: one of `t`, `reaches`, `rate`, `lowest`, `highest`"));
        };
        Ok(Self::Course { series, what, flow: quantity.selector("flow").map(str::to_owned) })
    }

    /// Whether the run must record series.
    pub const fn needs_series(&self) -> bool {
        matches!(self, Self::Course { .. })
    }

    /// A name that two measures share only if they are the same.
    pub fn key(&self) -> String {
        format!("{self:?}")
    }

    /// Its value in a run; `None` where it has none.
    pub fn value(&self, run: &Simulated, document: &Value) -> Option<f64> {
        match self {
            Self::Field { name, of } => of.value(name, document),
            Self::Course { series, what, flow } => {
                let flows = &run.series.flows;
                let of = match flow {
                    Some(name) => flows.iter().find(|series| series.name == *name),
                    None => flows.first(),
                };
                what.value(series.points(of?))
            }
        }
    }
}

impl Subject {
    fn of(quantity: &Quantity) -> Self {
        let named = |key: &str| quantity.selector(key).map(str::to_owned);
        None.or_else(|| named("flow").map(Self::Flow))
            .or_else(|| named("group").map(Self::Group))
            .or_else(|| named("link").map(Self::Link))
            .unwrap_or(Self::World)
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
            Self::Link(link) => {
                let (link, direction) =
                    link.rsplit_once('.').filter(|(_, d)| *d == "reverse").unwrap_or((link, "forward"));
                let found =
                    list("links").find(|item| is(item, "name", link) && is(item, "direction", direction));
                found.and_then(|link| field(link, name))
            }
        }
    }
}

/// A number in a table, with dots into nested ones.
fn field(of: &Value, name: &str) -> Option<f64> {
    let found =
        name.split('.').try_fold(of, |of, key| of.as_object().and_then(|of: &Map<_, _>| of.get(key)))?;
    found.as_f64().or_else(|| found.as_bool().map(|flag| f64::from(u8::from(flag))))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    bentpipe_lab::stats::mean(&values.collect::<Vec<_>>())
}

impl Moment {
    fn value(self, points: &[(f64, f64)]) -> Option<f64> {
        let at =
            |time: f64| points[..points.partition_point(|point| point.0 <= time)].last().map(|point| point.1);
        let between = |from: f64, to: f64| {
            let inside =
                points.iter().filter(move |point| point.0 > from && point.0 <= to).map(|point| point.1);
            at(from).into_iter().chain(inside)
        };
        match self {
            Self::At(time) => at(time),
            Self::Reaches(bound) => points.iter().find(|point| point.1 >= bound).map(|point| point.0),
            Self::Rate(from, to) => Some((at(to)? - at(from).unwrap_or(0.0)) / (to - from)),
            Self::Lowest(from, to) => between(from, to).reduce(f64::min),
            Self::Highest(from, to) => between(from, to).reduce(f64::max),
        }
    }
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
            ],
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
        assert_eq!(value("nonsense(x)"), None);
    }

    #[test]
    fn moments_of_a_curve_that_holds_its_value() {
        let curve = [(1.0, 10.0), (2.0, 20.0), (4.0, 5.0)];
        assert_eq!(Moment::At(0.5).value(&curve), None);
        assert_eq!(Moment::At(3.9).value(&curve), Some(20.0));
        assert_eq!(Moment::Reaches(15.0).value(&curve), Some(2.0));
        assert_eq!(Moment::Reaches(99.0).value(&curve), None);
        assert_eq!(Moment::Lowest(1.5, 3.0).value(&curve), Some(10.0));
        assert_eq!(Moment::Highest(2.5, 9.0).value(&curve), Some(20.0));
        assert_eq!(Moment::Rate(1.0, 3.0).value(&curve), Some(5.0));
    }

    #[test]
    fn strange_selectors_are_refused() {
        assert!(measure("jain_index(x, loss=1e-3)").is_ok());
        assert!(measure("jain_index(x, colour=red)").unwrap_err().contains("colour"));
        assert!(measure("cwnd(x)").unwrap_err().contains("reaches"));
        assert!(measure("cwnd(x, rate=1)").unwrap_err().contains("to"));
        assert!(measure("cwnd(x, t=soon)").unwrap_err().contains("soon"));
    }
}
