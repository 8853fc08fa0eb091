//! Metrics of comparisons: name, unit, meaning, and computation from a run.

use bentpipe_outcome::{FlowOutcome, LinkOutcome, Outcome, SplitOutcome};
use bentpipe_scenario::{Scenario, Traffic};
use serde::{Serialize, Serializer};

use crate::number::RATE_UNIT;
use crate::stats;

/// A unit that people read, and how many of the document's units it is.
type Unit = (&'static str, f64);

const RATE: Unit = (RATE_UNIT.1, RATE_UNIT.0);
const PERCENT: Unit = ("%", 0.01);
const OF_PACKETS: Unit = ("% of packets sent", 0.01);

const fn plain(unit: &'static str) -> Unit {
    (unit, 1.0)
}

/// Direction of an improvement.
#[derive(PartialEq, Eq)]
enum Better {
    More,
    Less,
}

/// A row of the list of metrics.
struct Description {
    key: &'static str,
    title: &'static str,
    unit: Unit,
    better: Better,
    meaning: &'static str,
    of: fn(&Outcome) -> Option<f64>,
}

/// Makes the enum and the descriptions of its variants from one list.
macro_rules! metrics {
    ($($name:ident = $key:literal, $title:literal, $unit:expr, $better:ident, $meaning:literal, $of:expr;)*) => {
        /// A metric of comparisons.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Metric {
            $(#[doc = concat!($title, ": ", $meaning, ".")] $name,)*
        }

        const DESCRIPTIONS: &[Description] = &[$(Description {
            key: $key,
            title: $title,
            unit: $unit,
            better: Better::$better,
            meaning: $meaning,
            of: $of,
        }),*];

        impl Metric {
            /// All metrics in the order of documents and tables.
            pub const ALL: [Self; DESCRIPTIONS.len()] = [$(Self::$name),*];
        }
    };
}

metrics! {
    Goodput = "goodput_bps", "Goodput", RATE, More,
        "payload delivered in order, each byte once, over the simulated time",
        |run| Some(run.totals.goodput_bps);
    GoodputSegments = "goodput_segments_per_s", "Goodput", plain("segments/s"), More,
        "the same in full segments",
        |run| Some(run.totals.goodput_segments_per_s);
    Jain = "jain_index", "Fairness", plain("Jain's index"), More,
        "Jain's fairness index of the goodputs",
        |run| Some(run.totals.jain_index);
    Retransmissions = "retransmitted_segments", "Retransmissions", plain("retransmitted segments"), Less,
        "data segments retransmitted by senders and by the legs behind proxies",
        |run| Some(run.totals.retransmitted_segments as f64);
    Timeouts = "timeouts", "Timeouts", plain("timer expiries"), Less,
        "expiries of retransmission timers of senders and of the legs behind proxies, those of SYNs included",
        |run| Some(run.totals.timeouts as f64);
    ProbeOverhead = "probe_overhead", "Probe overhead", ("% of data segments", 0.01), Less,
        "low-priority probes sent divided by data segments sent",
        |run| Some(run.totals.probe_overhead);
    Completion = "completion_s", "Completion time", plain("s"), Less,
        "mean time until all data of a flow was acknowledged",
        |run| mean(run, Metric::Completion);
    RealTimeIndex = "real_time_index", "Real-time performance", plain("index"), More,
        "share of the packets of live video that came in time",
        |run| mean(run, Metric::RealTimeIndex);
    DelayedPackets = "delayed_packets_rate", "Delayed packets", OF_PACKETS, Less,
        "share of the packets of live video that came late",
        |run| mean_of_flows(run, |flow| Some(flow.stream?.delayed_packets_rate));
    PacketDrops = "packet_drop_rate", "Packets dropped", OF_PACKETS, Less,
        "losses over the packets that live videos sent",
        |run| mean_of_flows(run, |flow| Some(flow.stream?.packet_drop_rate));
    FramesMissed = "frames_missed", "Frames missed", PERCENT, Less,
        "share of the frames of live video that were not complete in time",
        |run| mean_of_flows(run, |flow| Some(flow.stream?.frames_missed));
    Mos = "mos", "Quality of calls", plain("mean opinion score"), More,
        "mean opinion score of calls",
        |run| mean(run, Metric::Mos);
    TransferMedian = "transfer_median_s", "Pages or files, median", plain("s"), Less,
        "median time of a page or file, mean over the flows",
        |run| mean(run, Metric::TransferMedian);
    VideoRate = "video_rate_bps", "Adaptive video", RATE, More,
        "mean rate of adaptive videos",
        |run| mean(run, Metric::VideoRate);
    Rebuffering = "rebuffering_ratio", "Rebuffering", ("% of the time", 0.01), Less,
        "share of the time in which adaptive videos stood still",
        |run| mean_of_flows(run, |flow| Some(flow.player?.rebuffering_ratio));
    FairnessRatio = "fairness_ratio", "Fairness ratio", plain("first group / second"), More,
        "mean goodput of a flow of the first of two groups over that of the second",
        |run| run.totals.fairness_ratio;
    Throughput = "throughput_bps", "Throughput", RATE, More,
        "payload of all data packets that arrived, repeated ones included, over the simulated time",
        |run| Some(run.totals.throughput_bps);
    Convergence = "convergence_s", "Convergence time", plain("s"), Less,
        "time until the goodput of a flow holds within 10 % for ten seconds, mean over those that converged",
        |run| mean_of_flows(run, |flow| flow.convergence_s);
    Gap = "gap_ms", "Transmission gaps of the busiest link, mean", plain("ms"), Less,
        "mean transmission gap of the link that was busiest",
        |run| Some(busiest(run)?.gaps?.mean_ms);
    QueueingDelay = "queueing_delay_ms", "Queueing delay of the busiest link, mean", plain("ms"), Less,
        "mean time that a transmitted packet waited in the queue of the busiest link",
        |run| busiest(run)?.queueing_delay_ms;
    RttMedian = "rtt_p50_ms", "RTT, median", plain("ms"), Less,
        "median of the round-trip samples of all senders",
        |run| Some(run.totals.delays.rtt?.p50_ms);
    RttP95 = "rtt_p95_ms", "RTT, 95th percentile", plain("ms"), Less,
        "95th percentile of the round-trip samples of all senders",
        |run| Some(run.totals.delays.rtt?.p95_ms);
    SmoothedRttMedian = "smoothed_rtt_p50_ms", "Smoothed RTT, median", plain("ms"), Less,
        "median of the smoothed RTT after each sample",
        |run| Some(run.totals.delays.smoothed_rtt?.p50_ms);
    SmoothedRttP95 = "smoothed_rtt_p95_ms", "Smoothed RTT, 95th percentile", plain("ms"), Less,
        "95th percentile of the smoothed RTT after each sample",
        |run| Some(run.totals.delays.smoothed_rtt?.p95_ms);
    OneWayMedian = "one_way_delay_p50_ms", "One-way delay of data, median", plain("ms"), Less,
        "median time of a data packet from its sender to its receiver",
        |run| Some(run.totals.delays.one_way_delay?.p50_ms);
    OneWayP95 = "one_way_delay_p95_ms", "One-way delay of data, 95th percentile", plain("ms"), Less,
        "95th percentile of the time of a data packet from its sender to its receiver",
        |run| Some(run.totals.delays.one_way_delay?.p95_ms);
    LegRetransmissions = "legs_retransmitted_segments", "Retransmissions behind proxies", plain("retransmitted segments"), Less,
        "data segments retransmitted by the legs behind proxies",
        |run| of_legs(run, |split| split.retransmitted_segments);
    LegTimeouts = "legs_timeouts", "Timeouts behind proxies", plain("timer expiries"), Less,
        "expiries of retransmission timers of the legs behind proxies",
        |run| of_legs(run, |split| split.timeouts);
}

/// The link with the highest utilisation.
fn busiest(run: &Outcome) -> Option<&LinkOutcome> {
    run.links.iter().max_by(|a, b| a.utilisation.total_cmp(&b.utilisation))
}

/// The sum over the flows that have legs behind proxies.
fn of_legs(run: &Outcome, count: fn(&SplitOutcome) -> u64) -> Option<f64> {
    let splits =
        run.flows.iter().filter_map(|flow| flow.split.as_ref()).filter(|split| !split.legs.is_empty());
    splits.map(|split| count(split) as f64).reduce(|sum, count| sum + count)
}

fn mean_of_flows(run: &Outcome, field: fn(&FlowOutcome) -> Option<f64>) -> Option<f64> {
    stats::mean(&run.flows.iter().filter_map(field).collect::<Vec<_>>())
}

/// Returns the mean of a metric over the flows that have a value.
fn mean(run: &Outcome, metric: Metric) -> Option<f64> {
    stats::mean(&run.flows.iter().filter_map(|flow| metric.of_flow(flow)).collect::<Vec<_>>())
}

impl Metric {
    /// Main metric of a flow with this traffic.
    pub const fn measured_by(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::File { .. } | Traffic::Pages { .. } => Self::Completion,
            Traffic::Web(_) | Traffic::Ftp(_) => Self::TransferMedian,
            Traffic::Voice { .. } => Self::Mos,
            Traffic::Video { .. } | Traffic::Frames { .. } => Self::RealTimeIndex,
            Traffic::Adaptive(_) => Self::VideoRate,
            Traffic::Bulk | Traffic::Cbr { .. } | Traffic::OnOff(_) => Self::Goodput,
        }
    }

    /// Main metric of a scenario: that of its flows under comparison.
    pub fn of_scenario(scenario: &Scenario) -> Self {
        scenario.compared_flow().map_or(Self::Goodput, |flow| Self::measured_by(&flow.traffic))
    }

    /// Value of one flow, if this is the flow's main metric and has a value.
    pub fn of_flow(self, flow: &FlowOutcome) -> Option<f64> {
        match self {
            Self::Completion => flow.completion_s,
            Self::RealTimeIndex => Some(flow.stream?.real_time_index),
            Self::Mos => Some(flow.call?.mos),
            Self::TransferMedian => flow.transfers?.median_s,
            Self::VideoRate => flow.player?.mean_rate_bps,
            _ => None,
        }
    }

    fn description(self) -> &'static Description {
        &DESCRIPTIONS[self as usize]
    }

    /// True for times, counts of losses and other metrics of which less is better.
    pub fn less_is_better(self) -> bool {
        self.description().better == Better::Less
    }

    /// The name for people, the unit that they read it in, and how many of the document's units that is.
    pub fn shown(self) -> (&'static str, &'static str, f64) {
        let Description { title, unit: (unit, scale), .. } = self.description();
        (title, unit, *scale)
    }

    /// True if documents and tables leave the metric out where no flow has it.
    pub const fn is_optional(self) -> bool {
        self as usize > Self::Completion as usize
    }

    /// True if the table on the terminal omits the metric for lack of space. Files and reports contain it.
    pub const fn is_left_to_files(self) -> bool {
        matches!(
            self,
            Self::Throughput
                | Self::RttMedian
                | Self::SmoothedRttMedian
                | Self::SmoothedRttP95
                | Self::OneWayMedian
        )
    }

    /// Field name in JSON and column name in CSV.
    pub fn key(self) -> &'static str {
        self.description().key
    }

    /// Short meaning; `docs/metrics.md` has the definition.
    pub fn meaning(self) -> &'static str {
        self.description().meaning
    }

    /// The value in one run; `None` where it has no meaning (no flow ends).
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        (self.description().of)(outcome).filter(|value| value.is_finite())
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}
