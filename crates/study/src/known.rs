//! Quantities that a run writes. A misspelt name in a check is thus found before any run.

use bentpipe_outcome::{
    DelayOutcome, DelayOutcomes, FlowOutcome, LinkOutcome, MediumOutcome, Outcome, Totals,
};
use bentpipe_scenario::did_you_mean;
use serde_json::Value;

use crate::measure::{Measure, Subject};

/// Returns a result with every optional field set.
fn everything() -> Outcome {
    let flow = FlowOutcome {
        missing_bytes: 1,
        stream: Some(Default::default()),
        call: Some(Default::default()),
        transfers: Some(Default::default()),
        player: Some(Default::default()),
        split: Some(Default::default()),
        bundles: Some(Default::default()),
        relayed: Some(Default::default()),
        ..FlowOutcome::default()
    };
    let link = LinkOutcome {
        parity_packets: 1,
        repaired_packets: 1,
        gaps: Some(Default::default()),
        queueing_delay_ms: Some(0.0),
        ..LinkOutcome::default()
    };
    let some = Some(DelayOutcome::default());
    let delays = DelayOutcomes { rtt: some, smoothed_rtt: some, one_way_delay: some };
    Outcome {
        flows: vec![flow],
        links: vec![link],
        media: vec![MediumOutcome::default()],
        stranded_packets: 1,
        totals: Totals { fairness_ratio: Some(0.0), delays, ..Totals::default() },
        ..Outcome::default()
    }
}

/// Collects the names of a table's numbers, optional ones included, with dots for nested tables.
fn numbers(of: &Value, prefix: &str, names: &mut Vec<String>) {
    for (key, value) in of.as_object().into_iter().flatten() {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(_) => numbers(value, &format!("{name}."), names),
            Value::Number(_) | Value::Bool(_) | Value::Null => names.push(name),
            _ => {}
        }
    }
}

impl Measure {
    /// Checks that a run writes this quantity.
    ///
    /// # Errors
    /// A message with the unknown name and the accepted ones.
    pub fn check_known(&self) -> Result<(), String> {
        let Self::Field { name, of } = self else { return Ok(()) };
        let whole = serde_json::to_value(everything()).unwrap_or_default();
        let mut known = Vec::new();
        let first = |list: &str| whole.get(list).and_then(|list| list.get(0)).cloned().unwrap_or_default();
        match of {
            Subject::World => {
                numbers(&whole["totals"], "", &mut known);
                numbers(&first("flows"), "", &mut known);
                let top: Vec<(String, Value)> =
                    whole.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
                known.extend(top.into_iter().filter(|(_, value)| value.is_number()).map(|(key, _)| key));
            }
            Subject::Group(_) | Subject::Flow(_) => numbers(&first("flows"), "", &mut known),
            Subject::Link(_) => numbers(&first("links"), "", &mut known),
            Subject::Medium(_) => numbers(&first("media"), "", &mut known),
        }
        known.sort();
        known.dedup();
        if known.contains(name) {
            return Ok(());
        }
        let hint =
            did_you_mean(name, &known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Err(format!("found the quantity `{name}`, accepted: {}{hint}", known.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, of: Subject) -> Result<(), String> {
        Measure::Field { name: name.into(), of }.check_known()
    }

    #[test]
    fn what_a_run_writes_is_known_and_a_slip_is_not() {
        for name in [
            "goodput_bps",
            "jain_index",
            "fairness_ratio",
            "stream.real_time_index",
            "call.mos",
            "srtt_ms",
            "events",
        ] {
            assert_eq!(check(name, Subject::World), Ok(()), "{name}");
        }
        assert_eq!(check("gaps.mean_ms", Subject::Link("satellite".into())), Ok(()));
        assert_eq!(check("carried_bps", Subject::Medium("spot".into())), Ok(()));
        let why = check("goodput_bp", Subject::Group("bulk".into())).unwrap_err();
        assert!(why.ends_with("did you mean `goodput_bps`?"), "{why}");
        assert!(check("jain_index", Subject::Flow("bulk".into())).is_err(), "a flow has none");
    }

    #[test]
    fn the_built_in_studies_ask_for_what_runs_write() {
        let wish = crate::plan::Wish {
            form: crate::Form::default(),
            figures: Vec::new(),
            threads: 1,
            memory: None,
            stop: Default::default(),
        };
        for study in crate::load("all").unwrap() {
            for needed in crate::plan::needs(&study, &wish) {
                assert_eq!(needed.unknown(), Vec::<String>::new(), "{}: {}", study.name, needed.name);
            }
        }
    }
}
