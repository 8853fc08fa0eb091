//! HyStart++: slow start ends when a rising delay shows that the queue grows, before the queue overflows.
//!
//! RFC 9406, Balasubramanian, Huang, Olson, "HyStart++: Modified Slow Start for TCP", 2023.
//!
//! | RFC 9406              | here                         | unit     |
//! |-----------------------|------------------------------|----------|
//! | `windowEnd`           | `round.end`                  | sequence |
//! | `currentRoundMinRTT`  | `round.min_rtt`              | time     |
//! | `lastRoundMinRTT`     | `round.last_min_rtt`         | time     |
//! | `rttSampleCount`      | `round.samples`              | samples  |
//! | `cssBaselineMinRtt`   | `Stage::Conservative.baseline` | time   |
//! | `L`                   | `Pace::limit`                | segments |
//! | `N_RTT_SAMPLE` and the other constants | constants of the same name | |
//!
//! A component for the slow start of any [`Rule`](crate::Rule). Call [`HyStart::grow`] instead of adding the acknowledged
//! segments, and [`HyStart::stop`] at the first loss or timeout.

use alloc::boxed::Box;

use bentpipe_base::Duration;

use crate::{Ack, Path, Windows};

/// Section 4.3: minimum number of samples to evaluate a round.
const N_RTT_SAMPLE: u32 = 8;
/// Section 4.3: minimum delay increase that ends slow start.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// Section 4.3: maximum delay increase that slow start tolerates.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// Section 4.3: divisor of the round-trip time; the quotient is the tolerated delay increase.
const MIN_RTT_DIVISOR: u64 = 8;
/// Section 4.3: factor by which conservative slow start grows slower than slow start.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// Section 4.3: rounds of conservative slow start before congestion avoidance.
const CSS_ROUNDS: u32 = 5;

/// Pacing of the sender, which sets the window growth allowed per ACK (`L`, section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// No pacing: a jump of the window sends a burst.
    Bursts,
    /// Segments are paced: a jump of the window sends no burst.
    Paced,
}

impl Pace {
    /// `L`: maximum window growth per ACK, in segments.
    fn limit(self) -> f64 {
        match self {
            Self::Bursts => 8.0,
            Self::Paced => f64::INFINITY,
        }
    }
}

/// One round trip, delimited by sequence numbers (section 4.2).
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Sequence number whose acknowledgement ends the round; 0 before the first ACK.
    end: u64,
    min_rtt: Duration,
    last_min_rtt: Duration,
    samples: u32,
}

impl Round {
    const FIRST: Self = Self { end: 0, min_rtt: Duration::MAX, last_min_rtt: Duration::MAX, samples: 0 };

    fn sample(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        self.samples += 1;
    }

    fn is_conclusive(&self) -> bool {
        self.samples >= N_RTT_SAMPLE
    }

