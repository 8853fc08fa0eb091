//! Invariants of every link for random configurations and loads. The bench also checks conservation, progress and that no event
//! lies in the past.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{
    ArqConfig, CoDelConfig, Dropped, DualPi2Config, FecConfig, FqCoDelConfig, Interpolation, Jitter,
    JitterDistribution, Limit, LinkConfig, LossConfig, LossModel, Opportunities, Outage, OutageEffect,
    Outages, PieConfig, QueueConfig, RedConfig, RedUnit, Reordering, Schedule,
};
use common::{Bench, Probe, packet};
use proptest::prelude::*;

/// Minimum and maximum rate, and minimum delay, of the configurations below.
const MIN_RATE: Rate = Rate::from_bps(200_000);
const MAX_RATE: Rate = Rate::from_mbps(20);
const MIN_DELAY: Duration = Duration::from_micros(500);

fn micros(range: core::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_micros)
}

fn rate() -> impl Strategy<Value = Rate> {
    (MIN_RATE.bps()..=MAX_RATE.bps()).prop_map(Rate::from_bps)
}

fn table<T: core::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Schedule<T>> {
    let steps = prop::collection::vec((1..30_000_u64, value), 1..6);
    (steps, any::<bool>(), prop::option::of(1..20_000_u64)).prop_map(|(steps, linear, pause)| {
        let mut time = Duration::ZERO;
        let mut points = Vec::new();
        for (gap, value) in steps {
            points.push((time, value));
            time += Duration::from_micros(gap);
        }
        let interpolation = if linear { Interpolation::Linear } else { Interpolation::Step };
        let repeat_every = pause.map(|pause| time + Duration::from_micros(pause));
        Schedule::Table { points, interpolation, repeat_every }
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![(1..40_u32).prop_map(Limit::Packets), (1_500..40_000_u64).prop_map(Limit::Bytes)]
}

fn codel() -> impl Strategy<Value = CoDelConfig> {
    (100..5_000_u64, 5_000..100_000_u64, any::<bool>()).prop_map(|(target, interval, ecn)| CoDelConfig {
        target: Duration::from_micros(target),
        interval: Duration::from_micros(interval),
        ecn,
    })
}

fn red() -> impl Strategy<Value = RedConfig> {
    (limit(), 0.0..5.0, 0.1..10.0, 0.001..=1.0, any::<(bool, bool)>()).prop_map(
        |(limit, min_threshold, span, weight, (gentle, ecn))| RedConfig {
            limit,
            unit: if gentle { RedUnit::Packets } else { RedUnit::Bytes },
            min_threshold,
            max_threshold: min_threshold + span,
            weight,
            gentle,
            ecn,
            ..RedConfig::default()
        },
    )
}

fn pie() -> impl Strategy<Value = PieConfig> {
    (limit(), 1_000..50_000_u64, 100..50_000_u64, 0..100_000_u64, any::<bool>()).prop_map(
        |(limit, target, update, burst, ecn)| PieConfig {
            limit,
            target: Duration::from_micros(target),
            update: Duration::from_micros(update),
            burst: Duration::from_micros(burst),
            ecn,
            ..PieConfig::default()
        },
    )
}

fn dual_pi2() -> impl Strategy<Value = DualPi2Config> {
    (limit(), 1_000..50_000_u64, 1_000..500_000_u64, 0..5_000_u64, 1.0..4.0, 0.01..=1.0).prop_map(
        |(limit, target, max_rtt, step, coupling, classic_share)| DualPi2Config {
            limit,
            target: Duration::from_micros(target),
            max_rtt: Duration::from_micros(max_rtt),
            step: Duration::from_micros(step),
            coupling,
            classic_share,
        },
    )
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let fq_codel = (1..60_u32, 1..8_u32, 1..3_000_u32, codel());
    prop_oneof![
        limit().prop_map(|limit| QueueConfig::DropTail { limit }),
        (limit(), 0..10_u32).prop_map(|(limit, low_priority_threshold)| QueueConfig::Threshold {
            limit,
            low_priority_threshold
        }),
        limit().prop_map(|limit| QueueConfig::DropFront { limit }),
        limit().prop_map(|limit| QueueConfig::PushOut { limit }),
        limit().prop_map(|limit| QueueConfig::Strict { limit }),
        (limit(), limit()).prop_map(|(ordinary, low)| QueueConfig::Priority { ordinary, low }),
        red().prop_map(QueueConfig::Red),
        (limit(), codel()).prop_map(|(limit, codel)| QueueConfig::CoDel { limit, codel }),
        fq_codel.prop_map(|(limit_packets, queues, quantum_bytes, codel)| {
            QueueConfig::FqCoDel(FqCoDelConfig {
                limit_packets,
                queues,
                quantum_bytes,
                codel,
                ..FqCoDelConfig::default()
            })
        }),
        pie().prop_map(QueueConfig::Pie),
        dual_pi2().prop_map(QueueConfig::DualPi2),
    ]
}

fn loss() -> impl Strategy<Value = LossConfig> {
    let p = || 0.0..=1.0;
    let model = prop_oneof![
        Just(LossModel::None),
        (0.0..=1.0).prop_map(|probability| LossModel::Packet { probability }),
        (0.0..1e-3).prop_map(|probability| LossModel::Bit { probability }),
        (0.0..1e-2).prop_map(|probability| LossModel::Byte { probability }),
        (p(), p(), p(), p()).prop_map(|(good_to_bad, bad_to_good, loss_good, loss_bad)| {
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }
        }),
        prop::collection::btree_set(1..200_u64, 0..20)
            .prop_map(|numbers| LossModel::List { numbers: numbers.into_iter().collect() }),
        (prop::collection::vec(any::<bool>(), 1..30), any::<bool>())
            .prop_map(|(lost, repeat)| LossModel::Trace { lost, repeat }),
    ];
    (model, any::<bool>()).prop_map(|(model, data_only)| LossConfig { model, data_only, handover: None })
}

fn outages() -> impl Strategy<Value = Outages> {
    let effect = prop_oneof![
        Just(OutageEffect::Pause),
        Just(OutageEffect::Cut),
        Just(OutageEffect::CutPath),
        Just(OutageEffect::Blind)
    ];
    (prop::collection::vec((1..40_000_u64, 1..30_000_u64), 0..4), effect).prop_map(|(pairs, effect)| {
        let mut up = Instant::ZERO;
        let outage = |(gap, length): (u64, u64)| {
            let from = up + Duration::from_micros(gap);
            up = from + Duration::from_micros(length);
            Outage { from, to: up }
        };
        Outages { intervals: pairs.into_iter().map(outage).collect(), effect }
    })
}

fn reordering() -> impl Strategy<Value = Option<Reordering>> {
    prop::option::of((0.0..=1.0, 0..3_000_u64, 0..9_000_u64)).prop_map(|parts| {
        parts.map(|(probability, min, spread)| Reordering {
            probability,
            extra_min: Duration::from_micros(min),
            extra_max: Duration::from_micros(min + spread),
        })
    })
}

fn jitter() -> impl Strategy<Value = Option<Jitter>> {
    let parts = (1..9_000_u64, 1..9_000_u64, 0.0..0.9);
    prop::option::of(parts).prop_map(|parts| {
        parts.map(|(mean, deviation, correlation)| {
            let [mean, deviation] = [mean, deviation].map(Duration::from_micros);
            Jitter { distribution: JitterDistribution::LogNormal { mean, deviation }, correlation }
        })
    })
}

/// Returns opportunities with these gaps in microseconds, repeated.
fn opportunities(gaps: Vec<u64>) -> Opportunities {
    let mut at = 1;
    let time = |gap| {
        at += gap;
        Duration::from_micros(at)
    };
    Opportunities { times: gaps.into_iter().map(time).collect(), ..Opportunities::mahimahi(&[1], true) }
}

fn link_config() -> impl Strategy<Value = LinkConfig> {
    let rate = prop_oneof![rate().prop_map(Schedule::Constant), table(rate())];
    let delay = || micros(500..60_000);
    let delay = prop_oneof![delay().prop_map(Schedule::Constant), table(delay())];
    let chance = || prop_oneof![Just(0.0), 0.0..=1.0];
    let order = (any::<bool>(), reordering(), jitter(), chance(), chance());
    let moments = prop::option::weighted(0.2, prop::collection::vec(0..4_000_u64, 1..20));
    let repair = prop_oneof![
        2 => Just((None, None)),
        1 => (1..4_u32).prop_map(|retries| (Some(ArqConfig { retries }), None)),
        2 => (1..9_u32, 1..5_u32, micros(0..40_000))
            .prop_map(|(k, parity, flush)| (None, Some(FecConfig { k, n: k + parity, flush }))),
    ];
    ((rate, moments), delay, queue(), (loss(), repair), outages(), order).prop_map(
        |(
            (rate, moments),
            delay_one_way,
            queue,
            (loss, (arq, fec)),
            outages,
            (preserve_order, reordering, jitter, duplicate_probability, corrupt_probability),
        )| {
            let opportunities = moments.filter(|_| arq.is_none() && fec.is_none()).map(opportunities);
            LinkConfig {
                rate: opportunities.as_ref().map_or(rate, Opportunities::rate),
                opportunities,
                delay_one_way,
                jitter,
                queue,
                loss,
                arq,
                fec,
                outages,
                preserve_order,
                reordering,
                duplicate_probability,
                corrupt_probability,
            }
        },
    )
}

/// Returns times in microseconds and packets, numbered by position.
fn arrivals() -> impl Strategy<Value = Vec<(Instant, Probe)>> {
    let gap = prop_oneof![3 => Just(0_u64), 5 => 0..800_u64, 1 => 0..30_000_u64];
    let one = (gap, 40..1_500_u32, 0..4_u64, any::<(bool, bool, bool, bool)>());
    prop::collection::vec(one, 1..200).prop_map(|parts| {
        let mut at = Instant::ZERO;
        let number = |(id, (gap, size, flow, (low_priority, data, ecn_capable, l4s)))| {
            at += Duration::from_micros(gap);
            (at, Probe { size, flow, low_priority, data, ecn_capable: ecn_capable || l4s, l4s, ..packet(id) })
        };
        (0..).zip(parts).map(number).collect()
    })
}

/// Runs the arrivals through a link; with `fuss` it is also called when it did not request it.
fn run(config: &LinkConfig, arrivals: &[(Instant, Probe)], seed: u64, fuss: bool) -> Bench {
    let mut bench = Bench::with_seed(config, seed);
    let mut last = Instant::ZERO;
    for &(at, packet) in arrivals {
        if fuss {
            let between = last + at.since(last) / 2;
            bench.run_until(between);
            bench.touch(between);
        }
        bench.offer(at, packet);
        last = at;
    }
    bench.finish();
    bench
}

/// Checks that no packet arrives early.
fn check_delay(bench: &Bench, config: &LinkConfig, arrivals: &[(Instant, Probe)]) {
    for (at, arrival) in &bench.arrived {
        let offered = arrivals[arrival.packet.id as usize].0;
        let sending = match config.opportunities {
            Some(_) => Duration::ZERO,
            None => MAX_RATE.time_for(u64::from(arrival.packet.size)),
        };
        let least = sending + MIN_DELAY;
        assert!(at.since(offered) >= least, "{:?} took {}", arrival.packet, at.since(offered));
    }
    for dropped in &bench.dropped {
        assert!(dropped.at >= arrivals[dropped.packet.id as usize].0, "dropped before it was offered");
    }
}

/// Checks that the last bits of two packets are a transmission time apart, on a link with constant order and delay that repeats
/// nothing and has no jitter.
fn check_rate(bench: &Bench, config: &LinkConfig) {
    let (Schedule::Constant(rate), Schedule::Constant(_), None, None, None) =
        (&config.rate, &config.delay_one_way, &config.reordering, config.arq, config.fec)
    else {
        return;
    };
    if config.jitter.is_some() {
        return;
    }
    for pair in bench.arrived.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        if !before.1.copy_follows {
            let least = rate.time_for(u64::from(after.1.packet.size));
            assert!(after.0.since(before.0) >= least, "{before:?} {after:?}");
        }
    }
}

