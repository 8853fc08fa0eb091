//! A source with its messages on their way, and how they are judged where they arrive.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant};

use crate::emission::Emission;
use crate::outcome::{CallOutcome, ServiceOutcome, StreamOutcome};
use crate::playout::Playout;
use crate::source::Source;
use crate::timeliness::Timeliness;
use crate::voice::{Listener, mean_opinion_score};

/// A source, its messages on their way, and the judges at the far end.
#[derive(Debug)]
pub struct SourceApp {
    source: Source,
    next: Option<Emission>,
    /// Payload of a full packet.
    packet_bytes: u64,
    coalesces: bool,
    /// Messages sent.
    messages: u64,
    /// Bytes of them.
    bytes: u64,
    /// Packets sent, over UDP.
    packets: u64,
    /// Over UDP: messages not complete, with when they were sent and what is missing, by number.
    open: BTreeMap<u64, (Instant, u64)>,
    /// Over TCP: bytes read in order, and segments that brought something new.
    read: u64,
    fresh_segments: u64,
    judge: Judge,
}

/// Who listens or watches at the far end.
#[derive(Debug)]
pub enum Judge {
    /// Nobody.
    Nobody,
    /// Somebody who watches a live video.
    Viewer(Timeliness, Playout),
    /// The other side of a call.
    Listener(Listener),
}

impl SourceApp {
    /// A source whose packets have so many bytes of payload when they are full. If it coalesces, only whole packets are written to a stream
    /// while more is to come.
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

    /// When the next message is due, after the start; never if there is none.
    pub fn due(&self) -> Duration {
        self.next.map_or(Duration::MAX, |emission| emission.at)
    }

    /// The message that is due.
    pub fn take(&mut self, now: Instant) -> Option<Emission> {
        let emission = std::mem::replace(&mut self.next, self.source.next_emission())?;
        self.messages += 1;
        self.bytes += u64::from(emission.bytes);
        if let Judge::Viewer(_, playout) = &mut self.judge {
            playout.handle_sent(now, self.bytes);
        }
        Some(emission)
    }

    /// The message that is due, with its number, for a transport of messages.
    pub fn take_message(&mut self, now: Instant, start: Instant) -> Option<(u64, Emission)> {
        if start + self.due() > now {
            return None;
        }
        let emission = self.take(now)?;
        self.expect(now, emission);
        Some((self.messages, emission))
    }

    /// The message taken last is on its way; of interest if somebody judges it.
    fn expect(&mut self, now: Instant, emission: Emission) {
        if !matches!(self.judge, Judge::Nobody) {
            self.open.insert(self.messages, (now, u64::from(emission.bytes)));
        }
    }

    /// A message arrived as a whole.
    fn handle_message(&mut self, now: Instant, number: u64) {
        let Some((sent, _)) = self.open.remove(&number) else { return };
        match &mut self.judge {
            Judge::Nobody => {}
            Judge::Viewer(_, playout) => playout.handle_frame(now, sent),
            Judge::Listener(listener) => listener.handle_packet(now.since(sent)),
        }
    }

    /// Bytes to have been written to the connection by now.
    pub fn writable(&self) -> u64 {
        if self.coalesces && self.next.is_some() {
            self.bytes - self.bytes % self.packet_bytes
        } else {
            self.bytes
        }
    }

    /// Bytes were read from the connection.
    pub fn handle_read(&mut self, now: Instant, bytes: u64) {
        self.read += bytes;
        if let Judge::Viewer(_, playout) = &mut self.judge {
            playout.handle_stream(now, self.read);
        }
    }

    /// The receiving end has got so many segments with something new.
    pub fn handle_segments(&mut self, now: Instant, fresh: u64) {
        if let Judge::Viewer(timeliness, _) = &mut self.judge
            && fresh > self.fresh_segments
        {
            timeliness.handle_packet(now);
        }
        self.fresh_segments = fresh;
    }

    /// A packet arrived with so many bytes of a message.
    pub fn handle_packet(&mut self, now: Instant, message: u64, bytes: u64) {
        if let Judge::Viewer(timeliness, _) = &mut self.judge {
            timeliness.handle_packet(now);
        }
        self.handle_part(now, message, bytes);
    }

    /// A part of a message arrived, each once.
    pub fn handle_part(&mut self, now: Instant, message: u64, bytes: u64) {
        let Some((_, missing)) = self.open.get_mut(&message) else { return };
        *missing -= bytes;
        if *missing == 0 {
            self.handle_message(now, message);
        }
    }

    /// A packet was sent over UDP.
    pub fn note_packet(&mut self) {
        self.packets += 1;
    }

    /// Packets sent over UDP.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// How it was served by now. Its transport sent so many packets for the first time, and so many were lost on the way.
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

    /// How a listener was served who heard anything.
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
