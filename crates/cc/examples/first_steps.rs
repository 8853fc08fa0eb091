//! The calls of a transport for one packet; README.md shows the same lines.
//!
//! `cargo run --package bentpipe-cc --example first_steps`
#![allow(missing_docs)]

use bentpipe_cc::Algorithm;
use bentpipe_cc::base::{Duration, Instant};
use bentpipe_cc::packets::{AckInfo, PacketControl, Settings};

pub fn main() -> Result<(), Box<dyn core::error::Error>> {
    let algorithm = Algorithm::from_name("zenith").expect("it is registered");
    let mut control = PacketControl::new(&algorithm, &Settings::default())?;
    let start = Instant::from_nanos(1_000_000_000);
    let rtt = Some(Duration::from_millis(600));
    control.established(start, rtt);
    if control.departure(start, 1200) == Some(start) {
        control.on_sent(start, 0, 1200)?; // time, packet number, bytes
    }
    let later = start + Duration::from_millis(600);
    control.on_acked(0);
    control.end_ack(later, AckInfo { rtt, app_limited: false, marks: 0 });
    println!("{} bytes may be in flight", control.window());
    Ok(())
}
