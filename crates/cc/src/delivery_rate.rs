//! Delivery-rate estimation (draft-ietf-ccwg-bbr section 4.1; draft-cheng-iccrg-delivery-rate-estimation), for any transport.
//!
//! A transport stamps each segment when it leaves, reports each delivery, and requests a sample after processing an
//! acknowledgement. [`Sampler`] leaves the stamps to the transport; [`DeliveryRate`] keeps them.

use alloc::collections::VecDeque;

use bentpipe_base::{Duration, Instant};

use crate::RateSample;

/// Counters over the whole connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Sequence numbers known to be delivered.
    pub delivered: u64,
    /// Segments marked lost.
    pub lost: u32,
}

/// Counters at the time when a segment left.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    totals: Totals,
    /// Time at which `delivered` reached that value.
    delivered_at: Instant,
    /// Start of the sampling interval at the sender.
    first_sent_at: Instant,
    /// Segments in flight, including the segment just sent.
    in_flight: u32,
    /// True if the application did not fill the window.
    app_limited: bool,
}

/// Counters of the connection. The transport keeps the [`Stamp`] of each segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampler {
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Delivered bytes at which everything sent during an application-limited period is acknowledged; 0 if there is none.
    app_limited_until: u64,
}

impl Sampler {
    /// Stamps a segment that leaves at `now`, with `in_flight` other segments in flight.
    #[inline]
    pub fn stamp(&mut self, now: Instant, totals: Totals, in_flight: u32) -> Stamp {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            totals,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: in_flight + 1,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// Starts an application-limited period: the application offers less than the window allows.
    #[inline]
    pub fn app_limited(&mut self, delivered: u64, in_flight_bytes: u64) {
        self.app_limited_until = (delivered + in_flight_bytes).max(1);
    }

    /// Updates the delivered bytes.
    #[inline]
    pub fn deliver(&mut self, now: Instant, delivered: u64) {
        self.delivered_at = now;
        if self.app_limited_until != 0 && delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// Returns the sample of an acknowledgement. Its newest delivered segment has this stamp and last left at `sent_at`. `None`
    /// if the interval is shorter than minRTT: such a sample measures ACK compression.
    #[inline]
    pub fn sample(
        &mut self,
        (stamp, sent_at): (&Stamp, Instant),
        min_rtt: Duration,
        totals: Totals,
    ) -> Option<RateSample> {
        let send_elapsed = sent_at.since(stamp.first_sent_at);
        let ack_elapsed = self.delivered_at.since(stamp.delivered_at);
        self.first_sent_at = sent_at;
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || (min_rtt != Duration::MAX && interval < min_rtt) {
            return None;
        }
        Some(RateSample {
            delivered: totals.delivered - stamp.totals.delivered,
            interval,
            prior_delivered: stamp.totals.delivered,
            app_limited: stamp.app_limited,
            tx_in_flight: stamp.in_flight,
            lost: totals.lost.wrapping_sub(stamp.totals.lost),
        })
    }
}

/// Number of a segment, counted from the connection's first.
pub type Index = u64;

/// A [`Sampler`] that keeps the stamps of segments numbered without gaps.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    sampler: Sampler,
    /// Stamps of the segments not yet acknowledged or forgotten.
    stamps: VecDeque<Stamp>,
    /// Index of the first stamp.
    base: Index,
}

impl DeliveryRate {
    /// Stamps a segment that leaves at `now`, with `in_flight` other segments in flight.
    #[inline]
    pub fn stamp(&mut self, index: Index, now: Instant, totals: Totals, in_flight: u32) {
        let stamp = self.sampler.stamp(now, totals, in_flight);
        match self.stamps.get_mut((index - self.base) as usize) {
            Some(old) => *old = stamp,
            None => self.stamps.push_back(stamp),
        }
    }

    /// See [`Sampler::app_limited`].
    #[inline]
    pub fn app_limited(&mut self, delivered: u64, in_flight_bytes: u64) {
        self.sampler.app_limited(delivered, in_flight_bytes);
    }

    /// See [`Sampler::deliver`].
    #[inline]
    pub fn deliver(&mut self, now: Instant, delivered: u64) {
        self.sampler.deliver(now, delivered);
    }

    /// See [`Sampler::sample`]; the newest delivered segment has this index.
    #[inline]
    pub fn sample(
        &mut self,
        (index, sent_at): (Index, Instant),
        min_rtt: Duration,
        totals: Totals,
    ) -> Option<RateSample> {
        let stamp = self.stamps.get(index.checked_sub(self.base)? as usize)?;
        self.sampler.sample((stamp, sent_at), min_rtt, totals)
    }

