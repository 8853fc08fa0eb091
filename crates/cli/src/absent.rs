//! Commands that a smaller build lacks, and the message for their users.

use crate::failure::Failure;

/// Commands with the feature of this crate that they need.
const OPTIONAL: [(&str, &str); 8] = [
    ("emulate", "emulate"),
    ("generate", "generate"),
    ("paper", "studies"),
    ("pep", "pep"),
    ("receive", "transfer"),
    ("record", "emulate"),
    ("send", "transfer"),
    ("web", "web"),
];

/// Returns the failure for a `command` that only the full build has; `None` for an unknown command.
pub fn command(command: &str) -> Option<Failure> {
    let (name, feature) = OPTIONAL.iter().find(|(name, _)| *name == command)?;
    Some(failure(&format!("`bentpipe {name}`"), feature))
}

/// Returns the failure that names the build with `what`.
pub fn failure(what: &str, feature: &str) -> Failure {
    Failure::Missing(format!(
        "this build lacks {what}, the feature `{feature}` of the crate `bentpipe`: `make build` builds the full program"
    ))
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    #[test]
    fn every_optional_command_is_one_of_the_full_build() {
        for (name, _) in OPTIONAL {
            assert!(Args::command().find_subcommand(name).is_some(), "{name}");
        }
        let found = command("emulate").unwrap();
        assert_eq!(found.code(), 3);
        assert!(found.to_string().contains("lacks `bentpipe emulate`"), "{found}");
        assert!(command("emulat").is_none());
    }
}
