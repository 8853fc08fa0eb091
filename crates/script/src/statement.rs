//! What the comment at the head of a script says, and the table of all of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Mistake;

/// The requirement that a script is about.
///
/// The comment begins with a line such as `# RFC 9293, 3.10.7.2 (MUST)`, followed by the requirement in plain words. A paragraph that
/// begins with `Deviation:` says why our stack does something else: the script then still shows what the RFC wants, and must fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Number of the RFC.
    pub rfc: u32,
    /// Its section.
    pub section: String,
    /// MUST, SHOULD and the like.
    pub level: String,
    /// The requirement.
    pub words: String,
    /// Why we deviate, if we do.
    pub deviation: Option<String>,
}

/// Levels of requirement that a comment may name (RFC 2119).
const LEVELS: &[&str] = &["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "described"];

impl Statement {
    /// Reads the comment at the head of a script.
    ///
    /// # Errors
    /// If it does not begin as it must.
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

/// All scripts in a folder and below, or the one file, in order.
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

/// The numbers of a section, for sorting.
fn section_order(section: &str) -> Vec<u32> {
    section.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// The table of `docs/conformance.md`: each statement with its script, by its path from the folder of all scripts.
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
            "| {section} | {level} | {words} | [{name}](../crates/script/statements/{path}) | {verdict} |"
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
