//! Sources in the world: what they send as it leaves, and how it is judged where it arrives.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant, Rng, Segment};
use bentpipe_scenario::{FlowGroup, Streaming, Traffic, Transport};
use bentpipe_traffic::frames::Frames;
use bentpipe_traffic::mpeg::{Mpeg, Style};
use bentpipe_traffic::on_off::{self, OnOff, Spacing, Times};
use bentpipe_traffic::voice::{Listener, Talker, mean_opinion_score};
use bentpipe_traffic::{Emission, Playout, Source, Timeliness};

use crate::{CallOutcome, StreamOutcome};

/// What the sources of a group have in common.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Video(Style),
    Other,
}

impl Pattern {
    /// Of a group.
    pub fn new(group: &FlowGroup) -> Self {
        match &group.traffic {
            Traffic::Video { video, .. } => Self::Video(Style::new(video)),
            _ => Self::Other,
        }
    }
}

/// A source, its messages on their way, and the judges at the far end.
#[derive(Debug)]
pub(crate) struct SourceApp {
    source: Source,
    next: Option<Emission>,
    /// Payload of a full packet.
    packet_bytes: u64,
    /// Over TCP: only whole packets are written while more is to come.
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
enum Judge {
    Nobody,
    Viewer(Timeliness, Playout),
    Listener(Listener),
}

impl Judge {
    fn viewer(stream: &Streaming) -> Self {
        Self::Viewer(Timeliness::new(stream.threshold), Playout::new(stream.playout_delay))
    }
}

impl SourceApp {
    /// The source of a flow whose group is one of sources; none if it is not.
    pub fn new(group: &FlowGroup, pattern: &Pattern, rng: Rng) -> Option<Self> {
        let bursts =
            |config: &on_off::Config, rng| Source::OnOff(OnOff::new(config, group.header_bytes, rng));
        let (source, judge) = match &group.traffic {
            Traffic::Cbr { rate, packet_bytes, spacing }
                if group.transport != Transport::Udp || *spacing != Spacing::Even =>
            {
                let (rate, packet_bytes, spacing, off) = (*rate, *packet_bytes, *spacing, Duration::ZERO);
                let (on, times) = (Duration::from_secs(1), Times::Exponential);
                let config = on_off::Config { rate, packet_bytes, on, off, times, spacing };
                (bursts(&config, rng), Judge::Nobody)
            }
            Traffic::OnOff(config) => (bursts(config, rng), Judge::Nobody),
            Traffic::Video { stream, .. } => {
                let Pattern::Video(style) = pattern else { return None };
                (Source::Mpeg(Mpeg::new(style.clone(), rng)), Judge::viewer(stream))
            }
            Traffic::Frames { recording, frames_per_s, repeat, stream, .. } => {
                let frames = Frames::new(recording.clone(), *frames_per_s, *repeat);
                (Source::Frames(frames), Judge::viewer(stream))
            }
            Traffic::Voice { codec, suppress_silence, jitter_buffer } => {
                let listener = Listener::new(*codec, *jitter_buffer);
                (Source::Talker(Talker::new(*codec, *suppress_silence, rng)), Judge::Listener(listener))
            }
            _ => return None,
        };
        Some(Self::of(source, judge, group))
    }

    fn of(mut source: Source, judge: Judge, group: &FlowGroup) -> Self {
        let coalesces = match &group.traffic {
            Traffic::Video { stream, .. } | Traffic::Frames { stream, .. } => stream.coalesce,
            _ => false,
        };
        Self {
            next: source.next_emission(),
            source,
            packet_bytes: u64::from(group.sender.mss),
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

    /// A packet of a message arrived.
    pub fn handle_packet(&mut self, now: Instant, packet: &Segment) {
        if let Judge::Viewer(timeliness, _) = &mut self.judge {
            timeliness.handle_packet(now);
        }
        self.handle_part(now, packet.seq, u64::from(packet.len));
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

    /// How a viewer was served, if there is one; its transport sent so many packets for the first time, and so many were lost
    /// on the way.
    pub fn stream_outcome(&self, now: Instant, (sent, lost): (u64, u64)) -> Option<StreamOutcome> {
        let Judge::Viewer(timeliness, playout) = &self.judge else { return None };
        let sent = sent.max(self.packets).max(self.bytes.div_ceil(self.packet_bytes));
        Some(StreamOutcome {
            frames_sent: self.messages,
            frames_missed: playout.missed(now),
            real_time_index: timeliness.index(sent),
            delayed_packets_rate: timeliness.delayed_rate(sent),
            packet_drop_rate: if sent == 0 { 0.0 } else { lost as f64 / sent as f64 },
        })
    }

    /// How a listener was served, if there is one who heard anything.
    pub fn call_outcome(&self, now: Instant) -> Option<CallOutcome> {
        let Judge::Listener(listener) = &self.judge else { return None };
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
