//! Names and meanings of the `kind` values of a scenario, in the order of error messages.

use bentpipe_mac::MEDIA;
use bentpipe_middlebox::MIDDLEBOXES;

/// A name and its meaning.
type Kind = (&'static str, &'static str);

const NODES: &[Kind] = &[
    ("host", "ends connections"),
    ("router", "forwards packets"),
    ("proxy", "splits connections: ends those that pass it and opens new ones to the receivers"),
    ("bundle-router", "a router that stores the bundles of `dtn` flows until the next node has them"),
    (
        "relay-entity",
        "a router that relays the units of `petra` flows, by TCP to hosts and by STP between relay entities",
    ),
    ("ground-station", "a host or gateway with antennas to the satellites of a constellation"),
    ("satellite", "a host on board of a satellite of the constellation"),
];

/// Values of `flow.NAME.traffic.kind`.
pub const TRAFFIC_KINDS: &[Kind] = &[
    ("bulk", "unlimited data"),
    ("file", "a number of bytes, then the connection closes"),
    ("pages", "pages of the same size, with idle times between them"),
    ("cbr", "constant bit rate"),
    ("on-off", "bursts of constant bit rate with exponential or Pareto lengths"),
    ("video", "live MPEG-4 video of a stochastic model"),
    ("frames", "live video with frame sizes from a file"),
    ("voice", "one direction of a telephone call, rated by the E-model"),
    ("web", "a reader of web pages by a published model"),
    ("adaptive", "a player that chooses the quality of each video segment (DASH)"),
    ("ftp", "files with pauses between them (3GPP2)"),
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
