//! Queues that hold their packets, and RED, on a link: behaviour computed by hand.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{
    CoDelConfig, DualPi2Config, FairBy, FqCoDelConfig, Limit, LinkConfig, Outage, OutageEffect, Outages,
    PieConfig, QueueConfig, RedConfig, Verdict,
};
use bentpipe_trace::DropCause;
use common::{Bench, Probe, config, low, ms, packet};

const DROPPED_LOW: Verdict = Verdict::Dropped(DropCause::LowPriority);
const DROPPED: Verdict = Verdict::Dropped(DropCause::Queue);

fn push_out(packets: u32) -> Bench {
    Bench::new(&config(QueueConfig::PushOut { limit: Limit::Packets(packets) }))
}

fn strict(packets: u32) -> Bench {
    Bench::new(&config(QueueConfig::Strict { limit: Limit::Packets(packets) }))
}

#[test]
fn push_out_takes_the_room_of_the_youngest_low_packet() {
    let mut bench = push_out(4);
    // Packet 0 is sent, 1 to 4 fill the queue.
    for packet in [packet(0), low(1), packet(2), low(3), packet(4)] {
        assert_eq!(bench.offer(ms(0), packet), Verdict::Accepted);
    }
    assert_eq!(bench.offer(ms(0), low(5)), DROPPED_LOW);
    assert_eq!(bench.offer(ms(0), packet(6)), Verdict::Accepted);
    assert_eq!(bench.offer(ms(0), packet(7)), Verdict::Accepted);
    assert_eq!(bench.offer(ms(0), packet(8)), DROPPED);
    assert_eq!(bench.dropped_ids(), [5, 3, 1, 8]);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 2, 4, 6, 7]);
    assert_eq!(bench.link.stats().dropped_low_priority, 3);
    assert_eq!(bench.arrival_times(), [ms(101), ms(102), ms(103), ms(104), ms(105)]);
}

#[test]
fn in_bytes_as_many_low_packets_give_way_as_it_takes_or_none() {
    let limit = Limit::Bytes(3000);
    for queue in [QueueConfig::PushOut { limit }, QueueConfig::Strict { limit }] {
        let mut bench = Bench::new(&config(queue));
        for packet in [packet(0), low(1), low(2), packet(3)] {
            bench.offer(ms(0), packet);
        }
        let sized = |id, size| Probe { size, ..packet(id) };
        assert_eq!(bench.offer(ms(0), sized(4, 2001)), DROPPED);
        assert_eq!(bench.dropped_ids(), [4]);
        assert_eq!(bench.offer(ms(0), sized(5, 1500)), Verdict::Accepted);
        assert_eq!(bench.dropped_ids(), [4, 2, 1]);
        bench.finish();
        assert_eq!(bench.arrived_ids(), [0, 3, 5]);
    }
}

#[test]
fn push_out_forgets_low_packets_that_have_left() {
    let mut bench = push_out(2);
    bench.offer_all(ms(0), 0..1);
    bench.offer(ms(0), low(1));
    bench.offer(ms(0), packet(2));
    // At 1 ms the low-priority packet is sent: it can no longer be pushed out.
    bench.offer(ms(1), packet(3));
    assert_eq!(bench.offer(ms(1), packet(4)), DROPPED);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 1, 2, 3]);
}

#[test]
fn drop_front_drops_the_oldest_waiting_packets() {
    let mut bench = Bench::new(&config(QueueConfig::DropFront { limit: Limit::Bytes(3000) }));
    // Packet 0 is sent, 1 to 3 fill the queue.
    bench.offer_all(ms(0), 0..4);
    assert_eq!(bench.offer(ms(0), packet(4)), Verdict::Accepted);
    assert_eq!(bench.dropped_ids(), [1]);
    assert_eq!(bench.offer(ms(0), Probe { size: 1500, ..packet(5) }), Verdict::Accepted);
    assert_eq!(bench.dropped_ids(), [1, 2, 3]);
    assert_eq!(bench.offer(ms(0), Probe { size: 3001, ..packet(6) }), DROPPED);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 4, 5]);
}

