//! Reports: one HTML file with everything in it, for a browser without a network.

mod compare;
mod figure;
mod links;
mod network;
mod packed;
mod run;
mod sky;
mod thin;
mod value;
mod view;
mod world;

use bentpipe_scenario::Scenario;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use self::packed::packed;
use crate::origin::Origin;

pub use compare::{ComparePage, Example};
pub use network::Network;
pub use run::RunPage;

pub use figure::{Axis, Choice, Figure, Number, Pick, Position, Scale, Section, Style, Trace};
pub use sky::{PathChange, path_changes};
pub use thin::thin;
pub use world::World;

/// Origin of a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Provenance {
    /// Name of the scenario.
    pub scenario: String,
    /// Title of the scenario.
    pub title: String,
    /// The resolved scenario as TOML.
    pub toml: String,
    /// The command that makes this report again.
    pub command: String,
    /// Version of Bentpipe.
    pub version: String,
    /// Build and input files.
    pub origin: Origin,
}

impl Provenance {
    /// Makes the provenance of a report of `scenario`, which `command` makes again.
    pub fn of(scenario: &Scenario, command: &str, origin: &Origin) -> Self {
        Self {
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            toml: scenario.to_toml(),
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            origin: origin.clone(),
        }
    }
}

/// A table of text.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Grid {
    /// Heading.
    pub title: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<GridRow>,
}

/// A row of a table.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct GridRow {
    /// Texts of the first columns, which identify the row.
    pub names: Vec<String>,
    /// Cells of the other columns.
    pub cells: Vec<GridCell>,
}

/// A field of a table.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct GridCell {
    /// Text of the cell.
    pub text: String,
    /// It is emphasised.
    pub best: bool,
}

/// Everything on a page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Heading of the page.
    pub heading: String,
    /// The finding in a sentence or two.
    pub finding: String,
    /// Short names and values.
    pub facts: Vec<(&'static str, String)>,
    /// The network that was simulated.
    pub network: Option<Network>,
    /// The varied values at which it is drawn, empty if nothing varies.
    pub drawn_at: String,
    /// The charts.
    pub sections: Vec<Section>,
    /// The tables.
    pub grids: Vec<Grid>,
}

const REPORT: &str = include_str!("../../assets/report.html");
const PAGE: &str = include_str!("../../assets/page.html");
const NETWORK: &str = include_str!("../../assets/network.svg");
const STYLE: &str = include_str!("../../assets/report.css");
const CHARTS: &str = include_str!("../../assets/charts.js");
const SCRIPT: &str = include_str!("../../assets/report.js");
const PLOTLY: &str = include_str!("../../assets/plotly-basic.min.js");

/// Content of a report for a program that draws it in a page of its own, with `assets/charts.js`.
#[derive(Clone, PartialEq, Debug)]
pub struct Fragment {
    /// Header and main part as HTML, with places for the charts.
    pub html: String,
    /// The sections with their charts, as JSON.
    pub sections: String,
}

/// A page as one HTML file.
///
/// # Errors
/// If the template cannot be filled.
pub fn render(page: &Page, provenance: &Provenance) -> Result<String, minijinja::Error> {
    let Fragment { html, sections } = fragment(page, provenance)?;
    environment()?.get_template("report")?.render(context! {
        heading => page.heading.as_str(),
        name => provenance.scenario.as_str(),
        page => html,
        data => packed(&sections).map_err(unwritten)?,
        style => STYLE,
        charts => CHARTS,
        script => SCRIPT,
        plotly => packed(PLOTLY).map_err(unwritten)?,
    })
}

/// The content of a page.
///
/// # Errors
/// If the template cannot be filled.
pub fn fragment(page: &Page, provenance: &Provenance) -> Result<Fragment, minijinja::Error> {
    let html = environment()?.get_template("page")?.render(context! {
        heading => page.heading.as_str(),
        finding => page.finding.as_str(),
        facts => Serde(&page.facts),
        network => Serde(&page.network),
        drawn_at => page.drawn_at.as_str(),
        sections => Serde(page.sections.iter().map(Section::outline).collect::<Vec<_>>()),
        grids => Serde(&page.grids),
        title => provenance.title.as_str(),
        toml => provenance.toml.as_str(),
        command => provenance.command.as_str(),
        version => provenance.version.as_str(),
        build => provenance.origin.build.short(),
        files => Serde(&provenance.origin.files),
    })?;
    let sections = serde_json::to_string(&page.sections).map_err(unwritten)?;
    Ok(Fragment { html, sections })
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("network", NETWORK)?;
    environment.add_template("page", PAGE)?;
    environment.add_template("report", REPORT)?;
    Ok(environment)
}

fn unwritten(error: impl std::error::Error + Send + Sync + 'static) -> minijinja::Error {
    minijinja::Error::new(minijinja::ErrorKind::BadSerialization, "figures").with_source(error)
}
