//! Bandwidth estimation from ACKs: the bytes that each ACK reports, and the filters of the schemes.
//!
//! Rates are bytes per second.

use bentpipe_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::{Ack, Path};

/// Returns `rate * rtt` in segments; 0 before the first round-trip sample.
pub(crate) fn segments(rate: f64, rtt: Duration, mss: u32) -> f64 {
    debug_assert!(rate >= 0.0 && rate.is_finite(), "a bandwidth of {rate} bytes/s");
    if rtt == Duration::MAX { 0.0 } else { rate * rtt.as_secs_f64() / f64::from(mss) }
}

/// Treatment of counted duplicate ACKs when a cumulative ACK covers fewer segments than they reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Credit {
    /// Subtracts all segments that the ACK covers (Mascolo et al.; Linux).
    #[default]
    Whole,
    /// Subtracts all but the one segment that the ACK counts for (the ns-2 module).
    ButOne,
}

/// `AckedCount` of the Westwood papers: bytes that each ACK newly reports as delivered, with or without SACK.
///
/// Without SACK, a duplicate ACK reports one unknown segment. The later cumulative ACK must not count that segment again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedCount {
    /// Segments counted by duplicates and not yet covered by a cumulative ACK.
    accounted: u32,
    credit: Credit,
}

impl AckedCount {
    pub fn new(credit: Credit) -> Self {
        Self { accounted: 0, credit }
    }

    /// Returns the bytes that `ack` newly reports as delivered.
    pub fn count(&mut self, ack: &Ack, mss: u32) -> u64 {
        if ack.sacked > 0 || (ack.acked > 0 && self.accounted == 0) {
            return ack.delivered_bytes; // SACK reports the exact bytes
        }
        if ack.acked == 0 {
            let announces = ack.delivered_bytes == 0 && !ack.dsack;
            self.accounted = self.accounted.saturating_add(u32::from(announces));
            return if announces { u64::from(mss) } else { ack.delivered_bytes };
        }
        ack.delivered_bytes.min(u64::from(self.cover(ack.acked)) * u64::from(mss))
    }

    /// Returns the segments to count for a cumulative ACK of `acked` segments.
    fn cover(&mut self, acked: u32) -> u32 {
        if acked == 1 {
            return 1;
        }
        if self.accounted < acked {
            return acked - core::mem::take(&mut self.accounted);
        }
        self.accounted -= match self.credit {
            Credit::Whole => acked,
            Credit::ButOne => acked - 1,
        };
        1
    }
}

/// One sample per ACK. ACKs closer together than a minimum gap are merged into one sample.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    /// End of the last sample.
    since: Instant,
    /// Bytes that no sample includes yet.
    pending: u64,
    /// True after an idle period: the next ACK starts an interval and ends none.
    resting: bool,
}

impl Gaps {
    /// Returns bytes and seconds of the interval that ends at `now`, if it lasts at least `least`.
    fn end(&mut self, now: Instant, bytes: u64, least: Duration) -> Option<(f64, f64)> {
        if core::mem::take(&mut self.resting) {
            *self = Self { since: now, ..Self::default() };
            return None;
        }
        self.pending += bytes;
        let gap = now.since(self.since);
        if self.pending == 0 || gap.is_zero() || gap < least {
            return None;
        }
        let bytes = core::mem::take(&mut self.pending) as f64;
        self.since = now;
        Some((bytes, gap.as_secs_f64()))
    }
}

/// Available bandwidth estimation (ABE) of TCP-J: one sample per ACK, exponentially smoothed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abe {
    /// `α`: weight of the old estimate.
    smoothing: f64,
    /// Minimum interval of a sample.
    least_gap: Duration,
    gaps: Gaps,
    sample: f64,
    rate: f64,
}

impl Abe {
    pub fn new(smoothing: f64, least_gap: Duration) -> Self {
        Self { smoothing, least_gap, gaps: Gaps::default(), sample: 0.0, rate: 0.0 }
    }

    /// Starts the first interval.
    pub fn begin(&mut self, now: Instant) {
        self.gaps.since = now;
    }

    /// Discards the current interval.
    pub fn rest(&mut self) {
        self.gaps.resting = true;
    }

    pub fn on_ack(&mut self, now: Instant, bytes: u64) {
        if let Some((bytes, gap)) = self.gaps.end(now, bytes, self.least_gap) {
            let sample = bytes / gap; // STAR (2)
            self.rate = self.smoothing * self.rate + (1.0 - self.smoothing) * (sample + self.sample) / 2.0; // STAR (3)
            self.sample = sample;
        }
    }

    /// `BW`, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the estimator with this rate as its estimate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, sample: rate, ..self }
    }
}

