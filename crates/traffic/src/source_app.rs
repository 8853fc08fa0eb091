//! A source with its messages in flight, and the quality measurement at the receiver.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant};

use crate::emission::Emission;
use crate::outcome::{CallOutcome, ServiceOutcome, StreamOutcome};
use crate::playout::Playout;
use crate::source::Source;
use crate::timeliness::Timeliness;
use crate::voice::{Listener, mean_opinion_score};

/// A source, its messages in flight, and the measurement at the far end.
#[derive(Debug)]
pub struct SourceApp {
    source: Source,
    next: Option<Emission>,
    /// Payload bytes of a full packet.
    packet_bytes: u64,
    coalesces: bool,
    /// Number of messages sent.
    messages: u64,
    /// Bytes of the messages sent.
    bytes: u64,
    /// Number of packets sent over UDP.
    packets: u64,
    /// Over UDP: incomplete messages, keyed by number, with send time and missing bytes.
    open: BTreeMap<u64, (Instant, u64)>,
    /// Over TCP: bytes read in order, and segments with new data.
    read: u64,
    fresh_segments: u64,
    judge: Judge,
}

/// Quality measurement at the far end.
#[derive(Debug)]
pub enum Judge {
    /// None.
    Nobody,
    /// Viewer of live video.
    Viewer(Timeliness, Playout),
    /// Listener of a call.
    Listener(Listener),
}

impl SourceApp {
    /// Makes an application whose full packets have `packet_bytes` of payload. If it coalesces, only whole packets are written to
    /// a stream while more data follows.
    pub fn new(mut source: Source, judge: Judge, packet_bytes: u32, coalesces: bool) -> Self {
        Self {
            next: source.next_emission(),
            source,
            packet_bytes: u64::from(packet_bytes),
            coalesces,
            messages: 0,
            bytes: 0,
            packets: 0,
            open: BTreeMap::new(),
            read: 0,
            fresh_segments: 0,
            judge,
        }
    }

    /// Returns the time of the next message relative to the start; infinite if there is none.
    pub fn due(&self) -> Duration {
        self.next.map_or(Duration::MAX, |emission| emission.at)
    }

    /// Returns the message that is due.
    pub fn take(&mut self, now: Instant) -> Option<Emission> {
        let emission = std::mem::replace(&mut self.next, self.source.next_emission())?;
        self.messages += 1;
        self.bytes += u64::from(emission.bytes);
        if let Judge::Viewer(_, playout) = &mut self.judge {
            playout.handle_sent(now, self.bytes);
        }
        Some(emission)
    }

    /// Returns the message that is due, with its number, for a message transport.
    pub fn take_message(&mut self, now: Instant, start: Instant) -> Option<(u64, Emission)> {
        if start + self.due() > now {
            return None;
        }
        let emission = self.take(now)?;
        self.expect(now, emission);
        Some((self.messages, emission))
    }

    /// Records the last message as in flight, if quality is measured.
    fn expect(&mut self, now: Instant, emission: Emission) {
        if !matches!(self.judge, Judge::Nobody) {
            self.open.insert(self.messages, (now, u64::from(emission.bytes)));
        }
    }

    /// Handles a message that arrived completely.
    fn handle_message(&mut self, now: Instant, number: u64) {
        let Some((sent, _)) = self.open.remove(&number) else { return };
        match &mut self.judge {
            Judge::Nobody => {}
            Judge::Viewer(_, playout) => playout.handle_frame(now, sent),
            Judge::Listener(listener) => listener.handle_packet(now.since(sent)),
        }
    }

    /// Returns the bytes that should be written to the connection by now.
    pub fn writable(&self) -> u64 {
        if self.coalesces && self.next.is_some() {
            self.bytes - self.bytes % self.packet_bytes
        } else {
            self.bytes
        }
    }

    /// Handles `bytes` read from the connection.
    pub fn handle_read(&mut self, now: Instant, bytes: u64) {
        self.read += bytes;
        if let Judge::Viewer(_, playout) = &mut self.judge {
            playout.handle_stream(now, self.read);
        }
    }

    /// Handles the count of segments with new data at the receiving end.
    pub fn handle_segments(&mut self, now: Instant, fresh: u64) {
        if let Judge::Viewer(timeliness, _) = &mut self.judge
            && fresh > self.fresh_segments
        {
            timeliness.handle_packet(now);
        }
        self.fresh_segments = fresh;
    }

    /// Handles a packet with `bytes` bytes of a message.
    pub fn handle_packet(&mut self, now: Instant, message: u64, bytes: u64) {
        if let Judge::Viewer(timeliness, _) = &mut self.judge {
            timeliness.handle_packet(now);
        }
        self.handle_part(now, message, bytes);
    }

    /// Handles a part of a message; each part arrives once.
    pub fn handle_part(&mut self, now: Instant, message: u64, bytes: u64) {
        let Some((_, missing)) = self.open.get_mut(&message) else { return };
        *missing -= bytes;
        if *missing == 0 {
            self.handle_message(now, message);
        }
    }

    /// Counts a packet sent over UDP.
    pub fn note_packet(&mut self) {
        self.packets += 1;
    }

    /// Returns the number of packets sent over UDP.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the measures up to `now`. The transport sent `sent` packets for the first time, and `lost` were lost.
    pub fn service(&self, now: Instant, (sent, lost): (u64, u64)) -> ServiceOutcome {
        match &self.judge {
            Judge::Nobody => ServiceOutcome::default(),
            Judge::Viewer(timeliness, playout) => {
                let sent = sent.max(self.packets).max(self.bytes.div_ceil(self.packet_bytes));
                let stream = StreamOutcome {
                    frames_sent: self.messages,
                    frames_missed: playout.missed(now),
                    real_time_index: timeliness.index(sent),
                    delayed_packets_rate: timeliness.delayed_rate(sent),
                    packet_drop_rate: if sent == 0 { 0.0 } else { lost as f64 / sent as f64 },
                };
                ServiceOutcome { stream: Some(stream), ..ServiceOutcome::default() }
            }
            Judge::Listener(listener) => {
                ServiceOutcome { call: self.call(listener, now), ..ServiceOutcome::default() }
            }
        }
    }

    /// Returns the measures of a call, if any packet arrived.
    fn call(&self, listener: &Listener, now: Instant) -> Option<CallOutcome> {
        let pending = self.open.values().filter(|(sent, _)| !listener.is_due(*sent, now)).count() as u64;
        let due = self.messages - pending;
        let rating = listener.rating(due)?;
        Some(CallOutcome {
            mouth_to_ear_ms: listener.mouth_to_ear()?.as_millis_f64(),
            lost: listener.lost(due),
            rating,
            mos: mean_opinion_score(rating),
        })
    }
}
