//! Links with ARQ, compared with closed forms.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{ArqConfig, LinkConfig, LossConfig, LossModel, QueueConfig};
use common::{Bench, losing, ms, packet};

const DELAY: Duration = Duration::from_millis(100);

/// A link of 8 Mbit/s and 100 ms whose packets are lost with probability `p`.
fn config(p: f64, retries: u32) -> LinkConfig {
    let loss = LossConfig::all(LossModel::Packet { probability: p });
    let link = LinkConfig::new(Rate::from_mbps(8), DELAY, QueueConfig::default());
    LinkConfig { loss, arq: Some(ArqConfig { retries }), ..link }
}

fn exactly(lost: &[u64]) -> LinkConfig {
    losing(lost, config(0.0, 2))
}

/// A packet takes 1 ms. Its retransmission takes the next 1 ms, and arrives a round trip of 200 ms later.
#[test]
fn a_repeated_packet_holds_up_those_behind_it() {
    let mut bench = Bench::new(&exactly(&[2]));
    bench.offer_all(ms(0), 0..3);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(101, 0), (303, 1), (303, 2)]);
}

#[test]
fn without_order_those_behind_overtake_it() {
    let mut bench = Bench::new(&LinkConfig { preserve_order: false, ..exactly(&[2]) });
    bench.offer_all(ms(0), 0..3);
    bench.finish();
    assert_eq!(bench.arrivals_ms(), [(101, 0), (104, 2), (303, 1)]);
}

#[test]
fn a_packet_hit_too_often_is_lost() {
    // Transmissions 1, 2 and 3 are those of the first packet.
    let mut bench = Bench::new(&exactly(&[1, 2, 3]));
    bench.offer_all(ms(0), 0..2);
    bench.finish();
    assert_eq!(bench.dropped_ids(), [0]);
    assert_eq!(bench.arrivals_ms(), [(503, 1)]);
}

/// With N retransmissions, p^(N + 1) of the packets are lost. A packet that arrives needed k extra round trips with probability
/// p^k (1 - p). The line is busy (1 - p^(N + 1)) / (1 - p) times as long.
#[test]
fn residual_loss_delay_and_use_of_the_line_are_those_of_selective_repeat() {
    let (p, retries, packets) = (0.3_f64, 2, 100_000_u64);
    let mut bench = Bench::new(&LinkConfig { preserve_order: false, ..config(p, retries) });
    let mut delay_sum = 0.0;
    for id in 0..packets {
        // Far apart, so that no packet waits.
        bench.offer(ms(10 * id), packet(id));
    }
    bench.finish();
    for (at, arrival) in &bench.arrived {
        delay_sum += at.since(ms(10 * arrival.packet.id)).as_secs_f64();
    }
    let residual = bench.dropped.len() as f64 / packets as f64;
    assert!((residual - p * p * p).abs() < 0.002, "{residual}");
    let through = 1.0 - p * p * p;
    let repetitions = (p * (1.0 - p) + 2.0 * p * p * (1.0 - p)) / through;
    let expected = 0.101 + repetitions * 0.201;
    let mean = delay_sum / bench.arrived.len() as f64;
    assert!((mean / expected - 1.0).abs() < 0.01, "{mean}, expected {expected}");
    let busy = bench.link.busy_time(ms(10 * packets + 1000)).as_secs_f64();
    let expected = packets as f64 * 0.001 * (1.0 - p * p * p) / (1.0 - p);
    assert!((busy / expected - 1.0).abs() < 0.01, "{busy}, expected {expected}");
}

#[test]
fn an_error_free_link_is_none_the_slower_for_it() {
    let with = config(0.0, 5);
    let without = LinkConfig { arq: None, ..with.clone() };
    let [a, b] = [with, without].map(|config| {
        let mut bench = Bench::new(&config);
        bench.offer_all(ms(0), 0..50);
        bench.finish();
        bench.arrivals_ms()
    });
    assert_eq!(a, b);
}