/// Westwood's filter: a first-order low-pass of constant cut-off (Tustin's approximation), one sample per ACK. Its coefficients
/// depend on the time between ACKs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LowPass {
    /// `τ`: time constant in seconds.
    tau_s: f64,
    /// `τ / m`, in seconds: after each such time without an ACK, the filter assumes a sample of zero.
    virtual_s: f64,
    /// Threshold in seconds: a shorter remainder after the virtual samples counts as one more whole virtual interval.
    least_remainder_s: f64,
    gaps: Gaps,
    sample: f64,
    rate: f64,
}

impl LowPass {
    pub fn new(tau_s: f64, m: f64, least_remainder_s: f64) -> Self {
        let virtual_s = tau_s / m;
        Self { tau_s, virtual_s, least_remainder_s, gaps: Gaps::default(), sample: 0.0, rate: 0.0 }
    }

    /// Starts the first interval.
    pub fn begin(&mut self, now: Instant) {
        self.gaps.since = now;
    }

    pub fn on_ack(&mut self, now: Instant, bytes: u64) {
        let Some((bytes, gap_s)) = self.gaps.end(now, bytes, Duration::ZERO) else { return };
        let silent = libm::floor(gap_s / self.virtual_s);
        // An interval of an exact multiple of `virtual_s` ends in a real sample.
        let silent = if silent * self.virtual_s < gap_s { silent } else { silent - 1.0 };
        let mut gap_s = gap_s - silent.max(0.0) * self.virtual_s;
        if silent > 0.0 {
            self.decay(silent);
            if gap_s < self.least_remainder_s {
                gap_s = self.virtual_s;
            }
        }
        self.feed(bytes / gap_s, gap_s);
    }

    /// Returns the filter's coefficient `α_k = (2τ - Δ) / (2τ + Δ)`.
    fn alpha(&self, gap_s: f64) -> f64 {
        (2.0 * self.tau_s - gap_s) / (2.0 * self.tau_s + gap_s)
    }

    fn feed(&mut self, sample: f64, gap_s: f64) {
        let alpha = self.alpha(gap_s);
        self.rate = (alpha * self.rate + (1.0 - alpha) * (sample + self.sample) / 2.0).max(0.0);
        self.sample = sample;
    }

    /// Applies `count` virtual samples of zero.
    fn decay(&mut self, count: f64) {
        self.feed(0.0, self.virtual_s);
        self.rate *= libm::pow(self.alpha(self.virtual_s), count - 1.0);
    }

    /// `BWE`, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the estimator with this rate as its estimate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, sample: rate, ..self }
    }
}

/// Smoothing filter of Westwood+.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundFilter {
    /// 0.9 times the estimate plus 0.1 times the sample.
    Paper,
    /// 0.9 times the estimate plus 0.1 times the mean of the last two samples.
    Ns3,
    /// Two stages with weights 7/8 and 1/8. The first sample sets the estimate.
    Linux,
}

/// Westwood+'s estimate: one sample per round trip. Clustered ACKs do not inflate it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerRound {
    filter: RoundFilter,
    /// True if the first sample sets the estimate.
    seeded: bool,
    began: bool,
    resting: bool,
    /// Start of the current round and the bytes reported in it.
    since: Instant,
    bytes: u64,
    /// Rate of the last whole round, in bytes per second.
    sample: f64,
    /// First stage of Linux's filter.
    stage: f64,
    rate: f64,
}

impl PerRound {
    /// Makes a filter. If `seeded`, the first sample sets the estimate; otherwise the estimate grows from zero.
    pub fn new(filter: RoundFilter, seeded: bool) -> Self {
        let since = Instant::ZERO;
        Self {
            filter,
            seeded,
            began: false,
            resting: false,
            since,
            bytes: 0,
            sample: 0.0,
            stage: 0.0,
            rate: 0.0,
        }
    }

    /// Starts the first round.
    pub fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// Discards the current round.
    pub fn rest(&mut self) {
        self.resting = true;
    }

    /// Handles an ACK that reports `bytes`. The current round ends if it has lasted `round`.
    pub fn on_ack(&mut self, now: Instant, bytes: u64, round: Duration) {
        if core::mem::take(&mut self.resting) {
            (self.since, self.bytes) = (now, 0);
            return;
        }
        self.bytes += bytes;
        let age = now.since(self.since);
        if age >= round && !age.is_zero() {
            self.feed(self.bytes as f64 / age.as_secs_f64());
            (self.since, self.bytes) = (now, 0);
        }
    }

    fn feed(&mut self, sample: f64) {
        if self.seeded && !core::mem::replace(&mut self.began, true) {
            (self.stage, self.rate, self.sample) = (sample, sample, sample);
            return;
        }
        self.rate = match self.filter {
            RoundFilter::Paper => 0.9 * self.rate + 0.1 * sample,
            RoundFilter::Ns3 => 0.9 * self.rate + 0.1 * (sample + self.sample) / 2.0,
            RoundFilter::Linux => {
                self.stage = (7.0 * self.stage + sample) / 8.0;
                (7.0 * self.rate + self.stage) / 8.0
            }
        };
        self.sample = sample;
    }

