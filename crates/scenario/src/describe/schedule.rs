use bentpipe_base::{Duration, Rate};
use bentpipe_net::{Interpolation, LinkConfig, Quantity, Schedule};

use super::recorded;
use crate::form::{Form, Keys, Shorthand};
use crate::series::{Recordings, Series};
use crate::tree::{Node, Value};
use crate::unit::{Codec, OrWord, RATE, Refused, TIME, TIME_ABOVE_ZERO, Words};

const CONSTANT: Keys = ("constant", &["constant"]);
const TABLE: Keys = ("table", &["table", "interpolation", "repeat-every"]);
/// Table of points that may come from a file.
const RECORDED: Keys = (
    "table",
    &[
        "table",
        "interpolation",
        "repeat-every",
        "file",
        "column",
        "unit",
        "factor",
        "time",
        "time-unit",
        "every",
        "missing",
    ],
);
const SINE: Keys = ("sine", &["mean", "amplitude", "period", "phase"]);
const DELIVERIES: Keys = ("deliveries", &["deliveries", "repeat"]);

const INTERPOLATIONS: Words<Interpolation> =
    Words(&[("step", Interpolation::Step), ("linear", Interpolation::Linear)]);

/// Accepts a constant, a list of points in time, or a table.
pub(super) const SHORTHAND: Shorthand =
    Shorthand { word: None, number: Some("constant"), list: Some("table") };

/// A quantity as a function of time; `codec` reads and shows its values.
pub(super) fn schedule<T: Quantity, C: Codec<T>>(form: &mut Form<'_>, schedule: &mut Schedule<T>, codec: &C) {
    form.implied_kinds(name(schedule), &[CONSTANT, TABLE, SINE], |form, kind| {
        of_this_kind(form, kind, schedule, codec);
    });
}

/// Delay of a link.
pub(super) fn delay(form: &mut Form<'_>, schedule: &mut Schedule<Duration>, series: &mut Option<Series>) {
    form.implied_kinds(name(schedule), &[CONSTANT, RECORDED, SINE], |form, kind| {
        delay_of_kind(form, kind, schedule, series);
    });
}

fn delay_of_kind(
    form: &mut Form<'_>,
    kind: &'static str,
    schedule: &mut Schedule<Duration>,
    series: &mut Option<Series>,
) {
    if kind == "table" && recorded::is_meant(form, series) {
        let (points, interpolation, repeat_every) = table_of(schedule);
        let read = |value: &Value| TIME.read(value).map(Some);
        recorded::series(form, points, repeat_every, series, (&read, &Codec::<Duration>::accepted(&TIME)));
        form.field("interpolation", interpolation, &INTERPOLATIONS);
        return;
    }
    *series = None;
    of_this_kind(form, kind, schedule, &TIME);
    if form.lists() && kind == "table" {
        recorded::list_keys(form);
    }
}

/// Rate of a link, or its packet-delivery trace.
pub(super) fn rate(form: &mut Form<'_>, link: &mut LinkConfig, recordings: &mut Recordings) {
    let current = if link.opportunities.is_some() { "deliveries" } else { name(&link.rate) };
    form.implied_kinds(current, &[CONSTANT, DELIVERIES, RECORDED, SINE], |form, kind| {
        rate_of_kind(form, kind, link, recordings);
    });
}

fn rate_of_kind(form: &mut Form<'_>, kind: &'static str, link: &mut LinkConfig, recordings: &mut Recordings) {
    if kind == "deliveries" {
        recordings.rate = None;
        return recorded::deliveries(form, link, &mut recordings.deliveries);
    }
    (link.opportunities, recordings.deliveries) = (None, None);
    if kind == "table" && recorded::is_meant(form, &recordings.rate) {
        let (points, interpolation, repeat_every) = table_of(&mut link.rate);
        // A rate of zero is an outage of the link.
        let read = |value: &Value| match value {
            Value::Text(text) if text.starts_with("0 ") => {
                RATE.read(&Value::Text(format!("1{}", &text[1..]))).map(|_: Rate| None)
            }
            value => RATE.read(value).map(Some),
        };
        let accepted = Codec::<Rate>::accepted(&RATE);
        let gaps = recorded::series(form, points, repeat_every, &mut recordings.rate, (&read, &accepted));
        if form.reads() {
            recordings.gaps = gaps;
        }
        form.field("interpolation", interpolation, &INTERPOLATIONS);
        return;
    }
    recordings.rate = None;
    of_this_kind(form, kind, &mut link.rate, &RATE);
    if form.lists() && kind == "table" {
        recorded::list_keys(form);
    }
}

