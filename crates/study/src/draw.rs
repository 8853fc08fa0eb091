//! Drawing of charts in the style of a paper, as SVG and as a PNG of the same picture.

use std::ops::Range;

use bentpipe_lab::report::thin;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendCoord, DrawingErrorKind};
use resvg::{tiny_skia, usvg};

use crate::chart::{Chart, ChartLine};

/// Width and height in points.
const SIZE: (u32, u32) = (640, 440);

/// Characters of a heading that fit on one line, and the height of a line in points.
const LETTERS_ACROSS: usize = 84;
const LINE_HEIGHT: i32 = 19;

/// PNG pixels per point.
const ZOOM: f32 = 2.0;

/// Line colours. They also differ in lightness, for greyscale print.
const INKS: [RGBColor; 8] = [
    RGBColor(0, 0, 0),
    RGBColor(178, 24, 43),
    RGBColor(33, 102, 172),
    RGBColor(27, 120, 55),
    RGBColor(230, 121, 20),
    RGBColor(118, 42, 131),
    RGBColor(90, 160, 190),
    RGBColor(120, 120, 120),
];

/// Opacity of the confidence band around a line.
const BAND: f64 = 0.12;

/// Number of points of a curve over time that a picture of this size can show.
const POINTS_ACROSS: usize = 400;

/// Number of points of all curves over time of a picture.
const POINTS_IN_ALL: usize = 2400;

/// Lengths of dash and gap; zeros mean a solid line.
const DASHES: [(i32, i32); 4] = [(0, 0), (8, 4), (2, 3), (12, 3)];

/// Maximum number of curves named in the legend. More curves are of equal flows, whose common shape matters.
const MOST_NAMED: usize = 10;

/// Number of marks per curve over time, which distinguish curves without colour.
const MARKS_PER_CURVE: usize = 7;

/// Interpolation steps between two points, for the search for a free corner.
const STEPS_BETWEEN: i32 = 24;

type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Returns the chart as SVG.
///
/// # Errors
/// If the chart cannot be drawn.
pub fn svg(chart: &Chart) -> Result<String, String> {
    let mut text = String::new();
    {
        let sheet = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&sheet, chart).map_err(|error| error.to_string())?;
        sheet.present().map_err(|error| error.to_string())?;
    }
    Ok(compact(&text))
}

/// Returns a shorter SVG: consecutive strokes of the same style, such as dashes, become one path.
fn compact(svg: &str) -> String {
    let mut text = String::new();
    let mut look = String::new();
    for line in svg.lines() {
        match stroke(line) {
            Some((of_line, path)) if of_line == look => text.push_str(&path),
            Some((of_line, path)) => {
                if !look.is_empty() {
                    text.push_str("\"/>\n");
                }
                text.push_str(&format!("<path fill=\"none\"{of_line} d=\"{path}"));
                look = of_line;
            }
            None => {
                if !look.is_empty() {
                    text.push_str("\"/>\n");
                    look.clear();
                }
                text.push_str(&line.replace(" opacity=\"1\"", ""));
                text.push('\n');
            }
        }
    }
    text
}

/// Returns style and path of a stroke; `None` for any other line.
fn stroke(line: &str) -> Option<(String, String)> {
    let value = |name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let path = if line.starts_with("<polyline fill=\"none\"") {
        format!("M{}", value("points")?.trim_end())
    } else if line.starts_with("<line ") {
        format!("M{},{} {},{}", value("x1")?, value("y1")?, value("x2")?, value("y2")?)
    } else {
        return None;
    };
    let opacity = value("opacity").filter(|opacity| *opacity != "1");
    let opacity = opacity.map_or(String::new(), |opacity| format!(" stroke-opacity=\"{opacity}\""));
    let (ink, width) = (value("stroke")?, value("stroke-width")?);
    Some((format!("{opacity} stroke=\"{ink}\" stroke-width=\"{width}\""), path))
}

