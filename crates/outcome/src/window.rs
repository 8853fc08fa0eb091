//! Results of a measurement window: a whole run without the part before the window.

use crate::flow::{FlowOutcome, SplitOutcome};
use crate::network::{GapOutcome, LinkOutcome, MediumOutcome, NodeOutcome};
use crate::run::{GroupOutcome, Outcome, Totals};
use bentpipe_traffic::TransferOutcome;

/// Spans of the run before the window, of the whole run and of the window, in seconds.
#[derive(Clone, Copy)]
struct Spans {
    early: f64,
    whole: f64,
}

impl Spans {
    fn window(self) -> f64 {
        self.whole - self.early
    }

    /// Returns the mean over the window of a quantity with these means over the two runs.
    fn mean(self, whole: f64, early: f64) -> f64 {
        (whole * self.whole - early * self.early) / self.window()
    }
}

impl Outcome {
    /// Removes the results of the same run until an earlier time, so that those of the window between the two ends remain. Distributions
    /// of delays are removed by the caller, who has the counts.
    pub fn since(self, early: &Self) -> Self {
        let spans = Spans { early: early.simulated_s, whole: self.simulated_s };
        let flows: Vec<_> = self
            .flows
            .into_iter()
            .zip(&early.flows)
            .map(|(flow, early)| flow_since(flow, early, spans))
            .collect();
        let before = early.totals.data_packets_delivered;
        let totals = Totals {
            convergence_s: self.totals.convergence_s,
            data_packets_delivered: self.totals.data_packets_delivered - before,
            ..Totals::of(&flows)
        };
        Self {
            measured_from_s: Some(spans.early),
            groups: GroupOutcome::of(&flows),
            flows,
            links: self
                .links
                .into_iter()
                .map(|link| {
                    let before = early
                        .links
                        .iter()
                        .find(|of| (&of.name, of.direction) == (&link.name, link.direction));
                    before.map_or(link.clone(), |early| link_since(link, early, spans))
                })
                .collect(),
            media: self
                .media
                .into_iter()
                .zip(&early.media)
                .map(|(one, early)| medium_since(one, early, spans))
                .collect(),
            nodes: self
                .nodes
                .into_iter()
                .zip(&early.nodes)
                .map(|(node, early)| node_since(node, early))
                .collect(),
            stranded_packets: self.stranded_packets - early.stranded_packets,
            totals,
            ..self
        }
    }
}

fn flow_since(flow: FlowOutcome, early: &FlowOutcome, spans: Spans) -> FlowOutcome {
    let delivered_bytes = flow.delivered_bytes - early.delivered_bytes;
    let goodput_bps = delivered_bytes as f64 * 8.0 / spans.window();
    let segments_per_bit =
        if flow.goodput_bps > 0.0 { flow.goodput_segments_per_s / flow.goodput_bps } else { 0.0 };
    let pages = flow.pages[early.pages.len()..].to_vec();
    let transfers = flow.transfers.map(|transfers| {
        let failed = early.transfers.map_or(0, |early| early.failed_connections);
        TransferOutcome::of(&pages, transfers.failed_connections - failed)
    });
    let completion_s = match (flow.pages.is_empty(), early.completion_s) {
        (true, None) => flow.completion_s,
        (true, Some(_)) => None,
        (false, _) => TransferOutcome::of(&pages, 0).mean_s,
    };
    FlowOutcome {
        goodput_bps,
        goodput_segments_per_s: goodput_bps * segments_per_bit,
        throughput_bps: spans.mean(flow.throughput_bps, early.throughput_bps),
        delivered_bytes,
        missing_bytes: flow.missing_bytes - early.missing_bytes,
        sent_segments: flow.sent_segments - early.sent_segments,
        retransmitted_segments: flow.retransmitted_segments - early.retransmitted_segments,
        timeouts: flow.timeouts - early.timeouts,
        probes_sent: flow.probes_sent - early.probes_sent,
        probes_acked: flow.probes_acked - early.probes_acked,
        probe_repairs: flow.probe_repairs - early.probe_repairs,
        completion_s,
        transfers,
        split: flow.split.zip(early.split.as_ref()).map(|(split, early)| split_since(split, early)),
        pages,
        ..flow
    }
}