#[test]
fn strict_sends_low_priority_last_and_never_interrupts() {
    let mut bench = strict(10);
    for packet in [low(0), low(1), packet(2), low(3), packet(4)] {
        bench.offer(ms(0), packet);
    }
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 2, 4, 1, 3]);
}

#[test]
fn strict_pushes_out_the_youngest_low_packet() {
    let mut bench = strict(3);
    for packet in [packet(0), low(1), low(2), packet(3), packet(4)] {
        bench.offer(ms(0), packet);
    }
    assert_eq!(bench.dropped_ids(), [2]);
    assert_eq!(bench.offer(ms(0), low(5)), DROPPED_LOW);
    bench.offer(ms(0), packet(6));
    assert_eq!(bench.offer(ms(0), packet(7)), DROPPED);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 3, 4, 6]);
}

#[test]
fn separate_rooms_do_not_touch_each_other() {
    let queue = QueueConfig::Priority { ordinary: Limit::Packets(1), low: Limit::Packets(2) };
    let mut bench = Bench::new(&config(queue));
    let offered = [packet(0), low(1), low(2), low(3), packet(4), packet(5)];
    let verdicts = offered.map(|packet| bench.offer(ms(0), packet));
    assert_eq!(verdicts[3], DROPPED_LOW);
    assert_eq!(verdicts[5], DROPPED);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 4, 1, 2]);
}

#[test]
fn a_held_queue_waits_out_an_outage() {
    let outages =
        Outages { intervals: vec![Outage { from: ms(2), to: ms(50) }], effect: OutageEffect::Pause };
    let queue = QueueConfig::Strict { limit: Limit::Packets(10) };
    let mut bench = Bench::new(&LinkConfig { outages, ..config(queue) });
    for (at, packet) in [(0, packet(0)), (20, low(1)), (30, packet(2))] {
        bench.offer(ms(at), packet);
    }
    assert_eq!(bench.backlog().packets, 2);
    bench.finish();
    assert_eq!(bench.arrived_ids(), [0, 2, 1]);
    assert_eq!(bench.arrival_times(), [ms(101), ms(151), ms(152)]);
    assert_eq!(bench.link.busy_time(ms(500)), Duration::from_millis(3));
}

/// A CoDel link with one packet offered per 0.5 ms, twice its rate, for `millis`.
fn overloaded_codel(codel: CoDelConfig, millis: u64, ecn_capable: bool) -> Bench {
    let mut bench = Bench::new(&config(QueueConfig::CoDel { limit: Limit::Packets(10_000), codel }));
    for id in 0..2 * millis {
        let at = Instant::ZERO + Duration::from_micros(500 * id);
        bench.offer(at, Probe { ecn_capable, ..packet(id) });
    }
    bench
}

#[test]
fn codel_drops_at_the_times_of_the_control_law() {
    let bench = overloaded_codel(CoDelConfig::default(), 300, false);
    // Packet n starts at n ms after waiting n/2 ms. The start at 10 ms is the first with 5 ms of delay, so dropping
    // begins at 110 ms. Then it drops every 100 ms / sqrt(count), each at the next start of a transmission.
    let times: Vec<_> = bench.dropped.iter().map(|dropped| dropped.at).collect();
    // 110 + 100 = 210, + 70.7 = 280.7
    assert_eq!(times, [ms(110), ms(210), ms(281)]);
    assert!(bench.dropped.iter().all(|dropped| dropped.cause == DropCause::Queue));
}

#[test]
fn codel_marks_where_it_may() {
    let codel = CoDelConfig { ecn: true, ..CoDelConfig::default() };
    let mut bench = overloaded_codel(codel, 300, true);
    bench.run_until(ms(400));
    assert!(bench.dropped.is_empty());
    let marked: Vec<_> = bench.arrived.iter().filter(|(_, arrival)| arrival.packet.marked).collect();
    assert_eq!(marked.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [ms(211), ms(311), ms(382)]);
}

