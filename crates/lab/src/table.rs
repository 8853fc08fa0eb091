//! Results for the terminal.

use bentpipe_sim::Outcome;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

use crate::comparison::{Comparison, Metric, Row};
use crate::number::{plus_minus, rate_unit, short};
use crate::plan::Setting;
use crate::{carriage, service};

/// How wide a table may be and whether it may use colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// Columns of the terminal; `None` where the output is no terminal.
    pub width: Option<u16>,
    /// Colour and weight.
    pub colour: bool,
}

fn new_table(look: Look) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED.with_rounded_corners())
        .set_content_arrangement(ContentArrangement::Dynamic);
    match look.width {
        Some(width) => table.set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if look.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn heads<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Cell> {
    names.into_iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)).collect()
}

/// The comparison as text: goodput by varied value and algorithm, then what else was measured.
pub fn comparison(comparison: &Comparison, look: Look) -> String {
    let largest =
        comparison.rows.iter().filter_map(|row| row.summary(Metric::Goodput).mean).fold(0.0, f64::max);
    let unit = rate_unit(largest);
    let mut text = format!("Goodput of all flows together, {}, mean ± 95 % over seeds\n", unit.1);
    text += &goodput(comparison, unit.0, look);
    text += "\n\nWhat it cost (means over seeds)\n";
    text += &costs(comparison, look);
    if comparison.rows.iter().any(|row| row.groups().len() > 1) {
        text += "\n\nGoodput of one flow by group, Mbit/s\n";
        text += &groups(comparison, look);
    }
    text
}

/// More algorithms than this stand below each other: beside each other they fit no terminal.
const MOST_COLUMNS: usize = 8;

fn goodput(comparison: &Comparison, divisor: f64, look: Look) -> String {
    let algorithms = comparison.algorithms();
    if algorithms.len() > MOST_COLUMNS {
        return goodput_below_each_other(comparison, divisor, look);
    }
    let mut table = new_table(look);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    table.set_header(heads(keys.iter().map(|s| s.key.as_str()).chain(algorithms.iter().copied())));
    for vary in comparison.combinations() {
        let mean = |cc: &str| comparison.row(cc, vary).and_then(|row| row.summary(Metric::Goodput).mean);
        let best = algorithms.iter().filter_map(|cc| mean(cc)).fold(f64::NEG_INFINITY, f64::max);
        let cell = |cc: &&str| {
            let summary =
                comparison.row(cc, vary).map(|row| row.summary(Metric::Goodput)).unwrap_or_default();
            let cell = right(plus_minus(summary, divisor));
            let is_best = algorithms.len() > 1 && summary.mean == Some(best);
            if is_best { cell.fg(Color::Green).add_attribute(Attribute::Bold) } else { cell }
        };
        table.add_row(values(vary).chain(algorithms.iter().map(cell)));
    }
    table.to_string()
}

/// One line for each algorithm, one column for each combination of varied values.
fn goodput_below_each_other(comparison: &Comparison, divisor: f64, look: Look) -> String {
    let mut table = new_table(look);
    let combinations = comparison.combinations();
    let heading = |vary: &&[Setting]| {
        let values: Vec<_> = vary.iter().map(|setting| setting.value.to_string()).collect();
        if values.is_empty() { "goodput".to_owned() } else { values.join(", ") }
    };
    let headings: Vec<_> = combinations.iter().map(heading).collect();
    table.set_header(heads(std::iter::once("cc").chain(headings.iter().map(String::as_str))));
    let summary = |cc: &str, vary: &[Setting]| {
        comparison.row(cc, vary).map(|row| row.summary(Metric::Goodput)).unwrap_or_default()
    };
    let algorithms = comparison.algorithms();
    for cc in &algorithms {
        let cell = |vary: &&[Setting]| {
            let best = algorithms.iter().filter_map(|other| summary(other, vary).mean).fold(0.0, f64::max);
            let own = summary(cc, vary);
            let cell = right(plus_minus(own, divisor));
            if own.mean == Some(best) { cell.fg(Color::Green).add_attribute(Attribute::Bold) } else { cell }
        };
        table.add_row(std::iter::once(Cell::new(cc)).chain(combinations.iter().map(cell)));
    }
    table.to_string()
}