/// Returns the parts of a table. A schedule of another form is converted to one.
fn table_of<T: Quantity>(
    schedule: &mut Schedule<T>,
) -> (&mut Vec<(Duration, T)>, &mut Interpolation, &mut Option<Duration>) {
    if !matches!(schedule, Schedule::Table { .. }) {
        *schedule = of_kind("table", some_value(schedule));
    }
    match schedule {
        Schedule::Table { points, interpolation, repeat_every } => (points, interpolation, repeat_every),
        _ => unreachable!("made a table above"),
    }
}

fn of_this_kind<T: Quantity, C: Codec<T>>(
    form: &mut Form<'_>,
    kind: &'static str,
    schedule: &mut Schedule<T>,
    codec: &C,
) {
    if kind != name(schedule) {
        *schedule = of_kind(kind, some_value(schedule));
    }
    match schedule {
        Schedule::Constant(value) => form.required("constant", value, codec),
        Schedule::Table { points, interpolation, repeat_every } => {
            form.required("table", points, &Points(codec));
            form.field("interpolation", interpolation, &INTERPOLATIONS);
            form.field("repeat-every", repeat_every, &OrWord("never", TIME_ABOVE_ZERO));
        }
        Schedule::Sine { mean, amplitude, period, phase } => {
            form.required("mean", mean, codec);
            form.required("amplitude", amplitude, codec);
            form.required("period", period, &TIME_ABOVE_ZERO);
            form.field("phase", phase, &TIME);
        }
    }
}

fn name<T>(schedule: &Schedule<T>) -> &'static str {
    match schedule {
        Schedule::Constant(_) => "constant",
        Schedule::Table { .. } => "table",
        Schedule::Sine { .. } => "sine",
    }
}

/// Returns an initial value, which the parsed value replaces.
fn some_value<T: Quantity>(schedule: &Schedule<T>) -> T {
    match schedule {
        Schedule::Constant(value) | Schedule::Sine { mean: value, .. } => *value,
        Schedule::Table { points, .. } => points[0].1,
    }
}

fn of_kind<T: Quantity>(kind: &str, value: T) -> Schedule<T> {
    let second = Duration::from_secs(1);
    match kind {
        "table" => Schedule::Table {
            points: vec![(Duration::ZERO, value)],
            interpolation: Interpolation::Step,
            repeat_every: None,
        },
        "sine" => Schedule::Sine { mean: value, amplitude: value, period: second, phase: Duration::ZERO },
        _ => Schedule::Constant(value),
    }
}

/// Codec of `[[time, value], ...]`.
pub(super) struct Points<'a, C>(pub &'a C);

impl<T, C: Codec<T>> Codec<Vec<(Duration, T)>> for Points<'_, C> {
    fn read(&self, value: &Value) -> Result<Vec<(Duration, T)>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        if items.is_empty() {
            return Err(Refused::default());
        }
        items.iter().map(|item| self.point(item)).collect()
    }
    fn show(&self, typed: &Vec<(Duration, T)>) -> Value {
        let point = |(time, value): &(Duration, T)| {
            let pair = vec![Node::computed(TIME.show(time)), Node::computed(self.0.show(value))];
            Node::computed(Value::List(pair))
        };
        Value::List(typed.iter().map(point).collect())
    }
    fn accepted(&self) -> String {
        format!(
            "pairs of a time and a value, [[\"0 s\", ...], [\"20 s\", ...]], each value {}",
            self.0.accepted()
        )
    }
}

impl<C> Points<'_, C> {
    fn point<T>(&self, item: &Node) -> Result<(Duration, T), Refused>
    where
        C: Codec<T>,
    {
        match &item.value {
            Value::List(pair) => match pair.as_slice() {
                [time, value] => Ok((TIME.read(&time.value)?, self.0.read(&value.value)?)),
                _ => Err(Refused::default()),
            },
            _ => Err(Refused::default()),
        }
    }
}
