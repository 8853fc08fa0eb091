//! What `show` prints reads back to the same world.

use bentpipe_scenario::{Draft, builtin, list};

#[test]
fn built_in_scenarios_round_trip() {
    for summary in list() {
        let scenario = builtin(&summary.name).unwrap();
        let text = scenario.to_toml();
        let again = Draft::parse(&summary.name, &text).and_then(|draft| draft.scenario());
        let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, scenario, "{text}");
        assert_eq!(again.to_toml(), text);
    }
}
