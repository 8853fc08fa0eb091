//! Queue limits as a time (`"200 ms"`) or in bandwidth-delay products (`"1 BDP"`).
//!
//! The rate of a link and the round trip of the flows over it are known only when the scenario has been read. So such a scenario is
//! read twice: with one packet in place of each such limit, and with the bytes that follow from it.

use bentpipe_base::{Duration, Rate};

use crate::error::Mistake;
use crate::form::Report;
use crate::model::{LinkGroup, Scenario};
use crate::topology::{Topology, initial};
use crate::tree::{Node, Value};
use crate::unit::{AMOUNT, Codec, TIME_ABOVE_ZERO};

/// Keys of a queue that hold a limit.
const LIMITS: [&str; 3] = ["limit", "ordinary", "low"];

/// Queues of both directions in the table of a link.
const QUEUES: [&str; 2] = ["queue", "reverse.queue"];

/// A queue limit that depends on the link.
pub(crate) struct Limit {
    /// Name of the link.
    link: String,
    /// 0 for forward, 1 for reverse.
    direction: usize,
    /// Path of the limit in the scenario.
    path: String,
    /// The limit as written.
    node: Node,
    depth: Depth,
}

/// Depth of a queue.
#[derive(Clone, Copy)]
enum Depth {
    /// The bytes that the link sends in this time.
    Time(Duration),
    /// A multiple of the product of rate and round trip.
    Products(f64),
}

fn depth(value: &Value) -> Option<Depth> {
    let amount = AMOUNT.read(value).ok()?;
    match amount.unit.as_str() {
        "BDP" => (amount.number > 0.0).then_some(Depth::Products(amount.number)),
        _ => TIME_ABOVE_ZERO.read(value).ok().map(Depth::Time),
    }
}

/// Returns the queue limits of the scenario `root` that depend on the link.
pub(crate) fn limits(root: &Node) -> Vec<Limit> {
    let links = root.as_table().and_then(|root| root.get("link")?.as_table());
    let mut limits = Vec::new();
    for entry in links.into_iter().flat_map(|links| &links.entries) {
        let Some(link) = entry.node.as_table() else { continue };
        // The reverse direction has the queue of the other one unless it names its own, but a rate of its own.
        let inherits = link.find(QUEUES[1]).is_none() && link.get("reverse").is_some();
        for (direction, key) in QUEUES.into_iter().enumerate() {
            let written = if inherits { QUEUES[0] } else { key };
            let Some(queue) = link.find(written) else { continue };
            let path = format!("link.{}.{key}", entry.key);
            limits.extend(limits_of(&queue.node, &path).into_iter().filter_map(|(path, node)| {
                let (link, node) = (entry.key.clone(), node.clone());
                Some(Limit { link, direction, path, depth: depth(&node.value)?, node })
            }));
        }
    }
    limits
}

/// Returns the limits of a queue with their paths.
fn limits_of<'a>(queue: &'a Node, path: &str) -> Vec<(String, &'a Node)> {
    let Some(table) = queue.as_table() else { return vec![(path.to_owned(), queue)] };
    let of = |key: &&str| {
        // A bare limit of the file, beside which the command line changed another key.
        let bare = table.bare.as_deref().filter(|_| *key == LIMITS[0]);
        Some((format!("{path}.{key}"), table.get(key).or(bare)?))
    };
    LIMITS.iter().filter_map(of).collect()
}

/// Replaces the limits of `root` by one packet.
pub(crate) fn hide(root: &mut Node, limits: &[Limit]) {
    for Limit { path, node, .. } in limits {
        root.put(path, Node { value: Value::Text("1 packet".to_owned()), place: node.place.clone() });
    }
}

/// Replaces the limits of `root` by bytes. `scenario` is what was read with other limits.
pub(crate) fn show(root: &mut Node, (limits, scenario): (&[Limit], &Scenario), report: &mut Report) {
    for Limit { link, direction, path, node, depth } in limits {
        let place = node.place.clone();
        match bytes(scenario, (link, *direction), *depth) {
            Ok(bytes) => root.put(path, Node { value: Value::Text(format!("{bytes} bytes")), place }),
            Err(accepted) => {
                let (key, found) = (path.clone(), node.value.to_string());
                report.add(Mistake { place, key, found, accepted, suggestion: None });
            }
        }
    }
}

/// Returns the bytes of a queue, or what is accepted in place of its limit.
fn bytes(scenario: &Scenario, (link, direction): (&str, usize), depth: Depth) -> Result<u64, String> {
    let group = scenario.links.iter().find(|group| group.name == link).expect("the link was read");
    let config = [&group.forward, &group.reverse][direction];
    let rate = Rate::from_bps(initial(&config.rate));
    let time = match depth {
        Depth::Time(time) => time,
        Depth::Products(products) => round_trip(scenario, group, direction)?.mul_f64(products),
    };
    Ok(rate.bytes_in(time).max(1))
}

