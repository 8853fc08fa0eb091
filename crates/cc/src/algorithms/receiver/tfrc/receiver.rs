//! The receiver half, RFC 5348 sections 5 and 6.

use crate::Reflector;
use bentpipe_base::{Duration, Extension, Instant, Segment};

use super::intervals::{Intervals, inverse};
use super::messages::{Report, Stamp};

/// Section 5.1: number of later arrivals that prove a loss.
const NDUPACK: u32 = 3;
/// Maximum number of watched holes; beyond it the oldest counts as lost.
const MAX_HOLES: usize = 16;

/// Skipped numbers that may still arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Hole {
    /// First and last number missing.
    first: u32,
    last: u32,
    /// Arrival time of the segment before the hole. The first missing one was due between it and `after`.
    before: Instant,
    after: Instant,
    /// Segments that arrived after the hole.
    later: u32,
}

impl Hole {
    /// `T_loss` of the first missing segment, by interpolation (section 5.2).
    fn lost_at(&self) -> Instant {
        let steps = u64::from(self.last - self.first) + 2;
        self.before + self.after.since(self.before) / steps
    }
}

/// The receiver of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    /// Highest number and its arrival time; `None` before the first segment.
    highest: Option<(u32, Instant)>,
    holes: [Option<Hole>; MAX_HOLES],
    intervals: Intervals,
    /// Number and time of the first segment lost in the current loss event.
    event: Option<(u32, Instant)>,
    pub rtt: Duration,
    segment: f64,
    /// Bytes since the last report.
    bytes: u64,
    since: Instant,
    /// Highest receive rate so far.
    fastest: f64,
    pub report: Report,
}

impl Receiver {
    /// Handles the arrival of a segment with this number.
    fn note(&mut self, number: u32, now: Instant) {
        let Some((highest, at)) = self.highest else {
            self.highest = Some((number, now));
            self.since = now;
            return;
        };
        let ahead = number.wrapping_sub(highest);
        if ahead == 0 || ahead > u32::MAX / 2 {
            return self.fill(number);
        }
        self.highest = Some((number, now));
        self.age_holes(highest);
        if ahead > 1 {
            let hole = Hole {
                first: highest.wrapping_add(1),
                last: number.wrapping_sub(1),
                before: at,
                after: now,
                later: 1,
            };
            self.watch(hole);
        }
    }

    /// Handles a late arrival. The numbers behind it in its hole are no longer watched.
    fn fill(&mut self, number: u32) {
        for slot in &mut self.holes {
            let Some(hole) = slot else { continue };
            if number == hole.first && hole.first == hole.last {
                *slot = None;
            } else if number == hole.first {
                hole.first = hole.first.wrapping_add(1);
            } else if (hole.first..=hole.last).contains(&number) {
                hole.last = number.wrapping_sub(1);
            }
        }
    }

    /// Counts one arrival after every hole; three prove the loss.
    fn age_holes(&mut self, highest: u32) {
        for index in 0..MAX_HOLES {
            let Some(hole) = &mut self.holes[index] else { continue };
            hole.later += 1;
            if hole.later >= NDUPACK {
                let hole = *hole;
                self.holes[index] = None;
                self.lose(&hole, highest);
            }
        }
    }

    fn watch(&mut self, hole: Hole) {
        let free = self.holes.iter().position(Option::is_none).unwrap_or(0);
        if let Some(crowded_out) = self.holes[free].replace(hole) {
            self.lose(&crowded_out, crowded_out.last);
        }
    }

    /// Section 5.2: a loss more than one round trip after the start of the last event starts a new event.
    fn lose(&mut self, hole: &Hole, highest: u32) {
        let at = hole.lost_at();
        if let Some((_, began)) = self.event
            && at <= began + self.rtt
        {
            return;
        }
        if self.intervals.is_empty() {
            self.intervals.begin_with(self.first_interval());
        } else if let Some((start, _)) = self.event {
            self.intervals.set_open(f64::from(hole.first.wrapping_sub(start)));
            self.intervals.close();
        }
        self.event = Some((hole.first, at));
        self.intervals.set_open(f64::from(highest.wrapping_sub(hole.first)) + 1.0);
    }

    /// Section 6.3.1: the interval for which the equation yields the highest receive rate so far. Without a measurement it is
    /// half a segment per round trip.
    fn first_interval(&self) -> f64 {
        let rtt_s = self.rtt.as_secs_f64();
        if rtt_s <= 0.0 || self.segment <= 0.0 {
            return 1.0;
        }
        let rate = if self.fastest > 0.0 { self.fastest } else { 0.5 * self.segment / rtt_s };
        1.0 / inverse(self.segment, rtt_s, rate)
    }

