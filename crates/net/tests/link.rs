//! One link with a first-in-first-out queue: times, limits, errors and outages computed by hand.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{
    Interpolation, Limit, LinkConfig, LossConfig, LossModel, Outage, OutageEffect, Outages, QueueConfig,
    Reordering, Schedule, Verdict,
};
use bentpipe_trace::DropCause;
use common::{Bench, Probe, config, low, ms, packet};

fn drop_tail(packets: u32) -> QueueConfig {
    QueueConfig::DropTail { limit: Limit::Packets(packets) }
}

#[test]
fn a_packet_arrives_after_transmission_and_propagation() {
    let mut bench = Bench::new(&config(drop_tail(10)));
    bench.offer(ms(5), packet(1));
    assert_eq!(bench.link.next_event(), ms(106));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(106)]);
    assert_eq!(bench.link.next_event(), Instant::FAR_FUTURE);
}

#[test]
fn packets_leave_at_the_rate_of_the_link() {
    let mut bench = Bench::new(&config(drop_tail(10)));
    bench.offer_all(ms(0), 0..4);
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(103), ms(104)]);
    assert_eq!(bench.link.busy_time(ms(1000)), Duration::from_millis(4));
}

#[test]
fn the_packet_in_transmission_does_not_wait() {
    let mut bench = Bench::new(&config(drop_tail(2)));
    bench.offer_all(ms(0), 0..5);
    assert_eq!(bench.dropped_ids(), [3, 4]);
    assert_eq!(bench.backlog().packets, 2);
    // At 1 ms the second packet starts and its place is free; the service precedes the arrival.
    assert_eq!(bench.offer(ms(1), packet(5)), Verdict::Accepted);
    assert_eq!(bench.offer(ms(1), packet(6)), Verdict::Dropped(DropCause::Queue));
    assert_eq!(bench.link.stats().max_waiting_packets, 2);
}

#[test]
fn a_limit_in_bytes_counts_bytes() {
    let limit = Limit::Bytes(2000);
    let mut bench = Bench::new(&config(QueueConfig::DropTail { limit }));
    let sized = |id, size| Probe { size, ..packet(id) };
    for (id, size) in [(0, 1500), (1, 1500), (2, 600), (3, 500), (4, 1)] {
        bench.offer(ms(0), sized(id, size));
    }
    assert_eq!(bench.dropped_ids(), [2, 4]);
    assert_eq!(bench.backlog().bytes, 2000);
}

#[test]
fn threshold_refuses_low_priority_above_theta_and_leaves_the_rest_alone() {
    let queue = QueueConfig::Threshold { limit: Limit::Packets(5), low_priority_threshold: 1 };
    let mut bench = Bench::new(&config(queue));
    let offered = [packet(0), low(1), low(2), low(3), packet(4), packet(5), packet(6), packet(7), low(8)];
    let verdicts = offered.map(|packet| bench.offer(ms(0), packet));
    // Packet 0 is sent; 1 and 2 find backlogs 0 and 1; 3 finds 2.
    assert_eq!(verdicts[1], Verdict::Accepted);
    assert_eq!(verdicts[2], Verdict::Accepted);
    assert_eq!(verdicts[3], Verdict::Dropped(DropCause::LowPriority));
    assert_eq!(verdicts[6], Verdict::Accepted);
    assert_eq!(verdicts[7], Verdict::Dropped(DropCause::Queue));
    assert_eq!(verdicts[8], Verdict::Dropped(DropCause::LowPriority));
    assert_eq!(bench.link.stats().dropped_low_priority, 2);
}

#[test]
fn a_lost_packet_uses_its_link_time_and_comes_back_to_the_driver() {
    let loss = LossConfig::data(LossModel::List { numbers: vec![2] });
    let mut bench = Bench::new(&LinkConfig { loss, ..config(drop_tail(10)) });
    let ack = Probe { data: false, ..packet(9) };
    bench.offer(ms(0), packet(0));
    bench.offer(ms(0), ack);
    bench.offer(ms(0), packet(1));
    bench.offer(ms(0), packet(2));
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 9, 2]);
    assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(104)]);
    assert_eq!(bench.dropped_ids(), [1]);
    assert_eq!((bench.dropped[0].cause, bench.dropped[0].at), (DropCause::Error, ms(103)));
}

