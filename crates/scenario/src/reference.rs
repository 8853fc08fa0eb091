//! Keys of scenarios and of `pep.toml`, and parameters of algorithms, as their readers accept them: the source of the reference
//! pages.

use bentpipe_cc::Algorithm;

pub use crate::deployment::keys as proxy;
use crate::describe::world;
use crate::draw;
pub use crate::form::Key;
use crate::form::list;
use crate::model::Scenario;
use crate::parameters;

/// A parameter of an algorithm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Key in the table `cc` of a flow.
    pub name: String,
    /// Accepted values.
    pub accepted: String,
    /// Default, as a file writes it.
    pub default: String,
}

/// Returns the keys of a scenario file.
pub fn scenario() -> Vec<Key> {
    let mut scenario = Scenario::unread("NAME");
    let written = list(None, |form| world(form, &mut scenario, None));
    [written, list(Some("VALUE"), draw::keys)].concat()
}

/// Returns the parameters of the registered algorithm `name`.
pub fn parameters(name: &str) -> Vec<Parameter> {
    let algorithm = Algorithm::from_name(name);
    let entries = algorithm.map(|algorithm| parameters::show(&algorithm).entries).unwrap_or_default();
    let parameter = |entry: crate::tree::Entry| Parameter {
        accepted: parameters::accepted(name, &entry.key),
        default: entry.node.value.to_string(),
        name: entry.key,
    };
    entries.into_iter().map(parameter).collect()
}