    /// Removes the stamps of acknowledged segments below `base`.
    #[inline]
    pub fn forget_below(&mut self, base: Index) {
        let gone = ((base - self.base) as usize).min(self.stamps.len());
        self.stamps.drain(..gone);
        self.base = base;
    }

    /// Heap memory in bytes, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.stamps.capacity() * size_of::<Stamp>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1000 + millis)
    }

    /// A flow of full segments for tests, with their send times.
    #[derive(Default)]
    struct Flow {
        rate: DeliveryRate,
        totals: Totals,
        sent_at: Vec<Instant>,
    }

    impl Flow {
        fn send(&mut self, millis: u64, in_flight: u32) {
            self.rate.stamp(self.sent_at.len() as Index, at(millis), self.totals, in_flight);
            self.sent_at.push(at(millis));
        }

        fn sample(&mut self, index: usize, min_rtt: Duration) -> Option<RateSample> {
            self.rate.sample((index as Index, self.sent_at[index]), min_rtt, self.totals)
        }

        fn deliver(&mut self, millis: u64, (segments, newest): (u64, usize)) -> RateSample {
            self.totals.delivered += segments * MSS;
            self.rate.deliver(at(millis), self.totals.delivered);
            let sample = self.sample(newest, Duration::from_millis(100)).expect("a round trip has passed");
            self.rate.forget_below(newest as Index + 1);
            sample
        }
    }

    /// One segment every 10 ms over a round trip of 100 ms is 100 kB/s from the 11th segment on.
    #[test]
    fn a_steady_flow_has_its_rate() {
        let mut flow = Flow::default();
        for i in 0..40 {
            let sample = (i >= 10).then(|| flow.deliver(i * 10, (1, i as usize - 10)));
            flow.send(i * 10, i.min(10) as u32);
            if let Some(sample) = sample.filter(|_| i >= 21) {
                assert_eq!((sample.delivered, sample.interval), (10_000, Duration::from_millis(100)), "{i}");
                assert_eq!(sample.rate().bps(), 800_000);
                assert_eq!(sample.prior_delivered, (i - 19) * 1000);
            }
        }
        assert_eq!(flow.rate.stamps.len(), 10, "one for each segment outstanding");
    }

    /// ACKs compressed on the path must not show a higher rate than the segments' send rate.
    #[test]
    fn bunched_acks_do_not_raise_it() {
        let mut flow = Flow::default();
        (0..10).for_each(|i| flow.send(i * 50, i as u32));
        flow.deliver(600, (9, 8));
        let last = flow.deliver(600, (1, 9));
        assert!(last.rate().bps() <= 160_000, "one segment every 50 ms: {}", last.rate().bps());
    }

    #[test]
    fn an_interval_below_the_round_trip_is_no_sample() {
        let mut flow = Flow::default();
        flow.send(0, 0);
        flow.totals.delivered += MSS;
        flow.rate.deliver(at(60), MSS);
        assert_eq!(flow.sample(0, Duration::from_millis(100)), None);
        assert!(flow.sample(0, Duration::MAX).is_some(), "unless none is known");
    }

    #[test]
    fn what_left_while_the_application_idled_says_so() {
        let mut flow = Flow::default();
        flow.send(0, 0);
        flow.rate.app_limited(0, MSS);
        flow.send(10, 1);
        assert!(!flow.deliver(100, (1, 0)).app_limited);
        assert!(flow.deliver(110, (1, 1)).app_limited);
        flow.send(120, 1);
        assert!(!flow.deliver(220, (1, 2)).app_limited, "the mark has been delivered");
    }

    /// The pause is not part of the sampling interval.
    #[test]
    fn after_a_pause_the_clock_begins_anew() {
        let mut flow = Flow::default();
        flow.send(0, 0);
        flow.deliver(100, (1, 0));
        flow.send(10_000, 0);
        assert_eq!(flow.deliver(10_100, (1, 1)).interval, Duration::from_millis(100));
    }

    /// A retransmitted segment is measured from its last transmission.
    #[test]
    fn losses_since_the_segment_left_are_counted() {
        let mut flow = Flow { totals: Totals { delivered: 0, lost: 2 }, ..Flow::default() };
        (0..7).for_each(|i| flow.send(0, i));
        flow.totals.lost = 5;
        let sample = flow.sample(6, Duration::MAX);
        assert_eq!(sample, None, "no time has passed");
        flow.sent_at[6] = at(50);
        flow.rate.stamp(6, at(50), flow.totals, 3);
        flow.totals.lost = 9;
        let sample = flow.deliver(150, (1, 6));
        assert_eq!((sample.lost, sample.tx_in_flight), (4, 4));
    }
}