#[test]
fn losing_everything_still_ends() {
    let loss = LossConfig::all(LossModel::Packet { probability: 1.0 });
    let mut bench = Bench::new(&LinkConfig { loss, ..config(drop_tail(10)) });
    bench.offer_all(ms(0), 0..8);
    bench.finish();
    assert_eq!(bench.dropped_ids(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn the_rate_at_the_start_of_a_transmission_holds_for_all_of_it() {
    let points =
        vec![(Duration::ZERO, Rate::from_mbps(8)), (Duration::from_micros(1500), Rate::from_mbps(4))];
    let rate = Schedule::Table { points, interpolation: Interpolation::Step, repeat_every: None };
    let mut bench = Bench::new(&LinkConfig { rate, ..config(drop_tail(10)) });
    bench.offer_all(ms(0), 0..4);
    bench.finish();
    // The second packet starts at 1 ms, before the change, and keeps 8 Mbit/s.
    assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(104), ms(106)]);
}

/// A delay of 100 ms one way that becomes 97 ms at 1.5 ms: packets sent then could overtake.
fn shrinking_delay(preserve_order: bool) -> LinkConfig {
    let points = vec![
        (Duration::ZERO, Duration::from_millis(100)),
        (Duration::from_micros(1500), Duration::from_millis(97)),
    ];
    let delay_one_way = Schedule::Table { points, interpolation: Interpolation::Step, repeat_every: None };
    LinkConfig { delay_one_way, preserve_order, ..config(drop_tail(10)) }
}

#[test]
fn a_shrinking_delay_bunches_packets_or_reorders_them() {
    let mut bench = Bench::new(&shrinking_delay(true));
    bench.offer_all(ms(0), 0..5);
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(101), ms(101), ms(101), ms(101), ms(102)]);
    assert_eq!(bench.arrived_ids(), [0, 1, 2, 3, 4]);

    let mut bench = Bench::new(&shrinking_delay(false));
    bench.offer_all(ms(0), 0..5);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [1, 2, 0, 3, 4]);
    assert_eq!(bench.arrival_times(), [ms(99), ms(100), ms(101), ms(101), ms(102)]);
}

/// A link with an outage from 2.5 ms to 10 ms.
fn with_outage(effect: OutageEffect) -> LinkConfig {
    let from = Instant::ZERO + Duration::from_micros(2500);
    let outages = Outages { intervals: vec![Outage { from, to: ms(10) }], effect };
    LinkConfig { outages, ..config(drop_tail(10)) }
}

#[test]
fn a_cut_link_loses_the_packet_in_transmission_and_keeps_the_queue() {
    let mut bench = Bench::new(&with_outage(OutageEffect::Cut));
    bench.offer_all(ms(0), 0..5);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 1, 3, 4]);
    assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(111), ms(112)]);
    assert_eq!(bench.dropped[0].cause, DropCause::Outage);
    assert_eq!(bench.link.busy_time(ms(1000)), Duration::from_micros(4500));
}

#[test]
fn a_cut_packet_does_not_hold_up_the_next_one() {
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    let outages =
        Outages { intervals: vec![Outage { from: at(500), to: at(600) }], effect: OutageEffect::Cut };
    let mut bench = Bench::new(&LinkConfig { outages, ..config(drop_tail(10)) });
    bench.offer(ms(0), packet(0));
    bench.offer(ms(0), Probe { size: 40, ..packet(1) });
    bench.finish();
    assert_eq!((bench.dropped_ids(), bench.dropped[0].at), (vec![0], at(100_500)));
    assert_eq!(bench.arrival_times(), [at(100_640)]);
}

#[test]
fn a_paused_packet_goes_on_where_it_stopped() {
    let mut bench = Bench::new(&with_outage(OutageEffect::Pause));
    bench.offer_all(ms(0), 0..5);
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    assert_eq!(
        [2000, 2500, 7000, 10_500].map(|now| bench.link.busy_time(at(now))),
        [2000, 2500, 2500, 3000].map(Duration::from_micros)
    );
    bench.finish();
    assert!(bench.dropped.is_empty());
    assert_eq!(bench.arrival_times(), [at(101_000), at(102_000), at(110_500), at(111_500), at(112_500)]);
    assert_eq!(bench.link.busy_time(ms(1000)), Duration::from_millis(5));
}

