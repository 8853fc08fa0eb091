//! Keys of scenarios, of `pep.toml` and of studies, and parameters of algorithms.

use bentpipe_cc::REGISTRY;
use bentpipe_scenario::reference::{self, Key};

use crate::page::{Field, begin, code, fields, table, variants};
use crate::{module_text, source};

const HEAD: [&str; 5] = ["key", "of kind", "meaning", "accepted", "default"];

pub fn scenario() -> String {
    let text = "All keys of a scenario file, table by table. [Scenarios](../scenarios.md) explains them with examples; `bentpipe show SCENARIO` prints one with every default.";
    format!("{}{}", begin("Keys of a scenario", text), tables(&reference::scenario()))
}

pub fn proxy() -> String {
    let text = "All keys of `pep.toml`, and the metrics of the proxy. [The proxy on a real link](../pep.md) explains them.";
    let mut page = begin("Keys and metrics of the proxy", text);
    page.push_str(&tables(&reference::proxy()));
    page.push_str("\n## Metrics for Prometheus\n\n");
    let metrics = bentpipe_pep::metrics();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in metrics.lines() {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => rows.push(vec![
                code(name),
                String::new(),
                String::new(),
                help.trim_end_matches('.').to_owned(),
            ]),
            ["#", "TYPE", _, kind] => rows.last_mut().expect("HELP comes first")[1] = (*kind).to_owned(),
            _ => {
                let labels = line
                    .split_once('{')
                    .and_then(|(_, rest)| rest.split_once('}'))
                    .map_or("", |(labels, _)| labels);
                let names = labels
                    .split(',')
                    .filter_map(|label| Some(label.split_once('=')?.0))
                    .filter(|name| *name != "le");
                rows.last_mut().expect("HELP comes first")[2] =
                    names.map(code).collect::<Vec<_>>().join(", ");
            }
        }
    }
    page.push_str(&table(&["metric", "type", "labels", "meaning"], &rows));
    page
}

/// A section for each table, in the order of the keys.
fn tables(keys: &[Key]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for key in keys {
        if !names.contains(&key.table.as_str()) {
            names.push(&key.table);
        }
    }
    // Tables with the same keys share a section.
    let mut sections: Vec<(String, String)> = Vec::new();
    for name in names {
        let of_table: Vec<_> = keys.iter().filter(|key| key.table == name).collect();
        let header = if name.is_empty() { "Top of the file".to_owned() } else { code(name) };
        let section = section(&of_table);
        match sections.iter_mut().find(|(_, other)| *other == section) {
            Some((headers, _)) => headers.push_str(&format!(", {header}")),
            None => sections.push((header, section)),
        }
    }
    sections.into_iter().map(|(header, section)| format!("\n## {header}\n\n{section}")).collect()
}

fn section(keys: &[&Key]) -> String {
    let mut text = table(&HEAD, &rows(keys));
    for kinds in keys.iter().map(|key| &key.kinds).filter(|kinds| !kinds.is_empty()) {
        let rows: Vec<_> =
            kinds.iter().map(|(kind, meaning)| vec![code(kind), (*meaning).to_owned()]).collect();
        text.push_str(&format!("\n{}", table(&["kind", "meaning"], &rows)));
    }
    text
}

/// One row for each key, or several if its kinds differ in it.
fn rows(keys: &[&Key]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for key in keys {
        let default = match key.default.as_deref() {
            None => "required".to_owned(),
            Some("" | "\"\"" | "[]") => String::new(),
            Some(default) => code(default),
        };
        let kind = key.kind.map(code).unwrap_or_default();
        let row = vec![code(&key.name), kind.clone(), key.meaning.to_owned(), key.accepted.clone(), default];
        let same = |other: &&mut Vec<String>| [0, 2, 3, 4].iter().all(|&at| other[at] == row[at]);
        match rows.iter_mut().find(same) {
            Some(other) if !kind.is_empty() && !other[1].contains(&kind) => {
                other[1] = format!("{}, {kind}", other[1]);
            }
            Some(_) => {}
            None => rows.push(row),
        }
    }
    rows
}

