//! Figures in documents that the program can print.
//!
//! `<!-- output of: bentpipe ARGUMENTS -->` before a code block has the test run this command: the block consists of lines of its
//! output, except those with the real time. A file in the arguments that does not exist has the text of the last TOML block.

use std::fs;
use std::path::Path;
use std::process::Command;

use bentpipe_cc::REGISTRY;

use crate::root;

const MARK: &str = "<!-- output of: bentpipe ";
const DOCUMENTS: [&str; 2] = ["docs/start/researcher.md", "docs/howto/write-a-scenario.md"];

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Standard output of the program.
fn output(arguments: &[String], folder: &Path) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(arguments).current_dir(folder).output();
    let done = done.unwrap_or_else(|error| panic!("{error}"));
    assert!(
        done.stderr.is_empty() || done.status.code() < Some(2),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn shown_output_is_that_of_the_program() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    for path in DOCUMENTS {
        let text = document(path);
        let mut checked = 0;
        for (at, _) in text.match_indices(MARK) {
            let (arguments, rest) =
                text[at + MARK.len()..].split_once(" -->\n```\n").expect("a code block follows");
            let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            for name in arguments.iter().filter(|name| name.ends_with(".toml")) {
                let (_, block) = text[..at].rsplit_once("```toml\n").expect("a TOML block comes before");
                let (block, _) = block.split_once("\n```").expect("the block ends");
                fs::write(folder.path().join(name), block).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            let printed = output(&arguments, folder.path());
            let (shown, _) = rest.split_once("\n```").expect("the block ends");
            for line in shown.lines().filter(|line| !line.contains("of real time")) {
                let found = printed.lines().any(|other| other.trim_end() == line.trim_end());
                assert!(
                    found,
                    "{path}: bentpipe {} prints no line\n{line}\nbut\n{printed}",
                    arguments.join(" ")
                );
            }
            checked += 1;
        }
        assert!(checked > 0, "{path} has no output to check");
    }
}

#[test]
fn numbers_of_the_readme_are_those_of_the_program() {
    let readme = document("README.md");
    let scenarios = bentpipe_scenario::list().len();
    for text in [
        format!("one set of {} congestion controls", REGISTRY.len()),
        format!("| {} in all |", REGISTRY.len()),
        format!("names {scenarios} built-in networks"),
    ] {
        assert!(readme.contains(&text), "README.md does not say `{text}`");
    }
    let vary = "tcp.initial-window=2 segments,10 segments,30 segments";
    let file = "flow.bulk.traffic={ kind = 'file', size = '300 kB' }";
    assert!(readme.contains(vary) && readme.contains(file), "README.md has another example");
    let arguments =
        ["compare", "geo-single", "--cc", "cubic", "--set", file, "--vary", vary].map(str::to_owned);
    let printed = output(&arguments, &root());
    let mean = |window: &str| {
        let row = printed.lines().find(|line| line.contains(window)).unwrap_or_else(|| panic!("{printed}"));
        let cell = row
            .split('┆')
            .nth(1)
            .and_then(|cell| cell.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().ok());
        format!("{:.2}", cell.unwrap_or_else(|| panic!("{row}")))
    };
    let [two, ten, thirty] = ["  2 segments", "10 segments", "30 segments"].map(mean);
    let sentence = format!("The mean completion times are {two}, {ten} and {thirty} s.");
    assert!(readme.contains(&sentence), "README.md does not say `{sentence}`");
}

#[test]
fn the_comparison_has_every_algorithm() {
    let page = document("docs/algorithms.md");
    for entry in REGISTRY {
        let row = format!("| `{}` |", entry.name);
        assert!(page.contains(&row), "docs/algorithms.md has no row of {}", entry.name);
    }
}
