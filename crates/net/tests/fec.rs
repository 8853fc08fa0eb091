//! Links with parity, compared with closed forms.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{Draws, FecConfig, Limit, LinkConfig, LossConfig, LossModel, QueueConfig};
use common::{Bench, losing, low, ms, packet};

const DELAY: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_millis(50);

/// A link of 8 Mbit/s and 100 ms with loss probability `p` and blocks of `n` packets, of which any `k` suffice.
fn config(p: f64, (k, n): (u32, u32)) -> LinkConfig {
    let loss = LossConfig::all(LossModel::Packet { probability: p });
    let link = LinkConfig::new(Rate::from_mbps(8), DELAY, QueueConfig::default());
    LinkConfig { loss, fec: Some(FecConfig { k, n, flush: FLUSH }), ..link }
}

/// A block of three packets plus two of parity, with exactly these transmissions lost.
fn exactly(lost: &[u64]) -> LinkConfig {
    losing(lost, config(0.0, (3, 5)))
}

/// Packets 0, 1, 2 take 1 ms each, parity follows until 5 ms, packet 3 until 6 ms.
#[test]
fn the_first_parity_restores_the_lost_packet_and_frees_those_behind_it() {
    let mut bench = Bench::new(&exactly(&[2]));
    bench.offer_all(ms(0), 0..4);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(101, 0), (104, 1), (104, 2), (106, 3)]);
    // Separate parity follows the fourth packet when it is too old to wait.
    let stats = bench.link.stats();
    assert_eq!((stats.repaired_packets, stats.parity_packets), (1, 4));
}

#[test]
fn without_order_those_behind_overtake_it() {
    let mut bench = Bench::new(&LinkConfig { preserve_order: false, ..exactly(&[2]) });
    bench.offer_all(ms(0), 0..4);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(101, 0), (103, 2), (104, 1), (106, 3)]);
}

#[test]
fn two_losses_take_two_packets_of_parity() {
    let mut bench = Bench::new(&exactly(&[1, 3]));
    bench.offer_all(ms(0), 0..3);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(105, 0), (105, 1), (105, 2)]);
}

/// Packet 1 and both parity packets are lost. The far end knows it at the due time of the block's last packet.
#[test]
fn what_parity_does_not_restore_is_lost_and_holds_the_others_up_until_that_is_known() {
    let mut bench = Bench::new(&exactly(&[2, 4, 5]));
    bench.offer_all(ms(0), 0..3);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(101, 0), (105, 2)]);
    let dropped: Vec<_> = bench.dropped.iter().map(|dropped| (dropped.packet.id, dropped.at)).collect();
    assert_eq!(dropped, [(1, ms(105))]);
}

/// The block is closed 50 ms after its first packet began; parity arrives 1 ms plus the delay later.
#[test]
fn a_block_that_is_not_full_is_closed_when_it_is_too_old() {
    for queue in [QueueConfig::default(), QueueConfig::PushOut { limit: Limit::Packets(50) }] {
        let mut bench = Bench::new(&LinkConfig { queue: queue.clone(), ..exactly(&[1]) });
        bench.offer(ms(10), packet(0));
        bench.offer(ms(20), packet(1));
        bench.finish();
        assert_eq!(bench.arrivals_ms(), [(161, 0), (161, 1)]);
        // 2 ms of data and 2 ms of parity.
        assert_eq!(bench.link.busy_time(ms(1000)), Duration::from_millis(4));
        // Packets that arrive while parity is sent wait for it.
        let mut bench = Bench::new(&LinkConfig { queue, ..exactly(&[1]) });
        bench.offer(ms(10), packet(0));
        bench.offer(ms(61), low(1));
        bench.finish();
        assert_eq!(bench.arrivals_ms(), [(161, 0), (163, 1)]);
    }
}

/// A block with an old first packet is still filled while packets are queued: 60 packets of 1 ms in blocks of 60 need no parity
/// at 50 ms.
#[test]
fn packets_that_wait_fill_the_block() {
    for queue in [
        QueueConfig::DropTail { limit: Limit::Packets(100) },
        QueueConfig::PushOut { limit: Limit::Packets(100) },
    ] {
        let mut bench = Bench::new(&LinkConfig { queue, ..config(0.0, (60, 61)) });
        bench.offer_all(ms(0), 0..61);
        bench.finish();
        let times = bench.arrivals_ms();
        assert_eq!((times[59], times[60]), ((160, 59), (162, 60)));
    }
}

