//! Time series for reports.

use std::collections::BTreeMap;

use bentpipe_base::{Flags, Instant, Probe, Rate, Segment};
use bentpipe_net::Backlog;
use bentpipe_trace::Event;

use crate::app::application::Interest;
use crate::observe::thinned::Thinned;
use crate::world::{Flow, World};
use crate::{FlowSeries, LinkSeries, Series};
use bentpipe_scenario::{LinkId, NodeId, Scenario, Topology};

/// Buckets that all series share, and what one gets at most and at least.
const ALL_BUCKETS: usize = 400_000;
const MOST_BUCKETS: usize = 2_000;
const LEAST_BUCKETS: usize = 16;

/// Records the series of all flows and of the links that limit them.
#[derive(Debug)]
pub(crate) struct Recorder {
    flows: Vec<FlowRecord>,
    links: Vec<LinkRecord>,
    /// Where in `links` what happens at a link is noted.
    place_of: BTreeMap<LinkId, usize>,
}

#[derive(Debug)]
struct FlowRecord {
    name: String,
    segment_bytes: f64,
    /// Several connections at once, whose sequence numbers make no curve.
    is_bundle: bool,
    /// Segments that earlier connections of the flow sent.
    base: f64,
    /// Highest sequence number sent.
    sent_to: u64,
    acked_to: u64,
    series: [Thinned; 6],
}

#[derive(Debug)]
struct LinkRecord {
    name: String,
    waiting: u32,
    queue: Thinned,
    drops: Thinned,
}

/// Places of [`FlowRecord::series`].
mod curve {
    pub const CWND: usize = 0;
    pub const SSTHRESH: usize = 1;
    pub const SRTT: usize = 2;
    pub const SENT: usize = 3;
    pub const RETRANSMITTED: usize = 4;
    pub const ACKED: usize = 5;
}

impl Recorder {
    /// For the flows of a world and their bottlenecks.
    pub fn new(world: &World, (scenario, topology): (&Scenario, &Topology<'_>)) -> Self {
        let bottlenecks = bottlenecks(world, topology);
        let legs = &world.core.legs;
        let series = 6 * (world.flows.len() + legs.len()) + 2 * bottlenecks.len();
        let buckets = (ALL_BUCKETS / series.max(1)).clamp(LEAST_BUCKETS, MOST_BUCKETS);
        let empty = || Thinned::new(buckets);
        let everything = |flow: &Flow| flow.application.interest() == Interest::Everything;
        let name = |flow: &Flow| flow.name_in(scenario).to_string();
        let leg_ids = world.flows.iter().map(|flow| (name(flow), &flow.configs[0], everything(flow)));
        let leg_ids = leg_ids.chain(legs.iter().map(|leg| (leg.name.clone(), &leg.configs[0], false)));
        let flows = leg_ids.map(|(name, sender, is_bundle)| FlowRecord {
            name,
            segment_bytes: f64::from(sender.mss),
            is_bundle,
            base: 0.0,
            sent_to: 1,
            acked_to: 1,
            series: std::array::from_fn(|_| empty()),
        });
        let (mut links, mut place_of) = (Vec::new(), BTreeMap::new());
        for id in bottlenecks {
            if !place_of.contains_key(&id) {
                let (name, ids) = named(topology, id);
                place_of.extend(ids.into_iter().map(|id| (id, links.len())));
                links.push(LinkRecord { name, waiting: 0, queue: empty(), drops: empty() });
            }
        }
        Self { flows: flows.collect(), links, place_of }
    }

    /// A new connection of a leg begins; sequence numbers go on where the last one stopped.
    pub fn begin(&mut self, flow: u32) {
        let flow = &mut self.flows[flow as usize];
        flow.base += flow.segments(flow.sent_to);
        (flow.sent_to, flow.acked_to) = (1, 1);
    }

    /// Something happened at the sender of a flow.
    pub fn note(&mut self, flow: u32, at: Instant, event: &Event) {
        let flow = &mut self.flows[flow as usize];
        match event {
            Event::Window(state) => {
                flow.series[curve::CWND].push(at, state.cwnd);
                if state.ssthresh.is_finite() {
                    flow.series[curve::SSTHRESH].push(at, state.ssthresh);
                }
            }
            Event::Rtt { srtt_ns, .. } => flow.series[curve::SRTT].push(at, *srtt_ns as f64 / 1e6),
            _ if flow.is_bundle => {}
            Event::Sent(segment) if segment.len > 0 => flow.note_sent(at, segment),
            Event::Received(segment) if segment.flags.contains(Flags::ACK) && segment.ack > flow.acked_to => {
                flow.acked_to = segment.ack;
                let acked = flow.base + flow.segments(segment.ack);
                flow.series[curve::ACKED].push(at, acked);
            }
            _ => {}
        }
    }

    /// A packet was offered to a link, after which so much waits.
    pub fn note_backlog(&mut self, link: LinkId, at: Instant, backlog: Backlog) {
        if let Some(link) = self.link(link) {
            link.waiting = backlog.packets;
            link.queue.push(at, f64::from(backlog.packets));
        }
    }

    /// A link lost a packet.
    pub fn note_drop(&mut self, link: LinkId, at: Instant) {
        if let Some(link) = self.link(link) {
            link.drops.push(at, f64::from(link.waiting));
        }
    }

    /// Whether what happens at a link is recorded.
    pub fn has(&self, link: LinkId) -> bool {
        self.place_of.contains_key(&link)
    }

    fn link(&mut self, link: LinkId) -> Option<&mut LinkRecord> {
        self.place_of.get(&link).map(|place| &mut self.links[*place])
    }

    /// The series.
    pub fn finish(self) -> Series {
        let flow = |flow: FlowRecord| {
            let points = |index: usize| flow.series[index].points();
            FlowSeries {
                cwnd: points(curve::CWND),
                ssthresh: points(curve::SSTHRESH),
                srtt_ms: points(curve::SRTT),
                sent: points(curve::SENT),
                retransmitted: points(curve::RETRANSMITTED),
                acked: points(curve::ACKED),
                name: flow.name,
            }
        };
        let link = |link: LinkRecord| LinkSeries {
            name: link.name,
            queue_packets: link.queue.points(),
            drops: link.drops.points(),
        };
        Series {
            flows: self.flows.into_iter().map(flow).collect(),
            links: self.links.into_iter().map(link).collect(),
        }
    }
}

impl FlowRecord {
    /// Segments before a sequence number.
    fn segments(&self, seq: u64) -> f64 {
        seq.saturating_sub(1) as f64 / self.segment_bytes
    }

