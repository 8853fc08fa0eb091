//! Prints the table of `docs/mac.md`: mean access delay under each access scheme, by load.
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

/// A packet of [`PACKET_BYTES`].
#[derive(Clone)]
struct Small;

impl Packet for Small {
    fn size(&self) -> u32 {
        PACKET_BYTES
    }
}

/// Returns the mean access delay in milliseconds, and the fraction of the offered packets that got through.
fn measure(access: Access, load: f64) -> (f64, f64) {
    let config = MediumConfig { rate: RATE, delay_one_way: Duration::from_millis(250), access };
    let terminal = TerminalConfig { queue: Limit::Packets(10_000), loss: LossConfig::default() };
    let terminals = vec![terminal; TERMINALS as usize];
    let mut medium = Medium::new(&config, &terminals, (1, "access")).expect("the table's media exist");
    let mut rng = Rng::stream(1, "arrivals");
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
    (delay, stats.carried_packets as f64 / stats.offered_packets as f64)
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
            let (delay, carried) = measure(access.clone(), load);
            print!(" {delay:.0} ms, {:.0} % |", 100.0 * carried);
        }
        println!();
    }
}
