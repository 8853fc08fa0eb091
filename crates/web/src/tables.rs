//! Lists for the page: scenarios, algorithms, and the keys of a scenario file.

use bentpipe_cc::{Entry, REGISTRY};
use bentpipe_scenario::reference::{self, Key};
use bentpipe_scenario::{Summary, builtin_text, list};
use serde::Serialize;

/// Everything that the page offers.
#[derive(Serialize)]
pub struct Tables {
    version: &'static str,
    scenarios: Vec<BuiltIn>,
    algorithms: Vec<Entry>,
    keys: Vec<Described>,
}

/// A built-in scenario with the text of its file.
#[derive(Serialize)]
struct BuiltIn {
    #[serde(flatten)]
    summary: Summary,
    text: &'static str,
}

impl From<Summary> for BuiltIn {
    fn from(summary: Summary) -> Self {
        let text = builtin_text(&summary.name).expect("the list has the names of built-in scenarios");
        Self { summary, text }
    }
}

/// A key of a scenario file, as the editor completes it.
#[derive(Serialize)]
struct Described {
    /// Header of its table, such as `link.NAME.queue`.
    table: String,
    name: String,
    accepted: String,
    default: Option<String>,
    meaning: &'static str,
    /// Values of a key `kind` with their meanings.
    kinds: Vec<(&'static str, &'static str)>,
}

impl From<Key> for Described {
    fn from(key: Key) -> Self {
        let Key { table, name, accepted, default, meaning, kinds, .. } = key;
        Self { table, name, accepted, default, meaning, kinds }
    }
}

/// Returns the lists.
pub fn tables() -> Tables {
    Tables {
        version: env!("BENTPIPE_VERSION"),
        scenarios: list().into_iter().map(BuiltIn::from).collect(),
        algorithms: REGISTRY.iter().copied().filter(|entry| entry.in_simulation).collect(),
        keys: reference::scenario().into_iter().map(Described::from).collect(),
    }
}
