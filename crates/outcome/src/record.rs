//! Recording of time series for reports.

use std::collections::BTreeMap;

use bentpipe_base::{Flags, Instant, Probe, Segment};
use bentpipe_trace::Event;

use crate::series::{FlowSeries, LinkSeries, Series};
use crate::thinned::Thinned;

/// Total number of buckets of all series, and the maximum and minimum of a series.
const ALL_BUCKETS: usize = 400_000;
const MOST_BUCKETS: usize = 2_000;
const LEAST_BUCKETS: usize = 16;

/// Sender whose series are recorded.
#[derive(Clone, Debug)]
pub struct SenderToRecord {
    /// Name of the flow, or of its leg.
    pub name: String,
    /// Payload bytes of a full segment.
    pub segment_bytes: u32,
    /// True if it has several parallel connections, whose sequence numbers form no curve.
    pub is_bundle: bool,
}

/// Recorder of the series of senders and links.
#[derive(Debug)]
pub struct Recorder {
    flows: Vec<FlowRecord>,
    links: Vec<LinkRecord>,
    /// Index in `links` of each recorded link.
    place_of: BTreeMap<u32, usize>,
}

#[derive(Debug)]
struct FlowRecord {
    name: String,
    segment_bytes: f64,
    is_bundle: bool,
    /// Segments sent by earlier connections of the flow.
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

/// Indexes into [`FlowRecord::series`].
mod curve {
    pub const CWND: usize = 0;
    pub const SSTHRESH: usize = 1;
    pub const SRTT: usize = 2;
    pub const SENT: usize = 3;
    pub const RETRANSMITTED: usize = 4;
    pub const ACKED: usize = 5;
}

impl Recorder {
    /// Makes a recorder for senders, numbered in order, and links. Links are given as names of curves with the link numbers of
    /// each. If a link is in two curves, the first counts.
    pub fn new(senders: Vec<SenderToRecord>, links_to_record: Vec<(String, Vec<u32>)>) -> Self {
        let series = 6 * senders.len() + 2 * links_to_record.len();
        let buckets = (ALL_BUCKETS / series.max(1)).clamp(LEAST_BUCKETS, MOST_BUCKETS);
        let empty = || Thinned::new(buckets);
        let flow = |SenderToRecord { name, segment_bytes, is_bundle }| FlowRecord {
            name,
            segment_bytes: f64::from(segment_bytes),
            is_bundle,
            base: 0.0,
            sent_to: 1,
            acked_to: 1,
            series: std::array::from_fn(|_| empty()),
        };
        let (mut links, mut place_of) = (Vec::new(), BTreeMap::new());
        for (name, ids) in links_to_record {
            if !ids.iter().any(|id| place_of.contains_key(id)) {
                place_of.extend(ids.into_iter().map(|id| (id, links.len())));
                links.push(LinkRecord { name, waiting: 0, queue: empty(), drops: empty() });
            }
        }
        Self { flows: senders.into_iter().map(flow).collect(), links, place_of }
    }

    /// Handles a new connection of a sender; sequence numbers continue from the last one.
    pub fn begin(&mut self, flow: u32) {
        let flow = &mut self.flows[flow as usize];
        flow.base += flow.segments(flow.sent_to);
        (flow.sent_to, flow.acked_to) = (1, 1);
    }

    /// Handles an event at the sender of a flow.
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

    /// Handles a packet offered to a link, after which `waiting` packets are queued.
    pub fn note_backlog(&mut self, link: u32, at: Instant, waiting: u32) {
        if let Some(link) = self.link(link) {
            link.waiting = waiting;
            link.queue.push(at, f64::from(waiting));
        }
    }

    /// Handles a packet loss at a link.
    pub fn note_drop(&mut self, link: u32, at: Instant) {
        if let Some(link) = self.link(link) {
            link.drops.push(at, f64::from(link.waiting));
        }
    }

    /// True if the link is recorded.
    pub fn has(&self, link: u32) -> bool {
        self.place_of.contains_key(&link)
    }

    fn link(&mut self, link: u32) -> Option<&mut LinkRecord> {
        self.place_of.get(&link).map(|place| &mut self.links[*place])
    }

    /// Returns the series.
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
    /// Returns the number of segments before a sequence number.
    fn segments(&self, seq: u64) -> f64 {
        seq.saturating_sub(1) as f64 / self.segment_bytes
    }

    fn note_sent(&mut self, at: Instant, segment: &Segment) {
        // A probe carries old bytes, but is not a retransmission.
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
