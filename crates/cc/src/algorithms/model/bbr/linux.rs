//! Additions of the Linux kernel module to version 1: room for aggregated ACKs, and a long-term rate behind a policer.

use bentpipe_base::{Duration, Instant};

/// Rounds covered by each of the two maxima of [`Aggregation`].
const AGGREGATION_ROUNDS: u32 = 5;
/// Maximum allowance for aggregation, in seconds at the bottleneck's rate.
const MOST_AGGREGATED_S: f64 = 0.1;
/// Segments after which an epoch ends.
const LONGEST_EPOCH: f64 = 1_048_576.0;

/// An ACK, as input of [`Aggregation`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub segments: f64,
    pub round_start: bool,
}

/// Segments acknowledged beyond the model's expectation in an epoch (`extra_acked`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_began: Instant,
    /// Segments acknowledged in the epoch.
    acked: f64,
    /// Maximum excess in this period of five rounds and in the previous one.
    most: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// Starts a new epoch after an idle time.
    pub fn restart(&mut self, now: Instant) {
        self.epoch_began = now;
        self.acked = 0.0;
    }

    /// Handles an ACK. `rate` is the model's bottleneck in segments per second; `cwnd` bounds the excess.
    pub fn on_ack(&mut self, now: Instant, ack: Acked, rate: f64, cwnd: f64) {
        let Acked { segments: acked, round_start } = ack;
        if round_start {
            self.rounds += 1;
            if self.rounds >= AGGREGATION_ROUNDS {
                self.rounds = 0;
                self.most = [0.0, self.most[0]];
            }
        }
        let mut expected = rate * now.since(self.epoch_began).as_secs_f64();
        if self.acked <= expected || self.acked + acked >= LONGEST_EPOCH {
            self.restart(now);
            expected = 0.0;
        }
        self.acked += acked;
        self.most[0] = self.most[0].max((self.acked - expected).min(cwnd));
    }

    /// Returns the segments allowed beyond the target window.
    pub fn room(&self, rate: f64) -> f64 {
        self.most[0].max(self.most[1]).min(rate * MOST_AGGREGATED_S)
    }
}

/// Minimum length of an interval in round trips; its maximum is four times that.
const LEAST_ROUNDS: u32 = 4;
/// Ratio of lost to delivered segments from which an interval looks policed.
const POLICED_LOSS: f64 = 50.0 / 256.0;
/// Two intervals agree if their rates differ by at most this fraction of the rate, or this many bytes per second.
const AGREED_SHARE: f64 = 0.125;
const AGREED_BYTES_PER_S: f64 = 500.0;
/// Round trips for which a policer's rate is used.
const KEPT_ROUNDS: u32 = 48;

/// Counters over the whole connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub now: Instant,
    /// Delivered and lost segments.
    pub delivered: f64,
    pub lost: f64,
}

/// An ACK or a timeout, as input of the policer detection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign {
    pub counted: Counted,
    pub round_start: bool,
    pub app_limited: bool,
    /// True if segments were lost.
    pub losses: bool,
}

/// Detection of a policer (`lt_bw`). It requires two consecutive intervals with many losses and the same delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Policer {
    /// No loss has occurred. A policer would first spend its tokens.
    #[default]
    Unseen,
    /// Intervals are being measured; `before` is the previous interval's rate in segments per second.
    Sampling { began: Counted, rounds: u32, before: Option<f64> },
    /// A policer was found: two intervals agreed on `rate` segments per second.
    Found { rate: f64, rounds: u32 },
}

impl Policer {
    /// Returns the policer's rate in segments per second.
    pub fn rate(&self) -> Option<f64> {
        if let Self::Found { rate, .. } = self { Some(*rate) } else { None }
    }

    /// Handles an ACK. `probes_bandwidth` is true in ProbeBW. Returns true if the policer's rate is abandoned.
    pub fn on_ack(&mut self, sign: Sign, probes_bandwidth: bool, mss: f64) -> bool {
        match self {
            Self::Found { rounds, .. } => {
                *rounds += u32::from(probes_bandwidth && sign.round_start);
                let over = *rounds >= KEPT_ROUNDS;
                if over {
                    *self = Self::Unseen;
                }
                return over;
            }
            Self::Unseen if sign.losses && !sign.app_limited => {
                let rounds = u32::from(sign.round_start);
                *self = Self::Sampling { began: sign.counted, rounds, before: None };
            }
            Self::Unseen => {}
            Self::Sampling { began, rounds, before } => {
                *rounds += u32::from(sign.round_start);
                if sign.app_limited || *rounds > 4 * LEAST_ROUNDS {
                    *self = Self::Unseen;
                } else if *rounds >= LEAST_ROUNDS && sign.losses {
                    let (began, before) = (*began, *before);
                    self.end_interval(began, sign.counted, before, mss);
                }
            }
        }
        false
    }

