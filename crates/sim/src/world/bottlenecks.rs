//! Senders and links whose time series a run records.

use bentpipe_base::Rate;
use bentpipe_outcome::{Recorder, SenderToRecord};
use bentpipe_scenario::{LinkId, NodeId, Scenario, Topology};
use bentpipe_traffic::Interest;

use crate::app::flow::Flow;
use crate::host::proxy::Leg;
use crate::ids::FlowId;
use crate::world::World;

/// A recorder for the flows of a world, their legs behind proxies, and their bottlenecks.
pub(crate) fn recorder(world: &World, scenario: &Scenario, topology: &Topology<'_>) -> Recorder {
    let flow = |flow: &Flow| SenderToRecord {
        name: flow.name_in(scenario).to_string(),
        segment_bytes: flow.configs[0].mss,
        is_bundle: flow.application.interest() == Interest::Everything,
    };
    let leg = |leg: &Leg| SenderToRecord {
        name: leg.name.clone(),
        segment_bytes: leg.configs[0].mss,
        is_bundle: false,
    };
    let senders = world.applications.flows.iter().map(flow).chain(world.hosts.legs.iter().map(leg)).collect();
    let links = bottlenecks(world, topology).into_iter().map(|link| named(topology, link)).collect();
    Recorder::new(senders, links)
}

/// Returns name and links of a curve. The curve of a ground station's link to its satellite continues after a handover.
fn named(topology: &Topology<'_>, id: LinkId) -> (String, Vec<LinkId>) {
    let edge = topology.link(id);
    let sky = topology.ground_link_count() as LinkId..topology.link_count() as LinkId;
    let is_station = |node: NodeId| topology.graph.sky_ends.contains(&node);
    let of = |link: u32| topology.graph.hop(link);
    let name = edge.name.to_string();
    let (middlebox, _) = name.split_once('~').unwrap_or((&name, ""));
    match (sky.contains(&id), is_station(of(id).from), is_station(of(id).to)) {
        (true, true, false) => {
            let ids = sky.filter(|link| of(*link).from == of(id).from).collect();
            (format!("{middlebox} up"), ids)
        }
        (true, false, true) => {
            let ids = sky.filter(|link| of(*link).to == of(id).to).collect();
            (format!("{middlebox} down"), ids)
        }
        _ => (format!("{name} {}", edge.direction), vec![id]),
    }
}

/// Returns the links that limit flows: of a flow's links in forward direction, the one with the least rate per flow.
fn bottlenecks(world: &World, topology: &Topology<'_>) -> Vec<LinkId> {
    let mut flows_over = vec![0_u64; topology.link_count()];
    let flows = 0..world.applications.flows.len() as FlowId;
    for flow in flows.clone() {
        for link in world.links_of(flow) {
            flows_over[link as usize] += 1;
        }
    }
    let share = |link: &LinkId| Rate::bps(topology.rate(*link)) / flows_over[*link as usize];
    let of_flows = flows.filter_map(|flow| world.links_of(flow).into_iter().min_by_key(share));
    let mut bottlenecks: Vec<_> = of_flows.collect();
    bottlenecks.sort_unstable();
    bottlenecks.dedup();
    bottlenecks
}
