//! The model `leo-starlink-access` beside published measurements of Starlink. `docs/validation.md` shows the same numbers.

use bentpipe_base::{Duration, Rate};
use bentpipe_net::Schedule;
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

/// AUTOBAHN, pings to the point of presence, in ms. The published deviation of 9.5 ms contains waiting times that the model lacks.
#[test]
fn round_trips_are_within_ten_percent_of_the_measured_ones() {
    let worlds = worlds();
    let delays = worlds.iter().flat_map(|world| {
        let link = &world.links[0];
        let both = steps(&link.forward.delay_one_way).iter().zip(steps(&link.reverse.delay_one_way));
        both.map(|((_, forward), (_, reverse))| (*forward + *reverse).as_secs_f64() * 1e3)
    });
    let rtt = Sample::of(delays);
    let [mean, _, p25, p50, p75] = rtt.summary();
    assert_within("round trip", &[mean, p25, p50, p75], &[23.2, 17.9, 21.3, 23.2], 0.1);
}

/// Whole multiples of 15 s of GPS time are seconds 12, 27, 42 and 57 of UTC. In the example trace of LeoReplayer, nothing is carried for
/// 58 to 134 ms.
#[test]
fn slots_and_pauses_are_at_the_measured_times() {
    for world in worlds() {
        for line in [&world.links[0].forward, &world.links[0].reverse] {
            let changes: Vec<u64> =
                steps(&line.rate).iter().map(|(at, _)| at.as_nanos() / 1_000_000_000).collect();
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
