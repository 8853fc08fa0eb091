use bentpipe_base::{Duration, Rate};
use bentpipe_net::{FrameSpan, Interpolation, LinkConfig, LossModel, Schedule};

use crate::modcod::Modcod;
use crate::{Acm, Coding, Modem, Weather};

/// Rate and losses of a modem over time, under given weather.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Consecutive intervals: the first from zero on, the last without end.
    pub spans: Vec<Span>,
}

/// Interval in which nothing changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    /// Start of the interval.
    pub from: Duration,
    /// Modulation and code in use.
    pub modcod: &'static Modcod,
    /// Packet rate.
    pub rate: Rate,
    /// Duration of a frame.
    pub frame: Duration,
    /// Probability of a frame loss, which loses all packets with a part in it.
    pub frame_loss: f64,
}

/// Width of the waterfall region in dB: a code this far below its required signal loses every frame. Measured curves of long
/// codes fall by about seven orders of magnitude within a few tenths of a decibel.
const WATERFALL_DB: f64 = 0.3;
/// Loss probabilities below this count as zero.
const NEVER: f64 = 1e-12;

/// Returns the frame loss probability with `excess_db` more signal than required: 1e-7 at the required signal, as the standard
/// defines. It is log-linear in decibels around that point.
fn frame_loss(excess_db: f64) -> f64 {
    let loss = libm::pow(10.0, -7.0 * (1.0 + excess_db / WATERFALL_DB)).min(1.0);
    if loss < NEVER { 0.0 } else { loss }
}

impl Modem {
    /// Computes the plan under this weather up to `duration`.
    pub fn plan(&self, weather: &Weather, duration: Duration) -> Plan {
        let ladder = self.standard.ladder();
        let signal = |time| self.clear_sky_db - weather.attenuation_db(time);
        let (interval, acm) = match &self.coding {
            Coding::Fixed(_) => (Acm::default().interval, None),
            Coding::Adaptive(acm) => (acm.interval, Some(acm)),
        };
        let delay = acm.map_or(Duration::ZERO, |acm| acm.feedback_delay);
        // Measurements after the weather has settled change nothing once the last changing one has taken effect.
        let end = duration.min(weather.settles() + delay + interval * 2_u64);
        let first = acm.map(|acm| acm.follow(&ladder, 0, signal(Duration::ZERO)));
        let mut measured = first.into_iter().collect::<Vec<_>>();
        let lag = delay.as_nanos().div_ceil(interval.as_nanos()) as usize;
        let mut plan = Plan { spans: Vec::new() };
        let mut step = 0_usize;
        loop {
            let time = interval * step as u64;
            let now = signal(time);
            let modcod = match (&self.coding, acm) {
                (Coding::Adaptive(_), Some(acm)) => {
                    let last = measured[measured.len() - 1];
                    measured.push(acm.follow(&ladder, last, now));
                    ladder[measured[(step + 1).saturating_sub(lag)]]
                }
                (Coding::Fixed(modcod), _) => modcod,
                (Coding::Adaptive(_), None) => unreachable!("adaptive coding has its parameters"),
            };
            plan.add(self.span(time, modcod, now));
            step += 1;
            if time >= end {
                return plan;
            }
        }
    }

    fn span(&self, from: Duration, modcod: &'static Modcod, es_n0_db: f64) -> Span {
        let frame_loss = frame_loss(es_n0_db - modcod.es_n0_db);
        Span { from, modcod, rate: self.rate(modcod), frame: self.frame(modcod), frame_loss }
    }
}

impl Plan {
    fn add(&mut self, span: Span) {
        let same = |last: &Span| Span { from: span.from, ..*last } == span;
        if !self.spans.last().is_some_and(same) {
            self.spans.push(span);
        }
    }

    /// Applies the plan to a link: its rate and its losses.
    pub fn apply(&self, link: &mut LinkConfig) {
        let mut points: Vec<(Duration, Rate)> =
            self.spans.iter().map(|span| (span.from, span.rate)).collect();
        points.dedup_by_key(|point| point.1);
        link.rate = match points.as_slice() {
            [(_, only)] => Schedule::Constant(*only),
            _ => Schedule::Table { points, interpolation: Interpolation::Step, repeat_every: None },
        };
        let frames = |span: &Span| FrameSpan { from: span.from, frame: span.frame, loss: span.frame_loss };
        link.loss.model = if self.spans.iter().all(|span| span.frame_loss <= 0.0) {
            LossModel::None
        } else {
            LossModel::Frames { spans: self.spans.iter().map(frames).collect() }
        };
    }

