//! Results for the terminal.

use bentpipe_outcome::{GroupOutcome, Outcome};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets,
};

use crate::column::Column;
use crate::comparison::{Comparison, Row};
use crate::metric::Metric;
use crate::number::{RATE_UNIT, p_value, plus_minus, short};
use crate::plan::Setting;
use crate::stats::Summary;
use crate::{carriage, service, together};

/// Width of a table, and use of colour.
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

/// Returns the comparison as text: the main metric by varied value and algorithm, then the other metrics.
pub fn comparison(comparison: &Comparison, look: Look) -> String {
    let (title, unit, divisor) = comparison.measures.shown();
    let over = match comparison.seeds {
        1 => "",
        _ if comparison.is_certain() => "; nothing is random here, every seed gives the same",
        _ => ", mean ± 95 % over seeds",
    };
    let whose = if comparison.measures == Metric::Goodput { " of all flows together" } else { "" };
    let mut text = format!("{title}{whose}, {unit}{over}\n");
    text += &main_table(comparison, divisor, look);
    for note in &comparison.notes {
        text += &format!("\n{note}");
    }
    if comparison.seeds > 1 && comparison.algorithms().len() > 1 {
        text += &differences(comparison, look);
    }
    text += "\n\nWhat it cost (means over seeds)\n";
    text += &costs(comparison, look);
    if comparison.rows.iter().any(|row| row.groups().len() > 1) {
        text += "\n\nGoodput of one flow by group, Mbit/s\n";
        text += &groups(comparison, look);
    }
    text
}

/// Returns differences from the baseline in the main metric.
fn differences(comparison: &Comparison, look: Look) -> String {
    let (title, unit, divisor) = comparison.measures.shown();
    let mut table = new_table(look);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    let keys = keys.iter().map(|setting| setting.key.as_str());
    table.set_header(heads(keys.chain(["cc", "difference", "p (Holm)"])));
    let differences = comparison.differences(comparison.measures);
    for (row, difference) in comparison.rows.iter().zip(differences) {
        let Some(difference) = difference else { continue };
        let p = right(difference.p_holm.map_or("–".into(), p_value));
        let cells = [Cell::new(&row.cell.cc), right(plus_minus(difference.summary, divisor)), p];
        table.add_row(values(&row.cell.vary).chain(cells));
    }
    let baseline = &comparison.baseline;
    format!("\n\n{title}, {unit}: difference from {baseline} with the same seed, mean ± 95 %\n{table}")
}

/// Maximum number of algorithms as columns: more are rows, because they do not fit a terminal.
const MOST_COLUMNS: usize = 8;

fn main_table(comparison: &Comparison, divisor: f64, look: Look) -> String {
    let algorithms = comparison.algorithms();
    if algorithms.len() > MOST_COLUMNS {
        return main_table_below_each_other(comparison, divisor, look);
    }
    let mut table = new_table(look);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    table.set_header(heads(keys.iter().map(|s| s.key.as_str()).chain(algorithms.iter().copied())));
    for vary in comparison.combinations() {
        let cells = main_cells(comparison, vary, divisor);
        table.add_row(values(vary).chain(cells));
    }
    table.to_string()
}

/// Returns the main metric of each algorithm at one combination of varied values. The best value is bold if its difference from every
/// other is significant.
fn main_cells(comparison: &Comparison, vary: &[Setting], divisor: f64) -> Vec<Cell> {
    let summary =
        |cc: &str| comparison.row(cc, vary).map(|row| row.summary(comparison.measures)).unwrap_or_default();
    let summaries: Vec<Summary> = comparison.algorithms().into_iter().map(summary).collect();
    let best = comparison.best(vary).filter(|_| summaries.len() > 1);
    let cell = |(place, summary): (usize, &Summary)| {
        let cell = right(plus_minus(*summary, divisor));
        if best == Some(place) { cell.fg(Color::Green).add_attribute(Attribute::Bold) } else { cell }
    };
    summaries.iter().enumerate().map(cell).collect()
}

/// One line for each algorithm, one column for each combination of varied values.
fn main_table_below_each_other(comparison: &Comparison, divisor: f64, look: Look) -> String {
    let mut table = new_table(look);
    let combinations = comparison.combinations();
    let heading = |vary: &&[Setting]| {
        let values: Vec<_> = vary.iter().map(|setting| setting.value.to_string()).collect();
        if values.is_empty() { comparison.measures.shown().0.to_lowercase() } else { values.join(", ") }
    };
    let headings: Vec<_> = combinations.iter().map(heading).collect();
    table.set_header(heads(std::iter::once("cc").chain(headings.iter().map(String::as_str))));
    let columns: Vec<Vec<Cell>> =
        combinations.iter().map(|vary| main_cells(comparison, vary, divisor)).collect();
    for (line, cc) in comparison.algorithms().into_iter().enumerate() {
        let cells = columns.iter().map(|column| column[line].clone());
        table.add_row(std::iter::once(Cell::new(cc)).chain(cells));
    }
    table.to_string()
}

