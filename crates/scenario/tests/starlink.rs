//! The model `leo-starlink-access` beside published measurements of Starlink. `docs/validation.md` shows the same numbers.

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{JitterDistribution, LinkConfig, LossModel, Schedule};
use bentpipe_scenario::{Draft, Scenario};

/// Worlds of the first 400 seeds, of nine slots each.
fn worlds() -> Vec<Scenario> {
    let draft = Draft::load("leo-starlink-access").unwrap();
    (1..=400).map(|seed| draft.scenario_for(Some(seed)).unwrap()).collect()
}

fn steps<T: Copy>(schedule: &Schedule<T>) -> &[(Duration, T)] {
    let Schedule::Table { points, .. } = schedule else { panic!("a table") };
    points
}

/// Sorted values with their moments and percentiles.
struct Sample(Vec<f64>);

impl Sample {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / self.0.len() as f64).sqrt()
    }

    fn percentile(&self, percent: usize) -> f64 {
        self.0[self.0.len() * percent / 100]
    }

    /// Mean, standard deviation, and the 25th, 50th and 75th percentile.
    fn summary(&self) -> [f64; 5] {
        let percentiles = [25, 50, 75].map(|percent| self.percentile(percent));
        [self.mean(), self.deviation(), percentiles[0], percentiles[1], percentiles[2]]
    }
}

fn assert_within(name: &str, ours: &[f64], published: &[f64], share: f64) {
    println!("{name}: {ours:.1?}, published {published:?}");
    for (ours, published) in ours.iter().zip(published) {
        assert!((ours / published - 1.0).abs() <= share, "{name}: {ours} instead of {published}");
    }
}

fn mbps(schedule: &Schedule<Rate>) -> impl Iterator<Item = f64> {
    steps(schedule).iter().map(|(_, rate)| rate.bps() as f64 / 1e6)
}

/// AUTOBAHN, stationary, standard plan: mean, deviation and percentiles of one second, in Mbit/s.
#[test]
fn capacities_are_within_ten_percent_of_the_measured_ones() {
    let worlds = worlds();
    let down = Sample::of(worlds.iter().flat_map(|world| mbps(&world.links[0].forward.rate)));
    assert_within("down", &down.summary(), &[280.0, 107.0, 198.0, 292.0, 360.0], 0.1);
    assert_within("down, maximum", &[down.percentile(99)], &[505.0], 0.1);
    let up = Sample::of(worlds.iter().flat_map(|world| mbps(&world.links[0].reverse.rate)));
    assert_within("up", &up.summary(), &[22.9, 11.0, 14.9, 21.2, 30.4], 0.1);
}

/// The example trace of LeoReplayer: in eight slots, the deviation of one second is 3 to 12 % of the mean of the slot.
#[test]
fn capacities_vary_within_a_slot_as_measured() {
    let worlds = worlds();
    let variation = |slot: &[f64]| {
        let slot = Sample::of(slot.iter().copied());
        slot.deviation() / slot.mean()
    };
    for forward in [true, false] {
        let slots = worlds.iter().flat_map(|world| {
            let link = &world.links[0];
            let line = if forward { &link.forward } else { &link.reverse };
            let rates: Vec<f64> = mbps(&line.rate).collect();
            // The first slot has 12 s, the last one 3 s.
            rates[12..117].chunks(15).map(variation).collect::<Vec<_>>()
        });
        let of = Sample::of(slots);
        let percentiles = [10, 50, 90].map(|percent| of.percentile(percent));
        println!("deviation within a slot: {percentiles:.3?}, published 0.03 to 0.12");
        assert!(percentiles.iter().all(|share| (0.03..=0.12).contains(share)), "{percentiles:?}");
    }
}

fn jitter_mean(line: &LinkConfig) -> Duration {
    match line.jitter.as_ref().map(|jitter| &jitter.distribution) {
        Some(JitterDistribution::Normal { mean, .. }) => *mean,
        None => Duration::ZERO,
        other => panic!("{other:?}"),
    }
}

/// AUTOBAHN, pings to the point of presence, in ms. The published deviation of 9.5 ms contains waiting times that the model lacks.
#[test]
fn round_trips_are_within_ten_percent_of_the_measured_ones() {
    let worlds = worlds();
    let delays = worlds.iter().flat_map(|world| {
        let link = &world.links[0];
        let both = steps(&link.forward.delay_one_way).iter().zip(steps(&link.reverse.delay_one_way));
        let jitter = jitter_mean(&link.forward) + jitter_mean(&link.reverse);
        both.map(move |((_, forward), (_, reverse))| (*forward + *reverse + jitter).as_secs_f64() * 1e3)
    });
    let rtt = Sample::of(delays);
    let [mean, _, p25, p50, p75] = rtt.summary();
    assert_within("round trip", &[mean, p25, p50, p75], &[23.2, 17.9, 21.3, 23.2], 0.1);
}

/// AUTOBAHN: a ping of every 16 ms is lost with 0.36 %, and at 16 % of the reallocations, there 2.4 pings on the mean.
#[test]
fn pings_are_lost_as_rarely_as_measured_and_at_as_many_reallocations() {
    let world = &worlds()[0];
    let directions = [&world.links[0].forward, &world.links[0].reverse];
    let bursts = directions.map(|line| line.loss.handover.clone().expect("losses at reallocations"));
    let struck = 1.0 - bursts.iter().map(|burst| 1.0 - burst.share).product::<f64>();
    let length_s = bursts[0].before.as_secs_f64();
    assert_within("reallocations with losses, percent", &[100.0 * struck], &[16.0], 0.1);
    assert_within("lost pings of a burst", &[length_s / 0.016], &[2.4], 0.1);
    let random = directions.map(|line| match line.loss.model {
        LossModel::Packet { probability } | LossModel::Bursts { probability, .. } => probability,
        _ => panic!("{:?}", line.loss.model),
    });
    let lost = random[0] + random[1] + struck * length_s / 15.0;
    assert_within("lost pings, thousandths", &[1e3 * lost], &[3.6], 0.1);
}

/// Whole multiples of 15 s of GPS time are seconds 12, 27, 42 and 57 of UTC. In the example trace of LeoReplayer, nothing is carried for
/// 58 to 134 ms.
#[test]
fn slots_and_pauses_are_at_the_measured_times() {
    for world in worlds() {
        for line in [&world.links[0].forward, &world.links[0].reverse] {
            let delays = steps(&line.delay_one_way);
            let changes: Vec<u64> = delays.iter().map(|(at, _)| at.as_nanos() / 1_000_000_000).collect();
            assert_eq!(changes, [0, 12, 27, 42, 57, 72, 87, 102, 117]);
            for (pause, at) in line.outages.intervals.iter().zip(&changes[1..]) {
                assert_eq!(pause.from.since(bentpipe_base::Instant::ZERO), Duration::from_secs(*at));
                let length = pause.to.since(pause.from);
                assert!((55.0..=135.0).contains(&length.as_millis_f64()), "{length}");
            }
            assert!(line.outages.intervals.len() >= 8);
        }
    }
}