/// Converts an SVG to PNG.
///
/// # Errors
/// If the text is not valid SVG, or the PNG cannot be written.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options::default();
    // Loads an embedded font, so that the picture does not depend on installed fonts.
    options.fontdb_mut().load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let face = options.fontdb.faces().next().and_then(|face| face.families.first().cloned());
    options.font_family = face.map(|family| family.0).unwrap_or_default();
    let family = options.font_family.clone();
    options.fontdb_mut().set_sans_serif_family(family);
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let (width, height) = ((SIZE.0 as f32 * ZOOM) as u32, (SIZE.1 as f32 * ZOOM) as u32);
    let mut image = tiny_skia::Pixmap::new(width, height).ok_or("a picture without area")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(ZOOM, ZOOM), &mut image.as_mut());
    image.encode_png().map_err(|error| error.to_string())
}

/// Returns the position of a value on an axis.
fn placed(value: f64, log: bool) -> f64 {
    if log { value.max(f64::MIN_POSITIVE).log10() } else { value }
}

/// Returns the label of a tick.
fn tick(at: f64, log: bool) -> String {
    match log {
        true if (at - at.round()).abs() < 1e-9 => match at.round() as i64 {
            exponent @ -1..=4 => 10_f64.powi(exponent as i32).to_string(),
            exponent => format!("1e{exponent}"),
        },
        true => String::new(),
        false => {
            let text = format!("{at:.4}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            if text == "-0" { "0".into() } else { text.into() }
        }
    }
}

/// Returns the first and last value with a margin; a linear vertical axis begins at zero.
fn span(values: impl Iterator<Item = f64>, (log, from_zero): (bool, bool)) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (0.0, 1.0);
    }
    let low = if from_zero && !log { low.min(0.0) } else { low };
    let room = if high > low { 0.04 * (high - low) } else { 0.5 * high.abs().max(1.0) };
    (if low < 0.0 || log || !from_zero { low - room } else { low }, high + room)
}

fn draw(sheet: &Sheet<'_>, chart: &Chart) -> Drawn {
    sheet.fill(&WHITE)?;
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let xs = points().map(|point| placed(point.0, chart.x_log));
    let ys = points().flat_map(|point| {
        let (low, high) = if chart.y_log { (point.1, point.1) } else { bar(point) };
        [low, high].map(|y| placed(y, chart.y_log))
    });
    let ((left, right), (bottom, top)) = (span(xs, (chart.x_log, false)), span(ys, (chart.y_log, true)));
    // Adds space above the curves if the legend would hide a curve in every corner.
    let (top, corner) = match free_corner(chart, (left..right, bottom..top)) {
        Some(corner) => (top, corner),
        None if chart.lines.len() > MOST_NAMED => (top, SeriesLabelPosition::UpperRight),
        None => (bottom + (top - bottom) / (1.0 - legend(chart).1), SeriesLabelPosition::UpperRight),
    };
    let below = headed(sheet, &chart.title)?;
    let mut plot = ChartBuilder::on(&below)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(left..right, bottom..top)?;
    plot.configure_mesh()
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_label_formatter(&|at| tick(*at, chart.x_log))
        .y_label_formatter(&|at| tick(*at, chart.y_log))
        .axis_desc_style(("sans-serif", 14))
        .label_style(("sans-serif", 12))
        .draw()?;
    for (index, line) in chart.lines.iter().enumerate() {
        draw_line(&mut plot, index, line, chart)?;
    }
    if chart.lines.len() > MOST_NAMED {
        return Ok(());
    }
    plot.configure_series_labels()
        .position(corner)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.4))
        .label_font(("sans-serif", 12))
        .legend_area_size(36)
        .draw()
}

/// Returns the ends of an error bar. A quantity that is never negative has no part below zero.
fn bar(point: &(f64, f64, Option<f64>)) -> (f64, f64) {
    let half = point.2.unwrap_or(0.0);
    let low = point.1 - half;
    (if point.1 >= 0.0 { low.max(0.0) } else { low }, point.1 + half)
}