    /// Rate of the last whole round without smoothing, in bytes per second.
    pub fn sample(&self) -> f64 {
        self.sample
    }

    /// `BWE`, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the estimator with this rate as its estimate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, sample: rate, stage: rate, began: true, ..self }
    }
}

/// Jersey's estimate over a sliding window of the last `K` round-trip times (Clark and Fang's time-sliding window).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sliding {
    /// `K`: length of the window in round-trip times.
    round_trips: f64,
    gaps: Gaps,
    rate: f64,
}

impl Sliding {
    pub fn new(round_trips: f64) -> Self {
        Self { round_trips, gaps: Gaps::default(), rate: 0.0 }
    }

    /// Starts the first interval.
    pub fn begin(&mut self, now: Instant) {
        self.gaps.since = now;
    }

    /// Discards the current interval.
    pub fn rest(&mut self) {
        self.gaps.resting = true;
    }

    /// Computes `R_n = (T_w R_{n-1} + L_n) / (T_w + t_n - t_{n-1})` with `T_w = K RTT`.
    pub fn on_ack(&mut self, bytes: u64, path: &Path) {
        if let Some((bytes, gap_s)) = self.gaps.end(path.now, bytes, Duration::ZERO) {
            let window_s = self.round_trips * path.srtt_s();
            self.rate = (window_s * self.rate + bytes) / (window_s + gap_s);
        }
    }

    /// `R_n`, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the estimator with this rate as its estimate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, MSS, close, path_at};

    fn at(seconds: f64) -> Instant {
        path_at(seconds).now
    }

    /// Segments counted for each ACK: 0 is a duplicate without SACK, other values are cumulative ACKs.
    fn counts(credit: Credit, acks: &[u32]) -> (Vec<u64>, u32) {
        let mut count = AckedCount::new(credit);
        let counted =
            acks.iter().map(|acked| count.count(&fixture::ack(*acked), MSS) / u64::from(MSS)).collect();
        (counted, count.accounted)
    }

    #[test]
    fn duplicates_are_counted_once() {
        assert_eq!(counts(Credit::Whole, &[0, 0, 0, 5]), (vec![1, 1, 1, 2], 0));
        assert_eq!(counts(Credit::Whole, &[0, 0, 0, 10]), (vec![1, 1, 1, 7], 0));
        assert_eq!(counts(Credit::Whole, &[0, 0, 0, 0, 3]), (vec![1, 1, 1, 1, 1], 1));
        assert_eq!(counts(Credit::ButOne, &[0, 0, 0, 0, 3]), (vec![1, 1, 1, 1, 1], 2));
        assert_eq!(counts(Credit::Whole, &[0, 1, 2]), (vec![1, 1, 1], 0));
    }

    #[test]
    fn sack_says_exactly_what_arrived() {
        let mut count = AckedCount::new(Credit::Whole);
        let sacked = Ack { sacked: 2, delivered_bytes: 2000, ..fixture::ack(0) };
        assert_eq!(count.count(&sacked, MSS), 2000);
        let repeated = Ack { dsack: true, ..fixture::ack(0) };
        assert_eq!(count.count(&repeated, MSS), 0, "a duplicate arrival delivers nothing");
        let hole_filled = Ack { delivered_bytes: 1000, ..fixture::ack(3) };
        assert_eq!(count.count(&hole_filled, MSS), 1000);
    }

    #[test]
    fn abe_rises_to_nine_tenths_in_22_acks() {
        let mut abe = Abe::new(0.9, Duration::ZERO);
        abe.begin(at(1.0));
        for k in 1..=22_u32 {
            abe.on_ack(at(1.0 + 0.0012 * f64::from(k)), 1448);
            let expected = match k {
                1 => 60_333.3,
                2 => 174_966.7,
                3 => 278_136.7,
                4 => 370_989.7,
                5 => 454_557.4,
                _ => continue,
            };
            assert!(close(abe.rate(), expected), "{} after {k}", abe.rate());
        }
        assert!(abe.rate() > 0.89 * 1448.0 / 0.0012, "{}", abe.rate());
    }

    #[test]
    fn abe_merges_acks_that_arrive_too_close_together() {
        // Two ACKs 50 µs apart at a steady 1.2067 MB/s. ACK compression more than doubles the estimate; merging prevents it.
        let compressed = |least_gap| {
            let mut abe = Abe::new(0.9, least_gap).having(1_206_667.0);
            abe.begin(at(1.0));
            abe.on_ack(at(1.00005), 1448);
            abe.on_ack(at(1.0001), 1448);
            abe.on_ack(at(1.0012), 1448);
            abe.rate()
        };
        assert!(compressed(Duration::ZERO) > 4e6);
        assert!(compressed(Duration::from_micros(250)) < 1.4e6);
    }

