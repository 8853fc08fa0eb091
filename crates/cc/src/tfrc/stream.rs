//! TFRC as a protocol of its own: packets that nobody repeats, at the rate of the equation. Sender and receiver are state machines
//! without a clock; a driver carries their segments.
//!
//! The fields of RFC 5348 travel in the fields of a [`Segment`]: a packet has its number in `seq`, the time at which it left in `ack`
//! (nanoseconds) and the sender's round-trip time in the extension; a report has the echoed time in `ack` and the measured rates in the
//! extension. The receiver reports on the packet that arrives, so that `t_delay` is zero.

use bentpipe_base::{Duration, Extension, Instant, Segment};

use super::{Config, Receiver, Report, Stamp, Tfrc};
use crate::Reflector;

/// The sender: RFC 5348 section 4.
#[derive(Clone, Debug)]
pub struct StreamSender {
    law: Tfrc,
    packet_bytes: u32,
    next: Instant,
    number: u64,
    /// Something left since the nofeedback timer was set.
    active: bool,
}

impl StreamSender {
    /// A sender of packets of `packet_bytes` of payload (at least one) that always has something to send, from `start` on.
    pub fn new(config: Config, packet_bytes: u32, start: Instant) -> Self {
        let mut law = Tfrc::new(config, packet_bytes);
        law.begin(start);
        Self { law, packet_bytes: packet_bytes.max(1), next: start, number: 0, active: false }
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) next.
    pub fn next_timeout(&self) -> Instant {
        self.next.min(self.law.no_feedback_at)
    }

    /// The packet that is due, if one is. Looks at the nofeedback timer (section 4.4) as well.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if now >= self.law.no_feedback_at {
            self.law.on_no_feedback(now, !self.active);
            self.active = false;
        }
        if now < self.next {
            return None;
        }
        let number = self.number;
        self.number += 1;
        self.active = true;
        self.law.limited = true;
        // Section 4.6: t_{i+1} = t_i + s / X_inst, with a credit of at most one packet.
        let gap = Duration::from_secs_f64(f64::from(self.packet_bytes) / self.law.instantaneous());
        self.next = (self.next + gap).max(now);
        let stamp = Stamp { number: number as u32, rtt_us: (self.law.rtt_s * 1e6) as u32 };
        Some(Segment {
            seq: number,
            ack: now.as_nanos(),
            len: self.packet_bytes,
            extension: Extension::Value(stamp.to_value()),
            ..Segment::default()
        })
    }

    /// A report came (section 4.3). One that echoes a time to come, or holds numbers that no receiver sends, says nothing.
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

    /// Smoothed round-trip time; `None` before the first report.
    pub fn srtt(&self) -> Option<Duration> {
        (self.law.rtt_s > 0.0).then(|| Duration::from_secs_f64(self.law.rtt_s))
    }

    /// Packets sent.
    pub fn sent(&self) -> u64 {
        self.number
    }
}

/// The receiver: RFC 5348 sections 5 and 6.
#[derive(Debug, Default)]
pub struct StreamReceiver {
    half: Receiver,
    /// The last report: its loss-event rate, and when it left.
    reported: Option<(f32, Instant)>,
}

impl StreamReceiver {
    /// A packet arrived: the report that it triggers, if it does. Reports leave with the first packet, with the first one a round trip after the
    /// last report, and at once when the loss-event rate rises (section 6.1).
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

    /// Sends over a path of 50 ms one way until `end_ms`; `lost` decides by number. Returns the times of the packets in milliseconds.
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

    /// Section 4.2: a packet a second, then with the first round trip of 100 ms four packets (`W_init` is 4000 bytes) in each.
    #[test]
    fn it_begins_with_one_packet_and_then_four_a_round_trip() {
        let (sender, times) = run(200, |_| false);
        assert_eq!(times[..5], [0.0, 100.0, 125.0, 150.0, 175.0]);
        assert_eq!(sender.srtt(), Some(Duration::from_millis(100)));
    }

    /// Section 3.1 with s = 1000, R = 0.1, p = 0.01: 112 332 bytes a second.
    #[test]
    fn it_sends_what_the_equation_says() {
        let (_, times) = run(120_000, |number| number % 100 == 50);
        let late = times.iter().filter(|time| **time >= 60_000.0).count() as f64 / 60.0;
        assert!((late / 112.33 - 1.0).abs() < 0.02, "{late} packets a second");
    }

    /// Section 4.4: without reports the rate halves until it is a packet in 64 seconds.
    #[test]
    fn a_silent_receiver_slows_it_down_to_almost_nothing() {
        let (_, times) = run(2_000_000, |number| number > 200);
        let late = times.iter().filter(|time| **time >= 1_000_000.0).count();
        assert!((15..=17).contains(&late), "{late} packets in a thousand seconds");
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
