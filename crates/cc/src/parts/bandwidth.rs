//! What the stream of ACKs says of the bandwidth: how much each ACK reports, and the filters of the schemes that estimate.
//!
//! Rates are bytes per second.

use bentpipe_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::{Ack, Path};

/// What a rate fills on a path whose round trip is `rtt`, in segments; nothing before the first round-trip sample.
pub(crate) fn segments(rate: f64, rtt: Duration, mss: u32) -> f64 {
    if rtt == Duration::MAX { 0.0 } else { rate * rtt.as_secs_f64() / f64::from(mss) }
}

/// What a cumulative ACK leaves of the duplicates counted before when it covers fewer segments than those announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Credit {
    /// All that it covers is taken off (Mascolo et al.; Linux).
    #[default]
    Whole,
    /// The segment that it counts for is not taken off (the module for ns-2).
    ButOne,
}

/// `AckedCount` of the Westwood papers: bytes that each ACK newly reports as delivered, with or without SACK.
///
/// Without SACK a duplicate ACK stands for one segment, whichever it is; the cumulative ACK that covers it later must not count
/// it again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedCount {
    /// Duplicates counted and not yet covered by a cumulative ACK, in segments.
    accounted: u32,
    credit: Credit,
}

impl AckedCount {
    pub fn new(credit: Credit) -> Self {
        Self { accounted: 0, credit }
    }

    /// Bytes that `ack` adds to what is known to be delivered.
    pub fn count(&mut self, ack: &Ack, mss: u32) -> u64 {
        if ack.sacked > 0 || (ack.acked > 0 && self.accounted == 0) {
            return ack.delivered_bytes; // SACK says exactly what arrived
        }
        if ack.acked == 0 {
            let announces = ack.delivered_bytes == 0 && !ack.dsack;
            self.accounted = self.accounted.saturating_add(u32::from(announces));
            return if announces { u64::from(mss) } else { ack.delivered_bytes };
        }
        ack.delivered_bytes.min(u64::from(self.cover(ack.acked)) * u64::from(mss))
    }

    /// Segments that a cumulative ACK of `acked` segments counts for.
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

/// One sample per ACK, with the bytes of ACKs that arrive too close together merged into one.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    /// End of the last sample.
    since: Instant,
    /// Bytes that no sample has counted yet.
    pending: u64,
    /// The sender rested: the next ACK begins an interval and ends none.
    resting: bool,
}

impl Gaps {
    /// The bytes and the length of the interval that an ACK at `now` ends, if it is long enough to be divided by.
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

/// Available bandwidth estimation (ABE) of TCP-J: a sample per ACK, smoothed with a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abe {
    /// `α`.
    smoothing: f64,
    /// ACKs closer together than this make one sample.
    least_gap: Duration,
    gaps: Gaps,
    sample: f64,
    rate: f64,
}

impl Abe {
    pub fn new(smoothing: f64, least_gap: Duration) -> Self {
        Self { smoothing, least_gap, gaps: Gaps::default(), sample: 0.0, rate: 0.0 }
    }

    /// The first interval begins.
    pub fn begin(&mut self, now: Instant) {
        self.gaps.since = now;
    }

    /// The interval that is running does not count.
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

    /// `BW`.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// An estimator that has found this rate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, sample: rate, ..self }
    }
}

