//! Commands of features that a build may lack, and what it says to who asks for one.

use crate::failure::Failure;

/// Commands, and the feature of this crate that each needs.
const OPTIONAL: [(&str, &str); 7] = [
    ("emulate", "emulate"),
    ("generate", "generate"),
    ("paper", "studies"),
    ("pep", "pep"),
    ("receive", "transfer"),
    ("record", "emulate"),
    ("send", "transfer"),
];

/// The failure for a `command` that only the full build has; `None` for a command that no build has.
pub fn command(command: &str) -> Option<Failure> {
    let (name, feature) = OPTIONAL.iter().find(|(name, _)| *name == command)?;
    Some(failure(&format!("`bentpipe {name}`"), feature))
}

/// Says that `what` needs another build.
pub fn failure(what: &str, feature: &str) -> Failure {
    Failure::Missing(format!(
        "this build lacks {what}: `make build` makes the program with everything (it is the feature `{feature}` of the crate `bentpipe`)"
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
        assert!(found.to_string().contains("`bentpipe emulate`: `make build`"), "{found}");
        assert!(command("emulat").is_none());
    }
}
