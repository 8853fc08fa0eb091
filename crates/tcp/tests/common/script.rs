//! One end against a scripted peer; the end's output reads like a packet trace.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::fmt::Write;

use bentpipe_base::{Duration, Flags, Instant, Probe, SackBlocks, SackRange, Segment, SynOptions};
use bentpipe_tcp::{Config, Connection, DelayedAck, Events, Pacing, RtoBounds, State, WindowValidation};

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Segments of 1000 bytes without optional features.
pub fn plain() -> Config {
    Config::default().with(|config| {
        config.mss = 1000;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.timestamps = false;
        config.receiver.dsack = false;
        config.sender.limited_transmit = false;
        config.sender.prr = false;
        config.sender.pacing = Pacing::Off;
        config.sender.window_validation = WindowValidation::Off;
        config.sender.rto = RtoBounds {
            initial: ms(1000),
            floor: ms(200),
            margin: ms(0),
            ceiling: ms(60_000),
            tick: ms(1),
            each_sample: false,
            restart_on_sacks: false,
        };
    })
}

pub struct Script {
    pub end: Connection,
    pub now: Instant,
    pub events: Events,
    /// Next sequence number and window of the scripted peer.
    pub seq: u64,
    pub window: u32,
    /// Segments sent by the end since the last check of the script.
    pub sent: Vec<(Instant, Segment)>,
}

impl Script {
    pub fn connecting(config: Config) -> Self {
        let now = Instant::ZERO + ms(1000);
        Self::new(Connection::connect(config.into(), 1, now), now)
    }

    pub fn listening(config: Config) -> Self {
        Self::new(Connection::listen(config.into(), 1), Instant::ZERO + ms(1000))
    }

    fn new(end: Connection, now: Instant) -> Self {
        let mut script = Self { end, now, events: Events::empty(), seq: 0, window: 1_000_000, sent: vec![] };
        script.drain();
        script
    }

    /// Makes an end that connected 100 ms ago; the peer agrees to everything offered.
    pub fn established(config: Config) -> Self {
        let mut script = Self::connecting(config);
        let syn = script.sent.pop().unwrap().1;
        script.wait(100);
        let window = script.window;
        script.give(Segment {
            flags: Flags::SYN | Flags::ACK | (syn.flags & Flags::ECE),
            window: window.min(65_535),
            timestamps: syn.timestamps.map(|(value, _)| (script.clock(), value)),
            syn_options: syn.syn_options,
            ack: 1,
            ..Segment::default()
        });
        script.seq = 1;
        script.window = window;
        assert_eq!(script.trace(), ["ack 1"]);
        assert_eq!(script.end.state(), State::Established);
        let clock = script.clock();
        // With timestamps agreed on, a segment without them would be dropped (RFC 7323, section
        // 3.2).
        script.ack_with(1, |segment| segment.timestamps = syn.timestamps.map(|(echo, _)| (clock, echo)));
        script
    }

    pub fn clock(&self) -> u32 {
        (self.now.as_nanos() / 1_000_000) as u32
    }

    pub fn drain(&mut self) {
        while let Some(segment) = self.end.poll_transmit(self.now) {
            self.sent.push((self.now, segment));
        }
        self.events |= self.end.take_events();
    }

    /// Advances time, with all timers due in it.
    pub fn wait(&mut self, millis: u64) {
        let until = self.now + ms(millis);
        while self.end.next_timeout() <= until {
            self.now = self.now.max(self.end.next_timeout());
            self.end.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    pub fn give(&mut self, segment: Segment) {
        self.end.handle_segment(self.now, &segment);
        self.drain();
    }

    pub fn write(&mut self, bytes: u64) {
        assert_eq!(self.end.write(self.now, bytes), bytes);
        self.drain();
    }

    pub fn close(&mut self) {
        self.end.close(self.now);
        self.drain();
    }

    pub fn read(&mut self) -> u64 {
        let bytes = self.end.read(self.now, u64::MAX);
        self.drain();
        bytes
    }

    /// Delivers a pure ACK of the peer.
    pub fn ack_with(&mut self, ack: u64, change: impl FnOnce(&mut Segment)) {
        let mut segment =
            Segment { seq: self.seq, ack, window: self.window, flags: Flags::ACK, ..Segment::default() };
        change(&mut segment);
        self.give(segment);
    }

    pub fn ack(&mut self, ack: u64) {
        self.ack_with(ack, |_| {});
    }

    /// Delivers an ACK that reports these ranges.
    pub fn sack(&mut self, ack: u64, ranges: &[(u64, u64)]) {
        let mut sack = SackBlocks::EMPTY;
        ranges.iter().for_each(|&(start, end)| sack.push(SackRange { start, end }));
        self.ack_with(ack, |segment| segment.sack = sack);
    }

    /// Delivers data of the peer at any position.
    pub fn data(&mut self, seq: u64, len: u32, ack: u64) {
        self.ack_with(ack, |segment| {
            segment.seq = seq;
            segment.len = len;
        });
        self.seq = self.seq.max(seq + u64::from(len));
    }

    /// Delivers the peer's FIN.
    pub fn fin(&mut self, ack: u64) {
        self.ack_with(ack, |segment| segment.flags |= Flags::FIN);
        self.seq += 1;
    }

    /// Delivers a segment with only flags.
    pub fn flags(&mut self, flags: Flags, seq: u64, ack: u64) {
        let window = self.window;
        let options = SynOptions { mss: Some(1000), ..SynOptions::default() };
        let syn_options = flags.contains(Flags::SYN).then_some(options);
        self.give(Segment { seq, ack, flags, window, syn_options, ..Segment::default() });
    }

    pub fn syn(&mut self, options: SynOptions) {
        let window = self.window.min(65_535);
        self.give(Segment { flags: Flags::SYN, window, syn_options: Some(options), ..Segment::default() });
        self.seq = 1;
    }

    /// Returns the segments sent since the last call.
    pub fn trace(&mut self) -> Vec<String> {
        self.sent.drain(..).map(|(_, segment)| describe(&segment)).collect()
    }

    /// Returns the same with the milliseconds since `from`.
    pub fn timed(&mut self, from: Instant) -> Vec<String> {
        let line = |(at, segment): (Instant, Segment)| {
            format!("{} {}", at.since(from).as_nanos() / 1_000_000, describe(&segment))
        };
        self.sent.drain(..).map(line).collect()
    }

    /// Returns the window in segments, cut to three digits.
    pub fn window(&self) -> f64 {
        (self.end.window_state().cwnd * 1000.0).round() / 1000.0
    }
}

/// Formats a segment: `1001+1000`, `ack 5001`, `SYN`, `FIN 7`, `RST 1`.
pub fn describe(segment: &Segment) -> String {
    let Segment { seq, ack, len, flags, .. } = segment;
    let mut text = String::new();
    if flags.contains(Flags::RST) {
        let _ = write!(text, "RST {seq}");
    } else if flags.contains(Flags::SYN) {
        text += if flags.contains(Flags::ACK) { "SYN-ACK" } else { "SYN" };
    } else if *len > 0 {
        let _ = write!(text, "{seq}+{len}");
        text += if flags.contains(Flags::FIN) { " FIN" } else { "" };
    } else if flags.contains(Flags::FIN) {
        let _ = write!(text, "FIN {seq}");
    } else {
        let _ = write!(text, "ack {ack}");
    }
    for block in segment.sack.as_slice() {
        let _ = write!(text, " {}-{}", block.start, block.end);
    }
    match segment.probe {
        Probe::No => {}
        Probe::Probe(_) => text += " probe",
        Probe::Reply(_) => text += " reply",
    }
    text
}
