//! The family "loss": windows set by losses only. Hybla grows as a connection of 25 ms would, whatever the round-trip time.
//!
//! `cargo run --package bentpipe-cc --example loss`
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "packet_transport.rs"]
mod toy;

pub fn main() {
    for loss in [0.0, 0.001, 0.01] {
        for name in ["reno", "cubic", "hybla"] {
            let sender = toy::transfer(name, loss);
            println!("{loss:5} of packets lost: {name:6} {:5.2} of 20 Mbit/s", sender.goodput_mbps());
        }
    }
}
