//! Built-in studies: the `.toml` files under `papers/`, by way of a link in this crate, so that its package holds them.

use std::path::Path;

use bentpipe_scenario::{did_you_mean, read_text};

use crate::mistakes::StudyError;
use crate::study::Study;

const FILES: &[(&str, &str)] = &[
    ("peach", include_str!("../papers/peach.toml")),
    ("swift", include_str!("../papers/swift.toml")),
    ("star", include_str!("../papers/star.toml")),
    ("streaming", include_str!("../papers/streaming.toml")),
    ("pep-study", include_str!("../papers/pep-study.toml")),
    ("modern", include_str!("../papers/modern.toml")),
    ("medium-access", include_str!("../papers/medium-access.toml")),
    ("earlier", include_str!("../papers/earlier.toml")),
    ("leo", include_str!("../papers/leo.toml")),
    ("quic", include_str!("../papers/quic.toml")),
    ("mentioned", include_str!("../papers/mentioned.toml")),
    ("zenith", include_str!("../papers/zenith.toml")),
];

/// Names of the built-in studies.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// Returns the built-in studies of this name (`all` returns every one), else the study in the file
/// at this path.
///
/// # Errors
/// If there is no such study, or the file is not a study.
pub fn load(name_or_path: &str) -> Result<Vec<Study>, StudyError> {
    if name_or_path == "all" {
        return FILES.iter().map(|(name, text)| Study::parse(name, text)).collect();
    }
    if let Some((name, text)) = FILES.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(vec![Study::parse(name, text)?]);
    }
    let wrong = |what: String| StudyError::new(name_or_path, what);
    if !name_or_path.contains(['/', '\\', '.']) {
        let known: Vec<&str> = names().chain(["all"]).collect();
        let hint = did_you_mean(name_or_path, &known).map(|near| format!("; did you mean `{near}`?"));
        let accepted = format!("no such study, accepted: {}, or the path of a file", known.join(", "));
        return Err(wrong(accepted + &hint.unwrap_or_default()));
    }
    let text = read_text(Path::new(name_or_path)).map_err(|error| wrong(error.to_string()))?;
    Ok(vec![Study::parse(name_or_path, &text)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Form, Grid, Spot};

    #[test]
    fn all_load_and_their_worlds_can_be_built() {
        for study in load("all").unwrap_or_else(|error| panic!("{error}")) {
            for (name, experiment) in &study.experiment {
                for form in [Form { quick: true, seeds: None }, Form::default()] {
                    let grid = Grid::of(experiment, form);
                    // Every arm, place and choice once, but not all combinations.
                    let differs = |spot: &Spot| [spot.arm, spot.place, spot.choice].map(|index| index > 0);
                    let few = |spot: &Spot| differs(spot).into_iter().filter(|one| *one).count() <= 1;
                    for spot in grid.spots().into_iter().filter(few) {
                        let built = experiment.scenario(spot, &grid, form);
                        assert!(built.is_ok(), "{}: {name}: {spot:?}: {}", study.name, built.unwrap_err());
                    }
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_there_are() {
        let error = load("peech").unwrap_err().to_string();
        assert!(error.starts_with("peech") && error.ends_with("did you mean `peach`?"), "{error}");
        let error = load("nothing-like-it").unwrap_err().to_string();
        assert!(error.ends_with("or the path of a file"), "{error}");
    }
}
