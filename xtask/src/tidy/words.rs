//! Words that no file may contain: paths of a contributor's machine, and plans without an owner.
//!
//! Clippy checks `dbg!`, `todo!` and `unimplemented!` (lints in the root `Cargo.toml`).

use std::path::Path;

use super::{Finding, Tree};

/// Folders of the machine that runs the check.
pub struct Machine {
    folders: Vec<String>,
}

impl Machine {
    /// The checkout at `root`, and usual folders of home directories.
    pub fn this(root: &Path) -> Self {
        let mut folders: Vec<String> =
            ["home", "Users", "root"].map(|folder| format!("/{folder}/")).into_iter().collect();
        // The name of a checkout directly below `/` can be an ordinary word.
        if root.components().count() > 2 {
            folders.push(root.display().to_string());
        }
        Self { folders }
    }
}

/// Checks every text file.
pub fn check(tree: &Tree, machine: &Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| *path != "Cargo.lock") {
        for (index, line) in text.lines().enumerate() {
            let at = (path, index + 1);
            if let Some(folder) = machine.folders.iter().find(|folder| names_folder(line, folder)) {
                let why = "it exists on one machine only";
                let remedy = "write the path from the root of the checkout";
                findings.push(Finding::new(at, format!("names `{folder}`"), why, remedy));
            }
            if let Some(word) = MARKS.into_iter().find(|word| lacks_owner(line, word)) {
                let why = "a plan needs an owner";
                let remedy = format!("do it, or write {word}(name)");
                findings.push(Finding::new(at, format!("`{word}` without an owner"), why, remedy));
            }
        }
    }
    findings
}

// Composed here, so that this file does not match.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// True if `folder` begins an absolute path in `line`.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(position, _)| {
        let before = line[..position].chars().next_back();
        let after = line[position + folder.len()..].chars().next();
        let is_part = |c: char| c.is_alphanumeric() || "_-.~/}".contains(c);
        let continues = |c: char| c.is_alphanumeric() || "_-".contains(c);
        !before.is_some_and(is_part) && (folder.ends_with('/') == after.is_some_and(continues))
    })
}

/// True if `line` contains `mark` as a whole word without `(name)` after it.
fn lacks_owner(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(position, _)| {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let rest = &line[position + mark.len()..];
        let alone = !is_word(line[..position].chars().next_back()) && !is_word(rest.chars().next());
        let owned = rest.strip_prefix('(').is_some_and(|name| name.starts_with(char::is_alphanumeric));
        alone && !owned
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(line: &str) -> usize {
        let machine = Machine::this(Path::new("/srv/checkout"));
        check(&Tree::of(&[("a.md", line)]), &machine).len()
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for home in ["home", "Users", "root"] {
            assert_eq!(findings(&format!("see /{home}/somebody/notes")), 1);
            assert_eq!(findings(&format!("target/{home}/somebody and ../{home}/x")), 0);
        }
        assert_eq!(findings("out=/srv/checkout/target"), 1);
        assert_eq!(findings("/srv/checkout"), 1);
        assert_eq!(findings("/srv/checkouts and my/srv/checkout"), 0);
    }

    #[test]
    fn an_intention_needs_an_owner() {
        for mark in MARKS {
            assert_eq!(findings(&format!("// {mark}: later")), 1);
            assert_eq!(findings(&format!("// {mark}(ada): later")), 0);
            assert_eq!(findings(&format!("{mark}S my_{mark}")), 0);
        }
    }
}
