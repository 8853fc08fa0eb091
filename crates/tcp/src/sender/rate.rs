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
