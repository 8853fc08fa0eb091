//! Content of a study's figure, independent of the drawing.

use bentpipe_lab::Summary;
use bentpipe_lab::report::thin;
use bentpipe_outcome::FlowSeries;
use indexmap::IndexMap;

use crate::check::Expr;
use crate::file::Experiment;
use crate::measure::Measured;
use crate::plan::Needed;
use crate::results::{At, Results};
use crate::study::{Figure, Flows, OverTime, Sketch};
use bentpipe_table::{Course, Store};

/// A line chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chart {
    /// Heading of the chart.
    pub title: String,
    /// Quantity and unit of the horizontal axis.
    pub x: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// True if the horizontal axis is logarithmic.
    pub x_log: bool,
    /// True if the vertical axis is logarithmic.
    pub y_log: bool,
    /// True for curves over time, false for measured points.
    pub over_time: bool,
    /// Lines of the chart.
    pub lines: Vec<ChartLine>,
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ChartLine {
    /// Name in the legend.
    pub name: String,
    /// x, y, and half width of the 95 % confidence interval.
    pub points: Vec<(f64, f64, Option<f64>)>,
}

/// Maximum number of points kept per curve, more than a picture can show.
const POINTS_PER_CURVE: usize = 1600;

impl Sketch {
    /// Returns a key that only equal sketches share.
    pub fn key(&self) -> String {
        format!("{self:?} from where it begins")
    }

    /// Returns the curves of a run.
    ///
    /// # Errors
    /// If the run has no flow of this name.
    pub fn draw(&self, flows: &[FlowSeries]) -> Result<Vec<Course>, String> {
        let shown: Vec<&FlowSeries> = match &self.flows {
            Flows::All => flows.iter().collect(),
            Flows::First => flows.first().into_iter().collect(),
            Flows::Named(name) => flows.iter().filter(|flow| flow.name == *name).collect(),
        };
        if shown.is_empty() {
            let known: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
            return Err(format!("time: flow: found {:?}, accepted: {}", self.flows, known.join(", ")));
        }
        let course = |flow: &FlowSeries| {
            let points = within(&self.curve.points(flow), self.span);
            Course { flow: flow.name.clone(), points: thin(&points, POINTS_PER_CURVE) }
        };
        Ok(shown.into_iter().map(course).collect())
    }
}

/// Returns the part of a curve between two times. It begins with the value at the first
/// time.
fn within(points: &[(f64, f64)], (from, to): (f64, f64)) -> Vec<(f64, f64)> {
    let (before, after) = points.split_at(points.partition_point(|point| point.0 < from));
    let held = before.last().filter(|_| after.first().is_none_or(|first| first.0 > from));
    let inside = after.iter().take_while(|point| point.0 <= to).copied();
    held.map(|held| (from, held.1)).into_iter().chain(inside).collect()
}

/// Lines along the axis of an experiment.
#[derive(Clone, Copy)]
pub struct Along<'a> {
    pub experiment: &'a Experiment,
    pub lines: &'a IndexMap<String, Expr<Measured>>,
    pub results: &'a Results,
}

/// Makes the chart of a figure with lines along an axis, for one choice of the open parameters.
pub fn along_axis(number: &str, figure: &Figure, of: Along<'_>, choice: usize) -> Chart {
    let Along { experiment, lines, results } = of;
    let line = |(name, expr): (&String, &Expr<Measured>)| {
        let point = |(place, position): (usize, &Option<f64>)| {
            let values = results.evaluate(expr, At { place, choice });
            let summary = Summary::of(&values.into_iter().flatten().collect::<Vec<_>>());
            Some((position.unwrap_or(0.0), summary.mean?, summary.ci95))
        };
        ChartLine {
            name: name.clone(),
            points: results.grid.places.iter().enumerate().filter_map(point).collect(),
        }
    };
    let name = results.grid.choices[choice].name();
    let suffix = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let axis = experiment.axis.as_ref();
    Chart {
        title: format!("Fig. {number}: {}{suffix}", figure.title),
        x: axis.map(|axis| axis.label.clone()).unwrap_or_default(),
        y: figure.y.clone(),
        x_log: axis.is_some_and(|axis| axis.log),
        y_log: figure.log,
        over_time: false,
        lines: lines.iter().map(line).collect(),
    }
}

/// Extends lines that end early to the last time of the others, at their last value.
fn hold_to_the_end(lines: &mut [ChartLine]) {
    let ends = lines.iter().filter_map(|line| line.points.last()).map(|point| point.0);
    let end = ends.fold(f64::MIN, f64::max);
    for line in lines {
        if let Some(last) = line.points.last().copied().filter(|last| last.0 < end) {
            line.points.push((end, last.1, None));
        }
    }
}

/// Makes the chart of a figure with curves over time, from one run of each arm with the
/// first seed.
pub fn over_time(
    number: &str,
    figure: &Figure,
    time: &OverTime,
    needed: &Needed<'_>,
    store: &Store,
) -> Chart {
    let mut lines = Vec::new();
    for (spot, label) in time.spots(&needed.grid) {
        let kept = needed.worlds.get(&spot).and_then(|world| store.get(world, needed.grid.seeds[0]));
        for course in kept.and_then(|kept| kept.curves.get(&time.sketch.key())).into_iter().flatten() {
            let name = match time.sketch.flows {
                Flows::All => format!("{label} {}", course.flow).trim().to_owned(),
                Flows::First | Flows::Named(_) => label.to_owned(),
            };
            let points = course.points.iter().map(|point| (point.0, point.1, None)).collect();
            lines.push(ChartLine { name, points });
        }
    }
    hold_to_the_end(&mut lines);
    Chart {
        title: format!("Fig. {number}: {}", figure.title),
        x: "Time (s)".into(),
        y: figure.y.clone(),
        y_log: figure.log,
        over_time: true,
        lines,
        x_log: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_curve_begins_with_the_value_that_it_has_then() {
        let curve = [(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)];
        assert_eq!(within(&curve, (0.0, 9.0)), curve);
        assert_eq!(within(&curve, (3.0, 4.0)), [(3.0, 20.0), (4.0, 40.0)]);
        assert_eq!(within(&curve, (2.0, 3.0)), [(2.0, 20.0)]);
        assert_eq!(within(&curve, (5.0, 6.0)), [(5.0, 40.0)]);
        assert_eq!(within(&curve, (0.0, 0.5)), []);
    }

    #[test]
    fn a_window_that_no_longer_changes_is_drawn_to_the_end() {
        let line = |points: &[(f64, f64)]| ChartLine {
            name: String::new(),
            points: points.iter().map(|point| (point.0, point.1, None)).collect(),
        };
        let mut lines = [line(&[(0.0, 1.0), (1.0, 64.0)]), line(&[(0.0, 1.0), (6.0, 8.0)]), line(&[])];
        hold_to_the_end(&mut lines);
        assert_eq!(lines[0].points.last(), Some(&(6.0, 64.0, None)));
        assert_eq!((lines[1].points.len(), lines[2].points.len()), (2, 0));
    }
}
