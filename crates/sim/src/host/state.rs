//! Hosts: connection ends, and the proxies that relay from one to another.

use std::collections::HashMap;
use std::ops::Range;

use bentpipe_base::Segment;
use bentpipe_scenario::{NodeKind, Topology};

use crate::host::end::End;
use crate::host::proxy::{Leg, Proxy};
use crate::ids::EndId;
use crate::packet::pool::PacketContents;

/// Connection ends at hosts and proxies.
#[derive(Default)]
pub(crate) struct Hosts {
    pub ends: Vec<End>,
    /// Pairs of ends that no connection uses, by their sending end.
    pub vacant: Vec<EndId>,
    pub proxies: Vec<Proxy>,
    /// Legs of flows behind proxies.
    pub legs: Vec<Leg>,
    /// Those of each flow, in the order from sender to receiver.
    pub legs_of: Vec<Range<u32>>,
    /// SYNs that proxies keep until the server has answered, by the ends that they are for.
    pub held: HashMap<EndId, Segment>,
    /// Number of ends that another end is settling through a relay.
    pub nested: u32,
    /// The packet that is being written or read.
    pub scratch: PacketContents,
}

impl Hosts {
    /// The proxies of a scenario; connection ends come with their flows.
    pub fn new(topology: &Topology<'_>) -> Self {
        let nodes = (0..).zip(topology.nodes());
        let proxies = nodes.filter_map(|(node, state)| match state.kind {
            NodeKind::Proxy(config) => Some(Proxy::new(state.name.to_string(), node, config)),
            _ => None,
        });
        Self { proxies: proxies.collect(), ..Self::default() }
    }
}