#[test]
fn codel_leaves_a_short_standing_queue_alone() {
    // Load equal to the rate, with a standing queue of 4 ms.
    let queue = QueueConfig::CoDel { limit: Limit::Packets(100), codel: CoDelConfig::default() };
    let mut bench = Bench::new(&config(queue));
    bench.offer_all(ms(0), 0..4);
    for id in 4..2000 {
        bench.offer(ms(id - 3), packet(id));
    }
    bench.finish();
    assert_eq!(bench.dropped, []);
}

#[test]
fn codel_leaves_a_queue_of_one_packet_alone_on_a_slow_link() {
    // 20 ms per packet: each waits much longer than the target, but the queue is empty when it is sent.
    let queue = QueueConfig::CoDel { limit: Limit::Packets(100), codel: CoDelConfig::default() };
    let slow = LinkConfig::new(Rate::from_bps(400_000), Duration::from_millis(100), queue);
    let mut bench = Bench::new(&slow);
    bench.offer(ms(0), packet(0));
    for id in 1..50 {
        bench.offer(ms(20 * id - 20), packet(id));
    }
    bench.finish();
    assert_eq!(bench.dropped, []);
}

fn of_flow(id: u64, flow: u64) -> Probe {
    Probe { flow, ..packet(id) }
}

#[test]
fn fq_codel_lets_flows_take_turns_and_new_flows_first() {
    let queue = FqCoDelConfig { quantum_bytes: 1000, ..FqCoDelConfig::default() };
    let mut bench = Bench::new(&config(QueueConfig::FqCoDel(queue)));
    for id in 0..6 {
        bench.offer(ms(0), of_flow(id, 1));
    }
    for id in 10..13 {
        bench.offer(ms(0), of_flow(id, 2));
    }
    // A third flow arrives while the others are old: it precedes them once.
    bench.offer(ms(3), of_flow(20, 3));
    bench.offer(ms(3), of_flow(21, 3));
    bench.finish();
    // Flow 1 has used its quantum on packet 0 when flow 2 arrives. After packet 20 the old list is 2, 1, 3. None has
    // credit except 1, which received its new quantum when 11 overtook it.
    assert_eq!(bench.arrived_ids(), [0, 10, 1, 11, 20, 2, 21, 12, 3, 4, 5]);
}

#[test]
fn an_fq_codel_flow_does_not_stay_new_by_sending_single_packets() {
    let queue = FqCoDelConfig { quantum_bytes: 1000, ..FqCoDelConfig::default() };
    let mut bench = Bench::new(&config(QueueConfig::FqCoDel(queue)));
    let single = |id| Probe { size: 400, ..of_flow(id, 2) };
    for id in 0..4 {
        bench.offer(ms(0), of_flow(id, 1));
    }
    for id in 20..24 {
        bench.offer(ms(0), of_flow(id, 3));
    }
    bench.offer(ms(0), single(10));
    // Packet 10 is sent from 2 to 2.4 ms; then its empty queue joins the old ones, after flow 3.
    bench.offer(ms(3), single(11));
    bench.finish();
    assert_eq!(bench.arrived_ids()[..6], [0, 20, 10, 1, 21, 11]);
}

#[test]
fn fq_codel_protects_a_sparse_flow_from_a_bulk_flow() {
    let mut bench = Bench::new(&config(QueueConfig::FqCoDel(FqCoDelConfig::default())));
    for id in 0..500 {
        bench.offer(ms(0), of_flow(id, 1));
    }
    bench.offer(ms(10), of_flow(1000, 2));
    bench.finish();
    let sparse = bench.arrived.iter().find(|(_, arrival)| arrival.packet.id == 1000).map(|(at, _)| *at);
    // The sparse flow's packet waits at most for one packet in transmission.
    assert_eq!(sparse, Some(ms(112)));
}

