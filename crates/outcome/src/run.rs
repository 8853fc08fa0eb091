//! Result of a run: the document of `bentpipe run --json`.

use serde::Serialize;

use crate::delay::DelayOutcomes;
use crate::flow::FlowOutcome;
use crate::is_zero;
use crate::network::{LinkOutcome, MediumOutcome, NodeOutcome};

/// Result of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of Bentpipe.
    pub version: &'static str,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated time in seconds.
    pub simulated_s: f64,
    /// Start of the measurement window in seconds; absent if the whole run was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_from_s: Option<f64>,
    /// Wall-clock seconds of the run: the only field that may differ between two runs with the same seed.
    pub wall_s: f64,
    /// Number of packet arrivals and timer deadlines: a measure of the computation.
    pub events: u64,
    /// One entry for each flow in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// One entry for each flow group in the order of the scenario.
    pub groups: Vec<GroupOutcome>,
    /// One entry for each direction of each link.
    pub links: Vec<LinkOutcome>,
    /// One entry for each shared channel; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediumOutcome>,
    /// One entry for each node that does more than forward; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOutcome>,
    /// Packets dropped at a node without a route, in a world with changing routes; absent without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub stranded_packets: u64,
    /// Sums over the flows.
    pub totals: Totals,
}

impl Outcome {
    /// Returns the length of the measured time in seconds: of the window, or of the whole run.
    pub fn measured_s(&self) -> f64 {
        self.simulated_s - self.measured_from_s.unwrap_or(0.0)
    }
}

/// Sums over the flows of a group.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct GroupOutcome {
    /// Name of the group.
    pub name: String,
    /// Number of flows.
    pub flows: u64,
    /// Sum of the flows' goodputs in bit/s.
    pub goodput_bps: f64,
    /// Sum of the goodputs in full segments per second.
    pub goodput_segments_per_s: f64,
    /// Sum of the flows' throughputs in bit/s.
    pub throughput_bps: f64,
    /// Jain's fairness index of the flows' goodputs.
    pub jain_index: f64,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Data segments sent, retransmissions included. Like the two fields below, with those of legs behind proxies.
    pub sent_segments: u64,
    /// Data segments retransmitted.
    pub retransmitted_segments: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Distributions of the delays of TCP and UDP flows.
    #[serde(flatten)]
    pub delays: DelayOutcomes,
    /// Number of completed flows.
    pub completed: u64,
    /// Mean completion time of the completed flows; null without any.
    pub completion_s: Option<f64>,
    /// Mean over the flows of the median page or file time. Like the fields below, it is absent in groups without such
    /// traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_median_s: Option<f64>,
    /// Mean opinion score of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Mean real-time performance index of live videos.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_time_index: Option<f64>,
    /// Mean rate of adaptive videos.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_rate_bps: Option<f64>,
}

impl GroupOutcome {
    /// Returns the groups of these flows, in the order of their first members.
    pub fn of(flows: &[FlowOutcome]) -> Vec<Self> {
        let mut groups: Vec<(&str, Vec<&FlowOutcome>)> = Vec::new();
        for flow in flows {
            match groups.last_mut().filter(|(name, _)| *name == flow.group) {
                Some((_, members)) => members.push(flow),
                None => groups.push((&flow.group, vec![flow])),
            }
        }
        groups.into_iter().map(|(name, members)| Self::together(name, &members)).collect()
    }

