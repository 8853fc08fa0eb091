//! Queue limits as a time (`"200 ms"`) or in bandwidth-delay products (`"1 BDP"`).
//!
//! The rate of a link and the round trip of the flows over it are known only when the scenario has been read. So such a scenario is
//! read twice: with one packet in place of each such limit, and with the bytes that follow from it.

use bentpipe_base::{Duration, Rate};

use crate::error::Mistake;
use crate::form::Report;
use crate::model::{LinkGroup, Scenario};
use crate::topology::{Topology, initial};
use crate::tree::{Node, Table, Value};
use crate::unit::{AMOUNT, Codec, TIME_ABOVE_ZERO};

/// Keys of a queue that hold a limit or a level.
const LIMITS: [&str; 5] = ["limit", "ordinary", "low", "min-threshold", "max-threshold"];

/// A queue limit that depends on the link.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Depth {
    /// What the link sends in this time.
    Time(Duration),
    /// This many times the product of rate and round trip.
    Products(f64),
}

fn depth(value: &Value) -> Option<Depth> {
    let amount = AMOUNT.read(value).ok()?;
    match amount.unit.as_str() {
        "BDP" => (amount.number > 0.0).then_some(Depth::Products(amount.number)),
        _ => TIME_ABOVE_ZERO.read(value).ok().map(Depth::Time),
    }
}

/// True if a queue of the scenario `root` has such a limit.
pub(crate) fn has_depths(root: &Node) -> bool {
    let mut found = false;
    visit(&mut root.clone(), &mut |_, _| found = true);
    found
}

/// Replaces each such limit of `root` by one packet.
pub(crate) fn without_depths(root: &mut Node) {
    visit(root, &mut |_, node| node.value = Value::Text("1 packet".to_owned()));
}

/// Replaces each such limit of `root` by bytes. `scenario` is what was read with other limits.
pub(crate) fn with_bytes(root: &mut Node, scenario: &Scenario, report: &mut Report) {
    each_direction_has_its_own(root);
    visit(root, &mut |(link, direction), node| {
        let depth = depth(&node.value).expect("only such limits are visited");
        match bytes(scenario, (link, direction), depth) {
            Ok(bytes) => node.value = Value::Text(format!("{bytes} bytes")),
            Err(accepted) => report.add(Mistake {
                place: node.place.clone(),
                key: format!("link.{link}{}.queue", [".reverse", ""][usize::from(direction == 0)]),
                found: node.value.to_string(),
                accepted,
                suggestion: None,
            }),
        }
    });
}

/// The reverse direction, which has the queue of the other one unless it names its own, has a rate of its own.
fn each_direction_has_its_own(root: &mut Node) {
    for (_, link) in links(root) {
        let Some(queue) = link.get("queue").cloned() else { continue };
        if let Some(reverse) = table_in(link, "reverse").filter(|reverse| reverse.get("queue").is_none()) {
            reverse.put("queue", queue);
        }
    }
}

/// Calls `found` with the name of the link, the direction (0 forward, 1 reverse) and the value of each such limit.
fn visit(root: &mut Node, found: &mut dyn FnMut((&str, usize), &mut Node)) {
    for (name, link) in links(root) {
        limits(link, (name, 0), found);
        if let Some(reverse) = table_in(link, "reverse") {
            limits(reverse, (name, 1), found);
        }
    }
}

fn limits(direction: &mut Table, of: (&str, usize), found: &mut dyn FnMut((&str, usize), &mut Node)) {
    let Some(entry) = direction.entries.iter_mut().find(|entry| entry.key == "queue") else { return };
    let values = match &mut entry.node {
        Node { value: Value::Table(queue), .. } => {
            let limits = queue.entries.iter_mut().filter(|entry| LIMITS.contains(&entry.key.as_str()));
            limits.map(|entry| &mut entry.node).chain(queue.bare.as_deref_mut()).collect()
        }
        bare => vec![bare],
    };
    values.into_iter().filter(|node| depth(&node.value).is_some()).for_each(|node| found(of, node));
}

fn links(root: &mut Node) -> impl Iterator<Item = (&str, &mut Table)> {
    let root = match &mut root.value {
        Value::Table(root) => table_in(root, "link"),
        _ => None,
    };
    let links = root.into_iter().flat_map(|links| &mut links.entries);
    links.filter_map(|entry| match &mut entry.node.value {
        Value::Table(link) => Some((entry.key.as_str(), link)),
        _ => None,
    })
}

fn table_in<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    let entry = table.entries.iter_mut().find(|entry| entry.key == key)?;
    match &mut entry.node.value {
        Value::Table(table) => Some(table),
        _ => None,
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
