//! Made-up results for tests.

use bentpipe_outcome::{
    DelayOutcomes, FlowOutcome, FlowSeries, LinkOutcome, LinkSeries, Outcome, Series, Totals,
};

use crate::comparison::{Comparison, Sample};
use crate::metric::Metric;
use crate::plan::Plan;

pub fn plan() -> Plan {
    Plan {
        scenario: "example".into(),
        algorithms: vec!["reno".into(), "peach".into()],
        baseline: "reno".into(),
        vary: vec!["link.satellite.loss.rate=1e-4,1e-3".parse().unwrap()],
        first_seed: 1,
        seeds: 3,
        measures: Metric::Goodput,
        groups: vec!["bulk".into()],
        compared: vec!["bulk".into()],
        notes: Vec::new(),
    }
}

pub fn flow(name: &str, cc: &str, goodput_bps: f64) -> FlowOutcome {
    FlowOutcome {
        name: name.into(),
        group: name.split('.').next().unwrap().into(),
        cc: cc.into(),
        goodput_bps,
        goodput_segments_per_s: goodput_bps / 8000.0,
        throughput_bps: 1.01 * goodput_bps,
        convergence_s: (cc == "peach").then_some(12.5),
        delivered_bytes: 1_000_000,
        missing_bytes: 0,
        sent_segments: 1010,
        retransmitted_segments: 10,
        timeouts: 1,
        probes_sent: if cc == "peach" { 50 } else { 0 },
        probes_acked: 0,
        probe_repairs: 0,
        srtt_ms: Some(560.5),
        completion_s: None,
        aborted: None,
        stream: None,
        call: None,
        transfers: None,
        pages: Vec::new(),
        player: None,
        split: None,
        bundles: None,
        relayed: None,
    }
}

pub fn outcome(cc: &str, seed: u64) -> Outcome {
    let each = if cc == "peach" { 4.0e5 } else { 2.0e5 } + 1000.0 * seed as f64;
    let flows = vec![flow("bulk.0", cc, each), flow("bulk.1", cc, each)];
    Outcome {
        scenario: "example".into(),
        version: "0.1.0",
        seed,
        simulated_s: 100.0,
        measured_from_s: None,
        wall_s: 0.1,
        events: 12345,
        nodes: Vec::new(),
        media: Vec::new(),
        stranded_packets: 0,
        totals: Totals {
            goodput_bps: 2.0 * each,
            goodput_segments_per_s: each / 4000.0,
            throughput_bps: 2.02 * each,
            convergence_s: (cc == "peach").then_some(11.0),
            jain_index: 1.0,
            sent_segments: 2020,
            retransmitted_segments: 20,
            timeouts: 2,
            delays: DelayOutcomes::default(),
            probe_overhead: if cc == "peach" { 0.05 } else { 0.0 },
            data_packets_delivered: 2000,
            fairness_ratio: None,
        },
        groups: bentpipe_outcome::GroupOutcome::of(&flows),
        flows,
        links: vec![LinkOutcome {
            name: "satellite".into(),
            direction: "forward",
            delivered_packets: 2020,
            dropped_by_queue: 3,
            dropped_by_error: 17,
            dropped_low_priority: 0,
            parity_packets: 0,
            repaired_packets: 0,
            utilisation: 0.9,
            queueing_delay_ms: None,
            transmitted_packets: 2040,
            gaps: None,
        }],
    }
}

pub fn series() -> Series {
    let wave = |height: f64| (0..500).map(|i| (f64::from(i) / 5.0, height + f64::from(i % 50))).collect();
    let line = |slope: f64| (0..5000).map(|i| (f64::from(i) / 50.0, slope * f64::from(i))).collect();
    let flow = |index: u32| FlowSeries {
        name: format!("bulk.{index}"),
        cwnd: wave(10.0 + f64::from(index)),
        ssthresh: vec![(10.0, 20.0), (50.0, 30.0)],
        srtt_ms: wave(550.0),
        sent: line(1.0),
        retransmitted: vec![(12.0, 600.0), (40.0, 2000.0)],
        acked: line(0.99),
    };
    let link =
        LinkSeries { name: "satellite forward".into(), queue_packets: wave(0.0), drops: vec![(30.0, 50.0)] };
    Series { flows: vec![flow(0), flow(1)], links: vec![link] }
}

pub fn comparison() -> Comparison {
    let (plan, cells) = (plan(), plan().cells());
    let run = |point: crate::plan::Point| {
        let sample = Sample::of(&outcome(&cells[point.cell].cc, point.seed), &[]);
        (point, sample)
    };
    Comparison::new(&plan, plan.points().into_iter().map(run))
}
