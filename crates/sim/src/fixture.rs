//! Parts of worlds for unit tests.

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, QueueConfig};
use bentpipe_scenario::{LinkGroup, NodeGroup, NodeKind, Scenario};

/// A second of nothing.
pub fn world() -> Scenario {
    Scenario {
        name: "test".to_owned(),
        title: String::new(),
        duration: Duration::from_secs(1),
        seed: 1,
        nodes: Vec::new(),
        links: Vec::new(),
        flows: Vec::new(),
    }
}

/// A group of nodes.
pub fn nodes(name: &str, kind: NodeKind, count: u32) -> NodeGroup {
    NodeGroup { name: name.to_owned(), kind, count }
}

/// A group of links of 10 Mbit/s and so many milliseconds.
pub fn link_group(name: &str, (from, to): (&str, &str), delay_ms: u64) -> LinkGroup {
    let config =
        LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(delay_ms), QueueConfig::default());
    LinkGroup {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        forward: config.clone(),
        reverse: config,
    }
}
