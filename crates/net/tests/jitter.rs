//! Jitter and losses near handovers: statistics of many packets, and their order.

mod common;

use bentpipe_base::Duration;
use bentpipe_net::{
    HandoverLoss, Interpolation, Jitter, JitterDistribution, LinkConfig, LossConfig, LossModel, QueueConfig,
    Schedule,
};
use common::{Bench, config, ms, packet};

const MS: fn(u64) -> Duration = Duration::from_millis;
const PACKETS: u64 = 40_000;

fn link(distribution: JitterDistribution, correlation: f64, preserve_order: bool) -> LinkConfig {
    let jitter = Some(Jitter { distribution, correlation });
    LinkConfig { jitter, preserve_order, ..config(QueueConfig::default()) }
}

/// Returns the delays in ms beyond the transmission and propagation of packets that are sent 5 ms apart, in order of sending.
fn draws(config: &LinkConfig, seed: u64) -> Vec<f64> {
    let mut bench = Bench::with_seed(config, seed);
    for id in 0..PACKETS {
        bench.offer(ms(5 * id), packet(id));
    }
    bench.finish();
    let mut all: Vec<_> = bench.arrived.iter().map(|(at, arrival)| (arrival.packet.id, *at)).collect();
    all.sort_unstable();
    all.iter().map(|(id, at)| at.as_secs_f64() * 1e3 - 5.0 * *id as f64 - 101.0).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns mean, standard deviation and correlation of successive values.
fn moments(values: &[f64]) -> [f64; 3] {
    let mean = mean(values);
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
    let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    [mean, variance.sqrt(), products.sum::<f64>() / values.len() as f64 / variance]
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(part * sorted.len() as f64) as usize]
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} instead of {expected} within {tolerance}");
}

#[test]
fn normal_jitter_has_the_mean_the_deviation_and_the_quantiles_of_its_law() {
    let normal = JitterDistribution::Normal { mean: MS(2), deviation: MS(10) };
    let draws = draws(&link(normal, 0.0, false), 1);
    let [mean, deviation, correlation] = moments(&draws);
    near(mean, 2.0, 0.2);
    near(deviation, 10.0, 0.2);
    near(correlation, 0.0, 0.02);
    near(quantile(&draws, 0.05), 2.0 - 16.449, 0.4);
    near(quantile(&draws, 0.99), 2.0 + 23.263, 0.6);
}

#[test]
fn correlation_does_not_change_the_distribution() {
    let normal = JitterDistribution::Normal { mean: MS(0), deviation: MS(10) };
    let draws = draws(&link(normal, 0.75, false), 1);
    let [mean, deviation, correlation] = moments(&draws);
    near(mean, 0.0, 0.5);
    near(deviation, 10.0, 0.3);
    near(correlation, 0.75, 0.02);
}

#[test]
fn log_normal_jitter_has_the_mean_the_deviation_and_the_median_of_its_law() {
    let log_normal = JitterDistribution::LogNormal { mean: MS(10), deviation: MS(5) };
    let draws = draws(&link(log_normal, 0.0, false), 1);
    let [mean, deviation, _] = moments(&draws);
    near(mean, 10.0, 0.1);
    near(deviation, 5.0, 0.15);
    // The median is mean / sqrt(1 + (deviation / mean)^2).
    near(quantile(&draws, 0.5), 10.0 / 1.25_f64.sqrt(), 0.1);
}

#[test]
fn pareto_jitter_has_the_minimum_the_mean_and_the_tail_of_its_law() {
    let pareto = JitterDistribution::Pareto { mean: MS(10), deviation: MS(5) };
    let draws = draws(&link(pareto, 0.0, false), 1);
    let shape = 1.0 + 5_f64.sqrt();
    let least = 10.0 * (shape - 1.0) / shape;
    near(mean(&draws), 10.0, 0.1);
    near(quantile(&draws, 0.0), least, 0.001);
    near(quantile(&draws, 0.5), least * 2_f64.powf(1.0 / shape), 0.1);
    near(quantile(&draws, 0.99), least * 100_f64.powf(1.0 / shape), 1.0);
}

#[test]
fn a_table_gives_each_of_its_delays_equally_often() {
    let delays = [1, 2, 2, 9].map(MS).into();
    let draws = draws(&link(JitterDistribution::Table { delays }, 0.5, false), 1);
    for (delay, part) in [(1.0, 0.25), (2.0, 0.5), (9.0, 0.25)] {
        let count = draws.iter().filter(|draw| (*draw - delay).abs() < 1e-6).count();
        near(count as f64 / PACKETS as f64, part, 0.015);
    }
}

#[test]
fn the_delay_is_never_negative() {
    let normal = JitterDistribution::Normal { mean: MS(0), deviation: MS(300) };
    let draws = draws(&link(normal, 0.0, false), 1);
    near(quantile(&draws, 0.0), -100.0, 1e-6);
    near(quantile(&draws, 0.8), 300.0 * 0.8416, 10.0);
}