fn values(vary: &[Setting]) -> impl Iterator<Item = Cell> {
    vary.iter().map(|setting| right(&setting.value))
}

/// Returns the varied values for the first algorithm, and empty cells for the others.
fn values_once(index: usize, vary: &[Setting]) -> impl Iterator<Item = Cell> {
    vary.iter().map(move |setting| if index == 0 { right(&setting.value) } else { right("") })
}

/// Returns the other metrics; goodput and completion time are among them if they are not the main metric.
fn costs(comparison: &Comparison, look: Look) -> String {
    let mut table = new_table(look);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    let has = |metric: &Metric| comparison.rows.iter().any(|row| row.summary(*metric).mean.is_some());
    let fixed = ["fairness (Jain)", "retransmitted", "timeouts", "probe overhead"];
    let others = [Metric::Goodput, Metric::Completion].into_iter().filter(has);
    let others = others.chain(comparison.optional_metrics());
    let others = others.filter(|metric| *metric != comparison.measures && !metric.is_left_to_files());
    let mut others: Vec<Metric> = others.collect();
    if comparison.rows.iter().any(|row| row.part(comparison.measures).is_some()) {
        others.insert(0, comparison.measures);
    }
    let titles: Vec<String> = others.iter().map(|metric| heading(*metric)).collect();
    let keys = keys.iter().map(|s| s.key.as_str());
    let titles = titles.iter().map(String::as_str);
    table.set_header(heads(keys.chain(["cc"]).chain(fixed).chain(titles)));
    for vary in comparison.combinations() {
        let rows = comparison.algorithms().into_iter().filter_map(|cc| comparison.row(cc, vary));
        for (index, row) in rows.enumerate() {
            let cells = values_once(index, vary).chain([Cell::new(&row.cell.cc)]).chain(cost_cells(row));
            table.add_row(cells.chain(others.iter().map(|metric| mean(row, *metric))));
        }
    }
    hide_empty(&mut table);
    table.to_string()
}

