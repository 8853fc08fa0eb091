//! The report of a comparison.

use bentpipe_outcome::{LinkSeries, Series};

use super::figure::{Axis, Choice, Figure, Pick, Section, Style, Trace};
use super::run::{Curves, drawn_flows, flow_figures, queue_figure};
use super::view::{ALGORITHMS, Measure, Scaled, View};
use super::{Fragment, Grid, GridCell, GridRow, Page, Provenance, World, fragment, render};
use crate::comparison::{Comparison, Row, Sample, unique};
use crate::headline::{self, most_telling, shown};
use crate::metric::Metric;
use crate::number::{p_value, plus_minus};
use crate::paired::Difference;
use crate::plan::Setting;
use crate::stats::Summary;

/// Contents of the report of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ComparePage<'a> {
    /// Origin of the results.
    pub provenance: &'a Provenance,
    /// Description of the scenario, at the [`most_telling`] combination.
    pub world: &'a World,
    /// Results.
    pub comparison: &'a Comparison,
    /// One run of each algorithm over time, at one combination of the varied values and with one seed.
    pub examples: &'a [Example],
}

/// One run of one algorithm over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Example {
    /// Algorithm as the user named it.
    pub cc: String,
    /// The varied values of the run.
    pub vary: Vec<Setting>,
    /// Seed of the run.
    pub seed: u64,
    /// Time series of an example run.
    pub series: Series,
}

/// Titles of the choices.
const FLOW: &str = "Flow";
const LINK: &str = "Link";

