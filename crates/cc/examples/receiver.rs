//! The family "receiver": the receiver measures, the sender obeys. TFRC streams over a path that loses every 500th packet.
//!
//! `cargo run --package bentpipe-cc --example receiver`
#![allow(missing_docs)]

use std::collections::VecDeque;

use bentpipe_cc::base::{Duration, Instant};
use bentpipe_cc::tfrc::{Config, StreamReceiver, StreamSender};

const ONE_WAY: Duration = Duration::from_millis(300);

pub fn main() {
    let start = Instant::ZERO + Duration::from_secs(1);
    let mut sender = StreamSender::new(Config::default(), 1200, start);
    let mut receiver = StreamReceiver::default();
    let (mut packets, mut reports) = (VecDeque::new(), VecDeque::new());
    let mut now = start;
    while now < start + Duration::from_secs(120) {
        while let Some(packet) = sender.poll_transmit(now) {
            if !sender.sent().is_multiple_of(500) {
                packets.push_back((now + ONE_WAY, packet));
            }
        }
        if packets.front().is_some_and(|(at, _)| *at <= now) {
            let (_, packet) = packets.pop_front().expect("there is a first one");
            reports.extend(receiver.handle_packet(now, &packet).map(|report| (now + ONE_WAY, report)));
        }
        if reports.front().is_some_and(|(at, _)| *at <= now) {
            let (_, report) = reports.pop_front().expect("there is a first one");
            sender.handle_report(now, &report);
        }
        let arrivals = [packets.front(), reports.front()].into_iter().flatten().map(|(at, _)| *at);
        now = arrivals.chain([sender.next_timeout()]).min().expect("a timer is set").max(now);
    }
    let mbps = sender.sent() as f64 * 1200.0 * 8.0 / 120e6;
    println!("{} packets in 120 s, {mbps:.2} Mbit/s", sender.sent());
}
