//! The report of a comparison.

use bentpipe_sim::{LinkSeries, Series};

use super::figure::{Choice, Figure, Section};
use super::run::{Curves, flow_figures, queue_figure};
use super::view::{Measure, Scaled, View, shown};
use super::{Grid, GridCell, GridRow, Page, Provenance, World, render};
use crate::comparison::{Comparison, Metric};
use crate::number::{plus_minus, rate_unit, short};
use crate::plan::Setting;
use crate::stats::Summary;

/// What the report of a comparison shows.
#[derive(Clone, Copy, Debug)]
pub struct ComparePage<'a> {
    /// Where it comes from.
    pub provenance: &'a Provenance,
    /// What it shows of the scenario, at the [`most_telling`] combination.
    pub world: &'a World,
    /// What was measured.
    pub comparison: &'a Comparison,
    /// One run of each algorithm, over time, all at one combination of the varied values and with one seed.
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
    /// What happened.
    pub series: Series,
}

/// Flows of an example with curves of their own.
const DRAWN_FLOWS: usize = 3;

/// The combination at which the algorithms differ most in goodput: what an example should show.
pub fn most_telling(comparison: &Comparison) -> Option<&[Setting]> {
    let spread = |vary: &[Setting]| {
        let means: Vec<f64> = goodputs(comparison, vary).map(|(_, mean)| mean).collect();
        let (low, high) = (means.iter().copied().reduce(f64::min), means.iter().copied().reduce(f64::max));
        high.unwrap_or(0.0) / low.unwrap_or(1.0).max(1.0)
    };
    comparison.combinations().into_iter().max_by(|a, b| spread(a).total_cmp(&spread(b)))
}

fn goodputs<'a>(comparison: &'a Comparison, vary: &'a [Setting]) -> impl Iterator<Item = (&'a str, f64)> {
    let mean = |cc| Some((cc, comparison.row(cc, vary)?.summary(Metric::Goodput).mean?));
    comparison.algorithms().into_iter().filter_map(mean)
}

