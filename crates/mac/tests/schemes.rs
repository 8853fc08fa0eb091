//! Access schemes against times computed by hand: slots, requests and collisions.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_mac::{
    Access, AlohaConfig, CfDamaConfig, DamaConfig, Frame, MediumConfig, RequestStrategy, SchedulerPlace,
    SlottedAlohaConfig,
};
use bentpipe_trace::DropCause;
use common::{Bench, DELAY, medium_of, us};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Ten slots of 1 ms with 100 bytes each at 800 kbit/s; pieces have no header.
fn frame() -> Frame {
    Frame { length: MS(10), slots: 10, overhead: 0.0, header: 0 }
}

fn rate() -> Rate {
    Rate::from_bps(800_000)
}

fn arrivals(bench: &Bench) -> Vec<(u64, u32)> {
    let micros = |at: Instant| at.since(Instant::ZERO + DELAY).as_nanos() / 1000;
    bench.arrived.iter().map(|(at, terminal, _)| (micros(*at), *terminal)).collect()
}

#[test]
fn tdma_serves_each_terminal_in_its_slots_and_cuts_packets() {
    let mut bench = Bench::new(&medium_of(Access::Tdma(frame()), rate()), 5, 1);
    // Terminal 2 owns slots 2, 7, 12 ... A packet that arrives after the start of a slot misses it.
    bench.offer(us(2_000), 2, 250);
    bench.offer(us(2_000), 2, 50);
    bench.offer(us(2_500), 3, 100);
    bench.finish();
    // 100 bytes each in slots 7 and 12, and 50 in slot 17, where the next packet also fits.
    assert_eq!(arrivals(&bench), [(4_000, 3), (18_000, 2), (18_000, 2)]);
    assert_eq!(bench.medium.busy_time(2), MS(3));
    assert_eq!(bench.medium.stats().bursts_sent, 4);
}

#[test]
fn every_piece_costs_a_header() {
    let config = medium_of(Access::Tdma(Frame { header: 10, ..frame() }), rate());
    let mut bench = Bench::new(&config, 10, 1);
    // 90 + 90 + 70 bytes. The third slot also holds a header and 10 of the next packet's 90 bytes, and the fourth the rest.
    bench.offer(us(1), 0, 250);
    bench.offer(us(1), 0, 90);
    bench.finish();
    assert_eq!(arrivals(&bench), [(31_000, 0), (41_000, 0)]);
}

fn dama() -> MediumConfig {
    // Superframes of 20 ms: the round trip of 500 ms is 25 of them.
    medium_of(Access::Dama(DamaConfig { frame: frame(), superframe: 2, ..DamaConfig::default() }), rate())
}

#[test]
fn a_silent_terminal_of_tdma_dama_waits_for_a_superframe_and_a_round_trip() {
    let mut bench = Bench::new(&dama(), 3, 1);
    bench.offer(us(1_000), 1, 300);
    bench.finish();
    // The report at 20 ms gives slots from 520 ms on.
    assert_eq!(arrivals(&bench), [(523_000, 1)]);
    // Reports left at 20, 40, ... and at 520 ms, just before the first slots.
    assert_eq!(bench.medium.stats().requests_sent, 26);
}

#[test]
fn tdma_dama_divides_by_what_was_asked_for() {
    let mut bench = Bench::new(&dama(), 3, 1);
    // 30 and 10 slots are requested. Each terminal gets one of the ten slots; the other eight are divided 6 : 2. Terminal 2
    // requests and gets nothing.
    bench.offer(us(1_000), 0, 3_000);
    bench.offer(us(1_000), 1, 1_000);
    bench.finish();
    // With 7 slots per frame, the 30th is the second of the fifth frame. With 3 slots behind them, the tenth is the first of the
    // fourth. The superframe from 560 ms on still uses the reports of 60 ms, when both queues were full.
    assert_eq!(arrivals(&bench), [(558_000, 1), (562_000, 0)]);
}

fn cf_dama(strategy: RequestStrategy) -> CfDamaConfig {
    CfDamaConfig { frame: frame(), strategy, ..CfDamaConfig::default() }
}

#[test]
fn an_empty_cf_dama_serves_at_once_by_free_slots() {
    let config = medium_of(Access::CfDama(cf_dama(RequestStrategy::Combined)), rate());
    let mut bench = Bench::new(&config, 3, 1);
    // The slots go to 0, 1, 2, 0, 1, 2, 0, 1, 2, 0 | 1, 2, 0, ...; frame 3 begins with terminal 0 again.
    bench.offer(us(30_000), 1, 100);
    bench.offer(us(41_500), 1, 100);
    bench.finish();
    assert_eq!(arrivals(&bench), [(32_000, 1), (44_000, 1)]);
    assert_eq!(bench.medium.stats().free_slots_used, 2);
    assert_eq!(bench.medium.stats().requests_sent, 0);
}

