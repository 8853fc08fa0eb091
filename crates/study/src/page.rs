//! Report of a study: one HTML file with zoomable charts, each followed by its claims.

use bentpipe_lab::Origin;
use bentpipe_lab::report::{
    Axis, Choice, Figure, Grid, GridCell, GridRow, Number, Page, Pick, Position, Provenance, Scale, Section,
    Style, Trace, render as render_page,
};

use crate::chart::Chart;
use crate::outcome::{
    ClaimOutcome, FigureOutcome, OpenOutcome, ParameterOutcome, StatedOutcome, StudyOutcome,
};
use crate::verdict::Verdict;

/// Renders the page of a study.
///
/// # Errors
/// If the template cannot be filled.
pub fn render(outcome: &StudyOutcome, (command, origin): (&str, Origin)) -> Result<String, String> {
    let counted = |verdict: Verdict| outcome.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let page = Page {
        heading: outcome.title.clone(),
        finding: format!(
            "Of {} claims {} hold with the default configuration, {} are tied, {} fail, {} cannot be tested. With the joint setting{} {} hold.",
            outcome.claims.len(),
            counted(Verdict::Holds),
            counted(Verdict::Tied),
            counted(Verdict::Fails),
            counted(Verdict::NotTestable),
            joint_setting(outcome),
            outcome.claims.iter().filter(|claim| claim.joint_verdict == Verdict::Holds).count(),
        ),
        facts: std::iter::once(("Paper", outcome.citation.clone()))
            .chain(advice(&outcome.claims).map(|advice| ("Advice", advice)))
            .collect(),
        network: None,
        drawn_at: String::new(),
        sections: outcome.figures.iter().map(|figure| section(figure, &outcome.claims)).collect(),
        grids: grids(outcome),
    };
    let provenance = Provenance {
        scenario: outcome.name.clone(),
        title: String::new(),
        toml: outcome.text.clone(),
        command: command.to_owned(),
        version: env!("CARGO_PKG_VERSION").into(),
        origin,
    };
    render_page(&page, &provenance).map_err(|error| error.to_string())
}

/// Returns the options of the joint setting in brackets; empty without open parameters.
fn joint_setting(outcome: &StudyOutcome) -> String {
    match outcome.joint_setting.as_slice() {
        [] => String::new(),
        options => format!(" ({})", options.join("; ")),
    }
}

/// Returns the advice of the claims that hold.
fn advice(claims: &[ClaimOutcome]) -> impl Iterator<Item = String> {
    let holding = claims.iter().filter(|claim| claim.verdict == Verdict::Holds);
    holding.filter_map(|claim| claim.advice.as_ref().map(|advice| format!("{advice} ({})", claim.id)))
}

/// Title of the menu that selects a chart of a figure.
const FOR: &str = "For";

fn section(figure: &FigureOutcome, claims: &[ClaimOutcome]) -> Section {
    let about = claims.iter().filter(|claim| claim.figure.as_deref() == Some(figure.number.as_str()));
    let said: Vec<String> =
        about.map(|claim| format!("{} {}: {}.", claim.id, claim.verdict, claim.statement)).collect();
    let names: Vec<String> = figure.charts.iter().map(|chart| chart.title.clone()).collect();
    let mut traces = Vec::new();
    for (chart, name) in figure.charts.iter().zip(&names) {
        traces.extend(self::traces(chart).map(|trace| trace.shown_by(&[Pick::new(FOR, name)])));
    }
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let figures = figure.charts.first().map(|chart| chart_frame(chart, traces)).into_iter().collect();
    Section::new(&title, said.join(" "), Choice::one_of(FOR, names), figures)
}

fn chart_frame(chart: &Chart, traces: Vec<Trace>) -> Figure {
    let scale = |log: bool| if log { Scale::Log } else { Scale::Linear };
    Figure {
        title: String::new(),
        caption: String::new(),
        wide: true,
        x: Axis { title: chart.x.clone(), scale: scale(chart.x_log), close: true, ..Axis::default() },
        y: Axis { title: chart.y.clone(), scale: scale(chart.y_log), ..Axis::default() },
        traces,
    }
}