#[test]
fn fq_codel_takes_half_of_the_fattest_queue_when_it_overflows() {
    let queue = FqCoDelConfig { limit_packets: 20, ..FqCoDelConfig::default() };
    let mut bench = Bench::new(&config(QueueConfig::FqCoDel(queue)));
    // One packet is sent, 15 and 5 are queued; the next one exceeds the limit.
    for id in 0..16 {
        bench.offer(ms(0), of_flow(id, 1));
    }
    for id in 20..25 {
        bench.offer(ms(0), of_flow(id, 2));
    }
    assert_eq!(bench.dropped, []);
    bench.offer(ms(0), of_flow(25, 2));
    assert_eq!(bench.dropped_ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bench.backlog().packets, 13);
}

#[test]
fn fq_codel_separates_hosts_by_the_configured_end() {
    // Host 1 sends two flows to hosts 3 and 4, host 2 one flow to host 3. All arrive at once.
    let offered = [(0, 10, [1, 3]), (1, 11, [1, 4]), (2, 10, [1, 3]), (3, 11, [1, 4]), (4, 12, [2, 3])];
    let order = |fair_by| {
        let queue = FqCoDelConfig { fair_by, quantum_bytes: 1000, ..FqCoDelConfig::default() };
        let mut bench = Bench::new(&config(QueueConfig::FqCoDel(queue)));
        for (id, flow, hosts) in offered {
            bench.offer(ms(0), Probe { hosts, ..of_flow(id, flow) });
        }
        bench.finish();
        bench.arrived_ids()
    };
    // Packet 0 is sent at once and takes the quantum of its queue.
    assert_eq!(order(FairBy::Flow), [0, 1, 4, 2, 3]);
    assert_eq!(order(FairBy::Source), [0, 4, 1, 2, 3]);
    assert_eq!(order(FairBy::Destination), [0, 1, 2, 3, 4]);
}

#[test]
fn red_marks_or_drops_early_and_drops_for_lack_of_room() {
    let red = RedConfig { weight: 0.5, ecn: true, limit: Limit::Packets(30), ..RedConfig::default() };
    let run = |ecn_capable| {
        let mut bench = Bench::new(&config(QueueConfig::Red(red)));
        for id in 0..2000 {
            let at = Instant::ZERO + Duration::from_micros(900 * id);
            bench.offer(at, Probe { ecn_capable, ..packet(id) });
        }
        bench.finish();
        bench
    };
    let dropping = run(false);
    assert_eq!(dropping.link.stats().marked_packets, 0);
    // The offered load is 10 % too high: the drops must equal that, and the queue stays between the thresholds.
    assert!((180..=200).contains(&dropping.dropped.len()), "{}", dropping.dropped.len());
    assert!(dropping.link.stats().max_waiting_packets < 25);

    let marking = run(true);
    assert!(marking.link.stats().marked_packets > 100);
    // Marks do not reduce the load, so the queue fills until everything beyond twice the upper threshold is dropped.
    assert!(marking.link.stats().dropped_by_queue > 100);
}

#[test]
fn red_forgets_its_average_while_the_link_is_idle() {
    let red = RedConfig { weight: 0.2, limit: Limit::Packets(100), ..RedConfig::default() };
    let mut bench = Bench::new(&config(QueueConfig::Red(red)));
    bench.offer_all(ms(0), 0..60);
    let early = bench.dropped.len();
    assert!(early > 0);
    // A second later, a burst below the lower threshold meets an average of zero.
    bench.offer_all(ms(1000), 100..105);
    assert_eq!(bench.dropped.len(), early);
}

/// A PIE link with one packet offered per 0.5 ms, twice its rate, from `from` for `millis`.
fn overload_pie(bench: &mut Bench, from: u64, millis: u64, ecn_capable: bool) {
    for id in 2 * from..2 * (from + millis) {
        let at = Instant::ZERO + Duration::from_micros(500 * id);
        bench.offer(at, Probe { ecn_capable, ..packet(id) });
    }
}