    #[test]
    fn an_idle_time_makes_no_sample() {
        let mut abe = Abe::new(0.9, Duration::ZERO).having(1e6);
        abe.rest();
        abe.on_ack(at(60.0), 1448);
        assert_eq!(abe.rate(), 1e6);
        abe.on_ack(at(60.001448), 1448);
        assert!(close(abe.rate(), 1e6));
        let mut rounds = PerRound::new(RoundFilter::Paper, false).having(1e6);
        rounds.rest();
        rounds.on_ack(at(60.0), 1448, Duration::from_millis(500));
        rounds.on_ack(at(60.5), 500_000, Duration::from_millis(500));
        assert!(close(rounds.rate(), 1e6));
    }

    #[test]
    fn the_low_pass_weighs_a_sample_by_its_length() {
        let mut filter = LowPass::new(1.0, 2.0, 0.01).having(1e6);
        filter.begin(at(1.0));
        filter.on_ack(at(1.1), 80_000);
        assert!(close(filter.alpha(0.1), 0.904762));
        assert!(close(filter.rate(), 990_476.2), "{}", filter.rate());
    }

    #[test]
    fn silence_is_virtual_samples_of_zero() {
        let mut filter = LowPass::new(1.0, 2.0, 0.01).having(1e6);
        filter.decay(1.0);
        assert!(close(filter.rate(), 800_000.0));
        let mut filter = LowPass::new(1.0, 2.0, 0.01).having(1e6);
        filter.begin(at(1.0));
        filter.on_ack(at(2.3), 1448);
        assert!(close(filter.rate(), 355_412.2), "{}", filter.rate());
        filter.on_ack(at(100_000.0), 1448);
        assert!(filter.rate() >= 0.0 && filter.rate() < 10_000.0);
    }

    #[test]
    fn one_sample_per_round_trip() {
        let grow = |filter, seeded| {
            let mut rounds = PerRound::new(filter, seeded);
            rounds.begin(at(0.0));
            [1, 2, 4, 8].map(|window| {
                let end = at(rounds.since.since(Instant::ZERO).as_secs_f64() + 0.5);
                rounds.on_ack(end, window * 1448, Duration::from_millis(500));
                rounds.rate()
            })
        };
        let check = |rates: [f64; 4], expected: [f64; 4]| {
            assert!(rates.iter().zip(expected).all(|(a, b)| close(*a, b)), "{rates:?} {expected:?}");
        };
        check(grow(RoundFilter::Paper, false), [289.6, 839.8, 1914.3, 4039.6]);
        check(grow(RoundFilter::Linux, true), [2896.0, 2941.3, 3110.9, 3554.2]);
        // The mean of two samples halves the first step: 0.1 x 2896 / 2 = 144.8.
        check(grow(RoundFilter::Ns3, false), [144.8, 564.72, 1377.05, 2976.94]);
    }

    #[test]
    fn a_sample_is_what_a_whole_round_reported() {
        let mut rounds = PerRound::new(RoundFilter::Paper, false).having(300_000.0);
        rounds.begin(at(1.0));
        for k in 1..=200_u32 {
            rounds.on_ack(at(1.0 + 0.55 * f64::from(k) / 200.0), 1000, Duration::from_millis(549));
        }
        assert!((rounds.sample() - 363_636.0).abs() < 400.0, "{}", rounds.sample());
        assert!((rounds.rate() - 306_363.6).abs() < 40.0, "{}", rounds.rate());
    }

    #[test]
    fn the_sliding_window_forgets_over_a_round_trip() {
        let path = |now| Path { srtt: Duration::from_millis(500), ..path_at(now) };
        let mut sliding = Sliding::new(1.0).having(1e6);
        sliding.begin(at(1.0));
        sliding.on_ack(1448, &path(1.0012));
        assert!((sliding.rate() - 1_000_494.8).abs() < 0.1, "{}", sliding.rate());
        assert_eq!(segments(sliding.rate(), Duration::from_millis(500), 1448).floor(), 345.0);
        let mut sliding = Sliding::new(1.0);
        sliding.begin(at(0.0));
        for (now, expected) in [(0.5, 1448.0), (1.0, 2172.0), (1.0012, 5055.9)] {
            sliding.on_ack(1448, &path(now));
            assert!(close(sliding.rate(), expected), "{} at {now}", sliding.rate());
        }
    }

    #[test]
    fn a_rate_fills_a_round_trip_with_segments() {
        assert!(close(segments(1e6, Duration::from_millis(500), 1448), 345.30));
        assert_eq!(segments(1e6, Duration::MAX, 1448), 0.0);
    }
}