#[test]
fn with_six_terminals_a_free_slot_comes_within_two_and_a_quarter_milliseconds() {
    let config = CfDamaConfig { frame: Frame { header: 0, ..Frame::default() }, ..CfDamaConfig::default() };
    let medium = medium_of(Access::CfDama(config), Rate::from_mbps(2));
    for start in (0..24_000).step_by(977) {
        let mut bench = Bench::new(&medium, 6, 1);
        bench.offer(us(start), 3, 80);
        bench.finish();
        let served = bench.arrived[0].0.since(us(start)).as_millis_f64() - 250.0;
        // Every sixth slot of 0.375 ms, plus the slot itself.
        assert!(served > 0.0 && served <= 2.25 + 2.0 * 0.375, "{served} ms");
    }
}

#[test]
fn requests_are_served_a_round_trip_and_a_frame_later() {
    // With a minislot each, requests leave at 10 ms and arrive at 260 ms. The map is known at 260 + 10 (making it) + 250 = 520
    // ms, and applies from the frame that begins then. With the scheduler on board (125 ms each way) it applies from 280 ms on.
    for (scheduler, first) in [(SchedulerPlace::Hub, 520), (SchedulerPlace::Onboard, 280)] {
        let strategy = cf_dama(RequestStrategy::Fixed);
        let config = medium_of(Access::CfDama(CfDamaConfig { scheduler, ..strategy }), rate());
        let mut bench = Bench::new(&config, 2, 1);
        // Half of the slots are free slots of terminal 0, 5 per frame, so that 320 slots are not complete when the first
        // requested one arrives.
        bench.offer(us(9_999), 0, 32_000);
        bench.look(Instant::ZERO + MS(first) + MS(2));
        assert_eq!(bench.medium.stats().demand_slots, 3, "{scheduler:?}");
    }
}

#[test]
fn contending_requests_collide_and_are_tried_again() {
    let config = CfDamaConfig { minislots: 1, ..cf_dama(RequestStrategy::Random) };
    let mut bench = Bench::new(&medium_of(Access::CfDama(config), rate()), 2, 1);
    for terminal in 0..2 {
        bench.offer(us(5_000), terminal, 60_000);
    }
    bench.look(us(10_000));
    assert_eq!((bench.medium.stats().requests_sent, bench.medium.stats().requests_collided), (2, 2));
    // The terminals learn it at 510 ms.
    bench.look(us(509_999));
    assert_eq!(bench.medium.stats().requests_sent, 2);
    bench.finish();
    assert!(bench.medium.stats().requests_sent > bench.medium.stats().requests_collided);
}

#[test]
fn a_lost_request_is_repeated_a_round_trip_later() {
    // With a minislot each, at 10 ms: the loss is known at 510 ms, and the next request leaves with that frame.
    let lossy = CfDamaConfig { request_loss: 1.0, ..cf_dama(RequestStrategy::Fixed) };
    let mut bench = Bench::new(&medium_of(Access::CfDama(lossy), rate()), 10, 1);
    bench.offer(us(9_999), 0, 32_000);
    bench.look(us(509_999));
    let requests = |bench: &Bench| (bench.medium.stats().requests_sent, bench.medium.stats().requests_lost);
    assert_eq!(requests(&bench), (5, 5), "four of 64 slots, and one of the rest");
    bench.look(us(510_001));
    assert_eq!(requests(&bench), (6, 6), "one free slot a frame has not served the first 64");
    bench.finish();
    let stats = bench.medium.stats();
    assert_eq!((stats.carried_packets, stats.demand_slots), (1, 0), "free slots carry it all the same");
}

#[test]
fn under_tdma_dama_a_lost_request_asks_for_nothing() {
    let lossy = |request_loss| {
        Access::Dama(DamaConfig { frame: frame(), superframe: 2, request_loss, ..DamaConfig::default() })
    };
    let through = |request_loss| {
        let mut bench = Bench::new(&medium_of(lossy(request_loss), rate()), 2, 7);
        bench.offer(us(1), 0, 20_000);
        bench.finish();
        (bench.arrived[0].0, *bench.medium.stats())
    };
    let ((clean, _), (late, stats)) = (through(0.0), through(0.5));
    assert!(late > clean, "{late:?} {clean:?}");
    let share = stats.requests_lost as f64 / stats.requests_sent as f64;
    assert!((0.3..0.7).contains(&share), "{stats:?}");
}

fn aloha() -> MediumConfig {
    medium_of(Access::Aloha(AlohaConfig { header: 0, ..AlohaConfig::default() }), rate())
}

#[test]
fn packets_of_pure_aloha_that_overlap_are_lost_and_those_that_touch_are_not() {
    let mut bench = Bench::new(&aloha(), 4, 1);
    bench.offer(us(0), 0, 100);
    bench.offer(us(1_000), 1, 100);
    bench.finish();
    assert_eq!(arrivals(&bench), [(1_000, 0), (2_000, 1)]);
    let mut bench = Bench::new(&aloha(), 4, 1);
    bench.offer(us(0), 0, 100);
    bench.offer(us(999), 1, 100);
    // It collides with the second packet only; the first has ended.
    bench.offer(us(1_500), 2, 100);
    bench.finish();
    let stats = bench.medium.stats();
    assert!(stats.bursts_collided >= 3 && stats.carried_packets == 3, "{stats:?}");
    // No terminal retries before the timeout of the echo.
    assert!(arrivals(&bench)[0].0 >= 1_000 + 270_000);
}