/// Returns the longest round trip, without queues, of the flows over one direction of a link.
fn round_trip(scenario: &Scenario, link: &LinkGroup, direction: usize) -> Result<Duration, String> {
    let accepted = |why: &str| format!("a time or a size such as \"100 ms\" or \"100 packets\": {why}");
    let mut topology = Topology::new(scenario).map_err(|error| accepted(&error.to_string()))?;
    let mut longest = None;
    for flow in &scenario.flows {
        let user = || format!("flow.{}", flow.name);
        let end = |name: &str| topology.group(user, name).map(|nodes| nodes.start);
        let (Ok(from), Ok(to)) = (end(&flow.from), end(&flow.to)) else { continue };
        let mut route = Vec::new();
        if !(topology.route(from, to, &mut route) && topology.route(to, from, &mut route)) {
            continue;
        }
        let crosses = |id: &u32| {
            let edge = topology.link(*id);
            edge.group == link.name && *id as usize % 2 == direction
        };
        if !route.iter().any(crosses) {
            continue;
        }
        if topology.crossing(from, to).is_some() {
            return Err(accepted("the round trip through a constellation changes"));
        }
        let delays = route.iter().map(|id| topology.graph.delay_one_way(*id));
        longest = longest.max(Some(delays.fold(Duration::ZERO, |sum, delay| sum + delay)));
    }
    longest.ok_or_else(|| accepted("no flow crosses this link"))
}

#[cfg(test)]
mod tests {
    use bentpipe_net::{Limit, QueueConfig};

    use crate::Draft;

    /// Limits of both directions of the satellite link of `geo-single`: 10 Mbit/s, round trip 500 ms.
    fn limits(settings: &[&str]) -> Result<[Limit; 2], String> {
        let mut draft = Draft::load("geo-single").unwrap();
        settings.iter().for_each(|setting| draft.set(setting).unwrap());
        let scenario = draft.scenario().map_err(|error| error.to_string())?;
        let limit = |queue: &QueueConfig| match queue {
            QueueConfig::DropTail { limit } | QueueConfig::CoDel { limit, .. } => *limit,
            other => panic!("{other:?}"),
        };
        Ok([limit(&scenario.links[0].forward.queue), limit(&scenario.links[0].reverse.queue)])
    }

    #[test]
    fn a_time_is_what_the_link_sends_in_it() {
        let [queue, slow] = ["link.satellite.queue=200 ms", "link.satellite.reverse.rate=1 Mbit/s"];
        let both = |bytes| Ok([Limit::Bytes(bytes); 2]);
        assert_eq!(limits(&[queue]), both(250_000));
        assert_eq!(limits(&["link.satellite.queue.limit=200 ms"]), both(250_000));
        assert_eq!(limits(&["link.satellite.queue={ kind = \"codel\", limit = \"200 ms\" }"]), both(250_000));
        assert_eq!(limits(&["link.satellite.rate=20 Mbit/s", queue]), both(500_000));
        assert_eq!(limits(&[queue, slow]), Ok([Limit::Bytes(250_000), Limit::Bytes(25_000)]));
        let codel = "link.satellite.queue.kind=codel";
        assert_eq!(limits(&[queue, codel, slow]), Ok([Limit::Bytes(250_000), Limit::Bytes(25_000)]));
        let own = "link.satellite.reverse.queue=7 packets";
        assert_eq!(limits(&[queue, own]), Ok([Limit::Bytes(250_000), Limit::Packets(7)]));
    }

    #[test]
    fn a_product_has_the_round_trip_of_the_longest_flow() {
        let product = 10_000_000 / 8 / 2;
        assert_eq!(limits(&["link.satellite.queue=1 BDP"]), Ok([Limit::Bytes(product); 2]));
        assert_eq!(limits(&["link.satellite.queue=0.1 BDP"]), Ok([Limit::Bytes(product / 10); 2]));
        let error = limits(&["link.satellite.queue=-1 BDP"]).unwrap_err();
        assert!(error.contains("found \"-1 BDP\", accepted: at least 1 packet or byte"), "{error}");
    }

    #[test]
    fn what_has_no_fixed_round_trip_has_no_product() {
        let mut draft = Draft::load("leo-starlink").unwrap();
        draft.set("link.lease.queue=1 BDP").unwrap();
        let error = draft.scenario().unwrap_err().to_string();
        assert!(error.contains("the round trip through a constellation changes"), "{error}");
    }
}
