//! `bentpipe list`.

use bentpipe_cc::{Custom, Entry, REGISTRY, SENDER_ONLY};
use bentpipe_lab::table;
use bentpipe_net::{LOSSES, QUEUES};
use bentpipe_scenario::{TRAFFIC_KINDS, medium_kinds, node_kinds, own_algorithms, reference};
use serde::Serialize;

use crate::args::{ListArgs, Listed};
use crate::failure::Failure;
use crate::output;

/// A kind of node, queue, loss or traffic.
#[derive(Clone, Copy, Debug, Serialize)]
struct Kind {
    name: &'static str,
    title: &'static str,
}

/// A built-in study.
#[cfg(feature = "studies")]
#[derive(Clone, Debug, Serialize)]
struct Paper {
    name: String,
    title: String,
    citation: String,
}

/// Prints a list.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    match args.what {
        Listed::Cc if args.parameters => parameters(args.json),
        _ if args.parameters => Err(Failure::Request(
            "--parameters: found another list, accepted: `bentpipe list cc --parameters`".into(),
        )),
        Listed::Cc => algorithms(args.json),
        Listed::Scenarios => {
            let all = bentpipe_scenario::list();
            let rows = all.iter().map(|one| vec![one.name.clone(), one.title.clone()]).collect();
            print(args.json, &all, rows)
        }
        #[cfg(feature = "studies")]
        Listed::Papers => {
            let all = papers()?;
            let rows = all.iter().map(|one| vec![one.name.clone(), one.title.clone()]).collect();
            print(args.json, &all, rows)
        }
        #[cfg(not(feature = "studies"))]
        Listed::Papers => Err(crate::absent::failure("`bentpipe list papers`", "studies")),
        what => {
            let all = kinds(what);
            print(args.json, &all, all.iter().map(|kind| vec![kind.name.into(), kind.title.into()]).collect())
        }
    }
}

/// Returns a list as `--json` prints it.
#[cfg(feature = "studies")]
pub fn document(what: Listed) -> Result<serde_json::Value, Failure> {
    let document = match what {
        Listed::Cc => serde_json::to_value(entries()),
        Listed::Scenarios => serde_json::to_value(bentpipe_scenario::list()),
        Listed::Papers => serde_json::to_value(papers()?),
        what => serde_json::to_value(kinds(what)),
    };
    document.map_err(|error| Failure::Work(error.to_string()))
}

/// Returns the kinds of a list; algorithms, scenarios and papers are not kinds.
fn kinds(what: Listed) -> Vec<Kind> {
    let all = match what {
        Listed::Nodes => node_kinds(),
        Listed::Queues => QUEUES.to_vec(),
        Listed::Losses => LOSSES.to_vec(),
        Listed::Media => medium_kinds(),
        Listed::Traffic => TRAFFIC_KINDS.to_vec(),
        Listed::Cc | Listed::Scenarios | Listed::Papers => Vec::new(),
    };
    all.into_iter().map(|(name, title)| Kind { name, title }).collect()
}

#[cfg(feature = "studies")]
fn papers() -> Result<Vec<Paper>, Failure> {
    let all = bentpipe_study::load("all").map_err(|error| Failure::Work(error.to_string()))?;
    let paper = |study: bentpipe_study::Study| Paper {
        name: study.name,
        title: study.title,
        citation: study.citation,
    };
    Ok(all.into_iter().map(paper).collect())
}

fn entries() -> Vec<Entry> {
    REGISTRY.iter().copied().chain(own_algorithms().iter().map(own)).collect()
}

fn algorithms(json: bool) -> Result<(), Failure> {
    let all = entries();
    let row = |entry: &Entry| {
        let paper = if entry.year == 0 { String::new() } else { format!("{}, {}", entry.paper, entry.year) };
        vec![entry.name.into(), entry.title.into(), paper]
    };
    print(json, &all, all.iter().map(row).collect())?;
    if json {
        return Ok(());
    }
    output::print(
        "\nnewreno and sack are Reno's window with that recovery; NAME+reno, NAME+newreno, NAME+sack and NAME+rack\n\
         choose the recovery of any other.\n",
    )
}

/// A parameter of an algorithm: `flow.NAME.cc.PARAMETER` in a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Parameter {
    cc: &'static str,
    parameter: String,
    default: String,
    unit: &'static str,
}

fn parameters(json: bool) -> Result<(), Failure> {
    let all: Vec<_> = entries().iter().flat_map(|entry| parameters_of(entry.name)).collect();
    let row = |of: &Parameter| vec![of.cc.into(), of.parameter.clone(), of.default.clone(), of.unit.into()];
    print(json, &all, all.iter().map(row).collect())
}

/// Returns the parameters of an algorithm as the reference lists them, with units.
fn parameters_of(cc: &'static str) -> Vec<Parameter> {
    let parameter = |of: reference::Parameter| {
        let quoted = of.default.trim_matches('"');
        let (default, unit) = match quoted.split_once(' ') {
            Some((number, "segments")) => (number, "segments"),
            Some((number, "bytes")) => (number, "bytes"),
            _ => (quoted, unit_of(&of.name)),
        };
        Parameter { cc, default: default.to_owned(), unit, parameter: of.name }
    };
    reference::parameters(cc).into_iter().map(parameter).collect()
}

/// Returns the unit that the name of a parameter ends with; times and rates are written with their units.
fn unit_of(key: &str) -> &'static str {
    [("-s", "s"), ("-ms", "ms"), ("-bps", "bit/s")]
        .iter()
        .find(|(ending, _)| key.ends_with(ending))
        .map_or("", |(_, unit)| unit)
}

/// Returns the entry of the program's own algorithm.
fn own(custom: &Custom) -> Entry {
    Entry { name: custom.name, title: "brought by this program", ..SENDER_ONLY }
}

fn print(json: bool, document: &impl Serialize, rows: Vec<Vec<String>>) -> Result<(), Failure> {
    if json { output::print_json(document) } else { output::print(&table::list(&rows, output::look())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_defaults_and_units() {
        let bbr = parameters_of("bbr");
        let of = |name: &str| bbr.iter().find(|one| one.parameter == name).expect(name);
        assert_eq!((of("probe-rtt-s").default.as_str(), of("probe-rtt-s").unit), ("0.2", "s"));
        assert_eq!((of("profile").default.as_str(), of("profile").unit), ("draft", ""));
        assert!(bbr.iter().all(|one| one.parameter != "name"));
    }
}
