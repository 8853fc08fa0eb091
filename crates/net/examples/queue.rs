//! Sends ten packets of 1000 bytes at once through a link of 8 Mbit/s and 100 ms with a queue of five packets.
//!
//! `cargo run --package bentpipe-net --example queue`

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Limit, Link, LinkConfig, Packet, QueueConfig};

/// A packet with its number.
#[derive(Clone)]
struct Numbered(u32);

impl Packet for Numbered {
    fn size(&self) -> u32 {
        1000
    }
}

fn main() {
    let queue = QueueConfig::DropTail { limit: Limit::Packets(5) };
    let config = LinkConfig::new(Rate::from_bps(8_000_000), Duration::from_millis(100), queue);
    let mut link = Link::new(&config, 1, "example").expect("the configuration is valid");
    for number in 0..10 {
        let verdict = link.enqueue(Instant::ZERO, Numbered(number));
        println!("packet {number}: {verdict:?}");
    }
    while link.next_event() < Instant::FAR_FUTURE {
        let now = link.next_event();
        while let Some(arrival) = link.deliver(now) {
            println!("packet {} arrives after {}", arrival.packet.0, now.since(Instant::ZERO));
        }
    }
}
