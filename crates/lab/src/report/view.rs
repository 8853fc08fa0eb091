//! Figures of a comparison: a metric against the varied quantity, one trace for each algorithm.

use super::figure::{Axis, Choice, Figure, Number, Pick, Position, Scale, Style, Trace};
use crate::comparison::{Comparison, Row, unique};
use crate::metric::Metric;
use crate::number::RATE_UNIT;
use crate::plan::{Setting, Value};
use crate::stats::Summary;

/// Title of the choice between algorithms.
pub(super) const ALGORITHMS: &str = "Algorithms";

/// Value of each row that a figure or table shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Measure {
    /// A metric of all flows together.
    Of(Metric),
    /// The mean goodput of one flow of this group.
    FlowOf(String),
}

/// A measure with the title, unit and divisor it is shown in.
pub struct Scaled {
    pub measure: Measure,
    pub title: String,
    pub unit: &'static str,
    pub divisor: f64,
}

impl Scaled {
    /// As people read it.
    pub fn of(measure: Measure) -> Self {
        let (title, unit, divisor) = match &measure {
            Measure::Of(metric) => {
                let (title, unit, divisor) = metric.shown();
                (title.to_owned(), unit, divisor)
            }
            Measure::FlowOf(group) => (format!("Goodput of one flow of {group}"), RATE_UNIT.1, RATE_UNIT.0),
        };
        Self { measure, title, unit, divisor }
    }

    /// Title and unit.
    pub fn heading(&self) -> String {
        format!("{}, {}", self.title, self.unit)
    }

    /// The measure over the seeds of a row, not scaled.
    pub fn summary(&self, row: &Row) -> Summary {
        summary(&self.measure, row)
    }
}

fn summary(measure: &Measure, row: &Row) -> Summary {
    match measure {
        Measure::Of(metric) => row.summary(*metric),
        Measure::FlowOf(group) => row.groups().get(group.as_str()).copied().unwrap_or_default(),
    }
}

/// The varied path along the horizontal axis, and the combinations of the other paths to choose from.
pub struct View<'a> {
    comparison: &'a Comparison,
    /// Index of the varied path on the axis; the axis has the algorithms if nothing varies.
    along: Option<usize>,
    axis: Axis,
    /// One combination of the other paths for each choice.
    others: Vec<Vec<Setting>>,
}

impl<'a> View<'a> {
    /// Chooses the axis: the first path with more than one value.
    pub fn of(comparison: &'a Comparison) -> Self {
        let combinations = comparison.combinations();
        let paths = combinations.first().map_or(0, |vary| vary.len());
        let varies = |path: &usize| combinations.iter().any(|vary| vary[*path] != combinations[0][*path]);
        let along = (0..paths).find(varies);
        let others = unique(combinations.iter().map(|vary| without(vary, along)));
        let axis = match along {
            Some(path) => axis_of(combinations.iter().map(|vary| &vary[path])),
            None => Axis { scale: Scale::Category, ..Axis::default() },
        };
        Self { comparison, along, axis, others }
    }

    /// Returns the choices of the reader: a value of each path that is not on the axis, and algorithms if there are more than
    /// distinguishable curves.
    pub fn choices(&self) -> impl Iterator<Item = Choice> {
        let paths = self.others.first().map_or(0, Vec::len);
        let values = (0..paths).filter_map(|path| {
            let values = self.others.iter().map(|other| other[path].value.0.clone());
            Choice::one_of(&self.others[0][path].key, unique(values))
        });
        let algorithms: Vec<String> = self.comparison.algorithms().into_iter().map(str::to_owned).collect();
        let too_many = self.along.is_some() && algorithms.len() > Choice::SEVERAL;
        let some =
            too_many.then(|| Choice::several_of(ALGORITHMS, algorithms.clone(), &algorithms)).flatten();
        values.chain(some)
    }

    /// The figure of a measure.
    pub fn figure(&self, measure: Measure) -> Figure {
        let scaled = Scaled::of(measure);
        let algorithms = self.comparison.algorithms();
        let numbered = algorithms.into_iter().enumerate();
        let trace = |(colour, cc)| self.others.iter().map(move |o| (colour, cc, o.as_slice()));
        let traces = numbered.flat_map(trace).map(|(colour, cc, other)| {
            let picks = other.iter().map(|setting| Pick::new(&setting.key, &setting.value.0));
            let shown_by = picks.chain([Pick::new(ALGORITHMS, cc)]).collect();
            Trace { colour, shown_by, ..self.trace(&self.rows(cc, other), &scaled) }
        });
        Figure {
            title: scaled.title.clone(),
            x: self.axis.clone(),
            y: Axis { title: scaled.unit.into(), ..Axis::default() },
            traces: traces.collect(),
            ..Figure::default()
        }
    }