/// Splits a heading into lines that fit.
fn wrapped(heading: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in heading.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < LETTERS_ACROSS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Writes the heading and returns the rest of the drawing area.
fn headed<'a>(sheet: &Sheet<'a>, heading: &str) -> Result<Sheet<'a>, DrawingAreaErrorKind<std::io::Error>> {
    let lines = wrapped(heading);
    let style = TextStyle::from(("sans-serif", 15).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
    for (index, line) in lines.iter().enumerate() {
        sheet.draw_text(line, &style, (SIZE.0 as i32 / 2, 12 + LINE_HEIGHT * index as i32))?;
    }
    Ok(sheet.split_vertically(LINE_HEIGHT * lines.len() as i32).1)
}

/// Returns width and height of the legend as fractions of the plot, from its number of characters.
fn legend(chart: &Chart) -> (f64, f64) {
    let letters = chart.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
    (0.11 + 0.0095 * letters as f64, 0.04 + 0.045 * chart.lines.len() as f64)
}

/// Returns a corner in which the legend hides no curve.
fn free_corner(chart: &Chart, (x, y): (Range<f64>, Range<f64>)) -> Option<SeriesLabelPosition> {
    // A mark extends beyond its point.
    let (width, height) = (legend(chart).0 + 0.02, legend(chart).1 + 0.02);
    let part = |value: f64, of: &Range<f64>| (value - of.start) / (of.end - of.start);
    let inked: Vec<(f64, f64)> = chart.lines.iter().flat_map(|line| inked(line, chart)).collect();
    let is_free = |right: bool, upper: bool| {
        let beneath = |(from_left, from_bottom): (f64, f64)| {
            let (from_left, from_bottom) = (part(from_left, &x), part(from_bottom, &y));
            let aside = if right { 1.0 - from_left } else { from_left };
            let away = if upper { 1.0 - from_bottom } else { from_bottom };
            aside < width && away < height
        };
        !inked.iter().copied().any(beneath)
    };
    let corners = [
        (SeriesLabelPosition::UpperRight, true, true),
        (SeriesLabelPosition::UpperLeft, false, true),
        (SeriesLabelPosition::LowerRight, true, false),
        (SeriesLabelPosition::LowerLeft, false, false),
    ];
    corners.into_iter().find(|(_, right, upper)| is_free(*right, *upper)).map(|(corner, ..)| corner)
}

/// Returns the positions covered by a line: points, ends of error bars, and the segments between points.
fn inked(line: &ChartLine, chart: &Chart) -> Vec<(f64, f64)> {
    let ends = |point: &(f64, f64, Option<f64>)| {
        let (low, high) = bar(point);
        [low, high].map(|end| (placed(point.0, chart.x_log), placed(end, chart.y_log)))
    };
    let between = |pair: &[(f64, f64)]| {
        let (from, to) = (pair[0], pair[1]);
        let at = move |step: i32| {
            let part = f64::from(step) / f64::from(STEPS_BETWEEN);
            (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1))
        };
        (1..STEPS_BETWEEN).map(at)
    };
    let path = path(line, chart);
    line.points.iter().flat_map(ends).chain(path.windows(2).flat_map(between)).collect()
}

/// Returns the path of a line.
fn path(line: &ChartLine, chart: &Chart) -> Vec<(f64, f64)> {
    let at = |point: &(f64, f64, Option<f64>)| (placed(point.0, chart.x_log), placed(point.1, chart.y_log));
    let path: Vec<(f64, f64)> = line.points.iter().map(at).collect();
    if chart.over_time {
        steps(&thin(&path, POINTS_ACROSS.min(POINTS_IN_ALL / chart.lines.len())))
    } else {
        path
    }
}

/// Returns the outline of the 95 % confidence band of a line; empty with a single place or seed.
fn band(line: &ChartLine, chart: &Chart) -> Vec<(f64, f64)> {
    let known: Vec<&(f64, f64, Option<f64>)> =
        line.points.iter().filter(|point| point.2.is_some_and(|half| half > 0.0)).collect();
    if chart.over_time || known.len() < 2 {
        return Vec::new();
    }
    let at = |x: f64, y: f64| (placed(x, chart.x_log), placed(y, chart.y_log));
    let above = known.iter().map(|point| at(point.0, bar(point).1));
    above.chain(known.iter().rev().map(|point| at(point.0, bar(point).0))).collect()
}

