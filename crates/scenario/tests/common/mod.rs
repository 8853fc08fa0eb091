//! A small world, into which tests insert mistakes.
#![allow(dead_code, reason = "not every test file uses every helper")]

use bentpipe_scenario::{Draft, Scenario};

/// One flow over one link.
pub const WORLD: &str = r#"
duration = "10 s"
[node.near]
[node.far]
[link.satellite]
between = ["near", "far"]
rate = "10 Mbit/s"
delay-one-way = "250 ms"
[tcp]
mss = "1000 bytes"
[flow.bulk]
from = "near"
to = "far"
cc = "reno"
"#;

/// [`WORLD`] with one line replaced.
pub fn world_with(line: &str, instead: &str) -> String {
    assert!(WORLD.contains(line), "{line}");
    WORLD.replacen(line, instead, 1).trim_start().to_owned()
}

/// Reads `text` as the file `world.toml`.
pub fn read(text: &str) -> Result<Scenario, String> {
    let draft = Draft::parse("world.toml", text.trim_start());
    draft.and_then(|draft| draft.scenario()).map_err(|error| error.to_string())
}

/// [`WORLD`] with `--set` arguments.
pub fn set(arguments: &[&str]) -> Result<Scenario, String> {
    let apply = || {
        let mut draft = Draft::parse("world.toml", WORLD.trim_start())?;
        arguments.iter().try_for_each(|argument| draft.set(argument))?;
        draft.scenario()
    };
    apply().map_err(|error| error.to_string())
}
