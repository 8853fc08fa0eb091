//! What a run measured: the document of `bentpipe run --json`.

use std::collections::BTreeMap;

use serde::Serialize;

/// Result of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of Bentpipe.
    pub version: &'static str,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Real seconds that the run took: the only field that may differ between two runs with one seed.
    pub wall_s: f64,
    /// Arrivals of packets at the far ends of links, and deadlines: a measure of the work.
    pub events: u64,
    /// One entry for each flow in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// One entry for each group of flows in the order of the scenario.
    pub groups: Vec<GroupOutcome>,
    /// One entry for each direction of each link.
    pub links: Vec<LinkOutcome>,
    /// One entry for each channel that links share; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediumOutcome>,
    /// One entry for each node that does more than forward; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOutcome>,
    /// Packets that met a node from which no way led on, in a world whose routes change; absent without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub stranded_packets: u64,
    /// Sums over the flows.
    pub totals: Totals,
}

/// The flows of a group together.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct GroupOutcome {
    /// Name of the group.
    pub name: String,
    /// How many flows it has.
    pub flows: u64,
    /// Sum of their goodputs.
    pub goodput_bps: f64,
    /// The same in full segments a second.
    pub goodput_segments_per_s: f64,
    /// Sum of their throughputs.
    pub throughput_bps: f64,
    /// Jain's fairness index of their goodputs.
    pub jain_index: f64,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Data segments sent, those sent again included.
    pub sent_segments: u64,
    /// Those sent again.
    pub retransmitted_segments: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Flows that completed.
    pub completed: u64,
    /// Mean completion time of these; null without any.
    pub completion_s: Option<f64>,
    /// Mean over the flows of the median time of a page or file; absent in groups that fetch none, as are those that follow.
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
    /// The groups of these flows, in the order of their first members.
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
        let goodput_bps = sum(|flow| flow.goodput_bps);
        let squares = flows.len() as f64 * sum(|flow| flow.goodput_bps * flow.goodput_bps);
        Self {
            name: name.to_owned(),
            flows: flows.len() as u64,
            goodput_bps,
            goodput_segments_per_s: sum(|flow| flow.goodput_segments_per_s),
            throughput_bps: sum(|flow| flow.throughput_bps),
            jain_index: if squares > 0.0 { goodput_bps * goodput_bps / squares } else { 0.0 },
            delivered_bytes: count(|flow| flow.delivered_bytes),
            sent_segments: count(|flow| flow.sent_segments),
            retransmitted_segments: count(|flow| flow.retransmitted_segments),
            timeouts: count(|flow| flow.timeouts),
            completed: count(|flow| u64::from(flow.completion_s.is_some())),
            completion_s: mean(|flow| flow.completion_s),
            transfer_median_s: mean(|flow| flow.transfers?.median_s),
            mos: mean(|flow| Some(flow.call?.mos)),
            real_time_index: mean(|flow| Some(flow.stream?.real_time_index)),
            video_rate_bps: mean(|flow| flow.player?.mean_rate_bps),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Result of one flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowOutcome {
    /// `group` or `group.index`.
    pub name: String,
    /// Flow group.
    pub group: String,
    /// Algorithm as the user named it.
    pub cc: String,
    /// Payload delivered in order, each byte once, over the simulated time.
    pub goodput_bps: f64,
    /// The same in full segments a second.
    pub goodput_segments_per_s: f64,
    /// Payload of all data packets that arrived, repeated ones included, over the simulated time.
    pub throughput_bps: f64,
    /// Time from the start until the goodput of each of ten seconds was within 10 % of their mean; null if it never was.
    pub convergence_s: Option<f64>,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Payload bytes that a best-effort receiver went on without.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_bytes: u64,
    /// Data segments sent, retransmissions included, probes not.
    pub sent_segments: u64,
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries.
    pub timeouts: u64,
    /// Low-priority probes sent.
    pub probes_sent: u64,
    /// Replies to probes received.
    pub probes_acked: u64,
    /// Probes that reached the receiver with something new in them.
    pub probe_repairs: u64,
    /// Smoothed round-trip time at the end; null before the first sample.
    pub srtt_ms: Option<f64>,
    /// Time from the start of the flow until all its data was acknowledged, behind proxies until all had arrived; null for a flow that
    /// does not end. Mean over the pages of a flow of pages.
    pub completion_s: Option<f64>,
    /// Why the connection ended before its time; null if it did not.
    pub aborted: Option<&'static str>,
    /// Of live video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamOutcome>,
    /// Of a telephone call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallOutcome>,
    /// Of a client that fetches pages or files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferOutcome>,
    /// Of a player of adaptive video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<PlayerOutcome>,
    /// What proxies or a spoofing gateway on the way made of it; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitOutcome>,
    /// Of a flow over DTN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundles: Option<BundleOutcome>,
    /// Of a flow over PETRA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedOutcome>,
}

/// What the upper layer of PETRA did for a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RelayedOutcome {
    /// Payload bytes that the source packed at most, because the destination had not confirmed them.
    pub most_kept_bytes: u64,
    /// Payload bytes that the source sent again from end to end.
    pub resent_bytes: u64,
    /// Payload bytes that the destination had already.
    pub duplicate_bytes: u64,
    /// Times that the source connected again because a relay entity was gone.
    pub reconnections: u64,
}