fn values(vary: &[Setting]) -> impl Iterator<Item = Cell> {
    vary.iter().map(|setting| right(&setting.value))
}

/// The varied values before the first algorithm, nothing before the others.
fn values_once(index: usize, vary: &[Setting]) -> impl Iterator<Item = Cell> {
    vary.iter().map(move |setting| if index == 0 { right(&setting.value) } else { right("") })
}

fn costs(comparison: &Comparison, look: Look) -> String {
    let mut table = new_table(look);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    let completes = comparison.rows.iter().any(|row| row.summary(Metric::Completion).mean.is_some());
    let metrics = ["fairness (Jain)", "segments sent again", "timeouts", "probe overhead"];
    let last = completes.then_some("completion, s");
    let optional = comparison.optional_metrics();
    let (titles, units): (Vec<String>, Vec<f64>) = optional.iter().map(|metric| heading(*metric)).unzip();
    let keys = keys.iter().map(|s| s.key.as_str());
    let titles = titles.iter().map(String::as_str);
    table.set_header(heads(keys.chain(["cc"]).chain(metrics).chain(last).chain(titles)));
    for vary in comparison.combinations() {
        let rows = comparison.algorithms().into_iter().filter_map(|cc| comparison.row(cc, vary));
        for (index, row) in rows.enumerate() {
            let cells = values_once(index, vary).chain([Cell::new(&row.cell.cc)]).chain(cost_cells(row));
            let completion = completes.then(|| mean(row, Metric::Completion));
            let optional = optional.iter().zip(&units).map(|(metric, unit)| mean_in(row, *metric, *unit));
            table.add_row(cells.chain(completion).chain(optional));
        }
    }
    table.to_string()
}

fn cost_cells(row: &Row) -> impl Iterator<Item = Cell> {
    let overhead = row.summary(Metric::ProbeOverhead).mean.unwrap_or(0.0) * 100.0;
    let overhead = if overhead == 0.0 { "–".into() } else { format!("{overhead:.2} %") };
    let jain = row.summary(Metric::Jain).mean.map_or("–".into(), |jain| format!("{jain:.3}"));
    let cells =
        [right(jain), mean(row, Metric::Retransmissions), mean(row, Metric::Timeouts), right(overhead)];
    cells.into_iter()
}

fn mean(row: &Row, metric: Metric) -> Cell {
    mean_in(row, metric, 1.0)
}

fn mean_in(row: &Row, metric: Metric, unit: f64) -> Cell {
    right(row.summary(metric).mean.map_or("–".into(), |mean| short(mean / unit)))
}

/// The name of a metric for people, with the unit that they read it in, and how many of the document's units that is.
fn heading(metric: Metric) -> (String, f64) {
    let name = metric.key();
    let units = [("_bps", ", Mbit/s", 1e6), ("_ms", ", ms", 1.0), ("_s", ", s", 1.0)];
    let found = units.iter().find_map(|(ending, unit, per)| Some((name.strip_suffix(ending)?, *unit, *per)));
    let (name, unit, per) = found.unwrap_or((name, "", 1.0));
    (name.replace('_', " ") + unit, per)
}

fn groups(comparison: &Comparison, look: Look) -> String {
    let mut table = new_table(look);
    let Some(first) = comparison.rows.first() else { return String::new() };
    let names: Vec<String> = first.groups().into_keys().map(str::to_owned).collect();
    let keys = first.cell.vary.iter().map(|setting| setting.key.as_str());
    table.set_header(heads(keys.chain(["cc"]).chain(names.iter().map(String::as_str))));
    for vary in comparison.combinations() {
        let rows = comparison.algorithms().into_iter().filter_map(|cc| comparison.row(cc, vary));
        for (index, row) in rows.enumerate() {
            let found = row.groups();
            let cell =
                |name: &String| right(plus_minus(found.get(name.as_str()).copied().unwrap_or_default(), 1e6));
            table.add_row(
                values_once(index, vary).chain([Cell::new(&row.cell.cc)]).chain(names.iter().map(cell)),
            );
        }
    }
    table.to_string()
}

/// Flows beyond these are summed up in one line.
const SHOWN_FLOWS: usize = 30;

