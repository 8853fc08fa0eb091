//! Links with recorded opportunities, compared with an independent implementation of Mahimahi's `mm-link` rules.

mod common;

use std::collections::VecDeque;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{
    ArqConfig, Draws, Limit, LinkConfig, Opportunities, Outage, OutageEffect, Outages, QueueConfig, Schedule,
};
use common::{Bench, Probe, ms, packet};
use proptest::prelude::*;

fn drop_tail(packets: u32) -> QueueConfig {
    QueueConfig::DropTail { limit: Limit::Packets(packets) }
}

/// Makes a link without propagation delay that carries packets at these milliseconds.
fn link(millis: &[u32], repeat: bool, queue: QueueConfig) -> LinkConfig {
    let opportunities = Opportunities::mahimahi(millis, repeat);
    let rate = opportunities.rate();
    LinkConfig {
        rate,
        opportunities: Some(opportunities),
        ..LinkConfig::new(Rate::from_mbps(1), Duration::ZERO, queue)
    }
}

fn sized(id: u64, size: u32) -> Probe {
    Probe { size, ..packet(id) }
}

/// Offers `count` packets of `size` at one instant.
fn offer(bench: &mut Bench, (now, count, size): (Instant, u64, u32)) {
    for id in 0..count {
        bench.offer(now, sized(id, size));
    }
}

#[test]
fn a_full_packet_takes_one_opportunity_and_what_nobody_uses_is_lost() {
    let mut bench = Bench::new(&link(&[10, 20, 20, 30], false, drop_tail(10)));
    offer(&mut bench, (ms(15), 3, 1500));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(20), ms(20), ms(30)]);
}

#[test]
fn small_packets_share_an_opportunity_and_a_large_one_takes_the_rest_of_the_next() {
    let mut bench = Bench::new(&link(&[10, 20, 30], false, drop_tail(10)));
    // With overhead 504, 504, 1004 and 996 bytes: the third leaves 1000 for the fourth.
    for (id, size) in [(0, 500), (1, 500), (2, 1000), (3, 992)] {
        bench.offer(ms(0), sized(id, size));
    }
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(10), ms(10), ms(20), ms(20)]);
}

#[test]
fn who_comes_at_the_moment_of_an_opportunity_waits_for_the_next() {
    let mut bench = Bench::new(&link(&[0, 10, 20], false, drop_tail(10)));
    bench.offer(ms(0), sized(0, 100));
    bench.offer(ms(10), sized(1, 100));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(10), ms(20)]);
}

#[test]
fn a_trace_begins_anew_at_its_last_opportunity_or_ends() {
    let mut bench = Bench::new(&link(&[3, 10], true, drop_tail(10)));
    offer(&mut bench, (ms(0), 5, 1500));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(3), ms(10), ms(13), ms(20), ms(23)]);
    let mut bench = Bench::new(&link(&[3, 10], false, drop_tail(2)));
    offer(&mut bench, (ms(5), 6, 1500));
    assert_eq!(bench.dropped_ids(), [2, 3, 4, 5], "the first waits as well");
    bench.run_until(ms(1_000_000));
    assert_eq!(bench.arrival_times(), [ms(10)]);
    assert_eq!((bench.link.next_event(), bench.backlog().packets), (Instant::FAR_FUTURE, 1));
}

#[test]
fn opportunities_of_an_outage_are_lost() {
    let intervals = vec![Outage { from: ms(15), to: ms(30) }];
    let of = |effect| {
        let outages = Outages { intervals: intervals.clone(), effect };
        let config = LinkConfig { outages, ..link(&[10, 20, 30, 40, 50], false, drop_tail(10)) };
        let mut bench = Bench::new(&config);
        offer(&mut bench, (ms(0), 2, 2000));
        bench.finish();
        (bench.arrival_times(), bench.dropped_ids())
    };
    assert_eq!(of(OutageEffect::Pause), (vec![ms(30), ms(40)], vec![]));
    assert_eq!(of(OutageEffect::Cut), (vec![ms(40)], vec![0]));
}

#[test]
fn the_busy_time_is_the_part_of_the_opportunities_that_was_used() {
    let mut bench = Bench::new(&link(&[10, 20, 30, 40], true, drop_tail(10)));
    offer(&mut bench, (ms(0), 4, 1500));
    assert_eq!(bench.link.busy_time(ms(20)), Duration::from_millis(20), "two wait for theirs");
    bench.finish();
    assert_eq!(bench.link.busy_time(ms(80)), Duration::from_millis(40));
}

#[test]
fn what_a_trace_comes_to_is_a_rate_for_each_second() {
    let millis: Vec<u32> = (1..=1000).chain((1..=500).map(|at| 1000 + 2 * at)).collect();
    let Schedule::Table { points, repeat_every, .. } = Opportunities::mahimahi(&millis, true).rate() else {
        panic!("a table")
    };
    let second = Duration::from_secs(1);
    assert_eq!(points, [(Duration::ZERO, Rate::from_mbps(12)), (second, Rate::from_mbps(6))]);
    assert_eq!(repeat_every, Some(second * 2));
}

