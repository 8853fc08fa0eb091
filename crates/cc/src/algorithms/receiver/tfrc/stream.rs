//! TFRC as a separate protocol: packets without retransmission, at the rate of the equation. Sender and receiver are state
//! machines without a clock; a driver carries their segments.
//!
//! The fields of RFC 5348 use the fields of a [`Segment`]. A packet has its message number in `seq` and its send time
//! (nanoseconds) in `ack`. Its extension holds its own number and the sender's round-trip time. A report has the echoed time in
//! `ack` and the measured rates in the extension. The receiver reports at a packet's arrival, so that `t_delay` is zero.

use alloc::collections::VecDeque;

use bentpipe_base::{Duration, Extension, Instant, Segment};

use super::messages::{Report, Stamp};
use super::receiver::Receiver;
use super::{Config, Tfrc};
use crate::Reflector;

/// Data to send.
#[derive(Clone, Debug)]
enum Source {
    /// An unlimited amount of data.
    Greedy,
    /// Messages or parts of them: number and length in bytes.
    Queue(VecDeque<(u64, u32)>),
}

/// The sender: RFC 5348 section 4.
#[derive(Clone, Debug)]
pub struct StreamSender {
    law: Tfrc,
    packet_bytes: u32,
    next: Instant,
    number: u64,
    source: Source,
    /// True if something was sent since the nofeedback timer was set.
    active: bool,
}

impl StreamSender {
    /// Makes a sender with unlimited data from `start` on, in packets of `packet_bytes` of payload (at least one).
    pub fn new(config: Config, packet_bytes: u32, start: Instant) -> Self {
        let mut law = Tfrc::new(config, packet_bytes);
        law.begin(start);
        let source = Source::Greedy;
        Self { law, packet_bytes: packet_bytes.max(1), next: start, number: 0, source, active: false }
    }

    /// Makes a sender of data passed to [`push`](Self::push), in packets of at most `packet_bytes` of payload.
    pub fn fed(config: Config, packet_bytes: u32, start: Instant) -> Self {
        Self { source: Source::Queue(VecDeque::new()), ..Self::new(config, packet_bytes, start) }
    }

    /// Adds one packet: a part of the message with this number. A greedy sender ignores it.
    pub fn push(&mut self, now: Instant, message: u64, bytes: u32) {
        if let Source::Queue(queue) = &mut self.source {
            queue.push_back((message, bytes));
            // Section 4.6: unused sending time is credit, at most one round trip.
            let credit = Duration::from_secs_f64(self.law.rtt_s);
            if now.since(self.next) > credit {
                self.next = now - credit;
            }
        }
    }

    /// Returns number and length of the next packet.
    fn take(&mut self) -> Option<(u64, u32)> {
        match &mut self.source {
            Source::Greedy => Some((self.number, self.packet_bytes)),
            Source::Queue(queue) => queue.pop_front(),
        }
    }

    fn has_more(&self) -> bool {
        match &self.source {
            Source::Greedy => true,
            Source::Queue(queue) => !queue.is_empty(),
        }
    }

    /// Returns the time of the next [`poll_transmit`](Self::poll_transmit) call.
    pub fn next_timeout(&self) -> Instant {
        let next = if self.has_more() { self.next } else { Instant::FAR_FUTURE };
        next.min(self.law.no_feedback_at)
    }

    /// Returns a packet that is due. Also checks the nofeedback timer (section 4.4).
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if now >= self.law.no_feedback_at {
            self.law.on_no_feedback(now, !self.active);
            self.active = false;
        }
        if now < self.next {
            return None;
        }
        let (message, len) = self.take()?;
        let number = self.number;
        self.number += 1;
        self.active = true;
        // If any packet had to wait, the interval was not data-limited.
        self.law.limited |= self.has_more();
        // Section 4.6: t_{i+1} = t_i + s / X_inst.
        let gap = Duration::from_secs_f64(f64::from(self.packet_bytes) / self.law.instantaneous());
        self.next += gap;
        if matches!(self.source, Source::Greedy) {
            self.next = self.next.max(now);
        }
        let stamp = Stamp { number: number as u32, rtt_us: (self.law.rtt_s * 1e6) as u32 };
        Some(Segment {
            seq: message,
            ack: now.as_nanos(),
            len,
            extension: Extension::Value(stamp.to_value()),
            ..Segment::default()
        })
    }

    /// Handles a report (section 4.3). A report with a future echo or invalid numbers is ignored.
    pub fn handle_report(&mut self, now: Instant, report: &Segment) {
        let Some(age) = now.as_nanos().checked_sub(report.ack).filter(|age| *age > 0) else { return };
        let first = self.law.rtt_s <= 0.0;
        self.law.sample(Duration::from_nanos(age));
        if first {
            self.law.open(now);
            self.next = self.next.min(now);
        }
        self.active = false;
        match report.extension {
            Extension::Value(value) if Report::from_value(value).is_some() => {
                if let Some(report) = Report::from_value(value) {
                    self.law.on_report(report, now);
                }
            }
            _ => self.law.restart_timer(now),
        }
    }

    /// Returns the smoothed round-trip time; `None` before the first report.
    pub fn srtt(&self) -> Option<Duration> {
        (self.law.rtt_s > 0.0).then(|| Duration::from_secs_f64(self.law.rtt_s))
    }

    /// Returns the number of packets sent.
    pub fn sent(&self) -> u64 {
        self.number
    }
}