#[test]
fn packets_overtake_only_if_the_order_is_not_preserved() {
    let normal = || JitterDistribution::Normal { mean: MS(0), deviation: MS(10) };
    let order = |preserve_order| {
        let mut bench = Bench::new(&link(normal(), 0.0, preserve_order));
        for id in 0..1000 {
            bench.offer(ms(id), packet(id));
        }
        bench.finish();
        bench.arrived.iter().map(|(_, arrival)| arrival.packet.id).collect::<Vec<_>>()
    };
    assert!(order(true).is_sorted());
    let overtaken = order(false).windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((300..600).contains(&overtaken), "{overtaken}");
}

#[test]
fn the_same_seed_gives_the_same_jitter() {
    let link = link(JitterDistribution::LogNormal { mean: MS(10), deviation: MS(5) }, 0.3, true);
    assert_eq!(draws(&link, 7), draws(&link, 7));
    assert_ne!(draws(&link, 7), draws(&link, 8));
}

#[test]
fn impossible_jitter_is_refused() {
    let refused =
        |distribution, correlation| link(distribution, correlation, true).validate().unwrap_err().field;
    let normal = JitterDistribution::Normal { mean: MS(0), deviation: MS(0) };
    assert_eq!(refused(normal, 1.0), "jitter.correlation");
    assert_eq!(refused(JitterDistribution::LogNormal { mean: MS(0), deviation: MS(1) }, 0.0), "jitter.mean");
    assert_eq!(
        refused(JitterDistribution::Pareto { mean: MS(1), deviation: MS(0) }, 0.0),
        "jitter.deviation"
    );
    let delays = [2, 1].map(MS).into();
    assert_eq!(refused(JitterDistribution::Table { delays }, 0.0), "jitter.delays");
}

fn near_handovers(points: &[(u64, u64)], repeat_every: Option<Duration>, jump: Duration) -> LinkConfig {
    let points = points.iter().map(|(at, delay)| (MS(*at), MS(*delay))).collect();
    let delay_one_way = Schedule::Table { points, interpolation: Interpolation::Step, repeat_every };
    let mut handover =
        HandoverLoss { probability: 1.0, before: MS(20), after: MS(30), jump, ..HandoverLoss::default() };
    handover.find(&delay_one_way);
    let loss = LossConfig { handover: Some(handover), ..LossConfig::default() };
    LinkConfig { delay_one_way, loss, ..config(QueueConfig::default()) }
}

/// Returns the send times of the first and the last packet of each burst of losses, in ms. Packets are sent 10 ms apart.
fn bursts(config: &LinkConfig, until_ms: u64) -> Vec<(u64, u64)> {
    let mut bench = Bench::new(config);
    for id in 0..until_ms / 10 {
        bench.offer(ms(10 * id), packet(id));
    }
    bench.finish();
    let mut lost: Vec<_> = bench.dropped.iter().map(|dropped| dropped.packet.id * 10).collect();
    lost.sort_unstable();
    let bursts = lost.chunk_by(|a, b| b - a == 10);
    bursts.map(|burst| (burst[0], burst[burst.len() - 1])).collect()
}

#[test]
fn packets_are_lost_before_and_after_each_jump_of_the_delay() {
    let once = near_handovers(&[(0, 10), (500, 30), (600, 31), (900, 31)], None, MS(2));
    assert_eq!(bursts(&once, 2000), [(480, 520)]);
    let all = near_handovers(&[(0, 10), (500, 30), (600, 31), (900, 31)], None, MS(0));
    assert_eq!(bursts(&all, 2000), [(480, 520), (580, 620)]);
}

#[test]
fn bursts_repeat_with_the_delay_also_over_the_end_of_a_round() {
    let repeated = near_handovers(&[(0, 10), (990, 30)], Some(MS(1000)), MS(0));
    assert_eq!(bursts(&repeated, 3100), [(970, 1020), (1970, 2020), (2970, 3020)]);
}

#[test]
fn a_share_of_the_handovers_has_a_burst_as_a_whole() {
    // Handovers at 500 ms and 1000 ms of each second.
    let mut some = near_handovers(&[(0, 10), (500, 30)], Some(MS(1000)), MS(0));
    some.loss.handover.as_mut().expect("set").share = 0.25;
    let found = bursts(&some, 200_100);
    assert!(found.iter().all(|(first, last)| last - first == 40), "{found:?}");
    // The standard deviation of a binomial number of 400 with 1/4 is 8.7.
    assert!((74..=126).contains(&found.len()), "{}", found.len());
}

#[test]
fn losses_near_handovers_do_not_change_other_errors() {
    let mut both = near_handovers(&[(0, 10), (500, 30)], None, MS(0));
    both.loss.model = LossModel::List { numbers: vec![1, 51, 100] };
    assert_eq!(bursts(&both, 2000), [(0, 0), (480, 520), (990, 990)]);
}

#[test]
fn a_burst_without_length_is_refused() {
    let mut link = near_handovers(&[(0, 10), (500, 30)], None, MS(0));
    let handover = link.loss.handover.as_mut().unwrap();
    (handover.before, handover.after) = (MS(0), MS(0));
    assert_eq!(link.validate().unwrap_err().field, "loss.handover.before");
}