#[test]
fn parity_is_as_large_as_the_largest_packet_of_its_block() {
    let mut bench = Bench::new(&exactly(&[]));
    for (id, size) in [(0, 100), (1, 1500), (2, 100)] {
        bench.offer(ms(0), common::Probe { size, ..packet(id) });
    }
    bench.finish();
    assert_eq!(bench.link.busy_time(ms(1000)), Duration::from_micros(100 + 1500 + 100 + 2 * 1500));
}

/// Returns the probability that at least `least` of `of` packets are lost.
fn tail(of: u32, least: u32, p: f64) -> f64 {
    let term = |lost: u32| {
        let choose = (0..lost).fold(1.0, |product, i| product * f64::from(of - i) / f64::from(i + 1));
        choose * p.powi(lost as i32) * (1.0 - p).powi((of - lost) as i32)
    };
    (least..=of).map(term).sum()
}

/// A lost packet stays lost if at least n - k of the other n - 1 packets of its block are lost. The line carries n packets for k.
/// A restored packet waits at most for the rest of its block.
#[test]
fn residual_loss_use_of_the_line_and_delay_are_those_of_the_code() {
    for (p, k, n) in [(0.1, 10, 12), (0.2, 4, 8), (0.05, 20, 21), (0.3, 1, 3)] {
        let packets = 120_000_u64;
        let config = LinkConfig { preserve_order: false, ..config(p, (k, n)) };
        let mut bench = Bench::new(&config);
        // So far apart that packets wait only for parity; the longest block is too old before it is full.
        let spacing = u64::from(n);
        for id in 0..packets {
            bench.offer(ms(spacing * id), packet(id));
        }
        bench.finish();
        let in_block = u64::from(k).min(50_u64.div_ceil(spacing));
        let (members, parity) = (in_block as u32, n - k);
        let expected = p * tail(members + parity - 1, parity, p);
        let blocks = packets as f64 / in_block as f64;
        // Losses within a block are correlated: at worst the whole block is lost.
        let deviation = (expected / blocks).sqrt();
        let residual = bench.dropped.len() as f64 / packets as f64;
        assert!(
            (residual - expected).abs() < 4.0 * deviation,
            "({p}, {k}, {n}): {residual}, expected {expected}"
        );
        let busy = bench.link.busy_time(ms(spacing * packets + 10_000)).as_secs_f64();
        let full_blocks = packets / in_block + u64::from(!packets.is_multiple_of(in_block));
        let expected = 0.001 * (packets + full_blocks * u64::from(parity)) as f64;
        assert!((busy / expected - 1.0).abs() < 1e-9, "({p}, {k}, {n}): {busy} s, expected {expected}");
        let longest =
            bench.arrived.iter().map(|(at, arrival)| at.since(ms(spacing * arrival.packet.id))).max();
        let bound = DELAY
            + Duration::from_millis(1 + u64::from(parity))
            + FLUSH.min(Duration::from_millis(spacing * u64::from(k)));
        assert!(
            longest.is_some_and(|longest| longest <= bound),
            "({p}, {k}, {n}): {longest:?}, bound {bound}"
        );
    }
}

#[test]
fn everything_can_be_lost_and_the_link_goes_on() {
    let mut bench = Bench::new(&exactly(&[1]));
    bench.offer_all(ms(0), 0..2);
    bench.link.lose_everything(ms(1));
    bench.touch(ms(1));
    assert_eq!(bench.dropped_ids(), [0, 1]);
    bench.offer_all(ms(10), 2..3);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(111, 2)]);
}

#[test]
fn a_change_of_the_link_closes_the_block() {
    let from = exactly(&[1]);
    let mut bench = Bench::new(&from);
    bench.offer(ms(0), packet(0));
    let to = LinkConfig { fec: None, ..from.clone() };
    bench.link.reconfigure(ms(10), &from, &to, Draws { seed: 1, name: "test" }).unwrap();
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(111, 0)]);
}
