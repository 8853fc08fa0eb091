//! Commands and options, as clap knows them.

use clap::{Arg, ArgAction, Command};

use crate::page::{begin, code, table, variants};
use crate::source;

pub fn page() -> String {
    let mut text = begin(
        "Commands",
        "Every command of `bentpipe` with its arguments. `bentpipe COMMAND --help` prints the same.",
    );
    let mut command = bentpipe_cli::arguments();
    command.build();
    below(&command, "bentpipe", &mut text);
    text.push_str("\n## Exit codes\n\n");
    let failures = variants(&source("cli/src/failure.rs"), "Failure");
    let mut rows = vec![vec!["0".to_owned(), "The command did its work".to_owned()]];
    rows.extend(failures.iter().map(|(_, meaning)| {
        let (meaning, code) = meaning.split_once(": exit code ").expect("the comment has the code");
        vec![code.trim_end_matches('.').to_owned(), meaning.to_owned()]
    }));
    text.push_str(&table(&["code", "meaning"], &rows));
    text.push_str("\n`emulate` ends with the code of the command that it ran.\n");
    text
}

/// The commands below `command`, each with its own below it.
fn below(command: &Command, name: &str, text: &mut String) {
    let visible = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in command.get_subcommands().filter(visible) {
        let name = format!("{name} {}", command.get_name());
        one(command, &name, text);
        below(command, &name, text);
    }
}

fn one(command: &Command, name: &str, text: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let usage =
        usage.strip_prefix(command.get_name()).map_or(usage.to_owned(), |rest| format!("{name}{rest}"));
    text.push_str(&format!("\n## {name}\n\n{about}.\n\n```\n{usage}\n```\n"));
    let arguments: Vec<_> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help").collect();
    if !arguments.is_empty() {
        let rows: Vec<_> = arguments.iter().map(|arg| row(arg)).collect();
        text.push_str(&format!("\n{}", table(&["argument", "meaning", "values", "default"], &rows)));
    }
    if let Some(help) = command.get_after_help() {
        text.push_str(&format!("\n```\n{}\n```\n", help.to_string().trim()));
    }
}

fn row(arg: &Arg) -> Vec<String> {
    let names = arg.get_value_names().unwrap_or_default();
    let values = if matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) {
        names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ")
    } else {
        String::new()
    };
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flag = long.or(arg.get_short().map(|short| format!("-{short}")));
    let name = flag.map_or(values.clone(), |flag| format!("{flag} {values}"));
    let possible: Vec<_> = arg.get_possible_values().iter().map(|value| code(value.get_name())).collect();
    let takes = arg.get_action().takes_values();
    let default: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    vec![
        code(name.trim()),
        arg.get_help().map(ToString::to_string).unwrap_or_default(),
        if takes { possible.join(", ") } else { String::new() },
        if takes { code(&default.join(",")) } else { String::new() },
    ]
}