    fn together(name: &str, flows: &[&FlowOutcome]) -> Self {
        let sum = |what: fn(&FlowOutcome) -> f64| flows.iter().map(|flow| what(flow)).sum::<f64>();
        let count = |what: fn(&FlowOutcome) -> u64| flows.iter().map(|flow| what(flow)).sum::<u64>();
        let mean = |what: fn(&FlowOutcome) -> Option<f64>| {
            let values: Vec<f64> = flows.iter().filter_map(|flow| what(flow)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Self {
            name: name.to_owned(),
            flows: flows.len() as u64,
            goodput_bps: sum(|flow| flow.goodput_bps),
            goodput_segments_per_s: sum(|flow| flow.goodput_segments_per_s),
            throughput_bps: sum(|flow| flow.throughput_bps),
            jain_index: jain_index(flows.iter().map(|flow| flow.goodput_bps)),
            delivered_bytes: count(|flow| flow.delivered_bytes),
            sent_segments: count(FlowOutcome::sent_on_all_legs),
            retransmitted_segments: count(FlowOutcome::retransmitted_on_all_legs),
            timeouts: count(FlowOutcome::timeouts_on_all_legs),
            delays: DelayOutcomes::default(),
            completed: count(|flow| u64::from(flow.completion_s.is_some())),
            completion_s: mean(|flow| flow.completion_s),
            transfer_median_s: mean(|flow| flow.transfers?.median_s),
            mos: mean(|flow| Some(flow.call?.mos)),
            real_time_index: mean(|flow| Some(flow.stream?.real_time_index)),
            video_rate_bps: mean(|flow| flow.player?.mean_rate_bps),
        }
    }
}

/// Sums over the flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Totals {
    /// Sum of the goodputs.
    pub goodput_bps: f64,
    /// Sum of the goodputs in segments per second.
    pub goodput_segments_per_s: f64,
    /// Sum of the throughputs.
    pub throughput_bps: f64,
    /// Convergence time of the sum of all goodputs, from the start of the first flow; null without convergence.
    pub convergence_s: Option<f64>,
    /// Jain's fairness index of the goodputs of the [`comparable`] flows.
    pub jain_index: f64,
    /// Data segments sent by senders and legs behind proxies, with retransmissions, without probes.
    pub sent_segments: u64,
    /// Data segments retransmitted by senders and legs behind proxies.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries of senders and legs behind proxies.
    pub timeouts: u64,
    /// Probes sent divided by data segments sent, both by senders and legs behind proxies.
    pub probe_overhead: f64,
    /// Distributions of the delays of all TCP and UDP flows.
    #[serde(flatten)]
    pub delays: DelayOutcomes,
    /// Data packets that brought new data to their receiver.
    pub data_packets_delivered: u64,
    /// With two flow groups: mean goodput of a flow of the first over that of the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness_ratio: Option<f64>,
}

impl Totals {
    /// Computes the totals of these flows; other fields stay empty.
    pub fn of(flows: &[FlowOutcome]) -> Self {
        let sum = |what: fn(&FlowOutcome) -> f64| flows.iter().map(what).sum::<f64>();
        let count = |what: fn(&FlowOutcome) -> u64| flows.iter().map(what).sum::<u64>();
        let sent = count(FlowOutcome::sent_on_all_legs);
        let probes = count(FlowOutcome::probes_on_all_legs);
        Self {
            goodput_bps: sum(|flow| flow.goodput_bps),
            goodput_segments_per_s: sum(|flow| flow.goodput_segments_per_s),
            throughput_bps: sum(|flow| flow.throughput_bps),
            jain_index: jain_index(comparable(flows).map(|flow| flow.goodput_bps)),
            sent_segments: sent,
            retransmitted_segments: count(FlowOutcome::retransmitted_on_all_legs),
            timeouts: count(FlowOutcome::timeouts_on_all_legs),
            probe_overhead: if sent > 0 { probes as f64 / sent as f64 } else { 0.0 },
            fairness_ratio: fairness_ratio(flows),
            ..Self::default()
        }
    }
}

/// Returns the flows whose goodputs show fairness: those that only the network limits. If applications limit all flows (pages, files,
/// calls, video), returns all.
pub fn comparable(flows: &[FlowOutcome]) -> impl Iterator<Item = &FlowOutcome> + Clone {
    let is_limited = |flow: &FlowOutcome| {
        flow.transfers.is_some() || flow.call.is_some() || flow.stream.is_some() || flow.player.is_some()
    };
    let all_are = flows.iter().all(is_limited);
    flows.iter().filter(move |flow| all_are || !is_limited(flow))
}

/// Returns Jain's fairness index; 0 if all goodputs are zero.
fn jain_index(goodputs: impl Iterator<Item = f64> + Clone) -> f64 {
    let sum = goodputs.clone().sum::<f64>();
    let squares = goodputs.clone().count() as f64 * goodputs.map(|goodput| goodput * goodput).sum::<f64>();
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Returns the mean goodput of a flow of the first group over that of the second, if there are two.
fn fairness_ratio(flows: &[FlowOutcome]) -> Option<f64> {
    let first = &flows.first()?.group;
    let (ours, theirs): (Vec<_>, Vec<_>) = flows.iter().partition(|flow| flow.group == *first);
    let second = &theirs.first()?.group;
    let mean =
        |flows: &[&FlowOutcome]| flows.iter().map(|flow| flow.goodput_bps).sum::<f64>() / flows.len() as f64;
    let (mean_ours, mean_theirs) = (mean(&ours), mean(&theirs));
    (theirs.iter().all(|flow| flow.group == *second) && mean_theirs > 0.0).then(|| mean_ours / mean_theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_traffic::TransferOutcome;

    fn flow(goodput_bps: f64, browses: bool) -> FlowOutcome {
        let transfers = browses.then(TransferOutcome::default);
        FlowOutcome { goodput_bps, transfers, ..FlowOutcome::default() }
    }

    #[test]
    fn browsers_beside_a_download_do_not_make_it_unfair() {
        let beside = [flow(1e4, true), flow(2e4, true), flow(9e6, false)];
        assert_eq!(Totals::of(&beside).jain_index, 1.0);
        let two = [flow(1e4, true), flow(3e6, false), flow(9e6, false)];
        assert!((Totals::of(&two).jain_index - 0.8).abs() < 1e-12);
        assert!((Totals::of(&beside[..2]).jain_index - 0.9).abs() < 1e-12, "browsers alone");
    }

    #[test]
    fn totals_and_groups_count_the_legs_behind_proxies() {
        let leg = crate::LegOutcome {
            sent_segments: 300,
            retransmitted_segments: 215,
            timeouts: 2,
            probes_sent: 40,
            ..Default::default()
        };
        let split = Some(crate::SplitOutcome::of(0, vec![leg.clone(), leg]));
        let flow = FlowOutcome {
            sent_segments: 200,
            retransmitted_segments: 6,
            timeouts: 1,
            split,
            ..flow(1e6, false)
        };
        let totals = Totals::of(std::slice::from_ref(&flow));
        assert_eq!((totals.sent_segments, totals.retransmitted_segments, totals.timeouts), (800, 436, 5));
        assert_eq!(totals.probe_overhead, 0.1);
        let group = &GroupOutcome::of(&[flow])[0];
        assert_eq!((group.sent_segments, group.retransmitted_segments, group.timeouts), (800, 436, 5));
    }
}
