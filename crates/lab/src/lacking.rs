//! Warns about algorithms whose required router support is missing from the scenario.

use bentpipe_scenario::{FlowGroup, NodeKind, Scenario, Traffic, own_algorithms};

/// Algorithms that need information from a router, the required kind of node, and the behaviour without it.
const ROUTERS: &[(&str, &str, &str)] = &[
    ("xcp", "xcp", "it behaves like Reno's window (sack)"),
    ("p-xcp", "p-xcp", "it behaves like Reno's window (sack)"),
    ("ba-tcp", "ba-tcp", "it behaves like Reno's window (sack)"),
    ("dvegas", "dvegas", "it behaves like vegas at the sender"),
    ("pbs", "link-notices", "it learns nothing of outages and errors"),
];

/// Returns a sentence for each registered algorithm whose requirement is missing in `scenario`: a router that informs it, earlier
/// connections to learn from, pacing, or Accurate ECN.
pub fn lacking(scenario: &Scenario) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let (own, world) = (own_algorithms(), &scenario.name);
    for flow in &scenario.flows {
        let name = flow.sender.cc.name();
        // An external algorithm may need a memory, but its behaviour without one is unknown.
        if own.iter().any(|own| own.name == name) {
            continue;
        }
        let missing = ROUTERS.iter().find(|(cc, kind, _)| *cc == name && !has_node(scenario, kind));
        let router = missing
            .map(|(_, kind, left)| format!("{name} finds no node of kind \"{kind}\" in {world}: {left}"));
        let forgets = flow.sender.cc.remembers() && !has_history(scenario, flow);
        let history = forgets.then(|| {
            format!(
                "{name} finds no earlier connection between the same hosts in {world}: it behaves like Reno's window (sack)"
            )
        });
        let pacing = flow.sender.lacks_pacing().then(|| {
            format!(
                "{name} needs pacing, which the hosts of {world} do not do: --set tcp.pacing=algorithm switches it on"
            )
        });
        let resumes = flow.sender.careful_resume.is_some();
        let capacity = (resumes && !has_history(scenario, flow)).then(|| {
            format!("Careful Resume finds no earlier connection between the same hosts in {world}: it changes nothing")
        });
        let spaced = flow.sender.resumes_without_pacing().then(|| {
            format!(
                "Careful Resume needs pacing, which the hosts of {world} do not do: --set tcp.pacing=algorithm switches it on"
            )
        });
        let marks = flow.sender.lacks_accurate_ecn().then(|| {
            format!(
                "{name} needs Accurate ECN, which the hosts of {world} do not use: --set tcp.ecn=accurate switches it on"
            )
        });
        for sentence in [router, history, pacing, capacity, spaced, marks].into_iter().flatten() {
            if !said.contains(&sentence) {
                said.push(sentence);
            }
        }
    }
    said
}

fn has_node(scenario: &Scenario, wanted: &str) -> bool {
    scenario.nodes.iter().any(|group| match &group.kind {
        NodeKind::Middlebox(config) => config.name() == wanted,
        _ => false,
    })
}

/// True if there are several connections between the same two hosts, in succession or at once.
fn has_history(scenario: &Scenario, flow: &FlowGroup) -> bool {
    let several = matches!(
        flow.traffic,
        Traffic::Pages { fresh_connection: true, .. } | Traffic::Web(_) | Traffic::Ftp(_)
    );
    let members =
        |name: &str| scenario.nodes.iter().find(|group| group.name == name).map_or(1, |group| group.count);
    let pairs = members(&flow.from).max(members(&flow.to));
    let beside = scenario.flows.iter().filter(|other| (&other.from, &other.to) == (&flow.from, &flow.to));
    several || beside.map(|other| other.count).sum::<u32>() > pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::Draft;

    fn of(settings: &[&str], cc: &str) -> Vec<String> {
        let mut draft = Draft::load("geo-dumbbell").unwrap();
        settings.iter().for_each(|setting| draft.set(setting).unwrap());
        draft.set_cc(cc).unwrap();
        lacking(&draft.scenario().unwrap())
    }

    #[test]
    fn routers_and_memories_that_are_missing_are_named() {
        for cc in ["xcp", "p-xcp", "ba-tcp", "sharing", "fast-start"] {
            let said = of(&[], cc);
            assert!(said.len() == 1 && said[0].starts_with(cc), "{cc}: {said:?}");
        }
        for cc in ["cubic", "peach", "vegas"] {
            assert!(of(&[], cc).is_empty(), "{cc}");
        }
    }

    #[test]
    fn careful_resume_names_what_it_misses() {
        let said = of(&["tcp.careful-resume=on"], "cubic");
        assert!(said.len() == 2 && said.iter().all(|said| said.starts_with("Careful Resume")), "{said:?}");
        let said = of(&["tcp.careful-resume=on", "flow.bulk.count=40", "tcp.pacing=algorithm"], "cubic");
        assert!(said.is_empty(), "{said:?}");
    }

    #[test]
    fn hosts_that_do_not_pace_are_named_once_for_each_algorithm_that_needs_it() {
        for cc in ["bbr", "bbr3", "copa", "hybla", "new-vegas", "rcs", "tfrc", "zenith"] {
            let said = of(&["flow.bulk.count=8"], cc);
            let [said] = &said[..] else { panic!("{cc}: {said:?}") };
            assert!(said.starts_with(&format!("{cc} needs pacing")), "{said}");
            let typed = said.split_once("--set ").unwrap().1.split(' ').next().unwrap();
            for paced in [typed, "tcp.pacing=window"] {
                assert!(of(&[paced], cc).is_empty(), "{cc}, {paced}");
            }
        }
        assert!(of(&["flow.bulk.cc.spacing=false"], "hybla").is_empty());
    }

    #[test]
    fn prague_without_accurate_ecn_is_named() {
        let paced = "tcp.pacing=algorithm";
        for ecn in ["tcp.ecn=false", "tcp.ecn=true"] {
            let said = of(&[paced, ecn], "prague");
            assert!(said.len() == 1 && said[0].starts_with("prague needs Accurate ECN"), "{said:?}");
        }
        assert!(of(&[paced, "tcp.ecn=accurate"], "prague").is_empty());
    }

    #[test]
    fn nothing_is_said_where_they_are_there() {
        assert!(of(&["node.earth-station.kind=xcp"], "xcp").is_empty());
        assert!(of(&["flow.bulk.count=40"], "sharing").is_empty());
    }
}
