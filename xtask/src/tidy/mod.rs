//! Checks of style that the compiler does not make.
//!
//! Every check reads a [`Tree`] of files in memory and returns [`Finding`]s, so a test needs three lines of input.

mod arrows;
mod cycles;
mod dead;
mod length;
mod papers;
mod prose;
mod purity;
mod source;
mod tree;
mod words;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

pub use tree::Tree;

/// A violation of a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    file: String,
    line: usize,
    what: String,
    why: &'static str,
    remedy: String,
    /// True for a hint, which is not a failure.
    only_a_hint: bool,
}

impl Finding {
    /// Makes a finding at a line, counted from 1.
    fn new(
        (file, line): (&str, usize),
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self { file: file.to_owned(), line, what, why, remedy, only_a_hint: false }
    }

    fn hint(self) -> Self {
        Self { only_a_hint: true, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what, why, remedy, only_a_hint } = self;
        let hint = if *only_a_hint { "hint: " } else { "" };
        write!(f, "{file}:{line}: {hint}{what}: {why}; {remedy}")
    }
}

/// Checks the checkout at `root` and prints the findings.
pub fn main(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let findings = check(&tree, root);
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    let failures = findings.iter().filter(|finding| !finding.only_a_hint).count();
    if failures > 0 {
        eprintln!("tidy: {failures} to mend");
        return ExitCode::FAILURE;
    }
    println!("tidy: {} files are in order", tree.len());
    ExitCode::SUCCESS
}

fn check(tree: &Tree, root: &Path) -> Vec<Finding> {
    let (sources, mut findings) = source::parse(tree);
    findings.extend(arrows::check(tree, crate::house::ROOMS));
    findings.extend(cycles::check(&sources, crate::house::ROOMS));
    findings.extend(cycles::check_floors(&sources, crate::house::ROOMS, crate::house::SIMULATOR));
    findings.extend(papers::check(tree, &sources));
    findings.extend(length::check(tree, &sources));
    findings.extend(dead::check(tree, &sources));
    findings.extend(purity::check(&sources, crate::house::ROOMS));
    findings.extend(prose::check(tree, crate::house::UNREVISED_DOCUMENTS));
    findings.extend(words::check(tree, &words::Machine::this(root)));
    findings.sort();
    findings
}