/// Checks that packets of one flow and priority keep their order on a link that preserves order, whatever the queue.
fn check_order(bench: &Bench, config: &LinkConfig) {
    if config.reordering.is_some() || !config.preserve_order {
        return;
    }
    for class in 0..16 {
        let in_class = |packet: &Probe| {
            packet.flow * 4 + 2 * u64::from(packet.low_priority) + u64::from(packet.l4s) == class
        };
        let ids = bench.arrived.iter().filter(|(_, arrival)| in_class(&arrival.packet));
        assert!(ids.map(|(_, arrival)| arrival.packet.id).is_sorted());
    }
}

fn check_limit(bench: &Bench, config: &LinkConfig) {
    let stats = bench.link.stats();
    let limit = match config.queue {
        QueueConfig::DropTail { limit }
        | QueueConfig::Threshold { limit, .. }
        | QueueConfig::DropFront { limit }
        | QueueConfig::PushOut { limit }
        | QueueConfig::Strict { limit }
        | QueueConfig::Red(RedConfig { limit, .. })
        | QueueConfig::Pie(PieConfig { limit, .. })
        | QueueConfig::DualPi2(DualPi2Config { limit, .. })
        | QueueConfig::CoDel { limit, .. } => limit,
        QueueConfig::FqCoDel(FqCoDelConfig { limit_packets, .. }) => Limit::Packets(limit_packets),
        QueueConfig::Priority { .. } => return,
    };
    match limit {
        Limit::Packets(packets) => assert!(stats.max_waiting_packets <= packets),
        Limit::Bytes(bytes) => assert!(stats.max_waiting_bytes <= bytes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_link_keeps_the_laws(config in link_config(), arrivals in arrivals(), seed: u64) {
        let mut bench = run(&config, &arrivals, seed, false);
        check_delay(&bench, &config, &arrivals);
        check_rate(&bench, &config);
        check_order(&bench, &config);
        check_limit(&bench, &config);
        let end = bench.arrived.last().map_or(Instant::ZERO, |(at, _)| *at).max(arrivals[arrivals.len() - 1].0);
        prop_assert!(bench.link.busy_time(end) <= end.since(Instant::ZERO));
    }

    #[test]
    fn calling_a_link_more_often_changes_nothing(config in link_config(), arrivals in arrivals(), seed: u64) {
        let calm = run(&config, &arrivals, seed, false);
        let fussy = run(&config, &arrivals, seed, true);
        prop_assert_eq!(calm.arrived, fussy.arrived);
        prop_assert_eq!(calm.link.stats(), fussy.link.stats());
        // The order of drop reports may differ, their times may not.
        let sorted = |dropped: Vec<Dropped<Probe>>| {
            let mut dropped: Vec<_> = dropped.iter().map(|d| (d.at, d.packet.id, d.cause)).collect();
            dropped.sort_by_key(|&(at, id, _)| (at, id));
            dropped
        };
        prop_assert_eq!(sorted(calm.dropped), sorted(fussy.dropped));
    }
}