fn traces(chart: &Chart) -> impl Iterator<Item = Trace> {
    chart.lines.iter().enumerate().map(|(colour, line)| {
        if chart.over_time {
            let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.0, point.1)).collect();
            return Trace::over_time(&line.name, &points, Style::Step).coloured(colour);
        }
        Trace {
            name: line.name.clone(),
            x: line.points.iter().map(|point| Position::Number(Number(point.0))).collect(),
            y: line.points.iter().map(|point| Some(Number(point.1))).collect(),
            error: line.points.iter().map(|point| point.2.map(Number)).collect(),
            colour,
            legend: true,
            ..Trace::default()
        }
    })
}

/// Returns the tables below the figures, without empty ones.
fn grids(outcome: &StudyOutcome) -> Vec<Grid> {
    let all = [claims(&outcome.claims), stated(&outcome.claims), parameters(outcome), open(outcome)];
    all.into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

fn grid(title: &str, head: &[&str], rows: Vec<GridRow>) -> Grid {
    Grid { title: title.into(), head: head.iter().map(|name| (*name).to_owned()).collect(), rows }
}

/// Makes a row without emphasis.
fn row(name: &str, cells: &[&str]) -> GridRow {
    let cell = |text: &&str| GridCell { text: (*text).to_owned(), best: false };
    GridRow { names: vec![name.to_owned()], cells: cells.iter().map(cell).collect() }
}

fn claims(claims: &[ClaimOutcome]) -> Grid {
    let one = |claim: &ClaimOutcome| {
        let mut row = row(
            &claim.id,
            &[
                &claim.verdict.to_string(),
                &claim.joint_verdict.to_string(),
                &claim.choices.to_string(),
                &claim.statement,
                &claim.words,
                &claim.measured,
                claim.note.as_deref().unwrap_or(""),
                &claim.where_else(),
                claim.tolerance.as_deref().unwrap_or("–"),
                claim.margin.as_deref().unwrap_or(""),
                &claim.seeds.to_string(),
                claim.rerun.as_deref().unwrap_or(""),
            ],
        );
        row.cells[0].best = claim.verdict == Verdict::Holds;
        row
    };
    let head = [
        "claim",
        "default",
        "joint",
        "choices",
        "statement",
        "checked as",
        "measured",
        "why",
        "holds also for",
        "check",
        "margin",
        "seeds",
        "first point",
    ];
    grid("Claims", &head, claims.iter().map(one).collect())
}

/// Makes the table of the paper's numbers with the measured ones.
fn stated(claims: &[ClaimOutcome]) -> Grid {
    let of_claim = |claim: &ClaimOutcome| {
        let one = |one: &StatedOutcome| {
            row(
                &claim.id,
                &[&one.what, &one.paper.to_string(), &one.ours_written(), &one.deviation_written()],
            )
        };
        claim.stated.iter().map(one).collect::<Vec<_>>()
    };
    let head = ["claim", "number of the paper", "paper", "here", "deviation"];
    grid("The paper's own numbers", &head, claims.iter().flat_map(of_claim).collect())
}

fn parameters(outcome: &StudyOutcome) -> Grid {
    let one = |one: &ParameterOutcome| row(&one.name, &[&one.value, &one.source, &one.place]);
    let head = ["parameter", "value", "source", "where, or why"];
    grid("Parameters", &head, outcome.parameters.iter().map(one).collect())
}

fn open(outcome: &StudyOutcome) -> Grid {
    let one = |one: &OpenOutcome| row(&one.name, &[&one.options.join("; "), &one.experiments.join(", ")]);
    let head = ["parameter", "options, the default first", "experiments"];
    grid("Left open by the paper", &head, outcome.open.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// The HTML page has the same texts about claims and parameters as the Markdown page.
    #[test]
    fn the_page_has_the_checks_in_words_the_papers_numbers_and_the_sources_of_parameters() {
        let page = render(&example::outcome(), ("bentpipe paper mine", Origin::default())).unwrap();
        for text in [
            "the v of a is above that of b",
            "because",
            "v of a",
            "25.00 ± 1.00",
            "+25 %",
            "Table 1",
            "short; long",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }
}
