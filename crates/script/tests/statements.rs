//! Runs every script in `statements`, and checks the table of `docs/reference/conformance.md`.

use std::fs;
use std::path::Path;

use bentpipe_script::{Script, Statement, find_scripts, run, table};

fn statements() -> Vec<(String, String, Statement)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("statements");
    let found = find_scripts(&root).expect("the folder is there");
    let all = found.iter().map(|path| {
        let name = path.strip_prefix(&root).expect("it is below").display().to_string();
        let text = fs::read_to_string(path).expect("it was just found");
        let statement = Statement::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        (name, text, statement)
    });
    all.collect()
}

#[test]
fn the_stack_does_what_the_statements_say() {
    let mut wrong = Vec::new();
    for (name, text, statement) in statements() {
        let script = Script::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        match (run(&script), statement.deviation) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(_)) => wrong.push(format!("{name}: said to deviate, and does not")),
            (Err(stopped), None) => wrong.push(stopped.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{} scripts:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn scripts_are_named_after_their_section() {
    for (name, _, statement) in statements() {
        let wanted = format!("rfc{}/{}-", statement.rfc, statement.section);
        assert!(name.starts_with(&wanted), "found {name}, accepted: {wanted}…");
    }
}

/// To update it: `cargo run -p bentpipe-script -- --table crates/script/statements`, into `docs/reference/conformance.md` below the
/// marker.
#[test]
fn the_table_in_the_documents_is_that_of_the_scripts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/conformance.md");
    let document = fs::read_to_string(path).expect("docs/reference/conformance.md is there");
    let (_, found) = document.split_once("<!-- table -->\n").expect("it has a marker");
    let all: Vec<(String, Statement)> =
        statements().into_iter().map(|(name, _, statement)| (name, statement)).collect();
    let wanted = table(&all);
    let differs = found.trim().lines().zip(wanted.trim().lines()).find(|(found, wanted)| found != wanted);
    assert_eq!(differs, None, "cargo run -p bentpipe-script -- --table crates/script/statements");
    assert_eq!(found.trim().lines().count(), wanted.trim().lines().count());
}
