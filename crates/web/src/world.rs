//! Scenario of a request, and its mistakes.

use std::collections::BTreeMap;

use bentpipe_lab::{BadSetting, RunError};
use bentpipe_scenario::{Draft, Error, FilesGiven, Mistake, Place, TopologyError};
use serde::{Deserialize, Serialize};

/// Scenario of a request.
#[derive(Clone, Deserialize)]
pub struct World {
    /// Name of a built-in scenario, or of the file in the editor.
    pub name: String,
    /// Text of the file; `None` for a built-in scenario.
    pub text: Option<String>,
    /// Changes, as `--set` takes them.
    #[serde(default)]
    pub set: Vec<String>,
    /// Texts of the files that the user chose, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl World {
    /// Returns the scenario with the changes.
    pub fn draft(&self) -> Result<Draft, Refusal> {
        let mut draft = match &self.text {
            Some(text) => Draft::parse(&self.name, text)?,
            None => Draft::load(&self.name)?,
        }
        .with_files(FilesGiven::new(self.files.clone()));
        self.set.iter().try_for_each(|setting| draft.set(setting))?;
        Ok(draft)
    }

    /// Returns the keys of the changes.
    pub fn keys(&self) -> Vec<String> {
        let key = |setting: &String| setting.split('=').next().unwrap_or_default().trim().to_owned();
        self.set.iter().map(key).collect()
    }
}

/// Reason why there is no answer, for the user.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// All of it as text.
    pub message: String,
    /// Mistakes in the text of the scenario.
    pub mistakes: Vec<Marked>,
}

/// A mistake at its place in the editor.
#[derive(Debug, Serialize)]
pub struct Marked {
    /// Line from 1.
    pub line: usize,
    /// Column in characters from 1.
    pub column: usize,
    /// Value that was found and values that are accepted, in one sentence.
    pub message: String,
}

impl Marked {
    fn of(mistake: &Mistake) -> Option<Self> {
        let Place::File { line, column, .. } = mistake.place else { return None };
        Some(Self { line, column, message: mistake.to_string() })
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { message, mistakes: Vec::new() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let mistakes = error.mistakes().iter().filter_map(Marked::of).collect();
        Self { message: error.to_string(), mistakes }
    }
}

impl From<BadSetting> for Refusal {
    fn from(error: BadSetting) -> Self {
        error.to_string().into()
    }
}

impl From<TopologyError> for Refusal {
    fn from(error: TopologyError) -> Self {
        error.to_string().into()
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Impossible(why) => why.into(),
            RunError::Stopped => "the run was stopped".to_owned().into(),
            RunError::Unwritten(error) => error.to_string().into(),
        }
    }
}