/// Hides the columns in which no row has a value.
fn hide_empty(table: &mut Table) {
    for index in 0..table.column_count() {
        let empty = table.column_cells_iter(index).all(|cell| cell.is_some_and(|cell| cell.content() == "–"));
        if let Some(column) = table.column_mut(index).filter(|_| empty) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
}

fn cost_cells(row: &Row) -> impl Iterator<Item = Cell> {
    let overhead = row.summary(Metric::ProbeOverhead).mean.unwrap_or(0.0) * 100.0;
    let overhead = if overhead == 0.0 { "–".into() } else { format!("{overhead:.2} %") };
    let jain = row.summary(Metric::Jain).mean.map_or("–".into(), |jain| format!("{jain:.3}"));
    let cells =
        [right(jain), mean(row, Metric::Retransmissions), mean(row, Metric::Timeouts), right(overhead)];
    cells.into_iter()
}

/// Returns the mean of a metric, and the number of flows with a value if some have none.
fn mean(row: &Row, metric: Metric) -> Cell {
    let text = row.summary(metric).mean.map_or("–".into(), |mean| short(mean / metric.shown().2));
    right(match row.part(metric) {
        Some(share) if share.count > 0 => format!("{text} ({} of {})", share.count, share.of),
        _ => text,
    })
}

/// The name of a metric for people, with the unit that they read it in.
fn heading(metric: Metric) -> String {
    let (_, unit, _) = metric.shown();
    let name = ["_bps", "_ms", "_s"].iter().find_map(|ending| metric.key().strip_suffix(ending));
    let (name, unit) = match name {
        Some(name) => (name, format!(", {unit}")),
        None if unit.starts_with('%') => (metric.key(), ", %".to_owned()),
        None => (metric.key(), String::new()),
    };
    name.replace('_', " ") + &unit
}

fn groups(comparison: &Comparison, look: Look) -> String {
    let mut table = new_table(look);
    let Some(first) = comparison.rows.first() else { return String::new() };
    let names = &comparison.groups;
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
    let unit = RATE_UNIT;
    let mut text = flows(outcome, look);
    if let Some(more) = outcome.flows.len().checked_sub(SHOWN_FLOWS).filter(|more| *more > 0) {
        text += &format!("\n… and {more} more flows");
    }
    let together = together::columns(&outcome.groups);
    if !together.is_empty() {
        text += &format!("\n\n{}", groups_of_run(&outcome.groups, &together, look));
    }
    let delays = together::delays(&outcome.groups);
    if !delays.is_empty() {
        text += &format!("\n\n{}", groups_of_run(&outcome.groups, &delays, look));
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
    let fairness = match outcome.flows.len() {
        0 | 1 => String::new(),
        _ => format!(", fairness {:.3} (Jain)", totals.jain_index),
    };
    text += &format!(
        "{} {} in all{fairness}, {} data packets delivered in {:.0} s\n",
        short(totals.goodput_bps / unit.0),
        unit.1,
        totals.data_packets_delivered,
        outcome.measured_s(),
    );
    text +=
        &format!("seed {}, {} events, {:.2} s of real time", outcome.seed, outcome.events, outcome.wall_s);
    text
}

fn flows(outcome: &Outcome, look: Look) -> String {
    let mut table = new_table(look);
    let unit = RATE_UNIT;
    let goodput = format!("goodput, {}", unit.1);
    let probes = outcome.flows.iter().any(|flow| flow.probes_sent > 0);
    let completes = outcome.flows.iter().any(|flow| flow.completion_s.is_some());
    let fixed = ["flow", "cc", &goodput, "sent", "retransmitted", "timeouts", "RTT, ms"];
    let optional = probes.then_some("probes").into_iter().chain(completes.then_some("completion, s"));
    let service = service::columns(&outcome.flows);
    let titles = service.iter().map(|column| column.title);
    table.set_header(heads(fixed.into_iter().chain(optional).chain(titles)));
    for flow in outcome.flows.iter().take(SHOWN_FLOWS) {
        let mut name = flow.name.clone();
        if let Some(cause) = flow.aborted {
            name += &format!(" ({cause})");
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

/// Returns the counters of proxies and middleboxes.
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

/// Number of links shown, the busiest first.
const SHOWN_LINKS: usize = 12;

fn groups_of_run(groups: &[GroupOutcome], columns: &[&'static Column<GroupOutcome>], look: Look) -> String {
    let mut table = new_table(look);
    table.set_header(heads(["group"].into_iter().chain(columns.iter().map(|column| column.title))));
    for group in groups {
        let mut row = vec![Cell::new(&group.name)];
        row.extend(columns.iter().map(|column| right(column.show(group))));
        table.add_row(row);
    }
    table.to_string()
}

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
    use bentpipe_outcome::{LegOutcome, NodeOutcome, SplitOutcome};

    #[test]
    fn a_comparison_reads_like_a_table() {
        let text = comparison(&example::comparison(), Look::default());
        println!("{text}");
        let line = |key: &str| text.lines().find(|line| line.contains(key)).unwrap().to_owned();
        assert!(line("1e-4").contains("0.4040 ± 0.0050"), "{text}");
        assert!(line("1e-4").contains("0.8040 ± 0.0050"), "{text}");
        assert!(text.contains("5.00 %"), "{text}");
        assert!(!text.contains('\u{1b}'), "no colour unless asked for");
        let look = Look { colour: true, width: Some(80) };
        assert!(comparison(&example::comparison(), look).contains('\u{1b}'));
    }

    #[test]
    fn the_differences_from_the_baseline_stand_below() {
        let text = comparison(&example::comparison(), Look::default());
        assert!(
            text.contains("Goodput, Mbit/s: difference from reno with the same seed, mean ± 95 %"),
            "{text}"
        );
        let line = text.lines().find(|line| line.contains("< 0.001")).expect("a line with a p-value");
        assert!(line.contains("peach") && line.contains("0.4000"), "{line}");
    }

    #[test]
    fn headings_name_the_unit_that_people_read() {
        let metrics =
            [Metric::Throughput, Metric::Convergence, Metric::Gap, Metric::Mos, Metric::Rebuffering];
        let expected = ["throughput, Mbit/s", "convergence, s", "gap, ms", "mos", "rebuffering ratio, %"];
        assert_eq!(metrics.map(heading), expected);
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
        assert!(text.contains("0.8020 Mbit/s in all"));
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
            probes_sent: 0,
            srtt_ms: Some(548.25),
        };
        run.flows[1].split = Some(SplitOutcome::of(64_000, vec![leg]));
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