/// Returns the points that carry a mark: all measured points, or some points of a curve over time. Curves have different marked
/// points, so that marks of equal curves do not overlap.
fn marked(index: usize, line: &ChartLine, chart: &Chart) -> Vec<(f64, f64, Option<f64>)> {
    if !chart.over_time {
        return line.points.clone();
    }
    if chart.lines.len() > MOST_NAMED {
        return Vec::new();
    }
    let (Some(first), Some(last)) = (line.points.first(), line.points.last()) else { return Vec::new() };
    let aside = (index as f64 + 0.5) / chart.lines.len() as f64;
    let time = |mark: usize| first.0 + (mark as f64 + aside) / MARKS_PER_CURVE as f64 * (last.0 - first.0);
    let held = |time: f64| {
        let after = line.points.partition_point(|point| point.0 <= time);
        line.points[..after].last().map(|point| (time, point.1, None))
    };
    (0..MARKS_PER_CURVE).filter_map(|mark| held(time(mark))).collect()
}

fn draw_line(plot: &mut Plot<'_>, index: usize, line: &ChartLine, chart: &Chart) -> Drawn {
    let ink = INKS[index % INKS.len()];
    let (dash, gap) = DASHES[index % DASHES.len()];
    let style = ink.stroke_width(2);
    let band = band(line, chart);
    if !band.is_empty() {
        plot.draw_series([Polygon::new(band, ink.mix(BAND).filled())])?;
    }
    let path = path(line, chart);
    let drawn = if dash == 0 {
        plot.draw_series(LineSeries::new(path, style))?
    } else {
        plot.draw_series(DashedLineSeries::new(path, dash, gap, style))?
    };
    let shape = Shape::of(index);
    let marked = marked(index, line, chart);
    let at = |point: &(f64, f64, Option<f64>)| (placed(point.0, chart.x_log), placed(point.1, chart.y_log));
    drawn.label(&line.name).legend(move |at| Mark { at, shape, ink, stroke: Some((dash, gap)) });
    for point in &marked {
        if point.2.is_some_and(|half| half > 0.0) {
            let (low, high) = bar(point);
            let ((x, low), (_, high)) = (at(&(point.0, low, None)), at(&(point.0, high, None)));
            plot.draw_series([ErrorBar::new_vertical(x, low, at(point).1, high, ink.stroke_width(1), 6)])?;
        }
    }
    plot.draw_series(marked.iter().map(|point| Mark { at: at(point), shape, ink, stroke: None })).map(drop)
}

/// Mark shapes that differ without colour.
#[derive(Clone, Copy)]
enum Shape {
    Disc,
    Triangle,
    Cross,
    Ring,
    Square,
    Dot,
}

impl Shape {
    /// Returns the shape of line number `index`.
    fn of(index: usize) -> Self {
        let all = [Self::Disc, Self::Triangle, Self::Cross, Self::Ring, Self::Square, Self::Dot];
        all[index % all.len()]
    }
}

/// A measured point. With a stroke it is the legend entry of a line.
struct Mark<C> {
    at: C,
    shape: Shape,
    ink: RGBColor,
    /// Lengths of dash and gap.
    stroke: Option<(i32, i32)>,
}

impl<'a, C> PointCollection<'a, C> for &'a Mark<C> {
    type Point = &'a C;
    type IntoIter = std::iter::Once<&'a C>;

    fn point_iter(self) -> Self::IntoIter {
        std::iter::once(&self.at)
    }
}

impl<C, DB: DrawingBackend> Drawable<DB> for Mark<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        backend: &mut DB,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<DB::ErrorType>> {
        let style = self.ink.stroke_width(2);
        for (x, y) in points {
            let middle = match self.stroke {
                None => (x, y),
                Some((dash, gap)) => {
                    let dash = if dash == 0 { LEGEND } else { dash };
                    for begin in (0..LEGEND).step_by((dash + gap) as usize) {
                        backend.draw_line((x + begin, y), (x + (begin + dash).min(LEGEND), y), &style)?;
                    }
                    (x + LEGEND / 2, y)
                }
            };
            self.draw_shape(middle, backend)?;
        }
        Ok(())
    }
}

