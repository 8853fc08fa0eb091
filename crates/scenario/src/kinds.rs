//! Names and meanings of the `kind` values of a scenario, in the order of error messages.

use bentpipe_mac::MEDIA;
use bentpipe_middlebox::MIDDLEBOXES;

/// A name and its meaning.
type Kind = (&'static str, &'static str);

const NODES: &[Kind] = &[
    ("host", "ends connections"),
    ("router", "forwards packets"),
    ("proxy", "splits connections: ends those that pass it and opens others in their place"),
    ("bundle-router", "a router; keeps the bundles of flows over dtn until the next node has them"),
    (
        "relay-entity",
        "a router; passes on what flows over petra send, by TCP on the ground and STP in between",
    ),
    ("ground-station", "a host or gateway on the ground that sees the satellites of a constellation"),
];

/// Values of `flow.NAME.traffic.kind`.
pub const TRAFFIC_KINDS: &[Kind] = &[
    ("bulk", "as much as TCP takes, without end"),
    ("file", "so many bytes, then the connection closes"),
    ("pages", "a page again and again, with an idle time between"),
    ("cbr", "constant bit rate without congestion control"),
    ("on-off", "bursts of constant bit rate between silences, exponential or Pareto"),
    ("video", "live MPEG-4 video of a stochastic model, judged by its frames and packets"),
    ("frames", "live video of frame sizes recorded in a file"),
    ("voice", "a telephone call by G.711 or G.729, judged by the E-model"),
    ("web", "a reader of pages: Choi-Limb, Mah, SURGE or ns-2's"),
    ("adaptive", "a player that chooses the quality of each segment as it goes (DASH)"),
    ("ftp", "one file after the other, with pauses"),
];

/// Returns the values of `node.NAME.kind`. Every middlebox is a router.
pub fn node_kinds() -> Vec<Kind> {
    [NODES, MIDDLEBOXES].concat()
}

/// Returns the values of `link.NAME.medium.kind`.
pub fn medium_kinds() -> Vec<Kind> {
    [&[("none", "every link of the group has a channel of its own")][..], MEDIA].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;
    use bentpipe_net::{LOSSES, QUEUES};

    /// Returns the values that the scenario reader accepts at `key`, from its error message.
    fn accepted(key: &str) -> Vec<String> {
        let mut draft = Draft::load("geo-dumbbell").unwrap();
        draft.set(&format!("{key}.kind=nonsense")).unwrap();
        let error = draft.scenario().unwrap_err();
        let mistake = error.mistakes().iter().find(|mistake| mistake.key.starts_with(key)).unwrap();
        mistake.accepted.split(", ").map(|name| name.trim_matches(['"', '`']).to_owned()).collect()
    }

    #[test]
    fn lists_name_what_scenarios_accept() {
        for (key, listed) in [
            ("node.gateway", node_kinds()),
            ("link.satellite.queue", QUEUES.to_vec()),
            ("link.satellite.loss", LOSSES.to_vec()),
            ("link.satellite.medium", medium_kinds()),
            ("flow.bulk.traffic", TRAFFIC_KINDS.to_vec()),
        ] {
            let names: Vec<_> = listed.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, accepted(key), "{key}");
        }
    }
}
