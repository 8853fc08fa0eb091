//! The family "model": a model of the path sets window and pacing rate, so that random losses cost little.
//!
//! `cargo run --package bentpipe-cc --example model`
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "packet_transport.rs"]
mod toy;

use bentpipe_cc::base::Rate;

pub fn main() {
    for name in ["bbr", "bbr3", "zenith"] {
        let sender = toy::transfer(name, 0.01);
        let rate_mbps = sender.control.pacing_rate().map_or(0, Rate::bps) as f64 / 1e6;
        let window = sender.control.window() / 1200;
        let goodput = sender.goodput_mbps();
        println!(
            "{name:6} {goodput:5.2} of 20 Mbit/s; paces at {rate_mbps:5.2} Mbit/s within {window} packets"
        );
    }
}