/// Outages of 1 ms every 10 ms on a link that needs 12 ms per packet: 90 % of its rate is left.
#[test]
fn short_outages_cost_their_share_of_the_time() {
    let until = Instant::ZERO + Duration::from_secs(20);
    let outages = Outages::every(Duration::from_millis(10), Duration::from_millis(1), ms(10)..until);
    let mut bench = Bench::new(&LinkConfig {
        rate: Schedule::Constant(Rate::from_bps(1_000_000)),
        outages,
        ..config(drop_tail(1000))
    });
    for id in 0..700 {
        bench.offer(ms(0), Probe { size: 1500, ..packet(id) });
    }
    bench.finish();
    let last = *bench.arrival_times().last().expect("all of them arrive");
    let sending = last.since(ms(100)).as_secs_f64();
    assert!((sending - 700.0 * 0.012 / 0.9).abs() < 0.011, "{sending}");
}

#[test]
fn an_idle_paused_link_starts_at_the_end_of_the_outage() {
    let mut bench = Bench::new(&with_outage(OutageEffect::Pause));
    bench.offer_all(ms(5), 0..2);
    assert_eq!(bench.backlog().packets, 2);
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(111), ms(112)]);
}

#[test]
fn a_cut_path_loses_what_is_on_it() {
    let mut bench = Bench::new(&with_outage(OutageEffect::CutPath));
    bench.offer_all(ms(0), 0..4);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [3]);
    assert_eq!(bench.link.stats().dropped_by_outage, 3);
}

#[test]
fn a_blind_transmitter_loses_what_would_arrive_in_the_outage() {
    let outages =
        Outages { intervals: vec![Outage { from: ms(102), to: ms(104) }], effect: OutageEffect::Blind };
    let mut bench = Bench::new(&LinkConfig { outages, ..config(drop_tail(10)) });
    bench.offer_all(ms(0), 0..5);
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(101), ms(104), ms(105)]);
    assert_eq!(bench.dropped_ids(), [1, 2]);
}

#[test]
fn duplication_delivers_twice_at_one_instant() {
    let mut bench = Bench::new(&LinkConfig { duplicate_probability: 1.0, ..config(drop_tail(10)) });
    bench.offer_all(ms(0), 0..2);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 0, 1, 1]);
    let announced: Vec<_> = bench.arrived.iter().map(|(_, arrival)| arrival.copy_follows).collect();
    assert_eq!(announced, [true, false, true, false]);
    assert_eq!(bench.arrival_times(), [ms(101), ms(101), ms(102), ms(102)]);
}

/// Duplicates arise behind the transmitter: n packets take n transmission times, whatever the share of duplicates.
#[test]
fn duplicates_take_no_time_of_the_transmitter() {
    let busy = |probability: f64| {
        let mut bench =
            Bench::new(&LinkConfig { duplicate_probability: probability, ..config(drop_tail(10_000)) });
        bench.offer_all(ms(0), 0..1_000);
        bench.finish();
        let last = *bench.arrival_times().last().expect("packets arrived");
        (bench.arrived.len(), last)
    };
    let (once, twice) = (busy(0.0), busy(1.0));
    assert_eq!((once.0, twice.0), (1_000, 2_000));
    assert_eq!(once.1, twice.1, "the rate bounds the packets that are sent, not the copies");
}

/// Ten packets of 1 ms that come together wait 0, 1, ..., 9 ms: 4.5 ms on average, whichever queue holds them.
#[test]
fn the_mean_wait_is_that_of_the_packets() {
    for queue in [drop_tail(100), QueueConfig::Strict { limit: Limit::Packets(100) }] {
        let mut bench = Bench::new(&LinkConfig { queue, ..config(drop_tail(100)) });
        bench.offer_all(ms(0), 0..10);
        bench.finish();
        assert_eq!(bench.link.stats().mean_wait(), Some(Duration::from_micros(4_500)));
    }
}

