//! Telephony: packets of a talker, and the quality of a call.
//!
//! The quality follows the E-model (ITU-T G.107, 2015). All parameters except delay and loss have their defaults. The result is a
//! rating `R = 93.2 - Id - Ie,eff` and a mean opinion score.

use bentpipe_base::{Duration, Instant, Rng};

use crate::emission::Emission;
use crate::law::Law;

/// A speech codec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// G.711 at 64 kbit/s with packet loss concealment.
    G711,
    /// G.729A at 8 kbit/s with voice activity detection.
    G729,
}

impl Codec {
    /// Returns the payload bytes of a packet.
    fn payload_bytes(self) -> u32 {
        match self {
            Self::G711 => 160,
            Self::G729 => 20,
        }
    }

    /// Returns the delay from the first sound of a packet to its transmission: packet length and look-ahead of the coder.
    pub fn delay(self) -> Duration {
        match self {
            Self::G711 => PACKET,
            Self::G729 => PACKET + Duration::from_millis(5),
        }
    }

    /// Equipment impairment `Ie` and robustness against packet loss `Bpl` (ITU-T G.113, appendix I).
    fn impairment(self) -> (f64, f64) {
        match self {
            Self::G711 => (0.0, 25.1),
            Self::G729 => (11.0, 19.0),
        }
    }
}

/// Duration of sound in a packet.
const PACKET: Duration = Duration::from_millis(20);
/// Mean lengths of talk spurts and pauses, both exponential (ITU-T P.59).
const SPURT_S: f64 = 1.004;
const PAUSE_S: f64 = 1.587;

/// One direction of a call: a packet every 20 ms during talk spurts.
#[derive(Clone, Debug)]
pub struct Talker {
    payload: u32,
    /// False if pauses are also sent.
    suppresses: bool,
    at: Duration,
    spurt_ends: Duration,
    rng: Rng,
}

impl Talker {
    /// Makes a talker who begins with a talk spurt; with `suppress_silence` pauses are not sent.
    pub fn new(codec: Codec, suppress_silence: bool, rng: Rng) -> Self {
        let (payload, at) = (codec.payload_bytes(), Duration::ZERO);
        let mut talker = Self { payload, suppresses: suppress_silence, at, spurt_ends: at, rng };
        talker.spurt_ends = talker.spurt();
        talker
    }

    /// Returns the next packet.
    pub fn next_emission(&mut self) -> Emission {
        if self.suppresses && self.at >= self.spurt_ends {
            let pause = Law::Exponential { mean: PAUSE_S }.draw(&mut self.rng);
            self.at += Duration::from_secs_f64(pause);
            self.spurt_ends = self.spurt();
        }
        let emission = Emission { at: self.at, bytes: self.payload, stream: 0 };
        self.at += PACKET;
        emission
    }

    fn spurt(&mut self) -> Duration {
        self.at + Duration::from_secs_f64(Law::Exponential { mean: SPURT_S }.draw(&mut self.rng))
    }
}

/// Returns the rating R of a call with this mouth-to-ear delay. A fraction `lost` (0 to 1) of the packets is missing at playout.
/// Losses count as independent (`BurstR` = 1), and echo as cancelled.
pub fn rating(codec: Codec, mouth_to_ear: Duration, lost: f64) -> f64 {
    let (ie, bpl) = codec.impairment();
    let percent = 100.0 * lost;
    // G.107 equation 7-29.
    let ie_eff = ie + (95.0 - ie) * percent / (percent + bpl);
    93.2 - delay_impairment(mouth_to_ear) - ie_eff
}

