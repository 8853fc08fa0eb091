//! The trial as a page.

use bentpipe_lab::report::{
    Axis, Figure, Grid, GridCell, GridRow, Number, Page, Position, Provenance, Scale, Section, Style, Trace,
    render as page,
};
use bentpipe_scenario::Draft;

use super::{Row, shown, title};
use crate::failure::Failure;
use crate::output;
use crate::pep_args::PepTryArgs;

/// The page as HTML.
pub(super) fn render(args: &PepTryArgs, rows: &[Row]) -> Result<String, Failure> {
    let draft = Draft::load(&args.scenario)?;
    let scenario = draft.scenario()?;
    let provenance = Provenance {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        toml: scenario.to_toml(),
        command: output::typed(),
        version: env!("CARGO_PKG_VERSION").into(),
        origin: crate::origin::of(draft.files()),
    };
    let figures = vec![
        bars("Downloads", "Mbit/s", rows, |row| row.goodput_bps / 1e6),
        bars("Page of 50 segments", "s", rows, |row| row.page_s),
    ];
    let contents = Page {
        heading: format!("A proxy on {}", scenario.name),
        finding: finding(rows),
        facts: vec![
            ("scenario", scenario.name.clone()),
            ("downloads side by side", args.flows.to_string()),
            ("seconds of the downloads", args.seconds.to_string()),
        ],
        sections: vec![Section::new("What was measured", String::new(), [], figures)],
        grids: vec![grid(rows)],
        ..Page::default()
    };
    page(&contents, &provenance).map_err(|error| Failure::Work(format!("report: {error}")))
}

/// The losses that were measured, in the order of the rows.
fn losses(rows: &[Row]) -> Vec<Option<&str>> {
    let mut losses: Vec<Option<&str>> = rows.iter().map(|row| row.loss.as_deref()).collect();
    losses.dedup();
    losses
}

/// The best proxy beside the first row, which is without one, for each loss.
fn finding(rows: &[Row]) -> String {
    let of_loss = |loss: Option<&str>| {
        let mut same = rows.iter().filter(|row| row.loss.as_deref() == loss);
        let first = same.next()?;
        let best = same.max_by(|one, other| one.goodput_bps.total_cmp(&other.goodput_bps))?;
        let ratio = best.goodput_bps / first.goodput_bps;
        Some(format!(
            "Loss {}: {} has {ratio:.2} times the goodput of {}.",
            shown(loss),
            title(&best.name),
            title(&first.name)
        ))
    };
    losses(rows).into_iter().filter_map(of_loss).collect::<Vec<_>>().join(" ")
}

fn bars(heading: &str, unit: &str, rows: &[Row], value: impl Fn(&Row) -> f64) -> Figure {
    let trace = |(colour, loss): (usize, &Option<&str>)| {
        let same: Vec<&Row> = rows.iter().filter(|row| row.loss.as_deref() == *loss).collect();
        Trace {
            name: format!("loss {}", shown(*loss)),
            x: same.iter().map(|row| Position::Text(row.name.clone())).collect(),
            y: same.iter().map(|row| Some(Number(value(row)))).collect(),
            style: Style::Bars,
            colour,
            legend: true,
            ..Trace::default()
        }
    };
    Figure {
        title: heading.into(),
        x: Axis { scale: Scale::Category, ..Axis::default() },
        y: Axis { title: unit.into(), ..Axis::default() },
        traces: losses(rows).iter().enumerate().map(trace).collect(),
        ..Figure::default()
    }
}

fn grid(rows: &[Row]) -> Grid {
    let row = |row: &Row| GridRow {
        names: vec![shown(row.loss.as_deref()).to_owned(), title(&row.name)],
        cells: [format!("{:.2}", row.goodput_bps / 1e6), format!("{:.2}", row.page_s)]
            .map(|text| GridCell { text, best: false })
            .into(),
    };
    Grid {
        title: "Figures".into(),
        head: ["loss of the link", "", "downloads, Mbit/s", "page, s"].map(str::to_owned).into(),
        rows: rows.iter().map(row).collect(),
    }
}