    /// Section 4.2: true if the delay exceeds the last round's by more than `RttThresh`.
    fn shows_queue(&self) -> bool {
        if !self.is_conclusive() || self.last_min_rtt == Duration::MAX {
            return false;
        }
        let threshold = (self.last_min_rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        self.min_rtt >= self.last_min_rtt + threshold
    }

    fn next(self, end: u64) -> Self {
        Self { end, min_rtt: Duration::MAX, last_min_rtt: self.min_rtt, samples: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Standard slow start with a check of the delay.
    Standard,
    /// Conservative slow start (CSS): slow growth until the delay increase is confirmed or refuted.
    Conservative { baseline: Duration, rounds: u32 },
}

/// The slow start of RFC 9406.
#[derive(Clone, Debug)]
pub struct HyStart {
    /// `None` in plain slow start. After the first slow start ssthresh is known and no check is needed (section 4.3).
    watch: Option<Box<Watch>>,
}

/// State of the delay check in the first slow start.
#[derive(Clone, Copy, Debug)]
struct Watch {
    pace: Pace,
    round: Round,
    stage: Stage,
}

impl HyStart {
    /// Makes the state for a new connection.
    pub fn new(pace: Pace) -> Self {
        Self { watch: Some(Box::new(Watch { pace, round: Round::FIRST, stage: Stage::Standard })) }
    }

    /// Makes a plain slow start of RFC 5681: the option turned off.
    pub fn off() -> Self {
        Self { watch: None }
    }

    /// Returns [`HyStart::new`] if `on`, for a sender with or without pacing ([`Start::paced`](crate::Start::paced)); else
    /// [`HyStart::off`].
    pub fn configured(on: bool, paced: bool) -> Self {
        let pace = if paced { Pace::Paced } else { Pace::Bursts };
        if on { Self::new(pace) } else { Self::off() }
    }

    /// Grows the window for an ACK of new data in slow start. Ends slow start by lowering `ssthresh` to the window.
    pub fn grow(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let acked = f64::from(ack.acked);
        let Some(watch) = &mut self.watch else {
            windows.cwnd += acked;
            return;
        };
        windows.cwnd += match watch.stage {
            Stage::Standard => acked.min(watch.pace.limit()),
            Stage::Conservative { .. } => acked.min(watch.pace.limit()) / CSS_GROWTH_DIVISOR,
        };
        if let Some(rtt) = ack.rtt {
            watch.round.sample(rtt);
        }
        watch.look();
        if path.snd_una >= watch.round.end && watch.ends_slow_start(path) {
            windows.ssthresh = windows.cwnd;
            self.stop();
        }
    }

    /// Ends slow start for good after a loss, mark or timeout (section 4.2).
    pub fn stop(&mut self) {
        self.watch = None;
    }
}

impl Watch {
    /// Switches between slow start and its conservative form, in both directions (section 4.2).
    fn look(&mut self) {
        self.stage = match self.stage {
            Stage::Standard if self.round.shows_queue() => {
                Stage::Conservative { baseline: self.round.min_rtt, rounds: 0 }
            }
            Stage::Conservative { baseline, .. }
                if self.round.is_conclusive() && self.round.min_rtt < baseline =>
            {
                Stage::Standard
            }
            stage => stage,
        };
    }

    /// Handles the end of a round. Returns true if enough conservative rounds have passed to end slow start.
    fn ends_slow_start(&mut self, path: &Path) -> bool {
        // The first ACK finds no round yet. The initial window, which it belongs to, is the first round.
        let began = self.round.end > 0;
        if !began {
            self.round.end = path.snd_nxt;
            return false;
        }
        self.round = self.round.next(path.snd_nxt);
        let Stage::Conservative { rounds, .. } = &mut self.stage else { return false };
        *rounds += 1;
        *rounds >= CSS_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const MSS: u64 = fixture::MSS as u64;

    /// Feeds whole rounds: each ACK covers one segment, and new window is used at once.
    struct Feed {
        hystart: HyStart,
        windows: Windows,
        una: u64,
        nxt: u64,
    }

    impl Feed {
        fn new() -> Self {
            Self {
                hystart: HyStart::new(Pace::Bursts),
                windows: Windows { cwnd: 10.0, ssthresh: f64::INFINITY },
                una: 1,
                nxt: 1 + 10 * MSS,
            }
        }

        fn stage(&self) -> Stage {
            self.hystart.watch.as_ref().expect("slow start is watched").stage
        }

        fn ack(&mut self, acked: u32, rtt_ms: u64) {
            self.una += u64::from(acked) * MSS;
            let path = Path { snd_una: self.una, snd_nxt: self.nxt, ..fixture::path() };
            let ack = Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(acked) };
            self.hystart.grow(&mut self.windows, &ack, &path);
            self.nxt = self.una + self.windows.cwnd as u64 * MSS;
        }

        fn round(&mut self, rtt_ms: u64) {
            let end = self.nxt;
            while self.una < end && self.windows.in_slow_start() {
                self.ack(1, rtt_ms);
            }
        }
    }

    #[test]
    fn a_steady_delay_leaves_slow_start_alone() {
        let mut feed = Feed::new();
        for _ in 0..4 {
            feed.round(550);
        }
        assert_eq!(feed.windows.cwnd, 160.0);
        assert!(feed.windows.in_slow_start());
    }

    #[test]
    fn the_threshold_is_an_eighth_within_4_to_16_ms() {
        for (base, rise, queue) in
            [(20, 3, false), (20, 4, true), (80, 9, false), (80, 10, true), (550, 15, false), (550, 16, true)]
        {
            let mut feed = Feed::new();
            feed.round(base);
            feed.round(base + rise);
            let conservative = matches!(feed.stage(), Stage::Conservative { .. });
            assert_eq!(conservative, queue, "{base} ms + {rise} ms");
        }
    }

    #[test]
    fn fewer_than_eight_samples_prove_nothing() {
        let mut feed = Feed::new();
        feed.round(550);
        for _ in 0..7 {
            feed.ack(1, 600);
        }
        assert!(matches!(feed.stage(), Stage::Standard));
        feed.ack(1, 600);
        assert!(matches!(feed.stage(), Stage::Conservative { .. }));
    }

    #[test]
    fn five_conservative_rounds_lead_to_congestion_avoidance() {
        let mut feed = Feed::new();
        feed.round(550);
        // The eighth sample of this round begins CSS: growth of 8 + 12 / 4. The rest of the round counts as the first of five.
        feed.round(600);
        assert_eq!(feed.windows.cwnd, 20.0 + 8.0 + 12.0 / 4.0);
        for _ in 0..3 {
            feed.round(600);
            assert!(feed.windows.in_slow_start());
        }
        feed.round(600);
        assert_eq!(feed.windows.ssthresh, feed.windows.cwnd);
    }

    #[test]
    fn a_falling_delay_resumes_slow_start() {
        let mut feed = Feed::new();
        feed.round(550);
        feed.round(600);
        feed.round(560);
        assert!(matches!(feed.stage(), Stage::Standard));
        assert!(feed.windows.in_slow_start());
    }

    #[test]
    fn one_ack_adds_eight_segments_unless_paced() {
        let grown = |pace| {
            let mut windows = Windows { cwnd: 40.0, ssthresh: f64::INFINITY };
            HyStart::new(pace).grow(&mut windows, &fixture::ack(20), &fixture::path());
            windows.cwnd
        };
        assert_eq!(grown(Pace::Bursts), 48.0);
        assert_eq!(grown(Pace::Paced), 60.0);
    }

    #[test]
    fn after_a_loss_slow_start_is_plain() {
        let mut feed = Feed::new();
        feed.hystart.stop();
        feed.round(550);
        feed.round(900);
        assert_eq!(feed.windows.cwnd, 40.0);
        assert!(feed.windows.in_slow_start());
    }
}
