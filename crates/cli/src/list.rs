//! `bentpipe list`.

use bentpipe_cc::{Custom, Entry, REGISTRY, SENDER_ONLY};
use bentpipe_lab::table;
use bentpipe_scenario::own_algorithms;
use serde::Serialize;

use crate::args::{ListArgs, Listed};
use crate::failure::Failure;
use crate::output;

/// A kind of node, queue, loss or traffic, as a scenario names it.
#[derive(Clone, Copy, Debug, Serialize)]
struct Kind {
    name: &'static str,
    title: &'static str,
}

const fn kind(name: &'static str, title: &'static str) -> Kind {
    Kind { name, title }
}

/// `node.NAME.kind`.
const NODES: &[Kind] = &[
    kind("host", "ends connections"),
    kind("router", "forwards packets"),
    kind("proxy", "splits connections: ends those that pass it and opens others in their place"),
    kind("bundle-router", "a router; keeps the bundles of flows over dtn until the next node has them"),
    kind(
        "relay-entity",
        "a router; passes on what flows over petra send, by TCP on the ground and STP in between",
    ),
    kind("ground-station", "a host or gateway on the ground that sees the satellites of a constellation"),
    kind("ack-filter", "a router; where bare ACKs would wait, only the latest of each connection does"),
    kind("ack-decimator", "a router; lets one of so many bare ACKs pass"),
    kind("snoop", "a router; repairs losses behind it and keeps them from the sender"),
    kind("wtcp", "a router; repairs losses behind it and hides from the sender's clock how long that took"),
    kind("spoofing", "a router; acknowledges data in the receiver's name and answers for their delivery"),
    kind("satpep", "the same, with windows that follow how much of the link behind it is used"),
    kind("xcp", "a router; tells XCP's senders how much they may change their rate"),
    kind("p-xcp", "the same, and offers what rate-limited senders leave to the others"),
    kind("ba-tcp", "a router; tells BA-TCP's receivers the length of the path and their share of it"),
    kind("link-notices", "a router; tells the ends when its links lose to errors, go out, and are back"),
    kind("dvegas", "a router; tells DVegas's senders beside it whether its queue has room"),
    kind("fuzzy", "a router; tells ends of congestion, or drops, by rules in words on its queue"),
];

/// `link.NAME.queue.kind`.
const QUEUES: &[Kind] = &[
    kind("drop-tail", "first in, first out; what finds no room is dropped"),
    kind("threshold", "drop-tail, and low priority only while at most theta packets wait"),
    kind("push-out", "drop-tail, and an ordinary packet pushes out one of low priority"),
    kind("strict", "push-out, and low priority waits until no ordinary packet is left"),
    kind("priority", "two queues with room of their own; low priority waits for ordinary packets"),
    kind("red", "random early detection, gentle by default"),
    kind("codel", "controlled delay (RFC 8289)"),
    kind("fq-codel", "controlled delay in a queue for each flow (RFC 8290)"),
];

/// `link.NAME.loss.kind`.
const LOSSES: &[Kind] = &[
    kind("none", "no transmission errors"),
    kind("packet", "each packet with the same probability"),
    kind("bit", "each bit with the same probability, so that long packets are lost more often"),
    kind("byte", "each byte with the same probability"),
    kind("gilbert-elliott", "bursts: a good and a bad state with a loss probability each"),
    kind("bursts", "bursts of a mean length, with a loss rate over all"),
    kind("schedule", "each packet with a probability that changes over time"),
    kind("lutz", "land-mobile: Rice in view of the satellite, Rayleigh and lognormal in shadow"),
    kind("loo", "land-mobile: a lognormal direct signal and Rayleigh multipath"),
    kind("list", "exactly the packets with these numbers"),
    kind("trace", "as recorded: one digit for each packet"),
];

/// `link.NAME.medium.kind`.
const MEDIA: &[Kind] = &[
    kind("none", "every link of the group has a channel of its own"),
    kind("tdma", "every terminal has its own slots in every frame"),
    kind("tdma-dama", "slots on demand: shares change at superframes"),
    kind("cf-dama", "slots on demand, and those that nobody asked for in turn"),
    kind("aloha", "a packet leaves at once; what overlaps is lost and tried again"),
    kind("slotted-aloha", "as aloha, but in slots"),
    kind("crdsa", "copies in random slots of a frame, found by cancelling"),
];