impl ComparePage<'_> {
    /// The report as one HTML file.
    ///
    /// # Errors
    /// Only if the template does not fit the code.
    pub fn render(&self) -> Result<String, minijinja::Error> {
        render(&self.page(), self.provenance)
    }

    /// The content of the report, for a page of another program.
    ///
    /// # Errors
    /// Only if the template does not fit the code.
    pub fn fragment(&self) -> Result<Fragment, minijinja::Error> {
        fragment(&self.page(), self.provenance)
    }

    fn page(&self) -> Page {
        let names = self.comparison.algorithms();
        let page = Page {
            heading: format!("{} on {}", join(&names), self.comparison.scenario),
            finding: headline::of_comparison(self.comparison),
            facts: self.facts(),
            network: None,
            drawn_at: most_telling(self.comparison).map(shown).unwrap_or_default(),
            sections: [Some(self.results()), self.examples()].into_iter().flatten().collect(),
            grids: unique([
                self.comparison.measures,
                Metric::Goodput,
                Metric::Retransmissions,
                Metric::Timeouts,
            ])
            .into_iter()
            .map(|metric| self.table(metric))
            .chain(self.differences())
            .collect(),
        };
        self.world.shown_on(page)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let runs: usize = self.comparison.rows.iter().map(|row| row.samples.len()).sum();
        let last =
            self.comparison.first_seed.wrapping_add(u64::from(self.comparison.seeds.saturating_sub(1)));
        let seeds = format!("{} to {last}", self.comparison.first_seed);
        let mut facts = vec![
            ("scenario", self.comparison.scenario.clone()),
            ("algorithms", self.comparison.algorithms().len().to_string()),
            ("runs", runs.to_string()),
            ("seeds", if self.comparison.seeds == 1 { last.to_string() } else { seeds }),
        ];
        if !self.comparison.complete {
            facts.push(("not complete", "stopped early: fewer seeds".into()));
        }
        facts
    }

    fn results(&self) -> Section {
        let view = View::of(self.comparison);
        let used = |metric: Metric| {
            let values = self.comparison.rows.iter().filter_map(|row| row.summary(metric).max);
            values.fold(0.0, f64::max) > 0.0
        };
        let main = self.comparison.measures;
        let wide = Figure { wide: true, ..view.figure(Measure::Of(main)) };
        let groups =
            Some(self.comparison.groups.clone()).filter(|groups| groups.len() > 1).unwrap_or_default();
        let others = [
            Metric::Retransmissions,
            Metric::Timeouts,
            Metric::ProbeOverhead,
            Metric::Jain,
            Metric::Completion,
            Metric::Goodput,
        ];
        let others = self
            .comparison
            .optional_metrics()
            .into_iter()
            .chain(others)
            .filter(|metric| *metric != main && used(*metric))
            .map(Measure::Of);
        let others = groups.into_iter().map(Measure::FlowOf).chain(others);
        let intro = match self.comparison.seeds {
            1 => "One run of each point; more seeds would give confidence intervals.",
            _ if self.comparison.is_certain() => "Nothing is random here: every seed gives the same.",
            _ => "Means over the seeds with 95 % confidence intervals.",
        };
        let figures = std::iter::once(wide).chain(others.map(|measure| view.figure(measure)));
        let pairs = Some(self.throughput_and_delay()).filter(|figure| figure.x.range != Some([0.0, 0.0]));
        let figures = figures.chain(pairs).collect();
        Section::new("Results", intro.into(), view.choices(), figures)
    }

    /// Goodput against queueing delay, one mark for each run, with the contour of one standard deviation.
    fn throughput_and_delay(&self) -> Figure {
        let (goodput, delay) = (Metric::Goodput.shown(), Metric::QueueingDelay.shown());
        let mut traces = Vec::new();
        let mut most = 0.0_f64;
        for (colour, cc) in self.comparison.algorithms().into_iter().enumerate() {
            for row in self.comparison.rows.iter().filter(|row| row.cell.cc == cc) {
                let point = |sample: &Sample| {
                    Some((
                        sample.get(Metric::QueueingDelay)? / delay.2,
                        sample.get(Metric::Goodput)? / goodput.2,
                    ))
                };
                let points: Vec<_> = row.samples.iter().filter_map(point).collect();
                most = points.iter().fold(most, |most, point| most.max(point.0));
                let picks: Vec<_> =
                    row.cell.vary.iter().map(|setting| Pick::new(&setting.key, &setting.value.0)).collect();
                let contour = ellipse(&points).map(|contour| Trace::through(cc, &contour, Style::Line));
                let marks = Trace::through(cc, &points, Style::Marks);
                let has_contour = contour.is_some();
                let both = contour.into_iter().chain([Trace { legend: !has_contour, ..marks }]);
                traces.extend(both.map(|trace| trace.coloured(colour).shown_by(&picks)));
            }
        }
        Figure {
            title: "Goodput and queueing delay".into(),
            caption:
                "One mark for each run; ellipses: one standard deviation. Better is up and to the right."
                    .into(),
            // The field draws the delay from right to left.
            x: Axis {
                // The whole name of the metric does not fit on a phone.
                title: format!("mean queueing delay, {}", delay.1),
                range: Some([1.05 * most, 0.0]),
                ..Axis::default()
            },
            y: Axis { title: goodput.1.into(), close: true, ..Axis::default() },
            traces,
            ..Figure::default()
        }
    }

    /// Returns differences from the baseline in the main metric; `None` without p-values.
    fn differences(&self) -> Option<Grid> {
        let metric = self.comparison.measures;
        let differences = self.comparison.differences(metric);
        let scale = Scaled::of(Measure::Of(metric));
        let keys = self.comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
        let head = keys.iter().map(|setting| setting.key.clone());
        let head = head.chain(["algorithm", "difference", "p (Holm)"].map(str::to_owned)).collect();
        let row = |(row, difference): (&Row, Option<Difference>)| {
            let (difference, p) = difference.and_then(|difference| Some((difference, difference.p_holm?)))?;
            let names =
                row.cell.vary.iter().map(|setting| setting.value.0.clone()).chain([row.cell.cc.clone()]);
            let cells = [plus_minus(difference.summary, scale.divisor), p_value(p)];
            Some(GridRow {
                names: names.collect(),
                cells: cells.map(|text| GridCell { text, best: false }).into(),
            })
        };
        let rows: Vec<_> = self.comparison.rows.iter().zip(differences).filter_map(row).collect();
        let title =
            format!("{}: difference from {} with the same seed", scale.heading(), self.comparison.baseline);
        (!rows.is_empty()).then_some(Grid { title, head, rows })
    }

    fn examples(&self) -> Option<Section> {
        let first = self.examples.first()?;
        let flows = drawn_flows(&self.examples.iter().map(|example| &example.series).collect::<Vec<_>>());
        let mut curves = Vec::new();
        for (colour, example) in self.examples.iter().enumerate() {
            for series in example.series.flows.iter().filter(|flow| flows.contains(&flow.name)) {
                let name = example.cc.clone();
                let options = vec![Pick::new(ALGORITHMS, &name), Pick::new(FLOW, &series.name)];
                curves.push(Curves { colour, name, options, series: series.clone() });
            }
        }
        let mut figures = flow_figures(&curves);
        let links = self.links();
        figures.push(queue_figure(self.examples.iter().enumerate().flat_map(queues)));
        figures.retain(|figure| !figure.traces.is_empty());
        let at = if first.vary.is_empty() { String::new() } else { format!(" at {}", shown(&first.vary)) };
        let intro = format!("One run of each algorithm{at}, with seed {}.", first.seed);
        let choices = self.example_choices(flows, links).into_iter().flatten();
        Some(Section::new("Why", intro, choices, figures))
    }

    /// At first the best and the last of the algorithms, and one flow.
    fn example_choices(&self, flows: Vec<String>, links: Vec<String>) -> [Option<Choice>; 3] {
        let algorithms: Vec<String> = self.examples.iter().map(|example| example.cc.clone()).collect();
        let vary = self.examples.first().map_or(&[][..], |example| &example.vary);
        let ranking = headline::ranking(self.comparison, vary);
        let ends = [ranking.first(), ranking.last()];
        let on = unique(ends.into_iter().flatten().map(|ranked| ranked.cc.to_owned()));
        [
            Choice::several_of(ALGORITHMS, algorithms, &on),
            Choice::one_of(FLOW, flows),
            Choice::one_of(LINK, links),
        ]
    }

    /// Links with a queue in any example, the busiest first.
    fn links(&self) -> Vec<String> {
        let mut links: Vec<_> = self.examples.iter().flat_map(|example| &example.series.links).collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.queue_packets.len()));
        unique(links.into_iter().map(|link| link.name.clone()))
    }

    fn table(&self, metric: Metric) -> Grid {
        let algorithms = self.comparison.algorithms();
        let keys = self.comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
        let scale = Scaled::of(Measure::Of(metric));
        let row = |vary: &[Setting]| GridRow {
            names: vary.iter().map(|setting| setting.value.0.clone()).collect(),
            cells: cells(self.comparison, vary, &scale),
        };
        let head = keys
            .iter()
            .map(|setting| setting.key.clone())
            .chain(algorithms.iter().map(|cc| (*cc).to_owned()));
        Grid {
            title: scale.heading(),
            head: head.collect(),
            rows: self.comparison.combinations().into_iter().map(row).collect(),
        }
    }
}