/// What became of the bundles of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct BundleOutcome {
    /// Bundles that the source made.
    pub made: u64,
    /// Those handed to the application at the destination, each once.
    pub delivered: u64,
    /// Mean time from when one of them was made until then; null before the first.
    pub mean_transfer_s: Option<f64>,
    /// Those of whose delivery the source knows.
    pub confirmed: u64,
    /// Mean time from when one of those was made until the source knew.
    pub mean_confirmation_s: Option<f64>,
}

/// A flow that proxies split into legs, or whose data a gateway acknowledges early. The counters of the flow itself are those of its sender, on the first leg, and of its
/// receiver, on the last.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SplitOutcome {
    /// Payload bytes that were acknowledged to the sender and had not reached the receiver at the end: held by proxies or
    /// a gateway, or lost with one that crashed.
    pub acked_undelivered_bytes: u64,
    /// The legs that begin at a proxy, in the order from sender to receiver.
    pub legs: Vec<LegOutcome>,
}

/// A leg of a flow that begins at a proxy.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LegOutcome {
    /// The flow and the proxy.
    pub name: String,
    /// Algorithm as the user named it.
    pub cc: String,
    /// Data segments sent, retransmissions included, probes not.
    pub sent_segments: u64,
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries.
    pub timeouts: u64,
    /// Smoothed round-trip time at the end; null before the first sample.
    pub srtt_ms: Option<f64>,
}

/// How live video arrived. The packets of the rates are those that the application sent, in full segments over TCP.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct StreamOutcome {
    /// Frames sent.
    pub frames_sent: u64,
    /// Share of the frames whose time has come that were not complete when they were to be shown.
    pub frames_missed: f64,
    /// Packets that arrived soon enough after the one before, over packets sent.
    pub real_time_index: f64,
    /// Packets that arrived later than that, over packets sent.
    pub delayed_packets_rate: f64,
    /// Losses, each transmission counted, over packets sent.
    pub packet_drop_rate: f64,
}

/// How a call sounded.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct CallOutcome {
    /// Delay from the sound at one end until it is heard at the other.
    pub mouth_to_ear_ms: f64,
    /// Share of the packets that did not come in time to be played.
    pub lost: f64,
    /// The rating R of the E-model.
    pub rating: f64,
    /// The mean opinion score that it stands for.
    pub mos: f64,
}

/// How long transfers took, from the wish to the last byte.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct TransferOutcome {
    /// Pages or files that arrived as a whole.
    pub completed: u64,
    /// Connections that ended before their time.
    pub failed_connections: u64,
    /// Mean in seconds; null without any, like all that follow.
    pub mean_s: Option<f64>,
    /// Median in seconds.
    pub median_s: Option<f64>,
    /// 95 of a hundred took no longer.
    pub p95_s: Option<f64>,
}

/// How an adaptive video was to watch.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct PlayerOutcome {
    /// Time until the picture moved; null if it never did.
    pub startup_s: Option<f64>,
    /// Times at which it stopped for want of data.
    pub stalls: u64,
    /// For how long in all.
    pub stalled_s: f64,
    /// That, over the time since the picture first moved.
    pub rebuffering_ratio: f64,
    /// Mean rate of the video fetched; null without any.
    pub mean_rate_bps: Option<f64>,
    /// Changes of quality.
    pub switches: u64,
}