fn pie(ecn: bool) -> Bench {
    let limit = Limit::Packets(10_000);
    Bench::new(&config(QueueConfig::Pie(PieConfig { limit, ecn, ..PieConfig::default() })))
}

#[test]
fn pie_spares_a_burst_and_again_after_idle_time() {
    let mut bench = pie(false);
    overload_pie(&mut bench, 0, 150, false);
    assert_eq!(bench.dropped, []);
    overload_pie(&mut bench, 150, 150, false);
    let dropped = bench.dropped.len();
    assert!(dropped > 0);
    overload_pie(&mut bench, 5_000, 150, false);
    assert_eq!(bench.dropped.len(), dropped);
}

#[test]
fn pie_marks_below_ten_percent_and_drops_above() {
    let mut bench = pie(true);
    overload_pie(&mut bench, 0, 2_000, true);
    let first_drop = bench.dropped[0].packet.id;
    bench.finish();
    let marked: Vec<_> =
        bench.arrived.iter().filter(|(_, a)| a.packet.marked).map(|(_, a)| a.packet.id).collect();
    assert!(!marked.is_empty() && marked.iter().all(|&id| id < first_drop), "{marked:?} {first_drop}");
    assert_eq!(bench.link.stats().marked_packets, marked.len() as u64);

    let mut blind = pie(true);
    overload_pie(&mut blind, 0, 2_000, false);
    assert_eq!(blind.link.stats().marked_packets, 0);
}

#[test]
fn pie_leaves_a_queue_of_two_packets_alone_on_a_slow_link() {
    // 20 ms per packet: each waits longer than the target.
    let drops_behind = |waiting: u64| {
        let queue = QueueConfig::Pie(PieConfig { limit: Limit::Packets(100), ..PieConfig::default() });
        let mut bench =
            Bench::new(&LinkConfig::new(Rate::from_bps(400_000), Duration::from_millis(100), queue));
        bench.offer_all(ms(0), 0..waiting);
        for id in waiting..1_000 {
            bench.offer(ms(20 * (id - waiting) + 1), packet(id));
        }
        bench.dropped.len()
    };
    // One packet is in transmission.
    assert_eq!(drops_behind(3), 0);
    assert!(drops_behind(4) > 0);
}

#[test]
fn pie_drops_nothing_below_half_of_its_target() {
    let mut bench = pie(false);
    // A tenth too much gives a drop probability of about 10 %.
    for id in 0..22_000 {
        bench.offer(Instant::ZERO + Duration::from_micros(900 * id), packet(id));
    }
    let dropped = bench.dropped.len();
    assert!((1_500..2_500).contains(&dropped), "{dropped}");
    // After a pause, a standing queue of 5 ms.
    bench.offer_all(ms(20_000), 30_000..30_005);
    for id in 0..300 {
        bench.offer(ms(20_000 + id), packet(40_000 + id));
    }
    assert_eq!(bench.dropped.len(), dropped);
}

#[test]
fn pie_drops_the_excess_and_keeps_the_queue_at_its_target() {
    let mut bench = pie(false);
    overload_pie(&mut bench, 0, 20_000, false);
    let (dropped, waited) = (bench.dropped.len(), bench.link.stats().waited);
    overload_pie(&mut bench, 20_000, 20_000, false);
    // Half of these 40,000 packets is too much.
    let dropped = bench.dropped.len() - dropped;
    assert!((19_800..20_200).contains(&dropped), "{dropped}");
    let mean_wait_ms = (bench.link.stats().waited - waited).as_millis_f64() / 20_000.0;
    assert!((14.0..16.0).contains(&mean_wait_ms), "{mean_wait_ms}");
}

fn dual_pi2(config_of: DualPi2Config) -> Bench {
    Bench::new(&config(QueueConfig::DualPi2(DualPi2Config { limit: Limit::Packets(10_000), ..config_of })))
}