/// Points of the contour at one standard deviation of the normal distribution with the mean and covariance of some points; `None`
/// for fewer than three.
fn ellipse(points: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    const CORNERS: u32 = 72;
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let moment = |of: &dyn Fn(f64, f64) -> f64| {
        points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>() / (n - 1.0)
    };
    let (xx, yy, xy) = (moment(&|x, _| x * x), moment(&|_, y| y * y), moment(&|x, y| x * y));
    // The Cholesky factor of the covariance maps the unit circle onto the contour.
    let a = xx.sqrt();
    let b = if a > 0.0 { xy / a } else { 0.0 };
    let c = (yy - b * b).max(0.0).sqrt();
    let corner = |corner: u32| {
        let (sin, cos) = (std::f64::consts::TAU * f64::from(corner) / f64::from(CORNERS)).sin_cos();
        (x + a * cos, y + b * cos + c * sin)
    };
    Some((0..=CORNERS).map(corner).collect())
}

fn join(names: &[&str]) -> String {
    match names {
        [] => "Nothing".into(),
        [one] => (*one).into(),
        many if many.len() > 6 => format!("{} algorithms", many.len()),
        [begin @ .., last] => format!("{} and {last}", begin.join(", ")),
    }
}

/// The queues of an example, under the name of the algorithm.
fn queues(
    (colour, example): (usize, &Example),
) -> impl Iterator<Item = (usize, (String, Vec<Pick>, &LinkSeries))> {
    example.series.links.iter().map(move |link| {
        let options = vec![Pick::new(ALGORITHMS, &example.cc), Pick::new(LINK, &link.name)];
        (colour, (example.cc.clone(), options, link))
    })
}