    /// Returns the fraction of the time up to `duration` in which every frame is lost.
    pub fn outage(&self, duration: Duration) -> f64 {
        let ends = self.spans.iter().skip(1).map(|span| span.from).chain([Duration::MAX]);
        let out = |(span, end): (&Span, Duration)| {
            let length = end.min(duration).saturating_sub(span.from);
            if span.frame_loss >= 1.0 { length.as_secs_f64() } else { 0.0 }
        };
        self.spans.iter().zip(ends).map(out).sum::<f64>() / duration.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standard;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn fade(points: &[(u64, f64)]) -> Weather {
        Weather::Attenuation { points: points.iter().map(|&(s, db)| (S(s), db)).collect() }
    }

    fn modem(coding: Coding) -> Modem {
        Modem { clear_sky_db: 12.0, coding, ..Modem::default() }
    }

    fn names(plan: &Plan) -> Vec<(f64, &str)> {
        let mut names: Vec<_> =
            plan.spans.iter().map(|span| (span.from.as_secs_f64(), span.modcod.name)).collect();
        names.dedup_by_key(|name| name.1);
        names
    }

    #[test]
    fn under_a_clear_sky_one_code_holds_without_loss() {
        let plan = modem(Coding::Adaptive(Acm::default())).plan(&Weather::Clear, S(600));
        // 12 dB minus a margin of 0.5 and a hysteresis of 0.5 carries 16APSK 3/4 (10.21 dB), not 4/5 (11.03).
        assert_eq!(names(&plan), [(0.0, "16apsk 3/4")]);
        assert_eq!(plan.spans.len(), 1);
        assert_eq!(plan.spans[0].frame_loss, 0.0);
        assert_eq!(plan.outage(S(600)), 0.0);
    }

    #[test]
    fn a_sudden_fade_is_followed_after_the_feedback_delay_and_loses_until_then() {
        let acm = Acm { feedback_delay: Duration::from_millis(500), ..Acm::default() };
        // A fade of 6 dB within 0.1 s at 10 s: 6 dB are left, enough for 8PSK 3/5 (5.50 dB) with margin.
        let weather = Weather::Attenuation {
            points: vec![(S(10), 0.0), (S(10) + Duration::from_millis(100), 6.0), (S(20), 6.0)],
        };
        let plan = modem(Coding::Adaptive(acm)).plan(&weather, S(60));
        assert_eq!(names(&plan), [(0.0, "16apsk 3/4"), (10.6, "8psk 3/5")]);
        let lost: Vec<_> = plan.spans.iter().filter(|span| span.frame_loss >= 1.0).collect();
        assert_eq!(lost.len(), 1);
        assert_eq!(lost[0].from, Duration::from_millis(10_100));
        assert!((plan.outage(S(60)) - 0.5 / 60.0).abs() < 1e-9);
    }

    #[test]
    fn without_adaptation_a_fixed_code_falls_off_its_cliff() {
        let modcod = Standard::DvbS2.find("8psk 3/4").unwrap();
        // 4.09 dB above the required signal; a fade from 0 to 8 dB in 80 s.
        let plan = modem(Coding::Fixed(modcod)).plan(&fade(&[(0, 0.0), (80, 8.0)]), S(120));
        assert!(plan.spans.iter().all(|span| span.modcod == modcod));
        let first_loss = plan.spans.iter().find(|span| span.frame_loss > 0.0).unwrap();
        assert!((first_loss.from.as_secs_f64() - 38.8).abs() < 0.2, "{first_loss:?}");
        // 0.3 dB below the required signal nothing gets through, from 43.9 s on.
        assert!((plan.outage(S(120)) - (120.0 - 43.9) / 120.0).abs() < 0.002);
    }

    #[test]
    fn a_fade_beyond_the_lowest_code_is_an_outage() {
        let plan = modem(Coding::Adaptive(Acm::default())).plan(&fade(&[(0, 30.0)]), S(60));
        assert_eq!(names(&plan), [(0.0, "qpsk 1/4")]);
        assert!((plan.outage(S(60)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_wavering_signal_does_not_make_a_modem_waver() {
        // 0.4 dB up and down every second, around the step to QPSK 2/3.
        let points: Vec<_> =
            (0..100).map(|s| (s, 12.0 - 4.0 + if s % 2 == 0 { 0.2 } else { -0.2 })).collect();
        let changes = |hysteresis_db| {
            let acm = Acm { hysteresis_db, ..Acm::default() };
            names(&modem(Coding::Adaptive(acm)).plan(&fade(&points), S(100))).len()
        };
        assert!(changes(0.5) <= 2, "{}", changes(0.5));
    }

    #[test]
    fn a_link_follows_the_plan() {
        let queue = bentpipe_net::QueueConfig::default();
        let mut link = LinkConfig::new(Rate::ZERO, Duration::from_millis(250), queue);
        let plan = modem(Coding::Adaptive(Acm::default())).plan(&fade(&[(0, 0.0), (60, 9.0)]), S(90));
        plan.apply(&mut link);
        assert_eq!(link.validate(), Ok(()));
        let Schedule::Table { points, .. } = &link.rate else { panic!("a rate that varies") };
        // A slow fade lowers the rate step by step and loses almost no frame.
        assert!(points.is_sorted_by(|a, b| a.1 > b.1), "{points:?}");
        assert!(points.len() > 8);
        assert!(plan.spans.iter().all(|span| span.frame_loss < 1e-7), "{plan:?}");
        modem(Coding::Adaptive(Acm::default())).plan(&Weather::Clear, S(90)).apply(&mut link);
        assert!(matches!(link.rate, Schedule::Constant(_)));
        assert_eq!(link.loss.model, LossModel::None);
    }
}
