//! Invariants of every medium for random configurations and loads. Packets are conserved and come out once, in the order of each
//! terminal. They need at least the one-way delay, do not exceed the channel's rate, and never get stuck. The bench checks part
//! of this during the run.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_mac::{
    Access, AlohaConfig, CfDamaConfig, CrdsaConfig, DamaConfig, Frame, MediumConfig, RequestStrategy,
    SchedulerPlace, SlottedAlohaConfig, TerminalConfig,
};
use bentpipe_net::{Limit, LossConfig, LossModel};
use common::Bench;
use proptest::prelude::*;

fn frame() -> impl Strategy<Value = Frame> {
    (1_000..50_000_u64, 8..70_u32, 0.0..0.3, 0..6_u32).prop_map(|(micros, slots, overhead, header)| Frame {
        length: Duration::from_micros(micros),
        slots,
        overhead,
        header,
    })
}

/// Request loss probability, often zero.
fn lost() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..0.9]
}

fn access() -> impl Strategy<Value = Access> {
    use RequestStrategy::{Combined, Fixed, Piggyback, Random};
    use SchedulerPlace::{Hub, Onboard};
    let strategy = prop::sample::select(vec![Fixed, Random, Piggyback, Combined]);
    let timeout = (300..600_u64).prop_map(Duration::from_millis);
    let again = (0..8_u32, 0..5_u32, timeout);
    prop_oneof![
        frame().prop_map(Access::Tdma),
        (frame(), 1..12_u32, 1..4_u32, lost()).prop_map(
            |(frame, superframe, idle_superframes, request_loss)| {
                Access::Dama(DamaConfig { frame, superframe, idle_superframes, request_loss })
            }
        ),
        (frame(), strategy, 1..8_u32, 1..100_u32, (prop::sample::select(vec![Hub, Onboard]), lost()))
            .prop_map(|(frame, strategy, minislots, request_limit, (scheduler, request_loss))| {
                Access::CfDama(CfDamaConfig {
                    frame,
                    strategy,
                    minislots,
                    request_limit,
                    request_loss,
                    scheduler,
                })
            }),
        (again.clone(), 1..2_000_u64, any::<bool>()).prop_map(
            |((header, retries, timeout), backoff, detection)| {
                let mean_backoff = Duration::from_millis(backoff);
                Access::Aloha(AlohaConfig { header, timeout, mean_backoff, retries, detection })
            }
        ),
        (again.clone(), 20..2_000_u32, 0..3_000_u64).prop_map(
            |((backoff_limit, retries, timeout), slot_bytes, guard)| {
                let guard = Duration::from_micros(guard);
                let header = 16;
                Access::SlottedAloha(SlottedAlohaConfig {
                    slot_bytes,
                    guard,
                    header,
                    timeout,
                    backoff_limit,
                    retries,
                })
            }
        ),
        (again, frame(), 1..6_u32, 1..20_u32).prop_map(
            |((backoff_limit, retries, timeout), frame, replicas, iterations)| {
                Access::Crdsa(CrdsaConfig { frame, replicas, iterations, timeout, backoff_limit, retries })
            }
        ),
    ]
}

fn terminal() -> impl Strategy<Value = TerminalConfig> {
    let queue = prop_oneof![(1..40_u32).prop_map(Limit::Packets), (1_500..40_000_u64).prop_map(Limit::Bytes)];
    let loss = prop_oneof![Just(0.0), 0.0..0.5];
    (queue, loss).prop_map(|(queue, probability)| TerminalConfig {
        queue,
        loss: LossConfig::all(LossModel::Packet { probability }),
    })
}

proptest! {
    #[test]
    fn packets_are_conserved_in_order_and_never_stuck(
        access in access(),
        terminals in prop::collection::vec(terminal(), 1..8),
        kbps in 500..20_000_u64,
        load in prop::collection::vec((0..60_000_u64, any::<u32>(), 1..1500_u32), 1..150),
        delay in 0..300_u64,
        seed in any::<u64>(),
    ) {
        let (rate, delay_one_way) = (Rate::from_bps(kbps * 1000), Duration::from_millis(delay));
        let config = MediumConfig { rate, delay_one_way, access };
        prop_assume!(config.validate(terminals.len()).is_ok());
        let mut bench = Bench::with_terminals(&config, &terminals, seed);
        let mut offers = Vec::new();
        let mut now = Instant::ZERO;
        for (gap, terminal, size) in load {
            // Bursts with pauses between them.
            now += Duration::from_micros(if gap < 40_000 { 0 } else { gap });
            let terminal = terminal % terminals.len() as u32;
            offers.push((now, terminal));
            bench.offer(now, terminal, size);
        }
        bench.finish();
        let mut last = vec![None; terminals.len()];
        let mut bytes = 0;
        for &(at, terminal, packet) in &bench.arrived {
            let (offered, by) = offers[packet.id as usize];
            prop_assert_eq!(by, terminal);
            prop_assert!(last[terminal as usize] < Some(packet.id), "out of order");
            last[terminal as usize] = Some(packet.id);
            bytes += u64::from(packet.size);
            prop_assert!(at >= offered + delay_one_way, "faster than light");
            prop_assert!(rate.bytes_in(at.since(offers[0].0)) + 1 >= bytes, "faster than the channel");
        }
        let mut ids: Vec<_> = bench.arrived.iter().map(|(_, _, packet)| packet.id).collect();
        ids.extend(bench.dropped.iter().map(|(_, _, packet, _)| packet.id));
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..bench.offered).collect::<Vec<_>>());
        for terminal in 0..bench.medium.terminals() {
            let stats = bench.medium.terminal_stats(terminal);
            prop_assert_eq!(stats.enqueued_packets, stats.delivered_packets + stats.dropped_packets());
        }
    }

    /// The results do not depend on the times at which a medium is queried.
    #[test]
    fn it_does_not_matter_how_often_a_medium_is_asked(
        access in access(),
        load in prop::collection::vec((0..60_000_u64, 0..3_u32, 1..1500_u32), 1..60),
        looks in prop::collection::vec(0..3_000_000_u64, 0..60),
    ) {
        let config = MediumConfig { rate: Rate::from_mbps(2), delay_one_way: Duration::from_millis(120), access };
        prop_assume!(config.validate(3).is_ok());
        let mut quiet = Bench::new(&config, 3, 1);
        let mut asked = Bench::new(&config, 3, 1);
        let mut looks = looks;
        looks.sort_unstable();
        let mut looks = looks.into_iter().map(common::us).peekable();
        let mut now = Instant::ZERO;
        for (gap, terminal, size) in load {
            now += Duration::from_micros(gap);
            while let Some(look) = looks.next_if(|look| *look <= now) {
                asked.run_until(look);
                asked.medium.settle(look);
            }
            quiet.offer(now, terminal, size);
            asked.offer(now, terminal, size);
        }
        quiet.finish();
        asked.finish();
        prop_assert_eq!(quiet.arrived, asked.arrived);
        prop_assert_eq!(quiet.dropped, asked.dropped);
    }
}