/// Returns one cell per algorithm. The best in the main metric is highlighted if its difference from every other one is significant.
fn cells(comparison: &Comparison, vary: &[Setting], scale: &Scaled) -> Vec<GridCell> {
    let algorithms = comparison.algorithms();
    let summaries: Vec<Summary> = algorithms
        .iter()
        .map(|cc| comparison.row(cc, vary).map(|row| scale.summary(row)).unwrap_or_default())
        .collect();
    let marked = scale.measure == Measure::Of(comparison.measures) && algorithms.len() > 1;
    let best = comparison.best(vary).filter(|_| marked);
    let cell = |(place, summary): (usize, &Summary)| GridCell {
        text: plus_minus(*summary, scale.divisor),
        best: best == Some(place),
    };
    summaries.iter().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::plan::Point;
    use bentpipe_outcome::FlowSeries;
    use bentpipe_scenario::builtin;

    #[test]
    fn each_varied_quantity_has_its_own_row_of_buttons() {
        let mut plan = example::plan();
        plan.vary.extend(["a=1,2,3", "b=x,y"].map(|text| text.parse().unwrap()));
        let cells = plan.cells();
        let sample = |point: &Point| Sample::of(&example::outcome(&cells[point.cell].cc, point.seed), &[]);
        let points = plan.points().into_iter();
        let comparison = Comparison::new(&plan, points.map(|point| (point.clone(), sample(&point))));
        let choices: Vec<Choice> = View::of(&comparison).choices().collect();
        let rows: Vec<_> =
            choices.iter().map(|choice| (choice.title.as_str(), choice.options.len())).collect();
        assert_eq!(rows, [("a", 3), ("b", 2)]);
    }

    #[test]
    fn a_world_with_one_flow_shows_why() {
        let comparison = example::comparison();
        let (provenance, world) =
            (Provenance::default(), World::of(&builtin("geo-single").unwrap()).unwrap());
        let mut series = example::series();
        series.flows.truncate(1);
        let run = |cc: &str| Example { cc: cc.into(), vary: Vec::new(), seed: 1, series: series.clone() };
        let examples = [run("reno"), run("peach")];
        let page = ComparePage {
            provenance: &provenance,
            world: &world,
            comparison: &comparison,
            examples: &examples,
        };
        let section = page.examples().unwrap();
        let titles: Vec<_> = section.choices.iter().map(|choice| choice.title.as_str()).collect();
        assert_eq!(titles, [ALGORITHMS]);
        let picks =
            section.figures.iter().flat_map(|figure| &figure.traces).flat_map(|trace| &trace.shown_by);
        assert!(picks.into_iter().all(|pick| pick.choice == ALGORITHMS));
    }

    /// The comparison of `make demo`: four algorithms, twenty flows, curves of 5000 points.
    #[test]
    fn twenty_flows_of_four_algorithms_fit_a_page_of_one_and_a_half_megabytes() {
        let comparison = example::comparison();
        let (provenance, world) =
            (Provenance::default(), World::of(&builtin("geo-dumbbell").unwrap()).unwrap());
        let mut series = example::series();
        let noisy = |points: &mut Vec<(f64, f64)>| {
            for (index, point) in points.iter_mut().enumerate() {
                point.1 += (index * index % 97) as f64 / 7.0;
            }
        };
        let flow = series.flows.remove(0);
        series.flows =
            (0..20).map(|index| FlowSeries { name: format!("bulk.{index}"), ..flow.clone() }).collect();
        for flow in &mut series.flows {
            [&mut flow.cwnd, &mut flow.srtt_ms, &mut flow.sent, &mut flow.acked].into_iter().for_each(noisy);
        }
        let run = |cc: &&str| Example { cc: (*cc).into(), vary: Vec::new(), seed: 1, series: series.clone() };
        let examples: Vec<Example> = ["reno", "peach", "sack", "cubic"].iter().map(run).collect();
        let page = ComparePage {
            provenance: &provenance,
            world: &world,
            comparison: &comparison,
            examples: &examples,
        };
        let bytes = page.render().unwrap().len();
        assert!(bytes < 1_500_000, "{bytes}");
        let flows = &page.examples().unwrap().choices[1].options;
        assert!(flows.len() >= 10, "{} flows to choose from", flows.len());
    }

    /// The contour of points at (±1, 0) and (0, ±2) is the ellipse with their standard deviations as half axes.
    #[test]
    fn the_contour_is_that_of_the_covariance() {
        let contour = ellipse(&[(1.0, 0.0), (-1.0, 0.0), (0.0, 2.0), (0.0, -2.0)]).unwrap();
        let [a, b] = [2.0 / 3.0, 8.0 / 3.0].map(f64::sqrt);
        assert!(contour.iter().all(|(x, y)| ((x / a).powi(2) + (y / b).powi(2) - 1.0).abs() < 1e-12));
        let tilted = ellipse(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]).unwrap();
        assert!(tilted.iter().all(|(x, y)| (x - y).abs() < 1e-12), "points on a line");
        assert_eq!(ellipse(&[(0.0, 0.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn a_page_says_what_was_found_and_why() {
        let comparison = example::comparison();
        let vary = most_telling(&comparison).unwrap().to_vec();
        let run =
            |cc: &str| Example { cc: cc.into(), vary: vary.clone(), seed: 1, series: example::series() };
        let provenance = Provenance { toml: "duration = \"100 s\"".into(), ..Provenance::default() };
        let examples = [run("reno"), run("peach")];
        let world = World::of(&builtin("geo-dumbbell").unwrap()).unwrap();
        let page = ComparePage {
            provenance: &provenance,
            world: &world,
            comparison: &comparison,
            examples: &examples,
        };
        let html = page.render().unwrap();
        let finding = "1.99 times as much.";
        let drawn = "Here with link.satellite.loss.rate = 1e-3.";
        let given = "duration = &quot;100 s&quot;";
        for wanted in [finding, "0.4040 ± 0.0050", "Why", "Probe overhead", drawn, given] {
            assert!(html.contains(wanted), "{wanted}");
        }
    }
}
