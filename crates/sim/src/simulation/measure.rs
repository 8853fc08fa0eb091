//! From the counters of a world to the outcome of a run.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Gaps;
use bentpipe_outcome::{
    BundleOutcome, Delays, FlowOutcome, GapOutcome, GroupOutcome, LegOutcome, LinkOutcome, MediumOutcome,
    NodeOutcome, Outcome, RelayedOutcome, SplitOutcome, Totals,
};
use bentpipe_scenario::{Edge, FlowGroup, LinkId, NodeId, NodeKind, Scenario, Topology, Transport};
use bentpipe_traffic::{Application, Carried, ServiceOutcome};

use crate::app::flow::{Flow, Gone};
use crate::host::proxy::{Leg, Proxy};
use crate::ids::FlowId;
use crate::network::medium::Shared;
use crate::network::middleboxes::MiddleboxNode;
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;

/// Properties of a run besides its measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub seed: u64,
    pub wall: std::time::Duration,
}

/// The result of a run that has ended.
pub(crate) fn outcome<M: Monitor>(
    scenario: &Scenario,
    topology: &Topology<'_>,
    simulation: &mut Simulation<M>,
    circumstances: Circumstances,
) -> Outcome {
    close_books(simulation);
    let span = simulation.scheduler.now.since(Instant::ZERO);
    let now = simulation.scheduler.now;
    // Results need memory, too: each part of the world is released after its measurement, unless a monitor reads it.
    let links = link_outcomes(topology, simulation, span);
    if !M::MONITORS {
        simulation.network.links = Vec::new();
    }
    let goodput = &simulation.applications.goodput;
    let flow = |(index, flow): (usize, &Flow)| FlowOutcome {
        convergence_s: goodput.of_flow(index, flow.start).map(Duration::as_secs_f64),
        ..flow_outcome(scenario, (simulation.hosts.later_legs(index as FlowId), flow), now)
    };
    let flows: Vec<_> = simulation.applications.flows.iter().enumerate().map(flow).collect();
    let first = simulation.applications.flows.iter().map(|flow| flow.start).min().unwrap_or(Instant::ZERO);
    let convergence_s = goodput.of_all(first).map(Duration::as_secs_f64);
    let data_packets = |flow: &Flow| {
        let [_, receiver] = flow.counts.of_gone().stats;
        receiver.received_segments - receiver.duplicate_segments + flow.counts.plain_packets
    };
    let data_packets_delivered = simulation.applications.flows.iter().map(data_packets).sum();
    let outcome = Outcome {
        scenario: scenario.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        seed: circumstances.seed,
        simulated_s: span.as_secs_f64(),
        measured_from_s: None,
        wall_s: circumstances.wall.as_secs_f64(),
        events: simulation.scheduler.events,
        totals: Totals { convergence_s, data_packets_delivered, ..Totals::of(&flows) },
        groups: GroupOutcome::of(&flows),
        flows,
        links,
        nodes: node_outcomes(
            topology,
            &simulation.network.middleboxes.nodes,
            &simulation.hosts.proxies,
            &simulation.applications.flows,
        ),
        media: simulation.network.media.shared.iter().map(|shared| medium_outcome(shared, span)).collect(),
        stranded_packets: simulation.network.stranded,
    };
    with_delays(outcome, &simulation.applications.delays)
}

/// The delays of all flows.
fn all_delays(of_groups: &[Delays]) -> Delays {
    let mut all = Delays::default();
    of_groups.iter().for_each(|delays| all.merge(delays));
    all
}

/// The results of the measurement window: of a whole run without those of the same run until the window begins.
pub(crate) fn window(whole: (Outcome, Vec<Delays>), early: &(Outcome, Vec<Delays>)) -> Outcome {
    let (outcome, mut delays) = whole;
    delays.iter_mut().zip(&early.1).for_each(|(delays, early)| delays.remove(early));
    with_delays(outcome.since(&early.0), &delays)
}

/// Adds the delays of each group of the scenario.
fn with_delays(mut outcome: Outcome, delays: &[Delays]) -> Outcome {
    // Groups are in the order of the scenario, and each has a flow.
    outcome.groups.iter_mut().zip(delays).for_each(|(group, delays)| group.delays = delays.outcome());
    outcome.totals.delays = all_delays(delays).outcome();
    outcome
}