#[test]
fn impossible_traces_are_refused() {
    let refused = |millis: &[u32]| {
        let config = LinkConfig {
            opportunities: Some(Opportunities::mahimahi(millis, true)),
            ..LinkConfig::new(Rate::from_mbps(1), Duration::ZERO, drop_tail(1))
        };
        config.validate().unwrap_err().field
    };
    assert_eq!(refused(&[]), "opportunities.times");
    assert_eq!(refused(&[0, 0]), "opportunities.times");
    assert_eq!(refused(&[2, 1]), "opportunities.times");
    let repairing = LinkConfig { arq: Some(ArqConfig { retries: 1 }), ..link(&[1], true, drop_tail(1)) };
    assert_eq!(repairing.validate().unwrap_err().field, "opportunities");
}

#[test]
fn a_link_that_changes_goes_on_with_the_opportunities_behind_what_was_sent() {
    let (from, to) =
        (link(&[10, 20, 30, 40], false, drop_tail(10)), link(&[15, 25, 35], false, drop_tail(10)));
    let mut bench = Bench::new(&from);
    offer(&mut bench, (ms(0), 2, 1500));
    bench.run_until(ms(12));
    bench.link.reconfigure(ms(12), &from, &to, Draws { seed: 1, name: "test" }).unwrap();
    bench.offer(ms(13), sized(2, 1500));
    bench.finish();
    assert_eq!(bench.arrival_times(), [ms(10), ms(20), ms(25)]);
}

/// Rules of `mm-link`: before a packet is queued, every opportunity up to that time is used up.
fn mahimahi(millis: &[u32], offers: &[(u64, u32)], until: u64) -> Vec<u64> {
    let (bytes, overhead) = Opportunities::MAHIMAHI;
    let (mut left_of, mut out) = (VecDeque::new(), Vec::new());
    let (mut base, mut next) = (0, 0);
    let mut burn = |now: u64, waiting: &mut VecDeque<u32>, out: &mut Vec<u64>| {
        while base + u64::from(millis[next]) <= now {
            let at = base + u64::from(millis[next]);
            next = (next + 1) % millis.len();
            if next == 0 {
                base += u64::from(*millis.last().unwrap());
            }
            let mut room = bytes;
            while room > 0 && !waiting.is_empty() {
                let part = room.min(waiting[0]);
                room -= part;
                waiting[0] -= part;
                if waiting[0] == 0 {
                    waiting.pop_front();
                    out.push(at);
                }
            }
        }
    };
    for (at, size) in offers {
        burn(*at, &mut left_of, &mut out);
        left_of.push_back(size + overhead);
    }
    burn(until, &mut left_of, &mut out);
    out
}

proptest! {
    #[test]
    fn packets_leave_as_those_of_mahimahi(
        gaps in prop::collection::vec(0_u32..6, 1..40),
        offers in prop::collection::vec((0_u64..9, 40_u32..1501), 1..120),
        held in any::<bool>(),
    ) {
        let mut at = 0;
        let mut millis: Vec<u32> = gaps.iter().map(|gap| { at += gap; at }).collect();
        if at == 0 {
            millis.push(1);
        }
        let mut now = 0;
        let offers: Vec<_> = offers.into_iter().map(|(gap, size)| { now += gap; (now, size) }).collect();
        let until = now + 2000;
        // One queue decides at the arrival of a packet, the other when the transmitter is free.
        let queue = if held {
            QueueConfig::Strict { limit: Limit::Packets(1_000_000) }
        } else {
            drop_tail(1_000_000)
        };
        let mut bench = Bench::new(&link(&millis, true, queue));
        for (id, (at, size)) in offers.iter().enumerate() {
            bench.offer(ms(*at), sized(id as u64, *size));
        }
        bench.run_until(ms(until));
        let expected: Vec<Instant> = mahimahi(&millis, &offers, until).into_iter().map(ms).collect();
        prop_assert_eq!(bench.arrival_times(), expected);
    }

    #[test]
    fn any_moment_is_found_at_once(gaps in prop::collection::vec(0_u32..4, 1..20), ask in prop::collection::vec(0_u64..200, 1..50)) {
        let mut at = 1;
        let millis: Vec<u32> = gaps.iter().map(|gap| { at += gap; at }).collect();
        let config = link(&millis, true, drop_tail(10));
        for at in ask {
            let mut bench = Bench::new(&config);
            bench.offer(ms(at), sized(0, 1500));
            bench.finish();
            prop_assert_eq!(bench.arrival_times(), mahimahi(&millis, &[(at, 1500)], at + 1000).into_iter().map(ms).collect::<Vec<_>>());
        }
    }
}

#[test]
fn members_share_one_trace() {
    let opportunities = Opportunities::mahimahi(&[1, 2], true);
    let copy = opportunities.clone();
    assert!(Arc::ptr_eq(&opportunities.times, &copy.times));
}