    fn end_interval(&mut self, began: Counted, ended: Counted, before: Option<f64>, mss: f64) {
        let (delivered, lost) = (ended.delivered - began.delivered, ended.lost - began.lost);
        let took = ended.now.since(began.now);
        if delivered <= 0.0 || lost < POLICED_LOSS * delivered || took < Duration::from_millis(1) {
            return;
        }
        let rate = delivered / took.as_secs_f64();
        *self = match before {
            Some(before)
                if (rate - before).abs() <= AGREED_SHARE * before
                    || (rate - before).abs() * mss <= AGREED_BYTES_PER_S =>
            {
                Self::Found { rate: (rate + before) / 2.0, rounds: 0 }
            }
            _ => Self::Sampling { began: ended, rounds: 0, before: Some(rate) },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn clusters_of_acks_make_room_for_themselves() {
        // 100 segments per second, acknowledged in groups of 20 every 200 ms.
        let mut aggregation = Aggregation::default();
        aggregation.restart(at(0));
        for cluster in 1..20_u64 {
            aggregation.on_ack(
                at(200 * cluster),
                Acked { segments: 20.0, round_start: cluster % 3 == 0 },
                100.0,
                1000.0,
            );
        }
        assert!((aggregation.room(1000.0) - 20.0).abs() < 1e-9, "{}", aggregation.room(1000.0));
        assert_eq!(aggregation.room(100.0), 10.0, "no more than 100 ms deliver");
        for ack in 0..400_u64 {
            aggregation.on_ack(
                at(4000 + 10 * ack),
                Acked { segments: 1.0, round_start: ack % 20 == 0 },
                100.0,
                1000.0,
            );
        }
        assert!(aggregation.room(1000.0) <= 2.0, "forgotten after ten rounds: {}", aggregation.room(1000.0));
    }

    /// Runs rounds of 100 ms with `delivered` and `lost` segments in each.
    fn rounds(policer: &mut Policer, rounds: core::ops::Range<u64>, (delivered, lost): (f64, f64)) -> bool {
        rounds.fold(false, |over, round| {
            let counted = Counted {
                now: at(100 * round),
                delivered: delivered * round as f64,
                lost: lost * round as f64,
            };
            let sign = Sign { counted, round_start: true, app_limited: false, losses: lost > 0.0 };
            over | policer.on_ack(sign, true, 1000.0)
        })
    }

    #[test]
    fn two_intervals_of_one_rate_with_a_fifth_lost_are_a_policer() {
        let mut policer = Policer::default();
        rounds(&mut policer, 0..5, (80.0, 20.0));
        assert_eq!(policer.rate(), None, "one interval");
        rounds(&mut policer, 5..9, (80.0, 20.0));
        let rate = policer.rate().expect("two intervals");
        assert!((rate - 800.0).abs() < 1e-6, "{rate}");
        assert!(!rounds(&mut policer, 9..55, (80.0, 0.0)) && policer.rate().is_some());
        assert!(rounds(&mut policer, 55..56, (80.0, 0.0)) && policer.rate().is_none(), "48 rounds later");
    }

    #[test]
    fn noise_and_changing_rates_are_none() {
        let mut noise = Policer::default();
        rounds(&mut noise, 0..40, (95.0, 5.0));
        assert_eq!(noise.rate(), None);
        let mut growing = Policer::default();
        let mut counted = Counted::default();
        for round in 0..40_u64 {
            let delivered = 50.0 * 1.1_f64.powi(round as i32);
            counted = Counted {
                now: at(100 * round),
                delivered: counted.delivered + delivered,
                lost: counted.lost + delivered / 3.0,
            };
            let sign = Sign { counted, round_start: true, app_limited: false, losses: true };
            growing.on_ack(sign, true, 1000.0);
        }
        assert_eq!(growing.rate(), None);
    }

    #[test]
    fn an_idle_application_ends_the_search() {
        let mut policer = Policer::default();
        rounds(&mut policer, 0..5, (80.0, 20.0));
        let sign = Sign { counted: Counted::default(), round_start: true, app_limited: true, losses: true };
        policer.on_ack(sign, true, 1000.0);
        assert!(matches!(policer, Policer::Unseen));
    }
}
