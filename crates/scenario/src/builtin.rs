//! The built-in scenarios.

use crate::draft::Draft;
use crate::embedded::{SCENARIOS, names, text};
use crate::error::Error;
use crate::model::Scenario;

/// Entry of a scenario in `bentpipe list scenarios`.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Summary {
    /// Name by which it is loaded.
    pub name: String,
    /// Title in one line.
    pub title: String,
}

/// Returns the built-in scenarios.
pub fn list() -> Vec<Summary> {
    let title = |name, text| Draft::parse(name, text).map(|draft| draft.title()).unwrap_or_default();
    SCENARIOS
        .iter()
        .map(|(name, text)| Summary { name: (*name).to_owned(), title: title(name, text) })
        .collect()
}

/// Returns the text of the built-in scenario `name`.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    text(SCENARIOS, name)
}

/// Returns the built-in scenario `name`.
///
/// # Errors
/// [`Error::UnknownScenario`] with the known names.
pub fn builtin(name: &str) -> Result<Scenario, Error> {
    match text(SCENARIOS, name) {
        Some(text) => Draft::parse(name, text)?.scenario(),
        None => {
            let known = names(SCENARIOS).map(str::to_owned).collect();
            Err(Error::UnknownScenario { name: name.to_owned(), known })
        }
    }
}

/// Returns the built-in scenario of this name, else the one in the file at this path.
///
/// # Errors
/// The errors of [`Draft::load`] and [`Draft::scenario`].
pub fn load(path_or_name: &str) -> Result<Scenario, Error> {
    Draft::load(path_or_name)?.scenario()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_carried() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let mut carried: Vec<_> = names(SCENARIOS).map(str::to_owned).collect();
        files.sort();
        carried.sort();
        assert_eq!(carried, files);
    }

    #[test]
    fn all_load_and_have_a_title() {
        for summary in list() {
            let scenario = builtin(&summary.name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name, summary.name);
            assert!(!summary.title.is_empty(), "{}", summary.name);
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        let mistyped = load("geo-dumbell").unwrap_err().to_string();
        let names: Vec<_> = names(SCENARIOS).collect();
        assert_eq!(
            mistyped,
            format!(
                "found scenario \"geo-dumbell\", accepted: {}; did you mean \"geo-dumbbell\"?",
                names.join(", ")
            )
        );
        let missing = load("missing.toml").unwrap_err().to_string();
        assert!(missing.starts_with("missing.toml: "), "{missing}");
    }
}
