//! The report of one run.

use bentpipe_sim::{FlowOutcome, FlowSeries, LinkOutcome, LinkSeries, Outcome, Series};

use super::figure::{Axis, Choice, Figure, Scale, Section, Style, Trace};
use super::{Grid, GridCell, GridRow, Page, Provenance, World, render};
use crate::number::{rate_unit, short};
use crate::{carriage, service};

/// What the report of one run shows.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// Where it comes from.
    pub provenance: &'a Provenance,
    /// What it shows of the scenario.
    pub world: &'a World,
    /// What was measured.
    pub outcome: &'a Outcome,
    /// What happened over time.
    pub series: &'a Series,
}

/// Flows with curves of their own.
const DRAWN_FLOWS: usize = 8;
/// Rows of the table of flows.
const LISTED_FLOWS: usize = 200;

impl RunPage<'_> {
    /// The page as HTML.
    ///
    /// # Errors
    /// Only if the template does not fit the code.
    pub fn render(&self) -> Result<String, minijinja::Error> {
        let totals = &self.outcome.totals;
        let unit = rate_unit(totals.goodput_bps);
        let page = Page {
            heading: self.outcome.scenario.clone(),
            finding: format!(
                "{} flows carried {} {} in all over {} s; {}.",
                self.outcome.flows.len(),
                short(totals.goodput_bps / unit.0),
                unit.1,
                short(self.outcome.simulated_s),
                fairness(totals.jain_index),
            ),
            facts: self.facts(),
            network: None,
            drawn_at: String::new(),
            sections: self.sections(),
            grids: vec![self.flows(), self.links()],
        };
        render(&self.world.shown_on(page), self.provenance)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let totals = &self.outcome.totals;
        let unit = rate_unit(totals.goodput_bps);
        vec![
            ("goodput of all flows", format!("{} {}", short(totals.goodput_bps / unit.0), unit.1)),
            ("fairness (Jain)", format!("{:.3}", totals.jain_index)),
            (
                "segments sent again",
                self.outcome.flows.iter().map(|f| f.retransmitted_segments).sum::<u64>().to_string(),
            ),
            ("timeouts", self.outcome.flows.iter().map(|f| f.timeouts).sum::<u64>().to_string()),
            ("probe overhead", format!("{:.2} %", 100.0 * totals.probe_overhead)),
            ("seed", self.outcome.seed.to_string()),
        ]
    }

    fn sections(&self) -> Vec<Section> {
        let drawn: Vec<&FlowSeries> = self.series.flows.iter().take(DRAWN_FLOWS).collect();
        let all = self.series.flows.len();
        let intro = match all > drawn.len() {
            true => format!("The first {} of {all} flows.", drawn.len()),
            false => String::new(),
        };
        let curves = |(colour, flow): (usize, &&FlowSeries)| Curves {
            colour,
            name: flow.name.clone(),
            options: vec![flow.name.clone()],
            series: (*flow).clone(),
        };
        let curves: Vec<Curves> = drawn.iter().enumerate().map(curves).collect();
        let mut figures = flow_figures(&curves);
        let links = self.series.links.iter().map(|link| (link.name.clone(), Vec::new(), link));
        figures.push(queue_figure(links.enumerate()));
        figures.retain(|figure| !figure.traces.is_empty());
        let names: Vec<String> = drawn.iter().map(|flow| flow.name.clone()).collect();
        let first = names[..names.len().min(2)].to_vec();
        let choices = Choice::of("Flows", names, &first).into_iter().collect();
        vec![Section { title: "Over time".into(), intro, choices, figures }]
    }

    fn flows(&self) -> Grid {
        let flows = &self.outcome.flows;
        let unit = rate_unit(flows.iter().map(|flow| flow.goodput_bps).fold(0.0, f64::max));
        let completes = flows.iter().any(|flow| flow.completion_s.is_some());
        let goodput = format!("goodput, {}", unit.1);
        let head = ["flow", "algorithm", &goodput, "sent", "sent again", "timeouts", "probes", "RTT, ms"];
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

fn fairness(jain: f64) -> &'static str {
    match jain {
        x if x > 0.95 => "they shared evenly",
        x if x > 0.8 => "they shared fairly evenly",
        _ => "they shared unevenly",
    }
}

/// The curves of one flow: in a colour, under a name, shown by options.
pub(super) struct Curves {
    pub colour: usize,
    pub name: String,
    pub options: Vec<String>,
    pub series: FlowSeries,
}

impl Curves {
    fn trace(&self, points: &[(f64, f64)], style: Style) -> Trace {
        Trace::over_time(&self.name, points, style).shown_by(&self.options).coloured(self.colour)
    }

    fn second(&self, what: &str, points: &[(f64, f64)], style: Style) -> Trace {
        Trace { name: format!("{} {what}", self.name), ..self.trace(points, style).without_legend() }
    }
}

fn over_time(title: &str, caption: &str, unit: &str) -> Figure {
    Figure {
        title: title.into(),
        caption: caption.into(),
        x: Axis { title: "time, s".into(), scale: Scale::Time, ..Axis::default() },
        y: Axis { title: unit.into(), ..Axis::default() },
        ..Figure::default()
    }
}

/// Window, round-trip time and sequence numbers of some flows.
pub(super) fn flow_figures(curves: &[Curves]) -> Vec<Figure> {
    let mut window = over_time("Congestion window", "Dashed: slow-start threshold.", "segments");
    let mut rtt = over_time("Round-trip time", "Smoothed, as the sender estimates it.", "ms");
    rtt.y.close = true;
    let sequence = "Lines: first transmissions and, thinner, acknowledgements. Crosses: retransmissions.";
    let mut sequence = Figure { wide: true, ..over_time("Sequence numbers", sequence, "segments") };
    for of in curves {
        window.traces.push(of.trace(&of.series.cwnd, Style::Step));
        window.traces.push(of.second("ssthresh", &of.series.ssthresh, Style::Dashed));
        rtt.traces.push(of.trace(&of.series.srtt_ms, Style::Line));
        sequence.traces.push(of.trace(&of.series.sent, Style::Line));
        sequence.traces.push(of.second("acknowledged", &of.series.acked, Style::Step));
        sequence.traces.push(of.second("sent again", &of.series.retransmitted, Style::Marks));
    }
    let mut figures = vec![window, rtt, sequence];
    for figure in &mut figures {
        figure.traces.retain(|trace| !trace.x.is_empty());
    }
    figures
}

/// Queue length and drops of some links, each with its colour, name and options.
pub(super) fn queue_figure<'a>(
    links: impl Iterator<Item = (usize, (String, Vec<String>, &'a LinkSeries))>,
) -> Figure {
    let mut figure = over_time("Queue", "Packets waiting. Crosses: drops.", "packets");
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
            let ours = html.replace(super::super::PLOTLY, "");
            assert!(!ours.contains(tag), "{tag}");
        }
    }
}
