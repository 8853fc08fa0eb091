//! Prints the table of `docs/mac.md`: mean access delay under each access scheme, by load, with 95 % confidence intervals.
//!
//! ```text
//! cargo run --profile storm --package bentpipe-mac --example access
//! ```

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_mac::{
    Access, CfDamaConfig, CrdsaConfig, DamaConfig, Frame, Medium, MediumConfig, SlottedAlohaConfig,
    TerminalConfig,
};
use bentpipe_net::{Limit, LossConfig, Packet};

const RATE: Rate = Rate::from_bps(256_000);
const TERMINALS: u32 = 50;
const PACKET_BYTES: u32 = 80;
/// Simulated time in seconds.
const SPAN: f64 = 300.0;
/// Runs of each cell.
const SEEDS: u64 = 20;
/// Student's t(0.975) with 19 degrees of freedom.
const STUDENT: f64 = 2.093;

/// A packet of [`PACKET_BYTES`].
#[derive(Clone)]
struct Small;

impl Packet for Small {
    fn size(&self) -> u32 {
        PACKET_BYTES
    }
}

/// Returns the mean access delay in milliseconds, and the percentage of the offered packets that got through.
fn measure(access: Access, load: f64, seed: u64) -> [f64; 2] {
    let config = MediumConfig { rate: RATE, delay_one_way: Duration::from_millis(250), access };
    let terminal = TerminalConfig { queue: Limit::Packets(10_000), loss: LossConfig::default() };
    let terminals = vec![terminal; TERMINALS as usize];
    let mut medium = Medium::new(&config, &terminals, (seed, "access")).expect("the table's media exist");
    let mut rng = Rng::stream(seed, "arrivals");
    let mean_gap = f64::from(PACKET_BYTES) * 8.0 / (load * RATE.bps() as f64);
    let mut time = rng.exponential(mean_gap);
    while time < SPAN {
        let terminal = rng.below(u64::from(TERMINALS)) as u32;
        medium.enqueue(Instant::ZERO + Duration::from_secs_f64(time), terminal, Small);
        time += rng.exponential(mean_gap);
    }
    medium.settle(Instant::ZERO + Duration::from_secs_f64(SPAN));
    let stats = medium.stats();
    let delay = stats.mean_access_delay().map_or(f64::NAN, Duration::as_millis_f64);
    [delay, 100.0 * stats.carried_packets as f64 / stats.offered_packets as f64]
}

/// Returns the mean and half the width of its 95 % confidence interval.
fn interval(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    (mean, STUDENT * (variance / count).sqrt())
}

fn main() {
    // Nine slots of 85 bytes in 24 ms; each holds one packet with its header.
    let frame = || Frame { length: Duration::from_millis(24), slots: 9, overhead: 0.0, header: 4 };
    let tdma_frame = Frame { slots: 50, length: Duration::from_micros(131_250), ..frame() };
    let slotted =
        SlottedAlohaConfig { slot_bytes: 84, header: 4, guard: Duration::ZERO, ..Default::default() };
    let crdsa_frame = Frame { slots: 36, length: Duration::from_millis(96), ..frame() };
    let schemes = [
        ("TDMA", Access::Tdma(tdma_frame.clone())),
        ("TDMA-DAMA", Access::Dama(DamaConfig { frame: tdma_frame, superframe: 2, ..Default::default() })),
        ("CF-DAMA", Access::CfDama(CfDamaConfig { frame: frame(), ..Default::default() })),
        ("slotted Aloha", Access::SlottedAloha(slotted)),
        ("CRDSA", Access::Crdsa(CrdsaConfig { frame: crdsa_frame, ..Default::default() })),
    ];
    print!("| load |");
    schemes.iter().for_each(|(name, _)| print!(" {name} |"));
    println!("\n|{}", "---:|".repeat(schemes.len() + 1));
    for load in [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] {
        print!("| {load:.2} |");
        for (_, access) in &schemes {
            let runs: Vec<_> = (1..=SEEDS).map(|seed| measure(access.clone(), load, seed)).collect();
            let [delay, carried] = [0, 1].map(|place| interval(runs.iter().map(|run| run[place])));
            print!(" {:.0} ± {:.0} ms, {:.1} ± {:.1} % |", delay.0, delay.1, carried.0, carried.1);
        }
        println!();
    }
}
