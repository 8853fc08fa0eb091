//! Delivery-rate estimation (draft-ietf-ccwg-bbr section 4.1; draft-cheng-iccrg-delivery-rate-estimation).

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::RateSample;

use super::scoreboard::{Mark, Record};

/// Counts of the connection from which each segment takes a snapshot when it leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryRate {
    /// Sequence numbers known to have arrived.
    pub delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// `delivered` at which everything sent while the application was idle will have been acknowledged; zero if none.
    app_limited_until: u64,
}

impl DeliveryRate {
    /// Stamps a segment about to leave at `now`.
    pub fn stamp(&mut self, record: &mut Record, now: Instant, idle: bool) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        record.first_sent_at = self.first_sent_at;
        record.delivered_at = self.delivered_at;
        record.delivered = self.delivered;
        record.marks.set(Mark::APP_LIMITED, self.app_limited_until != 0);
    }

    /// The application has less to send than the window allows.
    pub fn app_limited(&mut self, in_flight_bytes: u64) {
        self.app_limited_until = (self.delivered + in_flight_bytes).max(1);
    }

    /// `bytes` more have arrived.
    pub fn deliver(&mut self, now: Instant, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// The sample of an ACK whose newest delivered segment is `newest`. None if the interval is shorter than the smallest round trip:
    /// such a sample measures ACK compression.
    pub fn sample(&mut self, newest: &Record, min_rtt: Duration, total_lost: u32) -> Option<RateSample> {
        let send_elapsed = newest.sent_at.since(newest.first_sent_at);
        let ack_elapsed = self.delivered_at.since(newest.delivered_at);
        self.first_sent_at = newest.sent_at;
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || (min_rtt != Duration::MAX && interval < min_rtt) {
            return None;
        }
        let delivered = self.delivered - newest.delivered;
        Some(RateSample {
            delivered,
            interval,
            prior_delivered: newest.delivered,
            app_limited: newest.has(Mark::APP_LIMITED),
            tx_in_flight: newest.tx_in_flight,
            lost: total_lost.wrapping_sub(newest.lost_before),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Scoreboard;
    use super::*;

    const MSS: u32 = 1000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1000 + millis)
    }

    fn sent(rate: &mut DeliveryRate, millis: u64, idle: bool) -> Record {
        let mut record = Scoreboard::record(1, MSS, at(millis));
        rate.stamp(&mut record, at(millis), idle);
        record
    }

    fn delivered(rate: &mut DeliveryRate, millis: u64, record: &Record) -> RateSample {
        rate.deliver(at(millis), u64::from(MSS));
        rate.sample(record, Duration::from_millis(100), 0).expect("a round trip has passed")
    }

    /// One segment every 10 ms over a round trip of 100 ms is 100 kB/s from the eleventh on.
    #[test]
    fn a_steady_flow_has_its_rate() {
        let mut rate = DeliveryRate::default();
        let mut flight = std::collections::VecDeque::new();
        for i in 0..40 {
            let sample = (i >= 10).then(|| {
                let record = flight.pop_front().unwrap();
                delivered(&mut rate, i * 10, &record)
            });
            flight.push_back(sent(&mut rate, i * 10, i == 0));
            if let Some(sample) = sample.filter(|_| i >= 21) {
                assert_eq!((sample.delivered, sample.interval), (10_000, Duration::from_millis(100)), "{i}");
                assert_eq!(sample.rate().bps(), 800_000);
                assert_eq!(sample.prior_delivered, (i - 19) * 1000);
            }
        }
    }

    /// ACKs that were bunched on their way prove no higher rate than that at which the segments left.
    #[test]
    fn bunched_acks_do_not_raise_it() {
        let mut rate = DeliveryRate::default();
        let records: Vec<_> = (0..10).map(|i| sent(&mut rate, i * 50, i == 0)).collect();
        rate.deliver(at(600), 9000);
        rate.sample(&records[8], Duration::from_millis(100), 0);
        let last = delivered(&mut rate, 600, &records[9]);
        assert!(last.rate().bps() <= 160_000, "one segment every 50 ms: {}", last.rate().bps());
    }

    #[test]
    fn an_interval_below_the_round_trip_is_no_sample() {
        let mut rate = DeliveryRate::default();
        let record = sent(&mut rate, 0, true);
        rate.deliver(at(60), 1000);
        assert_eq!(rate.sample(&record, Duration::from_millis(100), 0), None);
        assert!(rate.sample(&record, Duration::MAX, 0).is_some(), "unless none is known");
    }

    #[test]
    fn what_left_while_the_application_idled_says_so() {
        let mut rate = DeliveryRate::default();
        let before = sent(&mut rate, 0, true);
        rate.app_limited(1000);
        let during = sent(&mut rate, 10, false);
        assert!(!delivered(&mut rate, 100, &before).app_limited);
        assert!(delivered(&mut rate, 110, &during).app_limited);
        let after = sent(&mut rate, 120, false);
        assert!(!delivered(&mut rate, 220, &after).app_limited, "the mark has been delivered");
    }

    /// The pause does not count.
    #[test]
    fn after_a_pause_the_clock_begins_anew() {
        let mut rate = DeliveryRate::default();
        let first = sent(&mut rate, 0, true);
        delivered(&mut rate, 100, &first);
        let second = sent(&mut rate, 10_000, true);
        assert_eq!(delivered(&mut rate, 10_100, &second).interval, Duration::from_millis(100));
    }

    #[test]
    fn losses_since_the_segment_left_are_counted() {
        let mut rate = DeliveryRate::default();
        let mut record = sent(&mut rate, 0, true);
        record.lost_before = 3;
        record.tx_in_flight = 7;
        rate.deliver(at(100), 1000);
        let sample = rate.sample(&record, Duration::from_millis(100), 5).unwrap();
        assert_eq!((sample.lost, sample.tx_in_flight), (2, 7));
    }
}
