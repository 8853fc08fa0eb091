//! The family "delay": windows set by the queueing delay. Vegas and Copa keep a short queue where CUBIC fills it.
//!
//! `cargo run --package bentpipe-cc --example delay`
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "packet_transport.rs"]
mod toy;

pub fn main() {
    for name in ["cubic", "vegas", "copa"] {
        let sender = toy::transfer(name, 0.0);
        let srtt_ms = sender.control.srtt().expect("ACKs have arrived").as_millis_f64();
        println!(
            "{name:6} {:5.2} of 20 Mbit/s, {:3.0} ms in the queue",
            sender.goodput_mbps(),
            srtt_ms - 600.0
        );
    }
}