impl ComparePage<'_> {
    /// The page as HTML.
    ///
    /// # Errors
    /// Only if the template does not fit the code.
    pub fn render(&self) -> Result<String, minijinja::Error> {
        let names = self.comparison.algorithms();
        let page = Page {
            heading: format!("{} on {}", join(&names), self.comparison.scenario),
            finding: self.finding(),
            facts: self.facts(),
            network: None,
            drawn_at: most_telling(self.comparison).map(shown).unwrap_or_default(),
            sections: [Some(self.results()), self.examples()].into_iter().flatten().collect(),
            grids: vec![
                self.table(Metric::Goodput),
                self.table(Metric::Retransmissions),
                self.table(Metric::Timeouts),
            ],
        };
        render(&self.world.shown_on(page), self.provenance)
    }

    fn finding(&self) -> String {
        let Some(vary) = most_telling(self.comparison) else { return "Nothing finished.".into() };
        let mut means: Vec<_> = goodputs(self.comparison, vary).collect();
        means.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (Some(best), Some(last)) = (means.first(), means.last()) else { return String::new() };
        let unit = rate_unit(best.1);
        let rate = |mean: f64| format!("{} {}", short(mean / unit.0), unit.1);
        let at = if vary.is_empty() { String::new() } else { format!("at {}, ", shown(vary)) };
        match means.len() {
            1 => format!("{at}{} carried {}.", best.0, rate(best.1)),
            _ if self.alike(vary, (best.0, last.0)) => format!(
                "No two of them differ for certain: even {at}{} carried {} and {} {}, and their confidence \
                 intervals overlap.",
                best.0,
                rate(best.1),
                last.0,
                rate(last.1)
            ),
            _ => format!(
                "Where they differ most, {at}{} carried {}, {} times what {} did ({}).",
                best.0,
                rate(best.1),
                short(best.1 / last.1.max(1.0)),
                last.0,
                short(last.1 / unit.0)
            ),
        }
    }

    /// Whether the confidence intervals of two algorithms overlap.
    fn alike(&self, vary: &[Setting], (best, last): (&str, &str)) -> bool {
        let interval = |cc| {
            let summary = self.comparison.row(cc, vary)?.summary(Metric::Goodput);
            Some((summary.mean?, summary.ci95?))
        };
        match (interval(best), interval(last)) {
            (Some(best), Some(last)) => best.0 - best.1 <= last.0 + last.1,
            _ => false,
        }
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
        let wide = Figure { wide: true, ..view.figure(Measure::Of(Metric::Goodput)) };
        let groups =
            self.comparison.rows.first().map(|row| row.groups().into_keys().map(str::to_owned).collect());
        let groups: Vec<String> = groups.filter(|groups: &Vec<String>| groups.len() > 1).unwrap_or_default();
        let others = [
            Metric::Retransmissions,
            Metric::Timeouts,
            Metric::ProbeOverhead,
            Metric::Jain,
            Metric::Completion,
        ];
        let others = self
            .comparison
            .optional_metrics()
            .into_iter()
            .chain(others)
            .filter(|metric| used(*metric))
            .map(Measure::Of);
        let others = groups.into_iter().map(Measure::FlowOf).chain(others);
        let intro = match self.comparison.seeds {
            1 => "One run of each point; more seeds would give confidence intervals.",
            _ => "Means over the seeds with 95 % confidence intervals.",
        };
        Section {
            title: "Results".into(),
            intro: intro.into(),
            choices: view.choice().into_iter().collect(),
            figures: std::iter::once(wide).chain(others.map(|measure| view.figure(measure))).collect(),
        }
    }

    fn examples(&self) -> Option<Section> {
        let first = self.examples.first()?;
        let flows: Vec<String> =
            first.series.flows.iter().take(DRAWN_FLOWS).map(|flow| flow.name.clone()).collect();
        let mut curves = Vec::new();
        for (colour, example) in self.examples.iter().enumerate() {
            for series in example.series.flows.iter().filter(|flow| flows.contains(&flow.name)) {
                let (name, options) = (example.cc.clone(), vec![example.cc.clone(), series.name.clone()]);
                curves.push(Curves { colour, name, options, series: series.clone() });
            }
        }
        let mut figures = flow_figures(&curves);
        figures.push(queue_figure(self.examples.iter().map(busiest_queue).enumerate()));
        figures.retain(|figure| !figure.traces.is_empty());
        let at = if first.vary.is_empty() { String::new() } else { format!(" at {}", shown(&first.vary)) };
        let intro = format!("One run of each algorithm{at}, with seed {}.", first.seed);
        let choices = self.example_choices(&flows).into_iter().flatten().collect();
        Some(Section { title: "Why".into(), intro, choices, figures })
    }

    /// At first the best and the last of the algorithms, and one flow.
    fn example_choices(&self, flows: &[String]) -> [Option<Choice>; 2] {
        let algorithms: Vec<String> = self.examples.iter().map(|example| example.cc.clone()).collect();
        let vary = self.examples.first().map_or(&[][..], |example| &example.vary);
        let means = || goodputs(self.comparison, vary);
        let best = means().max_by(|a, b| a.1.total_cmp(&b.1));
        let last = means().min_by(|a, b| a.1.total_cmp(&b.1));
        let on: Vec<String> = [best, last].into_iter().flatten().map(|(cc, _)| cc.to_owned()).collect();
        let one = &flows[..flows.len().min(1)];
        [Choice::of("Algorithms", algorithms, &on), Choice::of("Flow", flows.to_vec(), one)]
    }

    fn table(&self, metric: Metric) -> Grid {
        let algorithms = self.comparison.algorithms();
        let keys = self.comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
        let scale = Scaled::of(self.comparison, Measure::Of(metric));
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

fn join(names: &[&str]) -> String {
    match names {
        [] => "Nothing".into(),
        [one] => (*one).into(),
        many if many.len() > 6 => format!("{} algorithms", many.len()),
        [begin @ .., last] => format!("{} and {last}", begin.join(", ")),
    }
}

/// The link of an example on which most happened, under the name of the algorithm.
fn busiest_queue(example: &Example) -> (String, Vec<String>, &LinkSeries) {
    static NOTHING: LinkSeries =
        LinkSeries { name: String::new(), queue_packets: Vec::new(), drops: Vec::new() };
    let busiest = example.series.links.iter().max_by_key(|link| link.queue_packets.len());
    (example.cc.clone(), vec![example.cc.clone()], busiest.unwrap_or(&NOTHING))
}

/// One cell for each algorithm; the largest goodput stands out.
fn cells(comparison: &Comparison, vary: &[Setting], scale: &Scaled) -> Vec<GridCell> {
    let algorithms = comparison.algorithms();
    let summaries: Vec<Summary> = algorithms
        .iter()
        .map(|cc| comparison.row(cc, vary).map(|row| scale.summary(row)).unwrap_or_default())
        .collect();
    let best = summaries.iter().filter_map(|summary| summary.mean).reduce(f64::max);
    let marked = scale.measure == Measure::Of(Metric::Goodput) && algorithms.len() > 1;
    let cell = |summary: &Summary| GridCell {
        text: plus_minus(*summary, scale.divisor),
        best: marked && best.is_some() && summary.mean == best,
    };
    summaries.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use bentpipe_scenario::builtin;

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
        let finding = "1.99 times what reno did (404.0).";
        let drawn = "Here with link.satellite.loss.rate = 1e-3.";
        let given = "duration = &quot;100 s&quot;";
        for wanted in [finding, "404.0 ± 5.0", "Why", "Probe overhead", drawn, given] {
            assert!(html.contains(wanted), "{wanted}");
        }
    }
}