/// Adds the counters of present connections to those of their flows.
pub(crate) fn close_books<M: Monitor>(simulation: &mut Simulation<M>) {
    let vacant = std::mem::take(&mut simulation.hosts.vacant);
    let mut ends = std::mem::take(&mut simulation.hosts.ends);
    let mut used = vec![true; ends.len()];
    for sender in vacant {
        used[sender as usize] = false;
        used[sender as usize + 1] = false;
    }
    // Counters need memory, too: each end is released as soon as it is not needed, the first ones first.
    ends.reverse();
    for (index, used) in used.into_iter().enumerate() {
        let Some(end) = ends.pop() else { break };
        if used {
            simulation.keep_books_of(&end, index % 2);
        }
        if ends.len() < ends.capacity() - ends.capacity() / 16 {
            ends.shrink_to_fit();
        }
    }
}

/// Returns the results of proxies or a spoofing gateway on the path of a flow.
fn split_outcome(legs: &[Leg], flow: &Flow) -> Option<SplitOutcome> {
    let leg = |leg: &Leg| LegOutcome {
        name: leg.name.clone(),
        cc: leg.cc.clone(),
        sent_segments: leg.gone.sent_segments,
        retransmitted_segments: leg.gone.retransmitted_segments,
        timeouts: leg.gone.timeouts,
        probes_sent: leg.gone.probes_sent,
        srtt_ms: leg.gone_srtt.map(Duration::as_millis_f64),
    };
    let Gone { acknowledged, stats: [_, receiver], .. } = flow.counts.of_gone();
    let undelivered = acknowledged.saturating_sub(receiver.delivered_bytes);
    (!legs.is_empty() || flow.spoofed).then(|| SplitOutcome::of(undelivered, legs.iter().map(leg).collect()))
}

/// The algorithm of a flow, or the transport where that has none to choose.
fn carrier(group: &FlowGroup) -> String {
    match group.transport {
        Transport::Udp => "udp".to_owned(),
        Transport::Tfrc => "tfrc".to_owned(),
        Transport::Admission => "admission".to_owned(),
        Transport::Stp => "stp".to_owned(),
        Transport::Sctp => "sctp".to_owned(),
        // TCP may carry both over a hop.
        Transport::Tcp | Transport::Dtn | Transport::Petra | Transport::Quic => group.cc.clone(),
    }
}

fn flow_outcome(scenario: &Scenario, (legs, flow): (&[Leg], &Flow), now: Instant) -> FlowOutcome {
    let span = now.since(Instant::ZERO);
    let group = &scenario.flows[flow.group as usize];
    let counts = &flow.counts;
    let Gone { stats: [sender, receiver], srtt, aborted, failures, connected, .. } = counts.of_gone();
    let reason = match flow.transport {
        _ if flow.start >= now => Some("begins after the end of the run"),
        Transport::Tcp if !connected && flow.session.is_none() => Some("never connected"),
        _ => None,
    };
    let progress = flow.session.as_ref().map(|session| session.sender()).unwrap_or_default();
    let (segment_bytes, sent_segments) = match &flow.application {
        Application::Cbr(cbr) => (cbr.packet_bytes() - flow.header_bytes, cbr.sent()),
        Application::SourceApp(app) if app.packets() > 0 => (flow.configs[0].mss, app.packets()),
        _ => (flow.configs[0].mss, sender.sent_segments + progress.sent_packets),
    };
    let delivered_bytes = receiver.delivered_bytes + counts.plain_bytes;
    let per_second = |amount: f64| if span.is_zero() { 0.0 } else { amount / span.as_secs_f64() };
    let completion = || (counts.completion_sum / counts.completed).as_secs_f64();
    let carried = Carried {
        sent_packets: progress.sent_packets - progress.repeated_packets,
        lost_packets: counts.lost_packets,
        failed_connections: failures,
    };
    let ServiceOutcome { stream, call, transfers, player } = flow.application.service(now, carried);
    let transfer_mean = transfers.and_then(|transfers| transfers.mean_s);
    FlowOutcome {
        name: flow.name(group).to_string(),
        group: group.name.clone(),
        cc: carrier(group),
        goodput_bps: per_second(delivered_bytes as f64 * 8.0),
        goodput_segments_per_s: per_second(delivered_bytes as f64 / f64::from(segment_bytes)),
        throughput_bps: per_second((receiver.received_bytes + counts.plain_bytes) as f64 * 8.0),
        convergence_s: None,
        delivered_bytes,
        missing_bytes: receiver.missing_bytes,
        sent_segments,
        retransmitted_segments: sender.retransmitted_segments + progress.repeated_packets,
        timeouts: sender.timeouts + progress.timeouts,
        probes_sent: sender.probes_sent,
        probes_acked: sender.probes_acked,
        probe_repairs: receiver.probe_repairs,
        srtt_ms: srtt.or(progress.srtt).map(Duration::as_millis_f64),
        completion_s: (counts.completed > 0).then(completion).or(transfer_mean),
        aborted: aborted.or(reason),
        stream,
        call,
        transfers,
        pages: [&counts.pages, flow.application.transfers()].concat(),
        player,
        split: split_outcome(legs, flow),
        bundles: bundle_outcome(flow),
        relayed: relayed_outcome(flow),
    }
}