/// Result of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LinkOutcome {
    /// `link` or `link.index`.
    pub name: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Packets that reached the far end.
    pub delivered_packets: u64,
    /// Ordinary packets that the queue refused or dropped.
    pub dropped_by_queue: u64,
    /// Packets lost to transmission errors and outages.
    pub dropped_by_error: u64,
    /// Low-priority packets that a discipline refused or pushed out.
    pub dropped_low_priority: u64,
    /// Packets of parity sent, on a link with packet-level FEC.
    #[serde(skip_serializing_if = "is_zero")]
    pub parity_packets: u64,
    /// Packets that arrived because parity restored them.
    #[serde(skip_serializing_if = "is_zero")]
    pub repaired_packets: u64,
    /// Share of the time in which the transmitter was busy.
    pub utilisation: f64,
    /// When it was idle between two packets; absent for the members of a shared channel, and if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapOutcome>,
}

/// Transmission gaps: idle times between two packets in which another would have found room.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct GapOutcome {
    /// How many.
    pub count: u64,
    /// Their mean length.
    pub mean_ms: f64,
    /// Standard deviation of their lengths.
    pub deviation_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// All of them, over the simulated time.
    pub share: f64,
}

/// Result of one node that does more than forward.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct NodeOutcome {
    /// `node` or `node.index`.
    pub name: String,
    /// What it is, as the scenario calls it.
    pub kind: &'static str,
    /// What it counted, by name.
    pub counters: BTreeMap<&'static str, u64>,
}

/// Result of a channel that the links of a group share.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MediumOutcome {
    /// Link group.
    pub name: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Access scheme.
    pub kind: &'static str,
    /// Packets that terminals were given to send.
    pub offered_packets: u64,
    /// The same in bits a second, without what the medium adds.
    pub offered_bps: f64,
    /// Packets that got through; errors may still have hit them.
    pub carried_packets: u64,
    /// The same in bits a second, without what the medium adds.
    pub carried_bps: f64,
    /// Transmissions, repeated ones included; the copies of CRDSA count as one.
    pub bursts_sent: u64,
    /// Transmissions lost in a collision.
    pub bursts_collided: u64,
    /// Packets given up after too many collisions.
    pub given_up_packets: u64,
    /// Requests for slots.
    pub requests_sent: u64,
    /// Requests lost in a collision.
    pub requests_collided: u64,
    /// Requests lost to transmission errors.
    pub requests_lost: u64,
    /// Slots that were asked for.
    pub demand_slots: u64,
    /// Slots used that nobody had asked for.
    pub free_slots_used: u64,
    /// Mean time from a packet's arrival at its terminal to the end of the transmission that completed it; null before the first.
    pub mean_access_delay_ms: Option<f64>,
}

/// Sums over the flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Totals {
    /// Sum of the goodputs.
    pub goodput_bps: f64,
    /// Sum of the goodputs in segments a second.
    pub goodput_segments_per_s: f64,
    /// Sum of the throughputs.
    pub throughput_bps: f64,
    /// As that of a flow, for the goodput of all together from the start of the first; null if it never converged.
    pub convergence_s: Option<f64>,
    /// Jain's fairness index of the flows' goodputs.
    pub jain_index: f64,
    /// Probes sent over data segments sent.
    pub probe_overhead: f64,
    /// Data packets that reached their receiver with something new.
    pub data_packets_delivered: u64,
    /// In a world of two flow groups: mean goodput of a flow of the first over that of the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness_ratio: Option<f64>,
}

/// Time series of a run, recorded on request for reports.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Series {
    /// One for each flow.
    pub flows: Vec<FlowSeries>,
    /// One for each direction of each link that is a bottleneck (or was asked for).
    pub links: Vec<LinkSeries>,
}

/// Time series of one flow; each point is `(seconds, value)`.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowSeries {
    /// Name of the flow.
    pub name: String,
    /// Congestion window in segments.
    pub cwnd: Vec<(f64, f64)>,
    /// Slow-start threshold in segments, absent while infinite.
    pub ssthresh: Vec<(f64, f64)>,
    /// Smoothed round-trip time in milliseconds.
    pub srtt_ms: Vec<(f64, f64)>,
    /// Sequence number of first transmissions, in segments.
    pub sent: Vec<(f64, f64)>,
    /// Sequence number of retransmissions, in segments.
    pub retransmitted: Vec<(f64, f64)>,
    /// Cumulative acknowledgement, in segments.
    pub acked: Vec<(f64, f64)>,
}

/// Time series of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LinkSeries {
    /// Name of the link and direction.
    pub name: String,
    /// Packets waiting.
    pub queue_packets: Vec<(f64, f64)>,
    /// Times of drops and the packets waiting then.
    pub drops: Vec<(f64, f64)>,
}