#[test]
fn corruption_flips_a_bit_or_loses_what_has_none() {
    let mut bench = Bench::new(&LinkConfig { corrupt_probability: 0.5, ..config(drop_tail(1000)) });
    for id in 0..1000 {
        bench.offer(ms(0), Probe { flipped: (id % 2 == 0).then_some(0), ..packet(id) });
    }
    bench.finish();
    let wrong = bench.arrived.iter().filter(|(_, arrival)| arrival.packet.flipped == Some(1)).count();
    let lost = bench.dropped_ids();
    assert!(lost.iter().all(|id| id % 2 == 1));
    // 500 packets with bytes and 500 without, 50 % of each; five standard deviations are 56.
    assert!((194..306).contains(&wrong) && (194..306).contains(&lost.len()), "{wrong}, {}", lost.len());
    let stats = bench.link.stats();
    assert_eq!((stats.corrupted_packets, stats.dropped_by_error), (wrong as u64, lost.len() as u64));
}

#[test]
fn reordering_holds_some_packets_back_within_its_bounds() {
    let reordering = Reordering {
        probability: 0.3,
        extra_min: Duration::from_millis(2),
        extra_max: Duration::from_millis(5),
    };
    let mut bench = Bench::new(&LinkConfig { reordering: Some(reordering), ..config(drop_tail(1000)) });
    bench.offer_all(ms(0), 0..1000);
    bench.finish();
    let mut held_back = 0;
    for (at, arrival) in &bench.arrived {
        let extra = at.since(ms(101 + arrival.packet.id));
        assert!(extra.is_zero() || (Duration::from_millis(2)..=Duration::from_millis(5)).contains(&extra));
        held_back += u32::from(!extra.is_zero());
    }
    assert!((250..350).contains(&held_back), "{held_back}");
    assert!(!bench.arrived_ids().is_sorted());
}

#[test]
fn the_name_and_the_seed_choose_the_losses_and_nothing_else_does() {
    let arrived = |seed, duplicate_probability| {
        let loss = LossConfig::all(LossModel::Packet { probability: 0.5 });
        let mut bench =
            Bench::with_seed(&LinkConfig { loss, duplicate_probability, ..config(drop_tail(1000)) }, seed);
        bench.offer_all(ms(0), 0..500);
        bench.finish();
        bench.dropped_ids()
    };
    assert_eq!(arrived(1, 0.0), arrived(1, 0.5));
    assert_ne!(arrived(1, 0.0), arrived(2, 0.0));
}

#[test]
fn what_waits_is_taken_back_and_the_rest_arrives_as_ever() {
    for queue in
        [drop_tail(10), QueueConfig::Priority { ordinary: Limit::Packets(10), low: Limit::Packets(10) }]
    {
        let mut bench = Bench::new(&config(queue));
        bench.offer_all(ms(0), 0..4);
        let taken = bench.link.take_back_waiting(ms(0) + Duration::from_micros(1500));
        assert_eq!(taken.iter().map(|packet| packet.id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((bench.link.stats().enqueued_packets, bench.link.packets_inside()), (2, 2));
        // The transmitter is free as soon as the packet in transmission has left.
        bench.offer(ms(2), packet(9));
        bench.finish();
        assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(103)]);
        assert_eq!(bench.link.busy_time(ms(1000)), Duration::from_millis(3));
    }
}

#[test]
fn a_link_that_loses_everything_hands_it_back_in_order_and_goes_on() {
    let mut bench = Bench::new(&config(drop_tail(10)));
    bench.offer_all(ms(0), 0..4);
    bench.touch(ms(1));
    bench.link.lose_everything(ms(1));
    bench.touch(ms(1));
    assert_eq!(bench.dropped_ids(), [0, 1, 2, 3]);
    assert!(bench.dropped.iter().all(|lost| (lost.cause, lost.at) == (DropCause::Outage, ms(1))));
    assert_eq!((bench.link.next_event(), bench.link.packets_inside()), (Instant::FAR_FUTURE, 0));
    assert_eq!(bench.link.stats().dropped_by_outage, 4);
    bench.offer(ms(5), packet(5));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(106)]);
}