/// The receiver: RFC 5348 sections 5 and 6.
#[derive(Clone, Debug, Default)]
pub struct StreamReceiver {
    half: Receiver,
    /// Loss-event rate and send time of the last report.
    reported: Option<(f32, Instant)>,
}

impl StreamReceiver {
    /// Handles a packet. Returns the report that it triggers. Reports leave with the first packet, then one round trip after the
    /// last report. They leave at once when the loss-event rate rises (section 6.1).
    pub fn handle_packet(&mut self, now: Instant, packet: &Segment) -> Option<Segment> {
        self.half.on_data(now, packet, false);
        let p = self.half.report.loss_event_rate;
        let due = self.reported.is_none_or(|(before, at)| p > before || now.since(at) >= self.half.rtt);
        if !due {
            return None;
        }
        self.reported = Some((p, now));
        let extension = self.half.reply(now);
        Some(Segment { seq: packet.seq, ack: packet.ack, extension, ..Segment::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    /// Sends over a path of 50 ms one way until `end_ms`; `lost` selects the lost packets by number. Returns the packets' times
    /// in milliseconds.
    fn run(end_ms: u64, lost: impl Fn(u64) -> bool) -> (StreamSender, Vec<f64>) {
        let mut sender = StreamSender::new(Config::default(), 1000, at(0));
        let mut receiver = StreamReceiver::default();
        let (mut packets, mut reports) =
            (std::collections::VecDeque::new(), std::collections::VecDeque::new());
        let mut times = Vec::new();
        loop {
            let arrival = packets.front().map_or(Instant::FAR_FUTURE, |(at, _): &(Instant, Segment)| *at);
            let answer = reports.front().map_or(Instant::FAR_FUTURE, |(at, _): &(Instant, Segment)| *at);
            let now = sender.next_timeout().min(arrival).min(answer);
            if now > at(end_ms) {
                return (sender, times);
            }
            if now == arrival {
                let (_, packet) = packets.pop_front().expect("it is there");
                if let Some(report) = receiver.handle_packet(now, &packet) {
                    reports.push_back((now + Duration::from_millis(50), report));
                }
            } else if now == answer {
                let (_, report) = reports.pop_front().expect("it is there");
                sender.handle_report(now, &report);
            } else if let Some(packet) = sender.poll_transmit(now) {
                times.push(now.as_nanos() as f64 / MS as f64);
                if !lost(packet.seq) {
                    packets.push_back((now + Duration::from_millis(50), packet));
                }
            }
        }
    }

    /// Section 4.2: one packet per second before the first round trip of 100 ms, then four per round trip (`W_init` is 4000
    /// bytes).
    #[test]
    fn it_begins_with_one_packet_and_then_four_a_round_trip() {
        let (sender, times) = run(200, |_| false);
        assert_eq!(times[..5], [0.0, 100.0, 125.0, 150.0, 175.0]);
        assert_eq!(sender.srtt(), Some(Duration::from_millis(100)));
    }

    /// Section 3.1 with s = 1000, R = 0.1, p = 0.01: 112,332 bytes per second.
    #[test]
    fn it_sends_what_the_equation_says() {
        let (_, times) = run(120_000, |number| number % 100 == 50);
        let late = times.iter().filter(|time| **time >= 60_000.0).count() as f64 / 60.0;
        assert!((late / 112.33 - 1.0).abs() < 0.02, "{late} packets a second");
    }

    /// Section 4.4: without reports the rate halves until it is one packet in 64 seconds.
    #[test]
    fn a_silent_receiver_slows_it_down_to_almost_nothing() {
        let (_, times) = run(2_000_000, |number| number > 200);
        let late = times.iter().filter(|time| **time >= 1_000_000.0).count();
        assert!((15..=17).contains(&late), "{late} packets in a thousand seconds");
    }

    /// A source of one packet per 100 ms for ten seconds, then a burst. The rate has not changed, and one round trip of credit
    /// starts the burst at once.
    #[test]
    fn a_slow_source_keeps_its_rate_and_some_credit() {
        let mut sender = StreamSender::fed(Config::default(), 1000, at(0));
        let mut receiver = StreamReceiver::default();
        let mut waits = Vec::new();
        for tenth in 0..100 {
            let now = at(100 * tenth);
            sender.push(now, tenth, 1000);
            if let Some(packet) = sender.poll_transmit(now) {
                waits.push(tenth - packet.seq);
                if let Some(report) = receiver.handle_packet(now + Duration::from_millis(25), &packet) {
                    sender.handle_report(now + Duration::from_millis(50), &report);
                }
            }
        }
        assert_eq!(waits.len(), 100, "nothing waits");
        let rate = sender.law.allowed;
        assert!(rate >= 20_000.0, "twice what arrives, or the initial window in a round trip: {rate}");
        (100..150).for_each(|number| sender.push(at(10_000), number, 1000));
        let burst = std::iter::from_fn(|| sender.poll_transmit(at(10_000))).count();
        assert!((2..20).contains(&burst), "{burst} packets of credit");
    }

    #[test]
    fn reports_of_nonsense_say_nothing() {
        let (mut sender, _) = run(1000, |_| false);
        let before = sender.law.allowed;
        for (ack, extension) in
            [(at(5000).as_nanos(), Extension::Value(u64::MAX)), (u64::MAX, Extension::None)]
        {
            sender.handle_report(at(1000), &Segment { ack, extension, ..Segment::default() });
        }
        assert_eq!(sender.law.allowed, before);
    }
}
