//! Closed-form model of the limits of a TCP window over an asymmetric link.
//!
//! Model of Papadimitriou and Tsaoussidis ("Evaluating TCP Mechanisms for Real-Time Streaming over Satellite Links", equations 1
//! to 8). The time between the transmissions of two windows is the maximum of three: round trip, sending time of the data, and
//! sending time of its ACKs. Queueing and processing delays are zero, and losses occur only where stated.

use bentpipe_base::{Duration, Rate};

/// Path with different rates in each direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Rate in the data direction.
    pub downlink: Rate,
    /// Rate in the ACK direction.
    pub uplink: Rate,
    /// One-way propagation delay, equal in both directions.
    pub delay_one_way: Duration,
    /// Data packet size on the wire.
    pub data_bytes: u32,
    /// ACK size on the wire.
    pub ack_bytes: u32,
}

/// Delayed ACKs of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckDelay {
    /// Data packets per ACK, at least one.
    pub every: u32,
    /// Maximum delay of an ACK.
    pub timer: Duration,
}

impl AckDelay {
    /// An ACK for every packet, at once.
    pub const NONE: Self = Self { every: 1, timer: Duration::ZERO };
}

/// Limit of the time between two windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Round trip: the sender waits.
    RoundTrip,
    /// Data: the downlink is full.
    Data,
    /// ACKs: the uplink is full.
    Acks,
}

/// One round of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Round {
    /// Time between the transmissions of two windows, equation 5.
    pub period: Duration,
    /// Limit of the period; the first in the above order if two are equal.
    pub limit: Limit,
    /// Idle time of the downlink.
    pub gap: Duration,
}

impl Path {
    /// Returns the round trip of a window of one packet, equations 4 and 7.
    pub fn round_trip(&self, delay: AckDelay) -> Duration {
        let there = self.downlink.time_for(u64::from(self.data_bytes));
        let back = self.uplink.time_for(u64::from(self.ack_bytes));
        self.delay_one_way * 2 + there + back + delay.timer
    }

    /// Returns a round of `window` packets, equations 1, 2, 5 and 8.
    pub fn round(&self, window: u32, delay: AckDelay) -> Round {
        let acks = u64::from(window.div_ceil(delay.every));
        let data_time = self.downlink.time_for(u64::from(self.data_bytes) * u64::from(window));
        let ack_time = self.uplink.time_for(u64::from(self.ack_bytes) * acks);
        let round_trip = self.round_trip(delay);
        let period = round_trip.max(data_time).max(ack_time);
        let limit = match period {
            period if period == round_trip => Limit::RoundTrip,
            period if period == data_time => Limit::Data,
            _ => Limit::Acks,
        };
        Round { period, limit, gap: period - data_time }
    }

    /// Returns the ACK size in bytes above which ACKs take longer to send than their data.
    pub fn critical_ack_bytes(&self) -> f64 {
        f64::from(self.data_bytes) * self.uplink.bps() as f64 / self.downlink.bps() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(data_bytes: u32, ack_bytes: u32) -> Path {
        Path {
            downlink: Rate::from_mbps(5),
            uplink: Rate::from_bps(256_000),
            delay_one_way: Duration::from_millis(250),
            data_bytes,
            ack_bytes,
        }
    }

    #[test]
    fn the_round_trip_limits_a_window_of_240_unless_acks_are_large() {
        for (data, ack, round_trip_us, limit, period_us) in [
            (1000, 40, 502_850, Limit::RoundTrip, 502_850),
            (1040, 52, 503_289, Limit::RoundTrip, 503_289),
            (1056, 56, 503_439, Limit::RoundTrip, 503_439),
            (1056, 72, 503_939, Limit::Acks, 540_000),
        ] {
            let path = path(data, ack);
            let micros = |time: Duration| time.as_nanos() / 1000;
            assert_eq!(micros(path.round_trip(AckDelay::NONE)), round_trip_us);
            let round = path.round(240, AckDelay::NONE);
            assert_eq!((round.limit, micros(round.period)), (limit, period_us));
        }
        assert!((path(1000, 40).critical_ack_bytes() - 51.2).abs() < 1e-12);
    }

    #[test]
    fn a_full_downlink_has_no_gap() {
        let path = path(1000, 40);
        assert_eq!(path.round(314, AckDelay::NONE).limit, Limit::RoundTrip);
        let full = path.round(315, AckDelay::NONE);
        assert_eq!((full.limit, full.gap), (Limit::Data, Duration::ZERO));
        // A loss halves the window: the downlink is idle for half of the time, equation 6.
        assert_eq!(path.round(157, AckDelay::NONE).gap, Duration::from_micros(251_650));
    }

    #[test]
    fn delayed_acks_help_where_acks_are_the_limit_and_only_there() {
        let delay = AckDelay { every: 2, timer: Duration::from_millis(100) };
        let data_bound = path(1000, 40);
        assert_eq!(data_bound.round_trip(delay), Duration::from_micros(602_850));
        let period = |path: &Path, window, delay| path.round(window, delay).period;
        assert_eq!(period(&data_bound, 400, AckDelay::NONE), Duration::from_millis(640));
        assert_eq!(period(&data_bound, 400, delay), Duration::from_millis(640));
        let ack_bound = path(1056, 72);
        assert_eq!(period(&ack_bound, 300, AckDelay::NONE), Duration::from_millis(675));
        assert_eq!(period(&ack_bound, 300, delay), ack_bound.round_trip(delay));
        assert_eq!(ack_bound.round_trip(delay).as_nanos() / 1000, 603_939);
    }
}
