//! The family "bandwidth": after a loss, the window follows from the measured bandwidth instead of half the flight.
//!
//! `cargo run --package bentpipe-cc --example bandwidth`
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "packet_transport.rs"]
mod toy;

pub fn main() {
    for name in ["reno", "westwood-plus", "tcp-j", "star"] {
        let sender = toy::transfer(name, 0.001);
        println!("one of 1000 packets lost: {name:13} {:5.2} of 20 Mbit/s", sender.goodput_mbps());
    }
}