#[test]
fn a_terminal_of_aloha_sends_the_next_packet_when_it_hears_the_echo() {
    let mut bench = Bench::new(&aloha(), 1, 1);
    bench.offer(us(0), 0, 100);
    bench.offer(us(0), 0, 100);
    bench.finish();
    assert_eq!(arrivals(&bench), [(1_000, 0), (1_000 + 250_000 + 1_000, 0)]);
}

#[test]
fn without_collision_detection_the_next_packet_leaves_at_once_and_what_collides_is_lost() {
    let config = AlohaConfig { header: 0, detection: false, ..AlohaConfig::default() };
    let mut bench = Bench::new(&medium_of(Access::Aloha(config), rate()), 3, 1);
    bench.offer(us(0), 0, 100);
    bench.offer(us(0), 0, 100);
    // It collides with the second packet of the first terminal.
    bench.offer(us(1_500), 1, 100);
    bench.offer(us(1_500), 1, 100);
    bench.finish();
    assert_eq!(arrivals(&bench), [(1_000, 0), (3_500, 1)]);
    let stats = bench.medium.stats();
    assert_eq!((stats.bursts_sent, stats.bursts_collided, stats.given_up_packets), (4, 2, 2));
    assert!(bench.dropped.iter().all(|(.., cause)| *cause == DropCause::Access));
}

#[test]
fn a_burst_is_given_up_after_its_retries_with_every_packet_in_it() {
    let config = SlottedAlohaConfig {
        slot_bytes: 100,
        header: 0,
        guard: Duration::ZERO,
        backoff_limit: 0,
        retries: 3,
        ..SlottedAlohaConfig::default()
    };
    let mut bench = Bench::new(&medium_of(Access::SlottedAloha(config), rate()), 2, 1);
    // Without back-off both collide at every attempt. Terminal 0's burst holds one packet and the start of the next.
    bench.offer(us(0), 0, 60);
    bench.offer(us(0), 0, 60);
    bench.offer(us(0), 0, 60);
    bench.offer(us(0), 1, 100);
    bench.finish();
    let dropped: Vec<_> =
        bench.dropped.iter().map(|(_, terminal, packet, cause)| (*terminal, packet.id, *cause)).collect();
    assert_eq!(dropped, [(0, 0, DropCause::Access), (0, 1, DropCause::Access), (1, 3, DropCause::Access)]);
    assert_eq!((bench.medium.stats().bursts_collided, bench.medium.stats().bursts_sent), (8, 9));
    assert_eq!(bench.arrived.len(), 1);
}

#[test]
fn frames_in_which_nobody_sends_cost_nothing() {
    let frame = Frame::default();
    let schemes = [
        Access::Tdma(frame.clone()),
        Access::Dama(DamaConfig::default()),
        Access::CfDama(CfDamaConfig::default()),
        Access::SlottedAloha(SlottedAlohaConfig::default()),
        Access::Crdsa(bentpipe_mac::CrdsaConfig::default()),
    ];
    for access in schemes {
        let name = access.name();
        let mut bench = Bench::new(&medium_of(access, Rate::from_mbps(2)), 5, 1);
        bench.offer(us(1), 0, 40);
        bench.finish();
        // One year later.
        bench.offer(Instant::ZERO + Duration::from_secs(31_557_600), 1, 40);
        bench.finish();
        assert!(bench.events < 40, "{name}: {} events", bench.events);
        assert_eq!(bench.arrived.len(), 2, "{name}");
    }
}

#[test]
fn impossible_media_are_refused() {
    let refused = |access, terminals| medium_of(access, rate()).validate(terminals).unwrap_err().to_string();
    assert_eq!(
        refused(Access::Tdma(Frame { slots: 0, ..frame() }), 2),
        "slots: found 0, accepted: at least 1 slot in a frame"
    );
    assert_eq!(
        refused(Access::Tdma(frame()), 11),
        "slots: found 10 slots for 11 terminals, accepted: at least one slot for each terminal"
    );
    assert_eq!(
        refused(Access::Tdma(Frame { header: 100, ..frame() }), 2),
        "slots: found 10 slots of 100 bytes, accepted: slots that carry more than the header of a piece"
    );
    assert_eq!(
        refused(Access::Aloha(AlohaConfig { timeout: MS(200), ..AlohaConfig::default() }), 2),
        "timeout: found 200 ms, accepted: at least the one-way delay"
    );
    let crdsa = bentpipe_mac::CrdsaConfig { replicas: 0, ..bentpipe_mac::CrdsaConfig::default() };
    assert!(refused(Access::Crdsa(crdsa), 2).starts_with("replicas: found 0"));
}