    fn note_sent(&mut self, at: Instant, segment: &Segment) {
        // A probe carries old bytes but repairs nothing on purpose.
        if segment.probe != Probe::No {
            return;
        }
        let first_time = segment.seq >= self.sent_to;
        let curve = if first_time { curve::SENT } else { curve::RETRANSMITTED };
        let position = self.base + self.segments(segment.seq);
        self.series[curve].push(at, position);
        self.sent_to = self.sent_to.max(segment.seq + u64::from(segment.len));
    }
}

/// What a curve of a link is called, and whose it is: that of a ground middlebox to its satellite goes on when another takes over.
fn named(topology: &Topology<'_>, id: LinkId) -> (String, Vec<LinkId>) {
    let edge = topology.link(id);
    let sky = topology.ground_link_count() as LinkId..topology.link_count() as LinkId;
    let is_station = |node: NodeId| topology.graph.stations.contains(&node);
    let of = |link: LinkId| topology.graph.hop(link);
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

/// The links that limit flows: of the links on its way forward, the one that leaves a flow the least share of its rate.
fn bottlenecks(world: &World, topology: &Topology<'_>) -> Vec<LinkId> {
    let mut flows_over = vec![0_u64; topology.link_count()];
    for flow in &world.flows {
        for link in world.links_of(flow) {
            flows_over[link as usize] += 1;
        }
    }
    let share = |link: &LinkId| Rate::bps(topology.rate(*link)) / flows_over[*link as usize];
    let of_flows = world.flows.iter().filter_map(|flow| world.links_of(flow).into_iter().min_by_key(share));
    let mut bottlenecks: Vec<_> = of_flows.collect();
    bottlenecks.sort_unstable();
    bottlenecks.dedup();
    bottlenecks
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::ProbeTag;

    #[test]
    fn a_probe_is_no_retransmission() {
        let mut record = FlowRecord {
            name: "flow".to_owned(),
            segment_bytes: 1000.0,
            is_bundle: false,
            base: 0.0,
            sent_to: 1,
            acked_to: 1,
            series: std::array::from_fn(|_| Thinned::new(16)),
        };
        let segment = |seq, probe| Segment { seq, len: 1000, probe, ..Segment::default() };
        let copy = Probe::Probe(ProbeTag(1));
        for (seq, probe) in [(1, Probe::No), (1001, Probe::No), (1, copy), (1001, Probe::No)] {
            record.note_sent(Instant::ZERO, &segment(seq, probe));
        }
        let values = |index: usize| record.series[index].points().iter().map(|(_, value)| *value).collect();
        let [sent, again]: [Vec<f64>; 2] = [values(curve::SENT), values(curve::RETRANSMITTED)];
        assert_eq!((sent, again), (vec![0.0, 1.0], vec![1.0]));
    }
}
