//! Conversion of a typed scenario to TOML, with every default written out.

use bentpipe_tcp::Config;

use crate::describe::{sender_tcp, world};
use crate::form;
use crate::model::Scenario;
use crate::tree::{Entry, Node, Table, Value};

/// Maximum line length of an inline table; a longer table becomes a section.
const LINE: usize = 100;

impl Scenario {
    /// Returns the scenario as TOML, with every default written out. Reading it yields the same scenario.
    ///
    /// The `tcp` table is that of the first flow group. Other groups list their differences, as the reverse direction
    /// of a link does. A user's own algorithm is shown by its name, which a file cannot restore.
    pub fn to_toml(&self) -> String {
        let defaults = self.flows.first().map(|flow| {
            let mut config = Config::clone(&flow.sender);
            let (mut header_bytes, mss) = (flow.header_bytes, config.mss);
            config.sender.recovery = flow.default_recovery;
            Node::computed(Value::Table(form::show(|form| {
                sender_tcp(form, &mut config, &mut header_bytes, mss);
            })))
        });
        let mut scenario = self.clone();
        let mut text = String::new();
        write(&mut text, "", &form::show(|form| world(form, &mut scenario, defaults.as_ref())));
        text
    }
}

/// Writes the values of a table, then its sections.
fn write(text: &mut String, path: &str, table: &Table) {
    let (sections, values): (Vec<_>, Vec<_>) =
        table.entries.iter().partition(|entry| is_section(path, entry));
    for entry in values {
        text.push_str(&line(entry));
        text.push('\n');
    }
    for entry in sections {
        let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        let Value::Table(table) = &entry.node.value else { continue };
        // A table that only contains sections needs no header.
        if !table.entries.iter().all(|entry| is_section(&path, entry)) {
            text.push_str(&format!("\n[{path}]\n"));
        }
        write(text, &path, table);
    }
}

fn line(entry: &Entry) -> String {
    format!("{} = {}", entry.key, entry.node.value)
}

/// True for top-level tables, groups, and tables too long for a line.
fn is_section(path: &str, entry: &Entry) -> bool {
    let outer = path.is_empty() || matches!(path, "constellation" | "node" | "link" | "flow");
    entry.node.as_table().is_some() && (outer || line(entry).len() > LINE)
}
