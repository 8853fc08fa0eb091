//! Contents of a figure, without its drawing: `assets/charts.js` turns it into a chart.

use serde::Serialize;

use super::packed::column;
pub use super::value::{Number, Position};

/// Figures that belong together, with the choices above them.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Explanation of the figure in a sentence or two.
    pub intro: String,
    /// Choices that show and hide traces.
    pub choices: Vec<Choice>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A row of buttons. A trace is shown if every option that it names is on.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Choice {
    /// Subject of the choice, unique within the section.
    pub title: String,
    /// The options, each once.
    pub options: Vec<String>,
    /// Options that are selected at first.
    pub on: Vec<String>,
    /// Maximum number of selected options: more curves in one chart cannot be distinguished.
    pub most: usize,
}

impl Choice {
    /// Maximum number of selected options of a multiple choice.
    pub const SEVERAL: usize = 8;

    /// A choice of one option, the first at first; `None` if there is nothing to choose.
    pub fn one_of(title: &str, options: Vec<String>) -> Option<Self> {
        let on = options.iter().take(1).cloned().collect();
        (options.len() > 1).then(|| Self { title: title.into(), options, on, most: 1 })
    }

    /// A choice of up to [`Self::SEVERAL`] options, some of which are on at first; `None` if there is nothing to choose.
    pub fn several_of(title: &str, options: Vec<String>, on: &[String]) -> Option<Self> {
        let on = on.iter().take(Self::SEVERAL).cloned().collect();
        (options.len() > 1).then(|| Self { title: title.into(), options, on, most: Self::SEVERAL })
    }
}

/// An option of a choice, both by their names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Pick {
    /// Title of the choice.
    pub choice: String,
    /// The option.
    pub option: String,
}

impl Pick {
    /// Selects this option of this choice.
    pub fn new(choice: impl Into<String>, option: impl Into<String>) -> Self {
        Self { choice: choice.into(), option: option.into() }
    }
}

/// The part of a section that the page is laid out by.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outline {
    title: String,
    intro: String,
    choices: Vec<Choice>,
    figures: Vec<FigureOutline>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct FigureOutline {
    title: String,
    caption: String,
    wide: bool,
    map: bool,
}

impl Section {
    /// Creates a section with the available choices. If there is nothing to choose, all traces are shown.
    pub fn new(
        title: &str,
        intro: String,
        choices: impl IntoIterator<Item = Choice>,
        figures: Vec<Figure>,
    ) -> Self {
        let mut section =
            Self { title: title.into(), intro, choices: choices.into_iter().collect(), figures };
        let offered = |pick: &Pick| section.choices.iter().any(|choice| choice.title == pick.choice);
        for trace in section.figures.iter_mut().flat_map(|figure| &mut figure.traces) {
            trace.shown_by.retain(offered);
        }
        section
    }

    /// The part that the page is laid out by.
    pub fn outline(&self) -> Outline {
        let figure = |figure: &Figure| FigureOutline {
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            wide: figure.wide,
            map: figure.x.scale == Scale::Degrees,
        };
        Outline {
            title: self.title.clone(),
            intro: self.intro.clone(),
            choices: self.choices.clone(),
            figures: self.figures.iter().map(figure).collect(),
        }
    }
}

/// One chart.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// One line below the heading; possibly empty.
    pub caption: String,
    /// Takes the width of the page.
    pub wide: bool,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Traces in the order of drawing.
    pub traces: Vec<Trace>,
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub title: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// Need not begin at zero.
    pub close: bool,
    /// Range shown at first; all if none.
    pub range: Option<[f64; 2]>,
    /// Names of the values 0, 1, 2 and so on, for an axis of names.
    pub names: Vec<String>,
}

/// Scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// Evenly by ratio.
    Log,
    /// Side by side in the order given.
    Category,
    /// Longitudes and latitudes: both axes of a map have the same scale.
    Degrees,
    /// Simulated time in seconds; zooming one such axis zooms all of its section.
    Time,
}