/// A run as text: flows, links, totals.
pub fn outcome(outcome: &Outcome, look: Look) -> String {
    let totals = &outcome.totals;
    let unit = rate_unit(totals.goodput_bps);
    let mut text = flows(outcome, look);
    if let Some(more) = outcome.flows.len().checked_sub(SHOWN_FLOWS).filter(|more| *more > 0) {
        text += &format!("\n… and {more} more flows");
    }
    text += &format!("\n\n{}", links(outcome, look));
    if let Some(more) = outcome.links.len().checked_sub(SHOWN_LINKS).filter(|more| *more > 0) {
        text += &format!("\n… and {more} more, less busy");
    }
    if !outcome.nodes.is_empty() {
        text += &format!("\n\n{}", nodes(outcome, look));
    }
    text += "\n\n";
    if promised(outcome) > 0 {
        let bytes = promised(outcome);
        text += &format!(
            "{bytes} bytes were acknowledged by proxies and had not reached their receivers at the end\n"
        );
    }
    text += &format!(
        "{} {} in all, fairness {:.3} (Jain), {} data packets delivered in {:.0} s\n",
        short(totals.goodput_bps / unit.0),
        unit.1,
        totals.jain_index,
        totals.data_packets_delivered,
        outcome.simulated_s,
    );
    text +=
        &format!("seed {}, {} events, {:.2} s of real time", outcome.seed, outcome.events, outcome.wall_s);
    text
}

fn flows(outcome: &Outcome, look: Look) -> String {
    let mut table = new_table(look);
    let largest = outcome.flows.iter().map(|flow| flow.goodput_bps).fold(0.0, f64::max);
    let unit = rate_unit(largest);
    let goodput = format!("goodput, {}", unit.1);
    let probes = outcome.flows.iter().any(|flow| flow.probes_sent > 0);
    let completes = outcome.flows.iter().any(|flow| flow.completion_s.is_some());
    let fixed = ["flow", "cc", &goodput, "sent", "sent again", "timeouts", "RTT, ms"];
    let optional = probes.then_some("probes").into_iter().chain(completes.then_some("completion, s"));
    let service = service::columns(&outcome.flows);
    let titles = service.iter().map(|column| column.title);
    table.set_header(heads(fixed.into_iter().chain(optional).chain(titles)));
    for flow in outcome.flows.iter().take(SHOWN_FLOWS) {
        let mut name = flow.name.clone();
        if let Some(cause) = flow.aborted {
            name += &format!(" (ended early: {cause})");
        }
        let mut row = vec![Cell::new(name), Cell::new(&flow.cc), right(short(flow.goodput_bps / unit.0))];
        row.extend([flow.sent_segments, flow.retransmitted_segments, flow.timeouts].map(right));
        row.push(right(flow.srtt_ms.map_or("–".into(), |rtt| format!("{rtt:.1}"))));
        row.extend(probes.then(|| right(flow.probes_sent)));
        row.extend(completes.then(|| right(flow.completion_s.map_or("–".into(), short))));
        row.extend(service.iter().map(|column| right(column.show(flow))));
        table.add_row(row);
        for leg in flow.split.iter().flat_map(|split| &split.legs) {
            let mut row = vec![Cell::new(format!("  {}", leg.name)), Cell::new(&leg.cc), right("")];
            row.extend([leg.sent_segments, leg.retransmitted_segments, leg.timeouts].map(right));
            row.push(right(leg.srtt_ms.map_or("–".into(), |rtt| format!("{rtt:.1}"))));
            table.add_row(row);
        }
    }
    table.to_string()
}

/// What the helpers inside the network counted.
fn nodes(outcome: &Outcome, look: Look) -> String {
    let mut table = new_table(look);
    table.set_header(heads(["node", "kind", "counted"]));
    for node in &outcome.nodes {
        let counters =
            node.counters.iter().map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
        let counters = counters.collect::<Vec<_>>().join(", ");
        table.add_row([Cell::new(&node.name), Cell::new(node.kind), Cell::new(counters)]);
    }
    table.to_string()
}

/// Bytes that proxies acknowledged and that had not arrived at the end.
fn promised(outcome: &Outcome) -> u64 {
    outcome
        .flows
        .iter()
        .filter_map(|flow| flow.split.as_ref())
        .map(|split| split.acked_undelivered_bytes)
        .sum()
}

/// So many links are shown, the busiest.
const SHOWN_LINKS: usize = 12;

