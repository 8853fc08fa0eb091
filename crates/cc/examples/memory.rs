//! The family "memory": a connection starts with what earlier ones to the same destination learnt.
//!
//! `cargo run --package bentpipe-cc --example memory`
#![allow(missing_docs)]

use bentpipe_cc::base::{Duration, Instant};
use bentpipe_cc::packets::{AckInfo, PacketControl, Settings};
use bentpipe_cc::{Algorithm, PathMemory};

const RTT: Duration = Duration::from_millis(600);

/// Fills the window for six round trips without a loss. Returns the windows at begin and end, in bytes.
fn connection(memory: &PathMemory, mut now: Instant) -> (u64, u64) {
    let algorithm = Algorithm::from_name("sharing").expect("it is registered");
    let settings = Settings { memory: Some(memory.clone()), ..Settings::default() };
    let mut control = PacketControl::new(&algorithm, &settings).expect("it fits a packet transport");
    control.established(now, Some(RTT));
    let (first, mut next) = (control.window(), 0);
    for _ in 0..6 {
        let packets = control.window() / 1200;
        (next..next + packets).for_each(|number| control.on_sent(now, number, 1200).expect("numbers rise"));
        now += RTT;
        (next..next + packets).for_each(|number| control.on_acked(number));
        control.end_ack(now, AckInfo { rtt: Some(RTT), app_limited: false, marks: 0 });
        next += packets;
    }
    control.close(now);
    (first, control.window())
}

pub fn main() {
    let memory = PathMemory::new();
    for second in [1, 10, 60] {
        let (first, last) = connection(&memory, Instant::ZERO + Duration::from_secs(second));
        println!("at {second:2} s: a window of {first} bytes grows to {last}");
    }
}