/// Returns the counters of PETRA's upper layer, if the flow has one.
fn relayed_outcome(flow: &Flow) -> Option<RelayedOutcome> {
    let mut agents = flow.session.iter().flat_map(|session| session.relays());
    let (source, destination) = (agents.next()?.1, agents.last()?.1);
    Some(RelayedOutcome {
        most_kept_bytes: source.most_kept_bytes,
        resent_bytes: source.resent_bytes,
        duplicate_bytes: destination.duplicate_bytes,
        reconnections: source.reconnections,
    })
}

/// Returns the results of a flow's bundles, if it has any.
fn bundle_outcome(flow: &Flow) -> Option<BundleOutcome> {
    let mut agents = flow.session.iter().flat_map(|session| session.bundles());
    let (source, destination) = (agents.next()?.1, agents.last()?.1);
    let mean = |sum: Duration, count: u64| (count > 0).then(|| (sum / count).as_secs_f64());
    Some(BundleOutcome {
        made: source.made,
        delivered: destination.delivered,
        mean_transfer_s: mean(destination.transfer_sum, destination.delivered),
        confirmed: source.confirmed,
        mean_confirmation_s: mean(source.confirmation_sum, source.confirmed),
    })
}

fn link_outcomes<M: Monitor>(
    topology: &Topology<'_>,
    simulation: &mut Simulation<M>,
    span: Duration,
) -> Vec<LinkOutcome> {
    let now = simulation.scheduler.now;
    let media = &simulation.network.media;
    let outcome = |(id, (edge, link)): (usize, (Edge<'_>, &mut bentpipe_net::Link<_>))| {
        let (busy, stats) = match media.port(id as LinkId) {
            Some((medium, terminal)) => {
                let medium = &media.shared[medium as usize].medium;
                (medium.busy_time(terminal).as_secs_f64(), *medium.terminal_stats(terminal))
            }
            None => (link.busy_time(now).as_secs_f64(), link.stats()),
        };
        LinkOutcome {
            name: edge.name.to_string(),
            direction: edge.direction,
            delivered_packets: stats.delivered_packets,
            dropped_by_queue: stats.dropped_by_queue,
            dropped_by_error: stats.dropped_by_error + stats.dropped_by_outage + stats.dropped_by_access,
            dropped_low_priority: stats.dropped_low_priority,
            parity_packets: stats.parity_packets,
            repaired_packets: stats.repaired_packets,
            queueing_delay_ms: match media.port(id as LinkId) {
                Some(_) => None,
                None => stats.mean_wait().map(Duration::as_millis_f64),
            },
            transmitted_packets: stats.transmitted_packets(),
            utilisation: if span.is_zero() { 0.0 } else { busy / span.as_secs_f64() },
            gaps: gap_outcome(link.gaps(), span),
        }
    };
    // Unused links of a constellation are left out.
    let first_of_sky = topology.ground_link_count();
    let links = topology.links().zip(&mut simulation.network.links).enumerate();
    let links = links.filter(|(id, (_, link))| *id < first_of_sky || link.stats().enqueued_packets > 0);
    links.map(outcome).collect()
}

fn gap_outcome(gaps: Gaps, span: Duration) -> Option<GapOutcome> {
    Some(GapOutcome {
        count: gaps.count(),
        mean_ms: gaps.mean()?.as_millis_f64(),
        deviation_ms: gaps.deviation()?.as_millis_f64(),
        longest_ms: gaps.longest().as_millis_f64(),
        share: gaps.sum().as_secs_f64() / span.as_secs_f64(),
    })
}

fn medium_outcome(shared: &Shared, span: Duration) -> MediumOutcome {
    let stats = shared.medium.stats();
    let per_second = |bytes: u64| if span.is_zero() { 0.0 } else { bytes as f64 * 8.0 / span.as_secs_f64() };
    MediumOutcome {
        name: shared.group.clone(),
        direction: shared.direction,
        kind: shared.kind,
        offered_packets: stats.offered_packets,
        offered_bps: per_second(stats.offered_bytes),
        carried_packets: stats.carried_packets,
        carried_bps: per_second(stats.carried_bytes),
        bursts_sent: stats.bursts_sent,
        bursts_collided: stats.bursts_collided,
        given_up_packets: stats.given_up_packets,
        requests_sent: stats.requests_sent,
        requests_collided: stats.requests_collided,
        requests_lost: stats.requests_lost,
        demand_slots: stats.demand_slots,
        free_slots_used: stats.free_slots_used,
        mean_access_delay_ms: stats.mean_access_delay().map(Duration::as_millis_f64),
    }
}

/// Middleboxes, proxies, bundle routers and relay entities in the order of the scenario.
fn node_outcomes(
    topology: &Topology<'_>,
    middleboxes: &[MiddleboxNode],
    proxies: &[Proxy],
    flows: &[Flow],
) -> Vec<NodeOutcome> {
    let middlebox = |middlebox: &MiddleboxNode| {
        let counters = middlebox.middlebox.counters().into_iter().collect();
        (middlebox.node, NodeOutcome { name: middlebox.name.clone(), kind: middlebox.kind, counters })
    };
    let proxy = |proxy: &Proxy| {
        let counters = [
            ("connections", proxy.connections),
            ("relayed_bytes", proxy.relayed_bytes),
            ("crashes", u64::from(proxy.dead)),
        ];
        let (name, counters) = (proxy.name.clone(), counters.into_iter().collect());
        (proxy.node, NodeOutcome { name, kind: "proxy", counters })
    };
    let middleboxes = middleboxes.iter().map(middlebox);
    let mut nodes: Vec<_> = middleboxes.chain(proxies.iter().map(proxy)).collect();
    nodes.extend(bundle_routers(topology, flows));
    nodes.extend(relay_entities(topology, flows));
    nodes.sort_by_key(|(node, _)| *node);
    nodes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Nodes of a kind, with nothing counted.
fn nodes_of(topology: &Topology<'_>, is_one: fn(&NodeKind) -> bool) -> BTreeMap<NodeId, NodeOutcome> {
    let nodes = topology.nodes().enumerate().filter(|(_, state)| is_one(state.kind));
    let outcome = |(node, state): (usize, bentpipe_scenario::Node<'_>)| {
        let (name, kind) = (state.name.to_string(), state.kind.name());
        (node as NodeId, NodeOutcome { name, kind, counters: BTreeMap::new() })
    };
    nodes.map(outcome).collect()
}

/// Returns relay entities with the sums of their agents' counters; a crash counts once for all flows.
fn relay_entities(topology: &Topology<'_>, flows: &[Flow]) -> Vec<(NodeId, NodeOutcome)> {
    let mut relays = nodes_of(topology, |kind| matches!(kind, NodeKind::RelayEntity(_)));
    let agents = flows.iter().filter_map(|flow| flow.session.as_ref()).flat_map(|session| session.relays());
    for (node, counters) in agents {
        let Some(relay) = relays.get_mut(&node) else { continue };
        for (name, count) in [
            ("relayed_units", counters.relayed_units),
            ("stops", counters.stops),
            ("most_kept_bytes", counters.most_kept_bytes),
        ] {
            *relay.counters.entry(name).or_default() += count;
        }
        let crashes = relay.counters.entry("crashes").or_default();
        *crashes = (*crashes).max(counters.crashes);
    }
    relays.into_iter().collect()
}

/// Returns bundle routers with the sums of their agents' counters.
fn bundle_routers(topology: &Topology<'_>, flows: &[Flow]) -> Vec<(NodeId, NodeOutcome)> {
    let mut routers = nodes_of(topology, |kind| matches!(kind, NodeKind::BundleRouter(_)));
    for (node, counters) in
        flows.iter().filter_map(|flow| flow.session.as_ref()).flat_map(|session| session.bundles())
    {
        let Some(router) = routers.get_mut(&node) else { continue };
        for (name, count) in [
            ("bundles_received", counters.received),
            ("bundles_released", counters.released),
            ("custody_accepted", counters.accepted),
            ("custody_refused", counters.refused),
            ("bundles_sent_again", counters.sent_again),
            ("bundles_dropped", counters.dropped),
            ("bundles_expired", counters.expired),
            ("most_stored_bytes", counters.most_stored_bytes),
        ] {
            *router.counters.entry(name).or_default() += count;
        }
    }
    routers.into_iter().collect()
}