/// ECT(1).
fn l4s(id: u64) -> Probe {
    Probe { ecn_capable: true, l4s: true, ..packet(id) }
}

/// A controller that is too slow to act.
fn still() -> DualPi2Config {
    DualPi2Config { max_rtt: Duration::from_secs(1_000_000), ..DualPi2Config::default() }
}

#[test]
fn dualpi2_sends_l4s_first_and_one_classic_packet_in_sixteen() {
    let mut bench = dual_pi2(still());
    for id in 0..2_000 {
        bench.offer(ms(0), packet(2 * id));
        bench.offer(ms(0), l4s(2 * id + 1));
    }
    bench.run_until(ms(1_701));
    let sent = &bench.arrived[1..1_601];
    let classic = sent.iter().filter(|(_, arrival)| !arrival.packet.l4s).count();
    assert_eq!((sent.len(), classic), (1_600, 100));
    // An L4S packet after idle time of its queue waits for one transmission, however many classic packets wait.
    let mut bench = dual_pi2(still());
    bench.offer_all(ms(0), 0..1_000);
    bench.offer(ms(500), l4s(1_000));
    bench.finish();
    let (at, _) = bench.arrived.iter().find(|(_, arrival)| arrival.packet.l4s).expect("it arrives");
    assert!(*at <= ms(500 + 2 + 100), "{at:?}");
}

#[test]
fn dualpi2_marks_l4s_packets_that_waited_for_the_step_while_others_wait_behind() {
    let mut bench = dual_pi2(DualPi2Config { step: Duration::from_micros(2_500), ..still() });
    for id in 0..8 {
        bench.offer(ms(0), l4s(id));
    }
    bench.finish();
    let marked: Vec<_> =
        bench.arrived.iter().filter(|(_, a)| a.packet.marked).map(|(_, a)| a.packet.id).collect();
    // Packet 2 waits 2 ms, packet 3 waits 3 ms, and nothing waits behind packet 7.
    assert_eq!(marked, [3, 4, 5, 6]);
}

/// Offers twice the rate for 20 s. Returns marks and drops.
fn overload_dual_pi2(kind: fn(u64) -> Probe) -> (u64, u64) {
    let mut bench = dual_pi2(DualPi2Config::default());
    for id in 0..40_000 {
        bench.offer(Instant::ZERO + Duration::from_micros(500 * id), kind(id));
    }
    let stats = bench.link.stats();
    (stats.marked_packets, stats.dropped_by_queue)
}

#[test]
fn dualpi2_drops_the_excess_of_senders_that_ignore_marks() {
    let capable = |id| Probe { ecn_capable: true, ..packet(id) };
    let (marked, dropped) = overload_dual_pi2(packet);
    assert!(marked == 0 && (19_000..20_500).contains(&dropped), "{marked} {dropped}");
    // p_C is 1/2 in both queues. Before overload, ECT(0) is marked; in overload, ECT(1) is marked where it is not dropped.
    let (marked, dropped) = overload_dual_pi2(capable);
    assert!(0 < marked && marked < 200 && (19_000..20_500).contains(&dropped), "{marked} {dropped}");
    let (marked, dropped) = overload_dual_pi2(l4s);
    assert!(marked > 19_000 && (19_000..20_500).contains(&dropped), "{marked} {dropped}");
}

#[test]
fn a_hundred_thousand_packets_can_wait() {
    for queue in [
        QueueConfig::DropTail { limit: Limit::Packets(100_000) },
        QueueConfig::PushOut { limit: Limit::Packets(100_000) },
        QueueConfig::Strict { limit: Limit::Packets(100_000) },
    ] {
        let mut bench = Bench::new(&config(queue));
        for id in 0..100_002 {
            bench.offer(ms(0), packet(id));
        }
        assert_eq!(bench.dropped_ids(), [100_001]);
        assert_eq!(bench.link.stats().max_waiting_packets, 100_000);
        bench.finish();
        assert_eq!(bench.arrived.len(), 100_001);
    }
}
