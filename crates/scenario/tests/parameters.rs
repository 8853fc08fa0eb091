//! Test that every parameter of every algorithm is shown, and that the command line can change it.

use bentpipe_cc::{Algorithm, REGISTRY};
use bentpipe_scenario::{Draft, Error, Scenario};

/// Loads `geo-single` with this algorithm and one change of it.
fn scenario(name: &str, change: &str) -> Result<Scenario, Error> {
    let mut draft = Draft::load("geo-single")?;
    draft.set_cc(name)?;
    if !change.is_empty() {
        draft.set(change)?;
    }
    draft.scenario()
}

fn algorithm(scenario: &Scenario) -> Algorithm {
    scenario.flows[0].sender.sender.cc.clone()
}

/// Returns the names of the algorithm's parameters.
fn parameters(name: &str) -> Vec<String> {
    let algorithm = Algorithm::from_name(name).expect("it is registered");
    let table = algorithm.parameters(serde_json::value::Serializer).expect("a table of scalars");
    let table = table.as_object().cloned().unwrap_or_default();
    table.keys().map(|key| key.replace('_', "-")).collect()
}

/// Returns another accepted value of this parameter: a common one, or one named in the error message for an invalid word.
fn change(name: &str, parameter: &str) -> Option<String> {
    let before = algorithm(&scenario(name, "").expect("a world"));
    let refusal = scenario(name, &format!("flow.bulk.cc.{parameter}=no-such-word")).err()?.to_string();
    let words = refusal.split('"').skip(1).step_by(2).map(str::to_owned);
    let usual =
        ["true", "false", "0.5", "0.25", "1", "2", "3", "7", "0.1 s", "3 s", "1 Mbit/s", "10 segments"];
    usual.into_iter().map(str::to_owned).chain(words).find_map(|value| {
        let change = format!("flow.bulk.cc.{parameter}={value}");
        let changed = scenario(name, &change).ok()?;
        (algorithm(&changed) != before).then_some(change)
    })
}

#[test]
fn every_parameter_is_shown_and_settable() {
    let mut count = 0;
    for entry in REGISTRY {
        for parameter in parameters(entry.name) {
            // The key of a time has no unit suffix; its value shows the unit.
            let key =
                [parameter.as_str(), parameter.trim_end_matches("-s"), parameter.trim_end_matches("-bps")]
                    .into_iter()
                    .find(|key| change(entry.name, key).is_some());
            let key = key.unwrap_or_else(|| panic!("{}: {parameter} cannot be set", entry.name));
            let change = change(entry.name, key).expect("found just now");
            let changed = scenario(entry.name, &change).expect("accepted just now");
            let shown = changed.to_toml();
            assert!(shown.contains(&format!("{key} = ")), "{}: {key} is not shown in\n{shown}", entry.name);
            let again =
                Draft::parse("shown.toml", &shown).and_then(|draft| draft.scenario()).expect("it reads back");
            assert_eq!(algorithm(&again), algorithm(&changed), "{}: {change}", entry.name);
            count += 1;
        }
    }
    assert!(count > 150, "{count} parameters");
}

/// An absent parameter has its mode's default; a written one has its value.
#[test]
fn the_vegas_of_linux_has_its_own_thresholds() {
    let shown = |change: &str| {
        let text = scenario("vegas", change).expect("a world").to_toml();
        ["alpha", "beta"].map(|key| {
            let (_, rest) = text.split_once(&format!("{key} = ")).expect("it is shown");
            rest.split([',', ' ', '\n']).next().expect("a number").to_owned()
        })
    };
    assert_eq!(shown(""), ["1.0", "3.0"]);
    assert_eq!(shown("flow.bulk.cc.mode=linux"), ["2.0", "4.0"]);
    assert_eq!(shown("flow.bulk.cc={ name = 'vegas', mode = 'linux', alpha = 1.5 }"), ["1.5", "4.0"]);
}
