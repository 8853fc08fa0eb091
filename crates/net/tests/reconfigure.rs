//! A link whose configuration changes while it carries packets.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{
    CoDelConfig, Draws, DualPi2Config, Limit, LinkConfig, Outage, OutageEffect, Outages, PieConfig,
    QueueConfig, Reordering, Schedule,
};
use common::{Bench, config, low, ms, packet};
use proptest::prelude::*;

fn drop_tail(packets: u32) -> QueueConfig {
    QueueConfig::DropTail { limit: Limit::Packets(packets) }
}

fn strict(packets: u32) -> QueueConfig {
    QueueConfig::Strict { limit: Limit::Packets(packets) }
}

/// Makes a link on which a packet of 1000 bytes takes `milliseconds` ms.
fn slow(milliseconds: u64, queue: QueueConfig) -> LinkConfig {
    LinkConfig { rate: Schedule::Constant(Rate::from_bps(8_000_000 / milliseconds)), ..config(queue) }
}

fn change(bench: &mut Bench, at_ms: u64, from: &LinkConfig, to: &LinkConfig) {
    bench.link.reconfigure(ms(at_ms), from, to, Draws { seed: 1, name: "changed" }).unwrap();
}

#[test]
fn who_has_a_turn_keeps_it_and_the_next_find_the_new_rate() {
    let (fast, slow) = (config(drop_tail(10)), slow(10, drop_tail(10)));
    let mut bench = Bench::new(&fast);
    bench.offer_all(ms(0), 0..2);
    change(&mut bench, 0, &fast, &slow);
    bench.offer_all(ms(0), 2..4);
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(112), ms(122)]);
}

#[test]
fn who_waits_in_a_queue_that_decides_late_is_sent_at_the_new_rate() {
    let (fast, slow) = (config(strict(10)), slow(10, strict(10)));
    let mut bench = Bench::new(&fast);
    bench.offer_all(ms(0), 0..3);
    change(&mut bench, 0, &fast, &slow);
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(101), ms(111), ms(121)]);
}

#[test]
fn nobody_overtakes_when_the_delay_shrinks_unless_it_is_wished() {
    let long = config(drop_tail(10));
    let short = LinkConfig { delay_one_way: Schedule::Constant(Duration::from_millis(5)), ..long.clone() };
    let free = LinkConfig { preserve_order: false, ..short.clone() };
    for (to, second) in [(short, ms(101)), (free, ms(56))] {
        let mut bench = Bench::new(&long);
        bench.offer(ms(0), packet(0));
        change(&mut bench, 50, &long, &to);
        bench.offer(ms(50), packet(1));
        bench.finish();
        let mut times = bench.arrival_times();
        times.sort();
        let mut expected = [ms(101), second];
        expected.sort();
        assert_eq!(times, expected);
    }
}

#[test]
fn an_outage_that_is_taken_back_holds_nobody() {
    let up = config(drop_tail(10));
    let outages =
        Outages { intervals: vec![Outage { from: ms(10), to: ms(5000) }], effect: OutageEffect::Pause };
    let out = LinkConfig { outages, ..up.clone() };
    let mut bench = Bench::new(&out);
    bench.offer(ms(9), packet(0));
    change(&mut bench, 20, &out, &up);
    bench.offer(ms(20), packet(1));
    change(&mut bench, 30, &up, &out);
    bench.offer(ms(30), packet(2));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(110), ms(121), ms(5101)]);
}

#[test]
fn packets_that_wait_move_into_the_new_queue_as_far_as_there_is_room() {
    let (before, after) = (config(strict(10)), config(drop_tail(2)));
    let mut bench = Bench::new(&before);
    bench.offer_all(ms(0), 0..4);
    bench.offer(ms(0), low(9));
    change(&mut bench, 0, &before, &after);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 1, 2]);
    assert_eq!(bench.dropped_ids(), [3, 9]);
}

#[test]
fn a_change_that_cannot_be_changes_nothing() {
    let good = config(drop_tail(10));
    let bad = LinkConfig { duplicate_probability: 2.0, ..config(drop_tail(1)) };
    let mut bench = Bench::new(&good);
    let refused = bench.link.reconfigure(ms(0), &good, &bad, Draws { seed: 1, name: "changed" }).unwrap_err();
    assert_eq!(refused.field, "duplicate_probability");
    bench.offer_all(ms(0), 0..5);
    bench.finish();
    assert_eq!(bench.arrived_ids().len(), 5);
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let limit = Limit::Packets(5);
    let queue = prop_oneof![
        Just(drop_tail(5)),
        Just(strict(5)),
        Just(QueueConfig::DropFront { limit }),
        Just(QueueConfig::PushOut { limit }),
        Just(QueueConfig::CoDel { limit, codel: CoDelConfig::default() }),
        Just(QueueConfig::Pie(PieConfig { limit, ..PieConfig::default() })),
        Just(QueueConfig::DualPi2(DualPi2Config { limit, ..DualPi2Config::default() })),
    ];
    (queue, 1_u64..20, 0_u64..200, any::<bool>(), any::<bool>()).prop_map(
        |(queue, time, delay, order, reorders)| {
            let extra_max = Duration::from_millis(30);
            let reordering = Reordering { probability: 0.3, extra_min: Duration::ZERO, extra_max };
            LinkConfig {
                delay_one_way: Schedule::Constant(Duration::from_millis(delay)),
                preserve_order: order,
                reordering: reorders.then_some(reordering),
                ..slow(time, queue)
            }
        },
    )
}

proptest! {
    #[test]
    fn every_packet_comes_out_once_whatever_changes(
        configs in prop::collection::vec(any_config(), 2..6),
        burst in 1_u64..8,
    ) {
        let mut bench = Bench::new(&configs[0]);
        let mut offered = 0;
        for (step, pair) in configs.windows(2).enumerate() {
            bench.offer_all(ms(step as u64 * 7), offered..offered + burst);
            offered += burst;
            change(&mut bench, step as u64 * 7, &pair[0], &pair[1]);
        }
        bench.offer_all(ms(1000), offered..offered + burst);
        bench.finish();
        let mut seen = bench.arrived_ids();
        seen.extend(bench.dropped_ids());
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..offered + burst).collect::<Vec<_>>());
    }
}
