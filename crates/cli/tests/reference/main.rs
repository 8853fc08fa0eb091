//! The pages in `docs/reference`, made from the program and compared with the files. `make reference` writes them.

#![cfg(all(feature = "full", target_os = "linux"))]

mod commands;
mod figures;
mod keys;
mod page;
mod results;

use std::fs;
use std::path::{Path, PathBuf};

/// Set when the pages are to be written.
const WRITE: &str = "BENTPIPE_WRITE_REFERENCE";

/// Root of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Text of a source file.
fn source(path: &str) -> String {
    let path = root().join("crates").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Text of the module at this path, with the modules in its folder.
fn module_text(path: &str) -> String {
    let mut text = source(&format!("{path}.rs"));
    for file in fs::read_dir(root().join("crates").join(path)).into_iter().flatten().flatten() {
        text += &fs::read_to_string(file.path()).unwrap_or_default();
    }
    text
}

#[test]
fn the_reference_is_that_of_this_program() {
    let pages = [
        ("commands.md", commands::page()),
        ("scenario.md", keys::scenario()),
        ("pep.md", keys::proxy()),
        ("study.md", keys::study()),
        ("algorithms.md", keys::algorithms()),
        ("results.md", results::page()),
    ];
    for (name, text) in pages {
        let path = root().join("docs/reference").join(name);
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        let line = written.lines().zip(text.lines()).position(|(old, new)| old != new);
        assert!(
            written == text,
            "docs/reference/{name} is old from line {:?} on: run `make reference`",
            line.map(|line| line + 1)
        );
    }
}
