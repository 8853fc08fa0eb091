//! Reports: one HTML file with everything in it, for a browser without a network.

mod compare;
mod figure;
mod run;
mod thin;
mod view;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

pub use compare::{ComparePage, Example, most_telling};
pub use run::RunPage;

use figure::Section;

/// Where a report comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Provenance {
    /// Name of the scenario.
    pub scenario: String,
    /// What the scenario is, in one line.
    pub title: String,
    /// The resolved scenario as TOML.
    pub toml: String,
    /// The command that makes this report again.
    pub command: String,
    /// Version of Bentpipe.
    pub version: String,
}

/// A table of text.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Grid {
    title: String,
    head: Vec<String>,
    rows: Vec<GridRow>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct GridRow {
    names: Vec<String>,
    cells: Vec<GridCell>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct GridCell {
    text: String,
    best: bool,
}

/// Everything on a page.
#[derive(Clone, PartialEq, Debug, Default)]
struct Page {
    heading: String,
    finding: String,
    facts: Vec<(&'static str, String)>,
    sections: Vec<Section>,
    grids: Vec<Grid>,
}

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const PLOTLY: &str = include_str!("../../assets/plotly-basic.min.js");

fn render(page: &Page, provenance: &Provenance) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("report", TEMPLATE)?;
    // Inside a script element only `<` could end it early.
    let data = serde_json::to_string(&page.sections).map_err(|error| {
        minijinja::Error::new(minijinja::ErrorKind::BadSerialization, "figures").with_source(error)
    })?;
    environment.get_template("report")?.render(context! {
        heading => page.heading.as_str(),
        finding => page.finding.as_str(),
        facts => Serde(&page.facts),
        sections => Serde(page.sections.iter().map(Section::outline).collect::<Vec<_>>()),
        grids => Serde(&page.grids),
        title => provenance.title.as_str(),
        toml => provenance.toml.as_str(),
        command => provenance.command.as_str(),
        version => provenance.version.as_str(),
        data => data.replace('<', "\\u003c"),
        style => STYLE,
        script => SCRIPT,
        plotly => PLOTLY,
    })
}
