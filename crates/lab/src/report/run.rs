//! The report of one run.

use bentpipe_outcome::{FlowOutcome, FlowSeries, GroupOutcome, LinkOutcome, LinkSeries, Outcome, Series};

use super::figure::{
    Axis, Choice, Figure, Number, POINTS_PER_TRACE, Pick, Position, Scale, Section, Style, Trace,
};
use super::{Grid, GridCell, GridRow, Page, Provenance, World, render};
use crate::column::Column;
use crate::number::{RATE_UNIT, short};
use crate::{carriage, headline, service, together};

/// Contents of the report of one run.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// Origin of the results.
    pub provenance: &'a Provenance,
    /// Description of the scenario.
    pub world: &'a World,
    /// Results.
    pub outcome: &'a Outcome,
    /// Time series.
    pub series: &'a Series,
}

/// Points in all curves of a section together: with them a report has about 2 MB.
const DRAWN_POINTS: usize = 600_000;
/// Titles of the choices.
const FLOWS: &str = "Flows";
const LINKS: &str = "Queues";
/// Rows of the table of flows.
const LISTED_FLOWS: usize = 200;

impl RunPage<'_> {
    /// The page as HTML.
    ///
    /// # Errors
    /// Only if the template does not fit the code.
    pub fn render(&self) -> Result<String, minijinja::Error> {
        let page = Page {
            heading: self.outcome.scenario.clone(),
            finding: headline::of_run(self.outcome, self.world.measures),
            facts: self.facts(),
            network: None,
            drawn_at: String::new(),
            sections: self.sections(),
            grids: [Some(self.flows()), self.groups(), self.delays(), Some(self.links())]
                .into_iter()
                .flatten()
                .collect(),
        };
        render(&self.world.shown_on(page), self.provenance)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let totals = &self.outcome.totals;
        let unit = RATE_UNIT;
        let mut facts = vec![
            ("goodput of all flows", format!("{} {}", short(totals.goodput_bps / unit.0), unit.1)),
            ("fairness (Jain)", format!("{:.3}", totals.jain_index)),
            ("retransmitted segments", totals.retransmitted_segments.to_string()),
            ("timeouts", totals.timeouts.to_string()),
            ("probe overhead", format!("{:.2} %", 100.0 * totals.probe_overhead)),
            ("seed", self.outcome.seed.to_string()),
        ];
        // A single flow shares with no other.
        facts.retain(|(name, _)| self.outcome.flows.len() > 1 || !name.starts_with("fairness"));
        facts
    }

    fn sections(&self) -> Vec<Section> {
        let (names, all) = (drawn_flows(&[self.series]), self.series.flows.len());
        let intro = match all > names.len() {
            true => format!("The first {} of {all} flows.", names.len()),
            false => String::new(),
        };
        let drawn = self.series.flows.iter().filter(|flow| names.contains(&flow.name));
        let curves = |(colour, flow): (usize, &FlowSeries)| Curves {
            colour,
            name: flow.name.clone(),
            options: vec![Pick::new(FLOWS, &flow.name)],
            series: flow.clone(),
        };
        let curves: Vec<Curves> = drawn.enumerate().map(curves).collect();
        let mut figures = flow_figures(&curves);
        let links: Vec<String> = self.series.links.iter().map(|link| link.name.clone()).collect();
        let queues = self
            .series
            .links
            .iter()
            .map(|link| (link.name.clone(), vec![Pick::new(LINKS, &link.name)], link));
        figures.push(queue_figure(queues.enumerate()));
        figures.retain(|figure| !figure.traces.is_empty());
        let first = names[..names.len().min(2)].to_vec();
        let busiest = links.clone();
        let choices = [Choice::several_of(FLOWS, names, &first), Choice::several_of(LINKS, links, &busiest)];
        let over_time = Section::new("Over time", intro, choices.into_iter().flatten(), figures);
        served(self.outcome).into_iter().chain([over_time]).collect()
    }

    fn flows(&self) -> Grid {
        let flows = &self.outcome.flows;
        let unit = RATE_UNIT;
        let completes = flows.iter().any(|flow| flow.completion_s.is_some());
        let goodput = format!("goodput, {}", unit.1);
        let head = ["flow", "algorithm", &goodput, "sent", "retransmitted", "timeouts", "probes", "RTT, ms"];
        let service = service::columns(flows);
        let titles = service.iter().map(|column| column.title);
        let head = head.into_iter().chain(completes.then_some("completion, s")).chain(titles);
        let head = head.map(str::to_owned).collect();
        let optional = |value: Option<f64>| value.map_or("–".into(), short);
        let row = |flow: &FlowOutcome| {
            let cells = [
                short(flow.goodput_bps / unit.0),
                flow.sent_segments.to_string(),
                flow.retransmitted_segments.to_string(),
                flow.timeouts.to_string(),
                flow.probes_sent.to_string(),
                optional(flow.srtt_ms),
            ];
            let last = completes.then(|| optional(flow.completion_s));
            let service = service.iter().map(|column| column.show(flow));
            let cells = cells.into_iter().chain(last).chain(service).map(plain).collect();
            GridRow { names: vec![flow.name.clone(), flow.cc.clone()], cells }
        };
        let title = match flows.len() > LISTED_FLOWS {
            true => format!("Flows (the first {LISTED_FLOWS} of {})", flows.len()),
            false => "Flows".into(),
        };
        Grid { title, head, rows: flows.iter().take(LISTED_FLOWS).map(row).collect() }
    }

    /// The groups of flows, where there are several.
    fn groups(&self) -> Option<Grid> {
        self.by_group("Groups of flows", &together::columns(&self.outcome.groups))
    }

    /// Round trips and one-way delays of each group.
    fn delays(&self) -> Option<Grid> {
        self.by_group("Delays", &together::delays(&self.outcome.groups))
    }

    /// A table with a row for each group; `None` without columns.
    fn by_group(&self, title: &str, columns: &[&'static Column<GroupOutcome>]) -> Option<Grid> {
        let groups = &self.outcome.groups;
        let head = ["group"].into_iter().chain(columns.iter().map(|column| column.title)).map(str::to_owned);
        let row = |group: &GroupOutcome| GridRow {
            names: vec![group.name.clone()],
            cells: columns.iter().map(|column| plain(column.show(group))).collect(),
        };
        let grid = Grid { title: title.into(), head: head.collect(), rows: groups.iter().map(row).collect() };
        (!columns.is_empty()).then_some(grid)
    }

    fn links(&self) -> Grid {
        let (columns, links) = carriage::busiest(&self.outcome.links, LISTED_FLOWS);
        let titles = columns.iter().map(|column| column.title);
        let head = ["link", "direction"].into_iter().chain(titles).map(str::to_owned).collect();
        let row = |link: &&LinkOutcome| {
            let cells = columns.iter().map(|column| plain(column.show(link))).collect();
            GridRow { names: vec![link.name.clone(), link.direction.into()], cells }
        };
        Grid { title: "Links".into(), head, rows: links.iter().map(row).collect() }
    }
}

