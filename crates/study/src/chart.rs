//! What a figure of a study shows, without how it is drawn.

use bentpipe_lab::Summary;

use crate::check::Expr;
use crate::file::{Experiment, Figure};
use crate::results::{At, Results};

/// One chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// Quantity and unit of the horizontal axis.
    pub x: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// The horizontal axis places by ratio.
    pub x_log: bool,
    /// The vertical axis places by ratio.
    pub y_log: bool,
    /// Curves over time rather than measured points.
    pub over_time: bool,
    /// The lines.
    pub lines: Vec<ChartLine>,
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ChartLine {
    /// Name in the legend.
    pub name: String,
    /// Position, height, and half width of the 95 % confidence interval.
    pub points: Vec<(f64, f64, Option<f64>)>,
}

/// The chart of a figure with lines along the axis, for one choice of what is left open.
pub fn along_axis(
    (number, figure): (&str, &Figure),
    experiment: &Experiment,
    of: (&Results, usize),
) -> Chart {
    let (results, choice) = of;
    let line = |(name, text): (&String, &crate::file::Line)| {
        let expr = Expr::parse(&text.0).unwrap_or(Expr::Number(f64::NAN));
        let point = |(place, position): (usize, &Option<f64>)| {
            let values = results.evaluate(&expr, At { place, choice });
            let summary = Summary::of(&values.into_iter().flatten().collect::<Vec<_>>());
            Some((position.unwrap_or(0.0), summary.mean?, summary.ci95))
        };
        ChartLine {
            name: name.clone(),
            points: results.grid.places.iter().enumerate().filter_map(point).collect(),
        }
    };
    let name = &results.grid.choices[choice].name;
    let suffix = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let axis = experiment.axis.as_ref();
    Chart {
        title: format!("Fig. {number}: {}{suffix}", figure.title),
        x: axis.map(|axis| axis.label.clone()).unwrap_or_default(),
        y: figure.y.clone(),
        x_log: axis.is_some_and(|axis| axis.log),
        y_log: figure.log,
        over_time: false,
        lines: figure.lines.iter().map(line).collect(),
    }
}