    /// Section 6.2: makes a report every round trip, and at once when the loss-event rate rises.
    fn update_report(&mut self, now: Instant) {
        if let (Some((start, _)), Some((highest, _))) = (self.event, self.highest) {
            self.intervals.set_open(f64::from(highest.wrapping_sub(start)) + 1.0);
        }
        let p = self.intervals.loss_event_rate() as f32;
        let elapsed = now.since(self.since);
        let due = elapsed >= self.rtt && !elapsed.is_zero();
        if due {
            let received = self.bytes as f64 / elapsed.as_secs_f64();
            self.fastest = self.fastest.max(received);
            self.report.received = received as f32;
            (self.bytes, self.since) = (0, now);
        }
        if due || p > self.report.loss_event_rate {
            self.report.loss_event_rate = p;
        }
    }
}

impl Reflector for Receiver {
    fn on_data(&mut self, now: Instant, segment: &Segment, _duplicate: bool) {
        let Extension::Value(value) = segment.extension else { return };
        let stamp = Stamp::from_value(value);
        self.rtt = Duration::from_micros(u64::from(stamp.rtt_us));
        self.segment = self.segment.max(f64::from(segment.len));
        self.bytes += u64::from(segment.len);
        self.note(stamp.number, now);
        self.update_report(now);
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        Extension::Value(self.report.to_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_US: u32 = 550_000;
    /// One segment of 1000 bytes every 10 ms.
    const GAP_MS: u64 = 10;

    fn arrive(receiver: &mut Receiver, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let now = Instant::ZERO + Duration::from_millis(GAP_MS) * u64::from(number);
            let extension = Extension::Value(Stamp { number, rtt_us: RTT_US }.to_value());
            receiver.on_data(now, &Segment { len: 1000, extension, ..Segment::default() }, false);
        }
    }

    fn report(receiver: &mut Receiver) -> Report {
        let Extension::Value(value) = receiver.reply(Instant::ZERO) else { panic!("a report") };
        Report::from_value(value).expect("a rate")
    }

    #[test]
    fn the_rate_is_that_of_the_last_round_trip() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, 0..200);
        let Report { loss_event_rate, received } = report(&mut receiver);
        assert_eq!(loss_event_rate, 0.0);
        assert!((f64::from(received) / 100_000.0 - 1.0).abs() < 0.03, "{received}");
    }

    #[test]
    fn three_later_arrivals_prove_a_loss_and_losses_of_a_round_trip_are_one_event() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, (0..103).filter(|number| *number != 100));
        assert_eq!(report(&mut receiver).loss_event_rate, 0.0, "two prove nothing");
        arrive(&mut receiver, 103..104);
        assert!(report(&mut receiver).loss_event_rate > 0.0);
        let event = receiver.event;
        arrive(&mut receiver, (104..155).filter(|number| *number != 120));
        assert_eq!(receiver.event, event, "within 55 segments");
        arrive(&mut receiver, (155..200).filter(|number| *number != 160));
        assert_eq!(receiver.event.map(|(number, _)| number), Some(160));
    }

    #[test]
    fn a_late_arrival_was_no_loss() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, (0..102).filter(|number| *number != 100));
        arrive(&mut receiver, [100]);
        arrive(&mut receiver, 102..150);
        assert_eq!(report(&mut receiver).loss_event_rate, 0.0);
    }

    #[test]
    fn a_loss_in_a_hundred_is_measured_as_that() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, (0..2000).filter(|number| number % 100 != 50));
        let p = report(&mut receiver).loss_event_rate;
        assert!((p - 0.01).abs() < 2e-4, "{p}");
    }

    #[test]
    fn the_first_loss_keeps_the_rate() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, (0..300).filter(|number| *number != 250));
        let p = f64::from(report(&mut receiver).loss_event_rate);
        let rate = super::super::throughput(1000.0, 0.55, p);
        assert!((0.9..1.15).contains(&(rate / 100_000.0)), "{rate} at {p}");
    }

    #[test]
    fn more_holes_than_can_be_watched_are_losses() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, (0..1000).filter(|number| number % 2 == 0));
        assert!(report(&mut receiver).loss_event_rate > 0.0);
    }
}
