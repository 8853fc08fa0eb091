//! Small worlds, for tests of each part alone.

use bentpipe_scenario::{Draft, Scenario, Topology};

use crate::world::World;

/// The world at rest of a scenario.
pub(crate) fn build(scenario: &Scenario) -> World {
    World::new(scenario, &mut Topology::new(scenario).expect("a topology"), 1).expect("a world")
}

/// The world at rest of a scenario in TOML.
pub(crate) fn world_of(text: &str) -> World {
    build(&Draft::parse("test", text).expect("a draft").scenario().expect("a scenario"))
}

/// A flow of pages passes two proxies, and a file passes none.
pub(crate) const TWO_PROXIES: &str = r#"
duration = "10 s"
[node.a]
[node.b]
[node.near]
kind = "proxy"
buffer = "20 kB"
[node.far]
kind = "proxy"
buffer = "20 kB"
[link.first]
between = ["a", "near"]
rate = "10 Mbit/s"
delay-one-way = "1 ms"
[link.satellite]
between = ["near", "far"]
rate = "10 Mbit/s"
delay-one-way = "250 ms"
[link.last]
between = ["far", "b"]
rate = "10 Mbit/s"
delay-one-way = "1 ms"
[flow.split]
from = "a"
to = "b"
traffic = { kind = "pages", page = "1 MB", idle = "2 s" }
[node.c]
[node.d]
[link.direct]
between = ["c", "d"]
rate = "10 Mbit/s"
delay-one-way = "1 ms"
[flow.direct]
from = "c"
to = "d"
traffic = { kind = "file", size = "1 MB" }
"#;
