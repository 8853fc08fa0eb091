//! A toy transport that numbers its packets, over a link in memory: the use of `PacketControl` from end to end.
//!
//! `cargo run --package bentpipe-cc --example packet_transport [ALGORITHM]`
//!
//! The transport detects losses by RFC 9002: a packet is lost if one sent three packets or 9/8 of a round trip later was
//! acknowledged. After two silent round trips, a probe leaves beyond the window.
#![allow(missing_docs)]

use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_cc::packets::{AckInfo, PacketControl, Settings, supported};
use bentpipe_cc::{Algorithm, Wake};

/// A FIFO link and the way back. ACKs return in the order of their packets.
pub struct Link {
    pub rate: Rate,
    /// Round-trip time of an empty link.
    pub rtt: Duration,
    /// Bytes that may wait for transmission.
    pub buffer: u64,
    /// Share of packets lost after the queue.
    pub loss: f64,
    /// State of the random numbers (xorshift); never zero.
    pub dice: u64,
    free_at: Instant,
    acks: VecDeque<(Instant, u64)>,
}

impl Link {
    pub fn new(rate: Rate, rtt: Duration, buffer: u64) -> Self {
        Self { rate, rtt, buffer, loss: 0.0, dice: 1, free_at: Instant::ZERO, acks: VecDeque::new() }
    }

    fn send(&mut self, now: Instant, number: u64, bytes: u32) {
        let waiting = self.free_at.since(now);
        if self.rate.bytes_in(waiting) + u64::from(bytes) > self.buffer {
            return;
        }
        self.free_at = self.free_at.max(now) + self.rate.time_for(bytes.into());
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        if self.dice as f64 / u64::MAX as f64 >= self.loss {
            self.acks.push_back((self.free_at + self.rtt, number));
        }
    }
}

/// A sender with endless data.
pub struct Sender {
    pub control: PacketControl,
    /// Payload of the next packets.
    pub datagram: u32,
    in_flight: BTreeMap<u64, (Instant, u32)>,
    next_number: u64,
    last_activity: Instant,
    pub acked_bytes: u64,
    pub lost_packets: u64,
}

impl Sender {
    pub fn new(control: PacketControl) -> Self {
        let in_flight = BTreeMap::new();
        let last_activity = Instant::ZERO;
        Self {
            control,
            datagram: 1200,
            in_flight,
            next_number: 0,
            last_activity,
            acked_bytes: 0,
            lost_packets: 0,
        }
    }

    /// Runs the transfer from `now` to `end`.
    pub fn run(&mut self, link: &mut Link, mut now: Instant, end: Instant) {
        while now < end {
            let mut next = end;
            while let Some(at) = self.control.departure(now, self.datagram) {
                if at > now {
                    next = next.min(at);
                    break;
                }
                self.send(link, now);
            }
            next = next.min(self.probe_at()).min(self.control.timeout());
            next = link.acks.front().map_or(next, |(at, _)| next.min(*at));
            now = next.max(now);
            while link.acks.front().is_some_and(|(at, _)| *at <= now) {
                let (_, number) = link.acks.pop_front().expect("there is a first one");
                self.on_ack(now, number);
            }
            if self.control.timeout() <= now && self.control.on_timeout(now) == Wake::AskForAck
                || self.probe_at() <= now
            {
                self.send(link, now);
            }
        }
    }

    /// Sends a packet of new or lost data; the window is the caller's business.
    fn send(&mut self, link: &mut Link, now: Instant) {
        self.control.on_sent(now, self.next_number, self.datagram).expect("numbers rise by one");
        self.in_flight.insert(self.next_number, (now, self.datagram));
        link.send(now, self.next_number, self.datagram);
        self.next_number += 1;
        self.last_activity = now;
    }

    fn on_ack(&mut self, now: Instant, number: u64) {
        let Some((sent_at, bytes)) = self.in_flight.remove(&number) else { return };
        let rtt = now.since(sent_at);
        self.last_activity = now;
        self.acked_bytes += u64::from(bytes);
        self.control.on_acked(number);
        let reordering = rtt.max(self.control.srtt().unwrap_or(rtt)) / 8 * 9;
        let is_lost = |(sent, (at, _)): (&u64, &(Instant, u32))| {
            (sent + 3 <= number || *at + reordering <= now).then_some((*sent, *at))
        };
        let lost: Vec<_> = self.in_flight.range(..number).filter_map(is_lost).collect();
        for (number, _) in &lost {
            self.in_flight.remove(number);
            self.control.on_lost(*number);
        }
        self.lost_packets += lost.len() as u64;
        // RFC 9002 section 7.6: all packets of three probe timeouts were lost.
        let span =
            lost.first().zip(lost.last()).map_or(Duration::ZERO, |(first, last)| last.1.since(first.1));
        if span > self.patience() * 3 {
            self.control.on_persistent_congestion(now);
        }
        self.control.end_ack(now, AckInfo { rtt: Some(rtt), app_limited: false, marks: 0 });
    }

    fn patience(&self) -> Duration {
        self.control.srtt().unwrap_or(Duration::from_millis(500)) * 2
    }

    /// Returns the time at which silence makes a probe leave.
    fn probe_at(&self) -> Instant {
        if self.in_flight.is_empty() { Instant::FAR_FUTURE } else { self.last_activity + self.patience() }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(1);
    let names =
        supported().map(|entry| entry.name).filter(|name| only.as_deref().is_none_or(|only| only == *name));
    for name in names {
        let algorithm = Algorithm::from_name(name).expect("it is registered");
        let mut control = PacketControl::new(&algorithm, &Settings::default())?;
        control.established(Instant::ZERO, Some(Duration::from_millis(600)));
        let mut link = Link::new(Rate::from_mbps(20), Duration::from_millis(600), 1_500_000);
        link.loss = 0.001;
        let mut sender = Sender::new(control);
        sender.run(&mut link, Instant::ZERO, Instant::ZERO + Duration::from_secs(60));
        let goodput_mbps = sender.acked_bytes as f64 * 8.0 / 60.0 / 1e6;
        println!("{name:14} {goodput_mbps:5.2} Mbit/s, {} packets lost", sender.lost_packets);
    }
    Ok(())
}