/// Length of a stroke in the legend, in points.
const LEGEND: i32 = 32;

impl<C> Mark<C> {
    fn draw_shape<DB: DrawingBackend>(
        &self,
        (x, y): BackendCoord,
        backend: &mut DB,
    ) -> Result<(), DrawingErrorKind<DB::ErrorType>> {
        let (thin, full) = (self.ink.stroke_width(2), self.ink.filled());
        match self.shape {
            Shape::Disc => backend.draw_circle((x, y), 4, &full, true),
            Shape::Ring => backend.draw_circle((x, y), 4, &thin, false),
            Shape::Dot => backend.draw_circle((x, y), 2, &full, true),
            Shape::Triangle => backend.fill_polygon([(x - 5, y + 4), (x + 5, y + 4), (x, y - 5)], &full),
            Shape::Square => backend.draw_rect((x - 4, y - 4), (x + 4, y + 4), &thin, false),
            Shape::Cross => {
                backend.draw_line((x - 4, y - 4), (x + 4, y + 4), &thin)?;
                backend.draw_line((x - 4, y + 4), (x + 4, y - 4), &thin)
            }
        }
    }
}

/// Returns a curve whose value is constant until the next point.
fn steps(path: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corner = |pair: &[(f64, f64)]| [pair[0], (pair[1].0, pair[0].1)];
    path.windows(2).flat_map(corner).chain(path.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let line = |name: &str, height: f64| ChartLine {
            name: name.into(),
            points: (1..=5).map(|k| (10_f64.powi(-k), height / f64::from(k), Some(3.0))).collect(),
        };
        Chart {
            title: "Fig. 1".into(),
            x: "loss".into(),
            y: "goodput (segments/s)".into(),
            x_log: true,
            lines: vec![line("one", 100.0), line("two", 80.0), line("three", 60.0)],
            ..Chart::default()
        }
    }

    #[test]
    fn a_chart_has_its_words_and_becomes_a_picture() {
        let svg = svg(&chart()).unwrap();
        for word in ["Fig. 1", "loss", "goodput", "one", "two", "three", "1e-3"] {
            assert!(svg.contains(word), "{word}");
        }
        let png = png(&svg).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let dark = tiny_skia::Pixmap::decode_png(&png).unwrap();
        let ink = dark.pixels().iter().filter(|pixel| pixel.red() < 128).count();
        assert!(ink > 3000, "only {ink} dark pixels: the letters are missing");
    }

    #[test]
    fn strokes_that_look_alike_are_one_path() {
        let dash = |points: &str, ink: &str| {
            format!(
                "<polyline fill=\"none\" opacity=\"1\" stroke=\"{ink}\" stroke-width=\"2\" points=\"{points} \"/>\n"
            )
        };
        let line = "<line opacity=\"0.12\" stroke=\"#000000\" stroke-width=\"1\" x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\"/>\n";
        let text = "<circle cx=\"1\" cy=\"2\" r=\"3\" opacity=\"1\"/>\n";
        let svg = [
            &dash("1,2 3,4", "#111111"),
            &dash("5,6 7,8", "#111111"),
            &dash("9,9 8,8", "#222222"),
            line,
            text,
        ]
        .concat();
        assert_eq!(
            compact(&svg),
            "<path fill=\"none\" stroke=\"#111111\" stroke-width=\"2\" d=\"M1,2 3,4M5,6 7,8\"/>\n\
             <path fill=\"none\" stroke=\"#222222\" stroke-width=\"2\" d=\"M9,9 8,8\"/>\n\
             <path fill=\"none\" stroke-opacity=\"0.12\" stroke=\"#000000\" stroke-width=\"1\" d=\"M1,2 3,4\"/>\n\
             <circle cx=\"1\" cy=\"2\" r=\"3\"/>\n"
        );
    }

    #[test]
    fn a_band_runs_along_the_upper_ends_of_the_intervals_and_back_along_the_lower() {
        let line =
            |points: &[(f64, f64, Option<f64>)]| ChartLine { name: String::new(), points: points.to_vec() };
        let two = line(&[(1.0, 10.0, Some(2.0)), (2.0, 20.0, Some(1.0)), (3.0, 5.0, None)]);
        let chart = Chart::default();
        assert_eq!(band(&two, &chart), [(1.0, 12.0), (2.0, 21.0), (2.0, 19.0), (1.0, 8.0)]);
        assert_eq!(band(&line(&[(1.0, 10.0, Some(2.0))]), &chart), []);
        assert_eq!(band(&two, &Chart { over_time: true, ..Chart::default() }), []);
    }

    #[test]
    fn nothing_measured_is_an_empty_chart() {
        assert!(svg(&Chart::default()).is_ok());
    }

    #[test]
    fn the_legend_hides_no_curve_where_a_corner_is_free() {
        let corner = |points: &[(f64, f64)]| {
            let points = points.iter().map(|point| (point.0, point.1, None)).collect();
            let chart = Chart { lines: vec![ChartLine { name: "one".into(), points }], ..Chart::default() };
            free_corner(&chart, (0.0..1.0, 0.0..1.0))
        };
        assert_eq!(corner(&[(0.1, 0.1), (0.5, 0.5)]), Some(SeriesLabelPosition::UpperRight));
        assert_eq!(corner(&[(0.1, 0.1), (0.95, 0.95)]), Some(SeriesLabelPosition::UpperLeft));
        assert_eq!(corner(&[(0.1, 0.95), (0.95, 0.95)]), Some(SeriesLabelPosition::LowerRight));
        assert_eq!(corner(&[(0.05, 0.95), (0.95, 0.95), (0.05, 0.05), (0.95, 0.05)]), None);
        assert_eq!(
            corner(&[(0.5, 0.5), (1.4, 1.4)]),
            Some(SeriesLabelPosition::UpperLeft),
            "a stroke runs there"
        );
    }

    #[test]
    fn a_long_heading_takes_several_lines() {
        assert_eq!(wrapped("Fig. 1: Goodput"), ["Fig. 1: Goodput"]);
        let long = "Fig. 8: Throughput of a terminal ".repeat(4);
        let lines = wrapped(&long);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.len() <= LETTERS_ACROSS), "{lines:?}");
        assert_eq!(lines.join(" "), long.trim());
    }

    #[test]
    fn an_error_bar_ends_at_zero() {
        assert_eq!(bar(&(1.0, 9.0, Some(14.0))), (0.0, 23.0));
        assert_eq!(bar(&(1.0, -2.0, Some(1.0))), (-3.0, -1.0));
        assert_eq!(bar(&(1.0, 2.0, None)), (2.0, 2.0));
    }

    #[test]
    fn curves_over_time_carry_marks_side_by_side() {
        let line = ChartLine { name: "one".into(), points: vec![(0.0, 1.0, None), (7.0, 2.0, None)] };
        let chart = Chart { lines: vec![line.clone(), line.clone()], over_time: true, ..Chart::default() };
        let times = |index| marked(index, &line, &chart).iter().map(|point| point.0).collect::<Vec<_>>();
        assert_eq!(times(0), [0.25, 1.25, 2.25, 3.25, 4.25, 5.25, 6.25]);
        assert_eq!(times(1), [0.75, 1.75, 2.75, 3.75, 4.75, 5.75, 6.75]);
        assert!(
            marked(0, &line, &chart).iter().all(|point| point.1 == 1.0),
            "the value holds until the next point"
        );
        let measured = Chart { over_time: false, ..chart };
        assert_eq!(marked(0, &line, &measured), line.points);
    }

    #[test]
    fn ticks() {
        assert_eq!(tick(-3.0, true), "1e-3");
        assert_eq!([tick(-1.0, true), tick(-0.0, true), tick(3.0, true)], ["0.1", "1", "1000"]);
        assert_eq!(tick(-2.5, true), "");
        assert_eq!(tick(0.25, false), "0.25");
        assert_eq!(tick(-0.0, false), "0");
        assert_eq!(tick(1200.0, false), "1200");
    }
}
