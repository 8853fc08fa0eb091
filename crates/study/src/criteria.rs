//! Criteria of a study as text, so that they can be frozen. Every result carries their hash, which changes with any criterion.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::study::{Ground, Study};

impl Study {
    /// Returns one line per claim: `NAME [EXPERIMENT] CHECK` with every margin, or the reason why it is not testable.
    pub fn criteria(&self) -> String {
        let mut text = String::new();
        for (name, claim) in &self.claim {
            let line = match &claim.ground {
                Ground::Check { experiment, text, .. } => {
                    format!("[{}] {text}", experiment.as_deref().unwrap_or("arithmetic"))
                }
                Ground::AllOf(names) => format!("all of {}", names.join(", ")),
                Ground::NotTestable(_) => "not testable".to_owned(),
            };
            let _ = writeln!(text, "{name} {line}"); // writing to a string cannot fail
        }
        text
    }

    /// Returns the SHA-256 of the criteria in hexadecimal digits.
    pub fn criteria_hash(&self) -> String {
        sha256_hex(&self.criteria())
    }
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn sha256_hex(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use crate::builtin::load;

    /// `papers/criteria.txt` holds the criteria of every built-in study with their hashes. `docs/criteria.md` names every past
    /// hash with its reason, so neither changes alone. `BENTPIPE_FREEZE=1` rewrites `papers/criteria.txt`.
    #[test]
    fn the_criteria_are_the_frozen_ones_and_every_change_has_its_reason() {
        let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers");
        let studies = load("all").unwrap();
        let mut text = String::new();
        for study in &studies {
            let _ = writeln!(text, "# {} {}\n{}", study.name, study.criteria_hash(), study.criteria());
        }
        let file = papers.join("criteria.txt");
        if std::env::var_os("BENTPIPE_FREEZE").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let frozen = std::fs::read_to_string(&file).unwrap();
        assert!(
            frozen == text,
            "a criterion differs from papers/criteria.txt: BENTPIPE_FREEZE=1 cargo test -p bentpipe-study writes it anew, and \
             docs/criteria.md wants the reason"
        );
        let log = std::fs::read_to_string(papers.join("../docs/criteria.md")).unwrap();
        for study in &studies {
            let entry = log.lines().rfind(|line| line.starts_with(&format!("| {} |", study.name)));
            let hash = study.criteria_hash();
            assert!(
                entry.is_some_and(|line| line.contains(&hash[..16])),
                "docs/criteria.md: the last entry of {} must name {}: {entry:?}",
                study.name,
                &hash[..16]
            );
        }
    }
}