    fn rows(&self, cc: &str, other: &[Setting]) -> Vec<&'a Row> {
        let wanted = |row: &&Row| row.cell.cc == cc && without(&row.cell.vary, self.along) == other;
        let mut rows: Vec<_> = self.comparison.rows.iter().filter(wanted).collect();
        if self.axis.scale != Scale::Category {
            rows.sort_by(|a, b| self.number(a).total_cmp(&self.number(b)));
        }
        rows
    }

    fn number(&self, row: &Row) -> f64 {
        let quantity = |path: usize| row.cell.vary[path].value.quantity();
        self.along.and_then(quantity).map_or(0.0, |quantity| quantity.0)
    }

    fn position(&self, row: &Row) -> Position {
        match (self.along, self.axis.scale) {
            (Some(path), Scale::Category) => Position::Text(row.cell.vary[path].value.0.clone()),
            (Some(_), _) => Position::Number(Number(self.number(row))),
            (None, _) => Position::Text(row.cell.cc.clone()),
        }
    }

    fn trace(&self, rows: &[&Row], scaled: &Scaled) -> Trace {
        let number = |value: Option<f64>| value.map(|value| Number(value / scaled.divisor));
        Trace {
            name: rows.first().map(|row| row.cell.cc.clone()).unwrap_or_default(),
            x: rows.iter().map(|row| self.position(row)).collect(),
            y: rows.iter().map(|row| number(scaled.summary(row).mean)).collect(),
            error: rows.iter().map(|row| number(scaled.summary(row).ci95)).collect(),
            style: if self.along.is_some() { Style::Points } else { Style::Bars },
            legend: true,
            ..Trace::default()
        }
    }
}

fn without(vary: &[Setting], path: Option<usize>) -> Vec<Setting> {
    vary.iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != path)
        .map(|(_, setting)| setting.clone())
        .collect()
}

/// Values that span this or more are spread by their ratios.
const WIDE: f64 = 10.0;

/// An axis for some settings of one path: numeric if all are numbers of one unit.
fn axis_of<'a>(settings: impl Iterator<Item = &'a Setting> + Clone) -> Axis {
    let key = settings.clone().next().map_or("", |setting| &setting.key);
    let quantities: Option<Vec<(f64, &str)>> =
        settings.map(|setting| Value::quantity(&setting.value)).collect();
    let Some(quantities) = quantities.filter(|all| all.iter().all(|one| one.1 == all[0].1)) else {
        return Axis { title: key.into(), scale: Scale::Category, close: true, ..Axis::default() };
    };
    let numbers: Vec<f64> = quantities.iter().map(|quantity| quantity.0).collect();
    let positive = || numbers.iter().copied().filter(|number| *number > 0.0);
    let spread = positive().fold(0.0, f64::max) / positive().fold(f64::INFINITY, f64::min);
    let scale = match positive().count() == numbers.len() {
        _ if spread < WIDE * 0.999 => Scale::Linear,
        true => Scale::Log,
        false => Scale::Category, // zero has no place on a logarithmic axis
    };
    let unit = quantities.first().map_or("", |one| one.1);
    let title = if unit.is_empty() { key.to_owned() } else { format!("{key}, {unit}") };
    Axis { title, scale, close: true, ..Axis::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale_of(values: &[&str]) -> (Scale, String) {
        let setting = |value: &&str| Setting { key: "k".into(), value: Value((*value).into()) };
        let settings: Vec<Setting> = values.iter().map(setting).collect();
        let axis = axis_of(settings.iter());
        (axis.scale, axis.title)
    }

    #[test]
    fn axes_suit_their_values() {
        assert_eq!(scale_of(&["1e-5", "1e-4", "1e-3"]), (Scale::Log, "k".into()));
        assert_eq!(scale_of(&["0", "1e-4", "1e-2"]).0, Scale::Category);
        assert_eq!(scale_of(&["0", "5", "10"]).0, Scale::Linear);
        assert_eq!(scale_of(&["250 ms", "500 ms"]), (Scale::Linear, "k, ms".into()));
        assert_eq!(scale_of(&["250 ms", "1 s"]).0, Scale::Category);
        assert_eq!(scale_of(&["sack", "rack"]).0, Scale::Category);
    }

    #[test]
    fn no_more_curves_are_on_than_can_be_told_apart() {
        let with = |algorithms: usize, vary: &[&str]| {
            let mut plan = crate::example::plan();
            plan.algorithms = (0..algorithms).map(|number| format!("cc{number}")).collect();
            plan.vary = vary.iter().map(|vary| vary.parse().unwrap()).collect();
            let outcome = crate::example::outcome("reno", 1);
            let runs = plan.points().into_iter().map(|point| (point, crate::Sample::of(&outcome, &[])));
            let comparison = Comparison::new(&plan, runs.collect::<Vec<_>>());
            View::of(&comparison).choices().map(|choice| (choice.title, choice.on.len())).collect::<Vec<_>>()
        };
        assert_eq!(with(12, &["a=1,2"]), [(ALGORITHMS.to_owned(), Choice::SEVERAL)]);
        assert_eq!(with(8, &["a=1,2"]), []);
        assert_eq!(with(12, &[]), [], "bars stand side by side");
    }

    #[test]
    fn one_trace_for_each_algorithm_and_choice() {
        let comparison = crate::example::comparison();
        let figure = View::of(&comparison).figure(Measure::Of(Metric::Goodput));
        assert_eq!(figure.traces.len(), 2);
        assert_eq!((figure.x.scale, figure.traces[1].name.as_str()), (Scale::Log, "peach"));
        assert_eq!(figure.traces[1].y[0], Some(Number(0.804)));
    }
}