/// Style of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// A line through marked points.
    #[default]
    Points,
    /// A line.
    Line,
    /// A value that holds until the next.
    Step,
    /// A thin line, for values that change often.
    Thin,
    /// The same, dashed.
    Dashed,
    /// A dotted line.
    Dotted,
    /// Marks without a line.
    Marks,
    /// Bars.
    Bars,
    /// A broad line.
    Band,
    /// A thin line in the background.
    Outline,
    /// Large marks with notes next to them.
    Places,
}

/// A curve, a cloud of marks, or bars.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Trace {
    /// Name in the legend.
    pub name: String,
    /// Options of the section's choices that must be on to show it.
    pub shown_by: Vec<Pick>,
    /// Positions.
    #[serde(serialize_with = "column")]
    pub x: Vec<Position>,
    /// Heights; `None` leaves a gap.
    #[serde(serialize_with = "column")]
    pub y: Vec<Option<Number>>,
    /// Half widths of the confidence intervals; empty for none.
    pub error: Vec<Option<Number>>,
    /// Text at each point; empty for none.
    pub notes: Vec<String>,
    /// Style of drawing.
    pub style: Style,
    /// Index into the palette.
    pub colour: usize,
    /// True if the legend has this trace.
    pub legend: bool,
}

impl Figure {
    /// A figure over time without curves.
    pub(super) fn over_time(title: &str, caption: &str, unit: &str) -> Self {
        Self {
            title: title.into(),
            caption: caption.into(),
            x: Axis { title: "time, s".into(), scale: Scale::Time, ..Axis::default() },
            y: Axis { title: unit.into(), ..Axis::default() },
            ..Self::default()
        }
    }
}

impl Trace {
    /// A trace over time, thinned to the resolution of a screen.
    pub fn over_time(name: impl Into<String>, points: &[(f64, f64)], style: Style) -> Self {
        let kept = super::thin::thin(points, POINTS_PER_TRACE);
        Self::through(name, &kept, style)
    }

    /// A trace through these points.
    pub fn through(name: impl Into<String>, points: &[(f64, f64)], style: Style) -> Self {
        Self {
            name: name.into(),
            x: points.iter().map(|point| Position::Number(Number(point.0))).collect(),
            y: points.iter().map(|point| Some(Number(point.1))).collect(),
            style,
            legend: true,
            ..Self::default()
        }
    }

    /// Returns the trace, shown by these options.
    pub fn shown_by(self, options: &[Pick]) -> Self {
        Self { shown_by: options.to_vec(), ..self }
    }

    /// Returns the trace in a colour of the palette.
    pub fn coloured(self, colour: usize) -> Self {
        Self { colour, ..self }
    }

    /// Returns the trace without an entry in the legend.
    pub fn without_legend(self) -> Self {
        Self { legend: false, ..self }
    }
}

/// Enough for a smooth curve on a wide screen and one or two steps of zoom.
pub(super) const POINTS_PER_TRACE: usize = 1600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_option_there_is_no_choice_and_nothing_is_hidden() {
        let section = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            let trace = Trace::default().shown_by(&[Pick::new("Flow", "bulk"), Pick::new("Link", "up")]);
            let figure = Figure { traces: vec![trace], ..Figure::default() };
            Section::new("", String::new(), Choice::one_of("Flow", options), vec![figure])
        };
        assert_eq!(section(&["bulk"]).figures[0].traces[0].shown_by, []);
        assert_eq!(section(&["bulk", "other"]).figures[0].traces[0].shown_by, [Pick::new("Flow", "bulk")]);
    }

    #[test]
    fn no_more_are_on_than_can_be_told_apart() {
        let options: Vec<String> = (0..20).map(|flow| flow.to_string()).collect();
        assert_eq!(Choice::several_of("Flows", options.clone(), &options).unwrap().on.len(), Choice::SEVERAL);
        assert_eq!(Choice::one_of("Flow", options).unwrap().on, ["0"]);
    }
}