/// `flow.NAME.traffic.kind`.
const TRAFFIC: &[Kind] = &[
    kind("bulk", "as much as TCP takes, without end"),
    kind("file", "so many bytes, then the connection closes"),
    kind("pages", "a page again and again, with an idle time between"),
    kind("cbr", "constant bit rate without congestion control"),
    kind("on-off", "bursts of constant bit rate between silences, exponential or Pareto"),
    kind("video", "live MPEG-4 video of a stochastic model, judged by its frames and packets"),
    kind("frames", "live video of frame sizes recorded in a file"),
    kind("voice", "a telephone call by G.711 or G.729, judged by the E-model"),
    kind("web", "a reader of pages: Choi-Limb, Mah, SURGE or ns-2's"),
    kind("adaptive", "a player that chooses the quality of each segment as it goes (DASH)"),
    kind("ftp", "one file after the other, with pauses"),
];

/// A study that the binary carries.
#[derive(Clone, Debug, Serialize)]
struct Paper {
    name: String,
    title: String,
    citation: String,
}

/// Prints a list.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    match args.what {
        Listed::Cc => algorithms(args.json),
        Listed::Scenarios => {
            let all = bentpipe_scenario::list();
            let rows = all.iter().map(|one| vec![one.name.clone(), one.title.clone()]).collect();
            print(args.json, &all, rows)
        }
        Listed::Papers => {
            let all = papers()?;
            let rows = all.iter().map(|one| vec![one.name.clone(), one.title.clone()]).collect();
            print(args.json, &all, rows)
        }
        what => {
            let all = kinds(what);
            print(args.json, &all, all.iter().map(|kind| vec![kind.name.into(), kind.title.into()]).collect())
        }
    }
}

/// A list as `--json` prints it.
pub fn document(what: Listed) -> Result<serde_json::Value, Failure> {
    let document = match what {
        Listed::Cc => serde_json::to_value(entries()),
        Listed::Scenarios => serde_json::to_value(bentpipe_scenario::list()),
        Listed::Papers => serde_json::to_value(papers()?),
        what => serde_json::to_value(kinds(what)),
    };
    document.map_err(|error| Failure::Work(error.to_string()))
}

/// The kinds of one sort; algorithms, scenarios and papers are none.
const fn kinds(what: Listed) -> &'static [Kind] {
    match what {
        Listed::Nodes => NODES,
        Listed::Queues => QUEUES,
        Listed::Losses => LOSSES,
        Listed::Media => MEDIA,
        Listed::Traffic => TRAFFIC,
        Listed::Cc | Listed::Scenarios | Listed::Papers => &[],
    }
}

fn papers() -> Result<Vec<Paper>, Failure> {
    let all = bentpipe_study::load("all").map_err(|error| Failure::Work(error.to_string()))?;
    let paper = |study: bentpipe_study::Study| Paper {
        name: study.name,
        title: study.title,
        citation: study.citation,
    };
    Ok(all.into_iter().map(paper).collect())
}

fn entries() -> Vec<Entry> {
    REGISTRY.iter().copied().chain(own_algorithms().iter().map(own)).collect()
}

fn algorithms(json: bool) -> Result<(), Failure> {
    let all = entries();
    let row = |entry: &Entry| {
        let paper = if entry.year == 0 { String::new() } else { format!("{}, {}", entry.paper, entry.year) };
        vec![entry.name.into(), entry.title.into(), paper]
    };
    print(json, &all, all.iter().map(row).collect())?;
    if json {
        return Ok(());
    }
    output::print(
        "\nnewreno and sack are Reno's window with that recovery; NAME+reno, NAME+newreno, NAME+sack and NAME+rack\n\
         choose the recovery of any other.\n",
    )
}

/// What is known of an algorithm that the program brought.
fn own(custom: &Custom) -> Entry {
    Entry { name: custom.name, title: "brought by this program", ..SENDER_ONLY }
}

fn print(json: bool, document: &impl Serialize, rows: Vec<Vec<String>>) -> Result<(), Failure> {
    if json { output::print_json(document) } else { output::print(&table::list(&rows, output::look())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::Draft;

    /// What the reader of scenarios says it accepts at `key`.
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
            ("node.gateway", NODES),
            ("link.satellite.queue", QUEUES),
            ("link.satellite.loss", LOSSES),
            ("link.satellite.medium", MEDIA),
            ("flow.bulk.traffic", TRAFFIC),
        ] {
            let names: Vec<_> = listed.iter().map(|kind| kind.name.to_owned()).collect();
            assert_eq!(names, accepted(key), "{key}");
        }
    }
}
