//! Runs packet scripts: `bentpipe-script FILE|FOLDER...`. Prints the table of a folder: `bentpipe-script --table FOLDER`.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use bentpipe_script::{Script, Statement, find_scripts, run, table};

const USAGE: &str = "bentpipe-script FILE|FOLDER...\nbentpipe-script --table FOLDER";

/// Returns the path and text of every script below `root`.
fn scripts(root: &str) -> Result<Vec<(String, String)>, String> {
    let found = find_scripts(Path::new(root)).map_err(|error| format!("cannot read {root}: {error}"))?;
    let read = |path: &Path| {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
        Ok((name, text))
    };
    found.iter().map(|path| read(path)).collect()
}

fn print_table(root: &str) -> Result<(), String> {
    let mut statements = Vec::new();
    for (name, text) in scripts(root)? {
        let statement = Statement::parse(&name, &text).map_err(|error| error.to_string())?;
        let path = name.strip_prefix(root).unwrap_or(&name).trim_start_matches('/').to_owned();
        statements.push((path, statement));
    }
    print!("{}", table(&statements));
    Ok(())
}

/// Runs all scripts; returns true if none fails.
fn run_all(roots: &[String]) -> Result<bool, String> {
    let (mut passed, mut failed) = (0, 0);
    for (name, text) in roots.iter().map(|root| scripts(root)).collect::<Result<Vec<_>, _>>()?.concat() {
        let script = Script::parse(&name, &text).map_err(|error| error.to_string())?;
        let deviates = Statement::parse(&name, &text).is_ok_and(|statement| statement.deviation.is_some());
        match run(&script) {
            Ok(()) => passed += 1,
            Err(stopped) => {
                failed += u32::from(!deviates);
                let word = if deviates { "known deviation: " } else { "" };
                println!("{word}{stopped}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match &arguments[..] {
        [flag, root] if flag == "--table" => print_table(root).map(|()| true),
        [] => Err(format!("found no file, accepted:\n{USAGE}")),
        [flag, ..] if flag.starts_with('-') => Err(format!("found {flag}, accepted:\n{USAGE}")),
        roots => run_all(roots),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
