//! Throughput and delay compared with published formulas and results.

mod common;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_mac::{Access, AlohaConfig, CfDamaConfig, CrdsaConfig, Frame, MediumConfig, SlottedAlohaConfig};
use common::{Bench, medium_of};

/// Returns carried bursts per slot time for a Poisson stream of `load` bursts per slot time. The stream is spread over enough
/// terminals that none is busy.
fn throughput(config: &MediumConfig, load: f64, (slot, slots): (Duration, u64)) -> (f64, f64) {
    let terminals = 4_000;
    let mut bench = Bench::new(config, terminals, 7);
    let mut rng = Rng::stream(11, "arrivals");
    let mean_gap = slot.as_secs_f64() / load;
    let span = slot.as_secs_f64() * slots as f64;
    let mut time = 0.0;
    loop {
        time += rng.exponential(mean_gap);
        if time > span {
            break;
        }
        let terminal = rng.below(terminals as u64) as u32;
        bench.offer(Instant::ZERO + Duration::from_secs_f64(time), terminal, 100);
    }
    bench.finish();
    let stats = bench.medium.stats();
    let (sent, got) = (stats.bursts_sent as f64, (stats.bursts_sent - stats.bursts_collided) as f64);
    (sent / slots as f64, got / slots as f64)
}

/// Packets of 100 bytes in slots of 10 ms.
fn rate() -> Rate {
    Rate::from_bps(80_000)
}

const SLOT: Duration = Duration::from_millis(10);

/// Abramson 1970: S = G exp(-2 G), at most 1 / (2 e). Roberts 1975: S = G exp(-G), at most 1 / e.
#[test]
fn aloha_carries_what_its_formulas_say() {
    let pure = AlohaConfig { header: 0, retries: 0, ..AlohaConfig::default() };
    let deaf = medium_of(Access::Aloha(AlohaConfig { detection: false, ..pure.clone() }), rate());
    let pure = medium_of(Access::Aloha(pure), rate());
    let slotted = SlottedAlohaConfig {
        slot_bytes: 100,
        header: 0,
        guard: Duration::ZERO,
        retries: 0,
        ..SlottedAlohaConfig::default()
    };
    let slotted = medium_of(Access::SlottedAloha(slotted), rate());
    for load in [0.1, 0.25, 0.5, 1.0, 1.5] {
        let (sent, got) = throughput(&pure, load, (SLOT, 40_000));
        let expected = sent * libm::exp(-2.0 * sent);
        assert!((got / expected - 1.0).abs() < 0.03, "pure: G {sent}, S {got}, expected {expected}");
        let (sent, got) = throughput(&deaf, load, (SLOT, 40_000));
        let expected = sent * libm::exp(-2.0 * sent);
        assert!(
            (got / expected - 1.0).abs() < 0.03,
            "without detection: G {sent}, S {got}, expected {expected}"
        );
        let (sent, got) = throughput(&slotted, load, (SLOT, 40_000));
        let expected = sent * libm::exp(-sent);
        assert!((got / expected - 1.0).abs() < 0.03, "slotted: G {sent}, S {got}, expected {expected}");
    }
    let (_, best) = throughput(&pure, 0.5, (SLOT, 60_000));
    assert!((best - 0.5 / core::f64::consts::E).abs() < 0.005, "{best}");
    let (_, best) = throughput(&slotted, 1.0, (SLOT, 60_000));
    assert!((best - 1.0 / core::f64::consts::E).abs() < 0.01, "{best}");
}

/// Casini et al. 2007: about 0.55 with two copies. CRDSA++ of 2009: about 0.68 with three copies. Both have frames of hundreds of
/// slots.
#[test]
fn crdsa_peaks_where_it_was_published_to() {
    for (replicas, loads, peak) in [(2, [0.55, 0.6, 0.65, 0.7], 0.55), (3, [0.65, 0.7, 0.75, 0.8], 0.68)] {
        let frame = Frame { length: SLOT * 200_u64, slots: 200, overhead: 0.0, header: 0 };
        let config = CrdsaConfig { frame, replicas, retries: 0, ..CrdsaConfig::default() };
        let config = medium_of(Access::Crdsa(config), rate());
        let best =
            loads.map(|load| throughput(&config, load, (SLOT, 40_000)).1).into_iter().fold(0.0, f64::max);
        assert!((best - peak).abs() < 0.03, "{replicas} copies: {best}");
        // Slotted Aloha's maximum is 1 / e.
        assert!(best > 1.4 / core::f64::consts::E);
    }
}

/// Returns the mean access delay in seconds, and the fraction of packets that arrived, at `load` times the channel's rate.
fn delay(config: &MediumConfig, load: f64) -> (f64, f64) {
    // With this many terminals, contention limits Aloha, not the wait for a packet's echo.
    let (terminals, span, size) = (50, 120.0, 80.0);
    let mut bench = Bench::new(config, terminals, 3);
    let mut rng = Rng::stream(5, "arrivals");
    let mean_gap = size * 8.0 / (load * config.rate.bps() as f64);
    let mut time = rng.exponential(mean_gap);
    while time < span {
        let terminal = rng.below(terminals as u64) as u32;
        bench.offer(Instant::ZERO + Duration::from_secs_f64(time), terminal, size as u32);
        time += rng.exponential(mean_gap);
    }
    bench.finish();
    let stats = bench.medium.stats();
    let mean = stats.mean_access_delay().map_or(f64::INFINITY, Duration::as_secs_f64);
    (mean, stats.carried_packets as f64 / stats.offered_packets as f64)
}

/// Combined free and demand assignment has a lower delay than slotted Aloha at almost all loads. It stays finite at loads where
/// slotted Aloha collapses.
#[test]
fn cf_dama_waits_less_than_slotted_aloha_above_a_fifth_of_the_load() {
    let rate = Rate::from_bps(256_000);
    let frame = Frame { length: Duration::from_millis(24), slots: 9, overhead: 0.0, header: 4 };
    let cf_dama = medium_of(Access::CfDama(CfDamaConfig { frame, ..CfDamaConfig::default() }), rate);
    let slotted = SlottedAlohaConfig {
        slot_bytes: 84,
        header: 4,
        guard: Duration::ZERO,
        retries: 1_000,
        ..SlottedAlohaConfig::default()
    };
    let slotted = medium_of(Access::SlottedAloha(slotted), rate);
    for load in [0.2, 0.3, 0.5, 0.7] {
        let ((assigned, all), (contended, _)) = (delay(&cf_dama, load), delay(&slotted, load));
        assert!(assigned < contended, "load {load}: {assigned} s, {contended} s");
        assert!(all > 0.999_999, "load {load}: {all}");
    }
    let (assigned, all) = delay(&cf_dama, 0.9);
    assert!(assigned < 2.0 && all > 0.999_999, "{assigned} s, {all}");
    // At low load a free slot arrives at once, much sooner than the half second of a request.
    assert!(delay(&cf_dama, 0.05).0 < 0.1);
}