fn links(outcome: &Outcome, look: Look) -> String {
    let mut table = new_table(look);
    let (columns, links) = carriage::busiest(&outcome.links, SHOWN_LINKS);
    table.set_header(heads(["link", ""].into_iter().chain(columns.iter().map(|column| column.title))));
    for link in links {
        let mut row = vec![Cell::new(&link.name), Cell::new(link.direction)];
        row.extend(columns.iter().map(|column| right(column.show(link))));
        table.add_row(row);
    }
    table.to_string()
}

/// Lines of words in columns, the first of them the name.
pub fn list(lines: &[Vec<String>], look: Look) -> String {
    let mut table = new_table(look);
    table.load_style(presets::NOTHING);
    for line in lines {
        let cell = |(column, text): (usize, &String)| match column {
            0 if look.colour => Cell::new(text).add_attribute(Attribute::Bold),
            _ => Cell::new(text),
        };
        table.add_row(line.iter().enumerate().map(cell));
    }
    format!("{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use bentpipe_sim::{LegOutcome, NodeOutcome, SplitOutcome};

    #[test]
    fn a_comparison_reads_like_a_table() {
        let text = comparison(&example::comparison(), Look::default());
        println!("{text}");
        let line = |key: &str| text.lines().find(|line| line.contains(key)).unwrap().to_owned();
        assert!(line("1e-4").contains("404.0 ± 5.0"), "{text}");
        assert!(line("1e-4").contains("804.0 ± 5.0"), "{text}");
        assert!(text.contains("5.00 %"), "{text}");
        assert!(!text.contains('\u{1b}'), "no colour unless asked for");
        let look = Look { colour: true, width: Some(80) };
        assert!(comparison(&example::comparison(), look).contains('\u{1b}'));
    }

    #[test]
    fn headings_name_the_unit_that_people_read() {
        let heads = [Metric::Throughput, Metric::Convergence, Metric::Gap, Metric::Mos].map(heading);
        let expected = [("throughput, Mbit/s", 1e6), ("convergence, s", 1.0), ("gap, ms", 1.0), ("mos", 1.0)];
        assert_eq!(heads, expected.map(|(name, unit)| (name.to_owned(), unit)));
    }

    /// Ten algorithms at two loss rates: a line each, and no line wider than a terminal.
    #[test]
    fn many_algorithms_stand_below_each_other() {
        let mut many = example::comparison();
        let peach: Vec<_> = many.rows.iter().filter(|row| row.cell.cc == "peach").cloned().collect();
        for number in 0..8 {
            many.rows.extend(peach.iter().cloned().map(|mut row| {
                row.cell.cc = format!("peach-{number}");
                row
            }));
        }
        let text = comparison(&many, Look::default());
        let goodput = text.split("What it cost").next().expect("it comes first");
        assert!(goodput.lines().all(|line| line.chars().count() <= 80), "{goodput}");
        for name in ["reno", "peach", "peach-7"] {
            let line = goodput.lines().find(|line| line.contains(&format!("│ {name} "))).expect(name);
            assert_eq!(line.matches('±').count(), 2, "{line}");
        }
    }

    #[test]
    fn a_run_reads_like_a_table() {
        let text = outcome(&example::outcome("peach", 1), Look::default());
        println!("{text}");
        assert!(text.contains("bulk.1"));
        assert!(text.contains("802.0 kbit/s in all"));
        assert!(!text.contains("by proxies"));
    }

    #[test]
    fn what_happened_inside_the_network_stands_below_and_beside() {
        let mut run = example::outcome("peach", 1);
        let leg = LegOutcome {
            name: "bulk.1.gateway".into(),
            cc: "hybla".into(),
            sent_segments: 4321,
            retransmitted_segments: 7,
            timeouts: 0,
            srtt_ms: Some(548.25),
        };
        run.flows[1].split = Some(SplitOutcome { acked_undelivered_bytes: 64_000, legs: vec![leg] });
        let counters = [("relayed_bytes", 5_000_000), ("crashes", 1)].into_iter().collect();
        run.nodes = vec![NodeOutcome { name: "gateway".into(), kind: "proxy", counters }];
        let text = outcome(&run, Look::default());
        for part in
            ["bulk.1.gateway", "4321", "548.2", "crashes 1, relayed bytes 5000000", "64000 bytes were"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