/// `Idd` of G.107, equation 7-27.
fn delay_impairment(delay: Duration) -> f64 {
    let ms = delay.as_millis_f64();
    if ms <= 100.0 {
        return 0.0;
    }
    let x = libm::log2(ms / 100.0);
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// Returns the mean opinion score of a rating (G.107 annex B): 1 bad to 4.5 excellent.
pub fn mean_opinion_score(rating: f64) -> f64 {
    match rating {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        // The cubic falls below 1 for very small ratings.
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

/// Listening end of a call. The first packet sets the playout delay; packets in time are counted.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    codec: Codec,
    jitter_buffer: Duration,
    /// Time from sending to playing a packet.
    offset: Option<Duration>,
    in_time: u64,
}

impl Listener {
    /// Makes a listener who holds the first packet for `jitter_buffer`.
    pub fn new(codec: Codec, jitter_buffer: Duration) -> Self {
        Self { codec, jitter_buffer, offset: None, in_time: 0 }
    }

    /// Handles a packet that arrived `transit` after it was sent.
    pub fn handle_packet(&mut self, transit: Duration) {
        let buffer = self.jitter_buffer;
        let offset = *self.offset.get_or_insert(transit + buffer);
        self.in_time += u64::from(transit <= offset);
    }

    /// Returns the rating of a call with `sent` due packets; `None` before the first arrival.
    pub fn rating(&self, sent: u64) -> Option<f64> {
        Some(rating(self.codec, self.mouth_to_ear()?, self.lost(sent)))
    }

    /// Returns the fraction of the `sent` due packets that were not played.
    pub fn lost(&self, sent: u64) -> f64 {
        1.0 - self.in_time as f64 / sent.max(self.in_time).max(1) as f64
    }

    /// Returns the mouth-to-ear delay; `None` before the first arrival.
    pub fn mouth_to_ear(&self) -> Option<Duration> {
        Some(self.codec.delay() + self.offset?)
    }

    /// True if a packet sent at `sent` is due by `now`.
    pub fn is_due(&self, sent: Instant, now: Instant) -> bool {
        self.offset.is_none_or(|offset| sent + offset < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_best_call_scores_4_41() {
        assert!((rating(Codec::G711, MS(50), 0.0) - 93.2).abs() < 1e-12);
        assert!((mean_opinion_score(93.2) - 4.409).abs() < 0.001);
        // G.107 table B.1: borders between the categories of satisfaction.
        for (r, mos) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mean_opinion_score(r) - mos).abs() < 0.01, "{r}: {}", mean_opinion_score(r));
        }
        assert_eq!((mean_opinion_score(-5.0), mean_opinion_score(100.0)), (1.0, 4.5));
    }

    #[test]
    fn delay_hurts_above_100_ms_and_losses_as_the_codec_says() {
        assert_eq!(delay_impairment(MS(100)), 0.0);
        // At 200 ms, X = 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
        let exact = 25.0 * (1.122_462_048 - 3.0 * 1.000_228_490 + 2.0);
        assert!((delay_impairment(MS(200)) - exact).abs() < 1e-5);
        assert!((20.0..30.0).contains(&delay_impairment(MS(400))));
        // With a loss in percent equal to Bpl, half of the remaining rating is lost.
        assert!((rating(Codec::G729, MS(0), 0.19) - (93.2 - 11.0 - 42.0)).abs() < 1e-9);
    }

    #[test]
    fn a_talker_talks_two_fifths_of_the_time() {
        let mut talker = Talker::new(Codec::G711, true, Rng::stream(9, "talker"));
        let last = (0..100_000).map(|_| talker.next_emission()).last().unwrap();
        let share = 100_000.0 * 0.02 / last.at.as_secs_f64();
        assert!((share - 0.388).abs() < 0.01, "{share}");
        let mut talker = Talker::new(Codec::G729, false, Rng::stream(9, "talker"));
        let last = (0..51).map(|_| talker.next_emission()).last().unwrap();
        assert_eq!(last, Emission { at: Duration::from_secs(1), bytes: 20, stream: 0 });
    }

    #[test]
    fn what_comes_after_its_time_is_lost() {
        let mut listener = Listener::new(Codec::G711, MS(40));
        assert_eq!(listener.rating(0), None);
        for transit in [50, 90, 91, 70] {
            listener.handle_packet(MS(transit));
        }
        // 20 ms in the packet and 90 ms until it is played; 1 of 4 packets is lost.
        let wanted = rating(Codec::G711, MS(110), 0.25);
        assert!((listener.rating(4).unwrap() - wanted).abs() < 1e-12);
        assert_eq!(listener.lost(4), 0.25);
        let at = |ms| Instant::ZERO + MS(ms);
        assert!(listener.is_due(at(0), at(91)) && !listener.is_due(at(0), at(90)));
    }
}
