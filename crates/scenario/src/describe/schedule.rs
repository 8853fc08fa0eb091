use bentpipe_base::Duration;
use bentpipe_net::{Interpolation, Quantity, Schedule};

use crate::form::{Form, Kind, Shorthand};
use crate::tree::{Node, Value};
use crate::unit::{Codec, OrWord, Refused, TIME, TIME_ABOVE_ZERO, Words};

const KINDS: &[Kind] = &[
    Kind { name: "constant", keys: &["constant"] },
    Kind { name: "table", keys: &["table", "interpolation", "repeat-every"] },
    Kind { name: "sine", keys: &["mean", "amplitude", "period", "phase"] },
];

const INTERPOLATIONS: Words<Interpolation> =
    Words(&[("step", Interpolation::Step), ("linear", Interpolation::Linear)]);

/// A constant, a list of points in time, or a table.
pub(super) const SHORTHAND: Shorthand =
    Shorthand { word: None, number: Some("constant"), list: Some("table") };

/// A quantity as a function of time, its values written as `codec` does.
pub(super) fn schedule<T: Quantity, C: Codec<T>>(form: &mut Form<'_>, schedule: &mut Schedule<T>, codec: &C) {
    let current = name(schedule);
    let kind = form.implied_kind(current, KINDS);
    if kind != current {
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

/// A value to begin with; what is read replaces it.
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

/// `[[time, value], ...]`.
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