pub fn algorithms() -> String {
    let text = "All algorithms of `bentpipe list cc`, with the parameters of their table `cc`: `cc = { name = \"cubic\", hystart = false }`. \"Here\" in a recommendation is the world of the [comparison](../algorithms.md).";
    let mut page = begin("Algorithms and their parameters", text);
    for entry in REGISTRY {
        let module = entry.name.replace('-', "_");
        let family = format!("{:?}", entry.family).to_lowercase();
        let link = format!("[Note](../../papers/{}.md)", entry.name);
        let mut title = entry.title.to_owned();
        title[..1].make_ascii_uppercase();
        page.push_str(&format!(
            "\n## `{}`\n\n{title} ({}, {}). {link}.\n\n{}\n",
            entry.name, entry.paper, entry.year, entry.advice
        ));
        let parameters = reference::parameters(entry.name);
        if parameters.is_empty() {
            continue;
        }
        let documented = fields(&module_text(&format!("cc/src/algorithms/{family}/{module}")), "Config");
        let row = |one: &reference::Parameter| {
            let field = documented.iter().find(|field| field.name.replace('_', "-") == one.name);
            let field = field.unwrap_or_else(|| panic!("{}: no field for {}", entry.name, one.name));
            vec![code(&one.name), field.meaning.clone(), one.accepted.clone(), code(&one.default)]
        };
        let rows: Vec<_> = parameters.iter().map(row).collect();
        page.push_str(&format!("\n{}", table(&["parameter", "meaning", "accepted", "default"], &rows)));
    }
    page
}

/// Tables of a study with the struct that its reader fills.
const STUDY: [(&str, &str); 9] = [
    ("experiment.NAME", "Experiment"),
    ("experiment.NAME.arm.NAME", "ArmSettings"),
    ("experiment.NAME.axis", "Axis"),
    ("experiment.NAME.quick", "Quick"),
    ("figure.NUMBER", "FigureFile"),
    ("figure.NUMBER.time", "OverTimeFile"),
    ("claim.NAME", "ClaimFile"),
    ("claim.NAME.stated.QUANTITY", "StatedFile"),
    ("parameter.NAME", "ParameterFile"),
];

pub fn study() -> String {
    let text = "All keys of a study file, table by table. [Write a study](../studies.md) explains them with examples. `title` and `citation` stand at the top of the file.";
    let mut page = begin("Keys of a study", text);
    let file = source("study/src/file.rs");
    for (name, of) in STUDY {
        let rows: Vec<_> = fields(&file, of).iter().map(|field| study_row(field, &file)).collect();
        page.push_str(&format!(
            "\n## `{name}`\n\n{}",
            table(&["key", "meaning", "accepted", "default"], &rows)
        ));
    }
    page
}

fn study_row(field: &Field, file: &str) -> Vec<String> {
    let inner = field.kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>'));
    let kind = inner.unwrap_or(&field.kind);
    let words = |file: &str| {
        let words: Vec<_> = variants(file, kind).into_iter().map(|(name, _)| format!("\"{name}\"")).collect();
        words.join(", ")
    };
    let accepted = match kind {
        "Curve" => &words(&source("study/src/measure.rs")),
        "Source" => &words(file),
        "String" => "text",
        "f64" => "a number",
        "u32" => "a whole number",
        "bool" => "true or false",
        "(f64, f64)" => "two numbers",
        "Vec<String>" => "a list of texts",
        "Vec<Value>" => "a list of values",
        "IndexMap<String, Arm>" => "a table: the name of an algorithm, or a table for each arm",
        kind if kind.starts_with("IndexMap") || kind == "Settings" => "a table",
        "Axis" | "Quick" | "OverTimeFile" => "a table",
        other => panic!("no words for the type {other} of {}", field.name),
    };
    let function = field.attributes.split_once("default = \"").and_then(|(_, rest)| rest.split_once('"'));
    let value = function.and_then(|(name, _)| {
        let (_, body) = file.split_once(&format!("fn {name}("))?;
        body.lines().nth(1).map(str::trim)
    });
    let optional = inner.is_some() || field.attributes.contains("serde(default");
    let default = match (value, kind) {
        (Some(value), _) => code(value),
        (None, "bool") => code("false"),
        (None, _) if optional => String::new(),
        (None, _) => "required".to_owned(),
    };
    vec![code(&field.name.replace('_', "-")), field.meaning.clone(), accepted.to_owned(), default]
}
