//! The scenarios that the binary carries: the files under `scenarios/`.

use crate::draft::Draft;
use crate::error::Error;
use crate::model::Scenario;

const FILES: &[(&str, &str)] = &[
    ("geo", include_str!("../../../scenarios/geo.toml")),
    ("geo-dumbbell", include_str!("../../../scenarios/geo-dumbbell.toml")),
    ("geo-single", include_str!("../../../scenarios/geo-single.toml")),
    ("geo-fairness", include_str!("../../../scenarios/geo-fairness.toml")),
    ("geo-terrestrial", include_str!("../../../scenarios/geo-terrestrial.toml")),
    ("geo-video", include_str!("../../../scenarios/geo-video.toml")),
    ("geo-web", include_str!("../../../scenarios/geo-web.toml")),
    ("geo-stp", include_str!("../../../scenarios/geo-stp.toml")),
    ("geo-sctp", include_str!("../../../scenarios/geo-sctp.toml")),
    ("geo-petra", include_str!("../../../scenarios/geo-petra.toml")),
    ("wired-snoop", include_str!("../../../scenarios/wired-snoop.toml")),
    ("geo-vsat", include_str!("../../../scenarios/geo-vsat.toml")),
    ("vsat-access", include_str!("../../../scenarios/vsat-access.toml")),
    ("vsat-rain", include_str!("../../../scenarios/vsat-rain.toml")),
    ("geo-voip", include_str!("../../../scenarios/geo-voip.toml")),
    ("leo-dtn", include_str!("../../../scenarios/leo-dtn.toml")),
    ("leo-iridium", include_str!("../../../scenarios/leo-iridium.toml")),
    ("leo-teledesic", include_str!("../../../scenarios/leo-teledesic.toml")),
    ("leo-starlink", include_str!("../../../scenarios/leo-starlink.toml")),
    ("leo-recorded", include_str!("../../../scenarios/leo-recorded.toml")),
];

/// Two-line elements that scenarios name.
const ELEMENTS: &[(&str, &str)] =
    &[("starlink-shell", include_str!("../../../scenarios/starlink-shell.tle"))];

/// Recorded links that scenarios name.
const SERIES: &[(&str, &str)] = &[
    ("leo-recorded.csv", include_str!("../../../scenarios/leo-recorded.csv")),
    ("12mbit.trace", include_str!("../../../scenarios/12mbit.trace")),
];

/// What `bentpipe list scenarios` says of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Summary {
    /// Name by which it is loaded.
    pub name: String,
    /// One line.
    pub title: String,
}

/// The built-in scenarios.
pub fn list() -> Vec<Summary> {
    let title = |name, text| Draft::parse(name, text).map(|draft| draft.title()).unwrap_or_default();
    FILES.iter().map(|(name, text)| Summary { name: (*name).to_owned(), title: title(name, text) }).collect()
}

/// The built-in scenario `name`.
///
/// # Errors
/// [`Error::UnknownScenario`] with the names that there are.
pub fn builtin(name: &str) -> Result<Scenario, Error> {
    match text(name) {
        Some(text) => Draft::parse(name, text)?.scenario(),
        None => {
            let known = names().map(str::to_owned).collect();
            Err(Error::UnknownScenario { name: name.to_owned(), known })
        }
    }
}

/// The built-in scenario of this name, or else the file at this path.
///
/// # Errors
/// Those of [`Draft::load`] and [`Draft::scenario`].
pub fn load(path_or_name: &str) -> Result<Scenario, Error> {
    Draft::load(path_or_name)?.scenario()
}

/// Names of the built-in scenarios.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// File of the built-in scenario `name`.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The two-line elements called `name`.
pub(crate) fn elements(name: &str) -> Option<&'static str> {
    ELEMENTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The recording called `name`.
pub(crate) fn series(name: &str) -> Option<&'static str> {
    SERIES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of built-in elements, for messages.
pub(crate) fn element_names() -> String {
    ELEMENTS.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
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
        let mut carried: Vec<_> = names().map(str::to_owned).collect();
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
        let names: Vec<_> = names().collect();
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