fn split_since(split: SplitOutcome, early: &SplitOutcome) -> SplitOutcome {
    let mut legs = split.legs;
    for (leg, early) in legs.iter_mut().zip(&early.legs) {
        leg.sent_segments -= early.sent_segments;
        leg.retransmitted_segments -= early.retransmitted_segments;
        leg.timeouts -= early.timeouts;
        leg.probes_sent -= early.probes_sent;
    }
    SplitOutcome::of(split.acked_undelivered_bytes, legs)
}

fn link_since(link: LinkOutcome, early: &LinkOutcome, spans: Spans) -> LinkOutcome {
    let transmitted_packets = link.transmitted_packets - early.transmitted_packets;
    let waited = |link: &LinkOutcome| link.queueing_delay_ms.unwrap_or(0.0) * link.transmitted_packets as f64;
    let queueing_delay_ms = (waited(&link) - waited(early)) / transmitted_packets as f64;
    LinkOutcome {
        delivered_packets: link.delivered_packets - early.delivered_packets,
        dropped_by_queue: link.dropped_by_queue - early.dropped_by_queue,
        dropped_by_error: link.dropped_by_error - early.dropped_by_error,
        dropped_low_priority: link.dropped_low_priority - early.dropped_low_priority,
        parity_packets: link.parity_packets - early.parity_packets,
        repaired_packets: link.repaired_packets - early.repaired_packets,
        utilisation: spans.mean(link.utilisation, early.utilisation),
        queueing_delay_ms: link
            .queueing_delay_ms
            .filter(|_| transmitted_packets > 0)
            .map(|_| queueing_delay_ms.max(0.0)),
        transmitted_packets,
        gaps: link.gaps.and_then(|gaps| gaps_since(gaps, &early.gaps.unwrap_or_default(), spans)),
        ..link
    }
}

/// The maximum is that of the whole run.
fn gaps_since(gaps: GapOutcome, early: &GapOutcome, spans: Spans) -> Option<GapOutcome> {
    let count = gaps.count - early.count;
    let sum = |of: &GapOutcome| of.mean_ms * of.count as f64;
    let squares =
        |of: &GapOutcome| (of.deviation_ms * of.deviation_ms + of.mean_ms * of.mean_ms) * of.count as f64;
    let mean_ms = (sum(&gaps) - sum(early)) / count as f64;
    let variance = (squares(&gaps) - squares(early)) / count as f64 - mean_ms * mean_ms;
    (count > 0).then(|| GapOutcome {
        count,
        mean_ms,
        deviation_ms: variance.max(0.0).sqrt(),
        longest_ms: gaps.longest_ms,
        share: spans.mean(gaps.share, early.share),
    })
}

fn medium_since(medium: MediumOutcome, early: &MediumOutcome, spans: Spans) -> MediumOutcome {
    let carried_packets = medium.carried_packets - early.carried_packets;
    let delays = |of: &MediumOutcome| of.mean_access_delay_ms.unwrap_or(0.0) * of.carried_packets as f64;
    let delay = (delays(&medium) - delays(early)) / carried_packets as f64;
    MediumOutcome {
        offered_packets: medium.offered_packets - early.offered_packets,
        offered_bps: spans.mean(medium.offered_bps, early.offered_bps),
        carried_packets,
        carried_bps: spans.mean(medium.carried_bps, early.carried_bps),
        bursts_sent: medium.bursts_sent - early.bursts_sent,
        bursts_collided: medium.bursts_collided - early.bursts_collided,
        given_up_packets: medium.given_up_packets - early.given_up_packets,
        requests_sent: medium.requests_sent - early.requests_sent,
        requests_collided: medium.requests_collided - early.requests_collided,
        requests_lost: medium.requests_lost - early.requests_lost,
        demand_slots: medium.demand_slots - early.demand_slots,
        free_slots_used: medium.free_slots_used - early.free_slots_used,
        mean_access_delay_ms: medium.mean_access_delay_ms.filter(|_| carried_packets > 0).map(|_| delay),
        ..medium
    }
}

/// Counters that begin with `most_` are maxima of the whole run.
fn node_since(mut node: NodeOutcome, early: &NodeOutcome) -> NodeOutcome {
    for (name, count) in node.counters.iter_mut().filter(|(name, _)| !name.starts_with("most_")) {
        *count -= early.counters.get(name).copied().unwrap_or(0);
    }
    node
}