/// Westwood's filter: a sample per ACK through a first-order low-pass of constant cut-off (Tustin's approximation), so that its
/// coefficients depend on the time between ACKs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LowPass {
    /// `τ`: time constant in seconds.
    tau_s: f64,
    /// `τ / m`: after so many seconds without an ACK a sample of zero is assumed.
    virtual_s: f64,
    /// A remainder after virtual samples that is shorter than this counts as a whole virtual interval.
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

    /// The first interval begins.
    pub fn begin(&mut self, now: Instant) {
        self.gaps.since = now;
    }

    pub fn on_ack(&mut self, now: Instant, bytes: u64) {
        let Some((bytes, gap_s)) = self.gaps.end(now, bytes, Duration::ZERO) else { return };
        let silent = libm::floor(gap_s / self.virtual_s);
        // An interval of exactly so many virtual ones ends in a real sample.
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

    /// `α_k = (2τ - Δ) / (2τ + Δ)`.
    fn alpha(&self, gap_s: f64) -> f64 {
        (2.0 * self.tau_s - gap_s) / (2.0 * self.tau_s + gap_s)
    }

    fn feed(&mut self, sample: f64, gap_s: f64) {
        let alpha = self.alpha(gap_s);
        self.rate = (alpha * self.rate + (1.0 - alpha) * (sample + self.sample) / 2.0).max(0.0);
        self.sample = sample;
    }

    /// So many virtual samples of zero at once.
    fn decay(&mut self, count: f64) {
        self.feed(0.0, self.virtual_s);
        self.rate *= libm::pow(self.alpha(self.virtual_s), count - 1.0);
    }

    /// `BWE`.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// An estimator that has found this rate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, sample: rate, ..self }
    }
}

/// How Westwood+ smooths its samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundFilter {
    /// Nine tenths of the estimate and a tenth of the sample.
    Paper,
    /// Nine tenths of the estimate and a tenth of the mean of the last two samples.
    Ns3,
    /// Two stages of seven eighths and an eighth; the first sample is the first estimate.
    Linux,
}

/// Westwood+'s estimate: one sample per round trip, which ACKs that come in clusters do not inflate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerRound {
    filter: RoundFilter,
    /// The first sample is the first estimate.
    seeded: bool,
    began: bool,
    resting: bool,
    /// Start of the current round and the bytes reported in it.
    since: Instant,
    bytes: u64,
    /// Rate of the last whole round.
    sample: f64,
    /// First stage of the filter of Linux.
    stage: f64,
    rate: f64,
}

impl PerRound {
    /// With the first sample as first estimate, or with an estimate that grows from zero.
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

    /// The first round begins.
    pub fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// The round that is running does not count.
    pub fn rest(&mut self) {
        self.resting = true;
    }

    /// An ACK that reports `bytes`. The round ends if it is `round` old.
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

    /// Rate of the last whole round, unsmoothed.
    pub fn sample(&self) -> f64 {
        self.sample
    }

    /// `BWE`.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// An estimator that has found this rate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, sample: rate, stage: rate, began: true, ..self }
    }
}

/// Jersey's estimate: a window that slides over the last `k` round-trip times (Clark and Fang's time-sliding window).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sliding {
    /// `K`.
    round_trips: f64,
    gaps: Gaps,
    rate: f64,
}

impl Sliding {
    pub fn new(round_trips: f64) -> Self {
        Self { round_trips, gaps: Gaps::default(), rate: 0.0 }
    }

    /// The first interval begins.
    pub fn begin(&mut self, now: Instant) {
        self.gaps.since = now;
    }

    /// The interval that is running does not count.
    pub fn rest(&mut self) {
        self.gaps.resting = true;
    }

    /// `R_n = (T_w R_{n-1} + L_n) / (T_w + t_n - t_{n-1})` with `T_w = K RTT`.
    pub fn on_ack(&mut self, bytes: u64, path: &Path) {
        if let Some((bytes, gap_s)) = self.gaps.end(path.now, bytes, Duration::ZERO) {
            let window_s = self.round_trips * path.srtt_s();
            self.rate = (window_s * self.rate + bytes) / (window_s + gap_s);
        }
    }

    /// `R_n`.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// An estimator that has found this rate.
    #[cfg(test)]
    pub fn having(self, rate: f64) -> Self {
        Self { rate, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, MSS, path_at};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-4 * b.abs()
    }

    fn at(seconds: f64) -> Instant {
        path_at(seconds).now
    }

    /// Segments counted for a duplicate without SACK (0) or a cumulative ACK.
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
        // Two ACKs 50 µs apart at a steady 1.2067 MB/s: compression more than doubles the estimate, merging does not.
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
        // The mean of two samples halves what is new: 0.1 x 2896 / 2, and so on.
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
