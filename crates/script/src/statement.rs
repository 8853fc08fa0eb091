//! Statements in the head comments of scripts, and their table.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Mistake;

/// Requirement that a script tests.
///
/// The comment begins with a line such as `# RFC 9293, 3.10.7.2 (MUST)`, followed by the requirement in plain words. A paragraph
/// that begins with `Deviation:` explains why this stack deviates. The script then still shows the RFC's behaviour, and must
/// fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Number of the RFC.
    pub rfc: u32,
    /// Section of the RFC.
    pub section: String,
    /// Requirement level, such as MUST or SHOULD.
    pub level: String,
    /// Text of the requirement.
    pub words: String,
    /// Reason for a deviation, if there is one.
    pub deviation: Option<String>,
}

/// Requirement levels allowed in a comment (RFC 2119).
const LEVELS: &[&str] = &["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "described"];

impl Statement {
    /// Reads the comment at the head of a script.
    ///
    /// # Errors
    /// If the comment has another form.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        let comment: Vec<&str> =
            text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        let mistake = |line: u32, found: &str, accepted: &str| Mistake {
            file: file.to_owned(),
            line,
            found: format!("{found:?}"),
            accepted: accepted.to_owned(),
        };
        let first = comment.first().copied().unwrap_or_default();
        let parts = first.strip_prefix("RFC ").and_then(|rest| {
            let (rfc, rest) = rest.split_once(", ")?;
            let (section, level) = rest.strip_suffix(')')?.split_once(" (")?;
            let level = LEVELS.contains(&level).then(|| level.to_owned())?;
            Some((rfc.parse().ok()?, section.to_owned(), level))
        });
        let Some((rfc, section, level)) = parts else {
            let accepted = format!("# RFC NUMBER, SECTION (LEVEL), with a level of {}", LEVELS.join(", "));
            return Err(mistake(1, first, &accepted));
        };
        let mut paragraphs = comment[1..].split(|line| line.is_empty()).map(|lines| lines.join(" "));
        let words = paragraphs.next().unwrap_or_default();
        if words.is_empty() {
            return Err(mistake(2, "", "the requirement in plain words"));
        }
        let deviation =
            paragraphs.find_map(|text| text.strip_prefix("Deviation:").map(|why| why.trim().to_owned()));
        Ok(Self { rfc, section, level, words, deviation })
    }
}

/// Returns all scripts in a folder and below, or the one file, in order.
///
/// # Errors
/// If the folder cannot be read.
pub fn find_scripts(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            found.extend(find_scripts(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns the numbers of a section, for sorting.
fn section_order(section: &str) -> Vec<u32> {
    section.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// Makes the table of `docs/reference/conformance.md`: each statement with its script, relative to the folder of all scripts.
pub fn table(statements: &[(String, Statement)]) -> String {
    let mut sorted: Vec<&(String, Statement)> = statements.iter().collect();
    sorted.sort_by_key(|(path, statement)| (statement.rfc, section_order(&statement.section), path.clone()));
    let deviations = sorted.iter().filter(|(_, statement)| statement.deviation.is_some()).count();
    let mut text = format!("{} statements, {deviations} known deviations.\n", sorted.len());
    let mut rfc = 0;
    for (path, statement) in sorted {
        if statement.rfc != rfc {
            rfc = statement.rfc;
            write!(text, "\n## RFC {rfc}\n\n| section | level | statement | script | verdict |\n|---|---|---|---|---|\n")
                .expect("a string takes all");
        }
        let name = Path::new(path).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let verdict = match &statement.deviation {
            None => "holds".to_owned(),
            Some(why) => format!("**deviates**: {why}"),
        };
        let Statement { section, level, words, .. } = statement;
        writeln!(
            text,
            "| {section} | {level} | {words} | [{name}](../../crates/script/statements/{path}) | {verdict} |"
        )
        .expect("a string takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_script_says_what_it_is_about() {
        let text = "# RFC 9293, 3.10.7.2 (MUST)\n# A reset\n# is ignored.\n#\n# Deviation: we\n# like it.\n\n0 socket";
        let statement = Statement::parse("x.pkt", text).unwrap();
        assert_eq!(
            (statement.rfc, statement.section.as_str(), statement.level.as_str()),
            (9293, "3.10.7.2", "MUST")
        );
        assert_eq!(
            (statement.words.as_str(), statement.deviation.as_deref()),
            ("A reset is ignored.", Some("we like it."))
        );
        for wrong in
            ["", "# RFC 9293 3.1 (MUST)\n# x", "# RFC 9293, 3.1 (must)\n# x", "# RFC 9293, 3.1 (MUST)\n"]
        {
            assert!(Statement::parse("x.pkt", wrong).is_err(), "{wrong:?}");
        }
    }
}