fn plain(text: String) -> GridCell {
    GridCell { text, best: false }
}

/// A bar of a flow: its name in the legend if there are several, and the value.
type Bar = (&'static str, fn(&FlowOutcome) -> Option<f64>);

/// Charts of how applications were served, each with title, unit and bars.
const SERVED: &[(&str, &str, &[Bar])] = &[
    (
        "Pages or files",
        "s",
        &[("median", |flow| flow.transfers?.median_s), ("95 % took no longer", |flow| flow.transfers?.p95_s)],
    ),
    ("Completion time", "s", &[("", |flow| flow.completion_s.filter(|_| flow.transfers.is_none()))]),
    ("Quality of calls", "mean opinion score, 1 to 4.5", &[("", |flow| Some(flow.call?.mos))]),
    ("Live video", "real-time index", &[("", |flow| Some(flow.stream?.real_time_index))]),
    ("Adaptive video", "Mbit/s", &[("", |flow| Some(flow.player?.mean_rate_bps? / 1e6))]),
    ("Rebuffering", "% of the time", &[("", |flow| Some(100.0 * flow.player?.rebuffering_ratio))]),
];

/// Returns results of pages, calls, video and transfers, flow by flow; none if all flows are unlimited.
fn served(outcome: &Outcome) -> Option<Section> {
    let chart = |(title, unit, bars): &(&str, &str, &[Bar])| {
        let trace = |(colour, (name, value)): (usize, &Bar)| {
            let flows = outcome.flows.iter().filter_map(|flow| Some((flow, value(flow)?))).take(LISTED_FLOWS);
            let (x, y) = flows
                .map(|(flow, value)| (Position::Text(flow.name.clone()), Some(Number(value))))
                .unzip::<_, _, Vec<_>, Vec<_>>();
            // Several values of one flow are marks side by side.
            let style = if bars.len() > 1 { Style::Places } else { Style::Bars };
            Trace { name: (*name).into(), x, y, colour, style, legend: bars.len() > 1, ..Trace::default() }
        };
        let traces: Vec<Trace> =
            bars.iter().enumerate().map(trace).filter(|trace| !trace.x.is_empty()).collect();
        let x = Axis { scale: Scale::Category, ..Axis::default() };
        let y = Axis { title: (*unit).into(), ..Axis::default() };
        Figure {
            title: (*title).into(),
            wide: traces.iter().any(|trace| trace.x.len() > 12),
            x,
            y,
            traces,
            ..Figure::default()
        }
    };
    let figures: Vec<Figure> = SERVED.iter().map(chart).filter(|figure| !figure.traces.is_empty()).collect();
    let is_some = !figures.is_empty();
    is_some.then(|| Section::new("How applications were served", String::new(), [], figures))
}

/// Returns the flows with curves: the first ones that fit, in all of these runs.
pub(super) fn drawn_flows(runs: &[&Series]) -> Vec<String> {
    let mut left = DRAWN_POINTS;
    let points = |flow: &FlowSeries| {
        let curves =
            [&flow.cwnd, &flow.ssthresh, &flow.srtt_ms, &flow.sent, &flow.retransmitted, &flow.acked];
        curves.into_iter().map(|curve| curve.len().min(POINTS_PER_TRACE)).sum::<usize>()
    };
    let cost = |name: &str| -> usize {
        runs.iter().flat_map(|run| &run.flows).filter(|flow| flow.name == name).map(points).sum()
    };
    let names = runs.first().map_or(&[][..], |run| &run.flows).iter().map(|flow| &flow.name);
    let fits = |name: &&String| {
        let room = left.checked_sub(cost(name));
        left = room.unwrap_or(0);
        room.is_some()
    };
    names.take_while(fits).cloned().collect()
}

/// The curves of one flow: in a colour, under a name, shown by options.
pub(super) struct Curves {
    pub colour: usize,
    pub name: String,
    pub options: Vec<Pick>,
    pub series: FlowSeries,
}

impl Curves {
    fn trace(&self, points: &[(f64, f64)], style: Style) -> Trace {
        Trace::over_time(&self.name, points, style).shown_by(&self.options).coloured(self.colour)
    }

    /// Extends a step function to the end of the flow.
    fn held(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let FlowSeries { cwnd, ssthresh, srtt_ms, sent, retransmitted, acked, .. } = &self.series;
        let curves = [cwnd, ssthresh, srtt_ms, sent, retransmitted, acked];
        let end = curves.into_iter().filter_map(|curve| Some(curve.last()?.0)).fold(0.0, f64::max);
        let last = points.last().filter(|last| last.0 < end).map(|last| (end, last.1));
        points.iter().copied().chain(last).collect()
    }

    fn second(&self, what: &str, points: &[(f64, f64)], style: Style) -> Trace {
        Trace { name: format!("{} {what}", self.name), ..self.trace(points, style).without_legend() }
    }
}

/// Window, round-trip time and sequence numbers of some flows.
pub(super) fn flow_figures(curves: &[Curves]) -> Vec<Figure> {
    let mut window = Figure::over_time("Congestion window", "Dashed: slow-start threshold.", "segments");
    let mut rtt = Figure::over_time("Round-trip time", "Smoothed, as the sender estimates it.", "ms");
    rtt.y.close = true;
    let sequence = "Lines: first transmissions and, thinner, acknowledgements. Crosses: retransmissions.";
    let mut sequence = Figure { wide: true, ..Figure::over_time("Sequence numbers", sequence, "segments") };
    for of in curves {
        window.traces.push(of.trace(&of.held(&of.series.cwnd), Style::Step));
        window.traces.push(of.second("ssthresh", &of.held(&of.series.ssthresh), Style::Dashed));
        rtt.traces.push(of.trace(&of.held(&of.series.srtt_ms), Style::Line));
        sequence.traces.push(of.trace(&of.series.sent, Style::Line));
        sequence.traces.push(of.second("acknowledged", &of.series.acked, Style::Step));
        sequence.traces.push(of.second("retransmitted", &of.series.retransmitted, Style::Marks));
    }
    let mut figures = vec![window, rtt, sequence];
    for figure in &mut figures {
        figure.traces.retain(|trace| !trace.x.is_empty());
    }
    figures
}

/// Queue length and drops of some links, each with its colour, name and options.
pub(super) fn queue_figure<'a>(
    links: impl Iterator<Item = (usize, (String, Vec<Pick>, &'a LinkSeries))>,
) -> Figure {
    let mut figure = Figure::over_time("Queue", "Packets waiting. Crosses: drops.", "packets");
    figure.wide = true;
    for (colour, (name, options, link)) in links {
        let drops = Trace::over_time(format!("{name} drops"), &link.drops, Style::Marks);
        let waiting = Trace::over_time(name, &link.queue_packets, Style::Thin);
        figure.traces.push(waiting.coloured(colour).shown_by(&options));
        figure.traces.push(drops.coloured(colour).shown_by(&options).without_legend());
    }
    figure.traces.retain(|trace| !trace.x.is_empty());
    figure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use bentpipe_scenario::builtin;

    #[test]
    fn any_flow_can_be_chosen_and_one_alone_is_shown() {
        let (outcome, series) = (example::outcome("reno", 1), example::series());
        let world = World::of(&builtin("geo-single").unwrap()).unwrap();
        let sections = |flows: usize| {
            let flow = |index| FlowSeries { name: format!("bulk.{index}"), ..series.flows[0].clone() };
            let series = Series { flows: (0..flows).map(flow).collect(), ..series.clone() };
            let provenance = &Provenance::default();
            RunPage { provenance, world: &world, outcome: &outcome, series: &series }.sections()
        };
        let one = &sections(1)[0];
        assert!(one.choices.is_empty());
        assert!(one.figures.iter().flat_map(|figure| &figure.traces).all(|trace| trace.shown_by.is_empty()));
        let many = &sections(30)[0];
        assert_eq!((many.choices[0].options.len(), many.choices[0].on.len()), (30, 2));
        let drawn = |name: &str| many.figures[0].traces.iter().any(|trace| trace.name == name);
        assert!(drawn("bulk.0") && drawn("bulk.29"));
        assert!(sections(2000)[0].intro.ends_with("of 2000 flows."));
    }

    #[test]
    fn a_page_holds_everything_and_asks_for_nothing() {
        let provenance = Provenance { toml: "a = \"</script><b>\"".into(), ..Provenance::default() };
        let (outcome, series) = (example::outcome("peach", 4), example::series());
        let world = World::of(&builtin("geo-dumbbell").unwrap()).unwrap();
        let page = RunPage { provenance: &provenance, world: &world, outcome: &outcome, series: &series };
        let html = page.render().unwrap();
        for wanted in ["Congestion window", "Sequence numbers", "Queue", "bulk.1", "sender × 20", "&lt;b&gt;"]
        {
            assert!(html.contains(wanted), "{wanted}");
        }
        for tag in [" src=", "<link", "@import", "url("] {
            assert!(!html.contains(tag), "{tag}");
        }
    }
}
