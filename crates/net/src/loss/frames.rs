use bentpipe_base::{Duration, Instant, Rng};

use super::sending::Sending;
use crate::error::{ConfigError, check_probability};

/// Interval in which frames have one length and one loss probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameSpan {
    /// Start of the interval, and of a frame.
    pub from: Duration,
    /// Duration of a frame.
    pub frame: Duration,
    /// Probability of a frame loss.
    pub loss: f64,
}

pub(super) fn validate(spans: &[FrameSpan]) -> Result<(), ConfigError> {
    if spans.first().is_none_or(|first| !first.from.is_zero()) {
        return Err(ConfigError::new("spans", "no span at 0 s", "spans from 0 s on"));
    }
    if let Some(pair) = spans.windows(2).find(|pair| pair[0].from >= pair[1].from) {
        let found = format!("{} after {}", pair[1].from, pair[0].from);
        return Err(ConfigError::new("spans", found, "strictly ascending times"));
    }
    for span in spans {
        check_probability("loss", span.loss)?;
        if span.frame.is_zero() {
            return Err(ConfigError::new("frame", span.frame, "longer than 0 s"));
        }
    }
    Ok(())
}

/// Physical-layer frames: a lost frame loses all packets with a part in it.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    spans: Vec<FrameSpan>,
    /// Index of the present interval.
    index: usize,
    /// Latest frame with a part of a packet: its end and its fate.
    end: Instant,
    lost: bool,
}

impl Frames {
    pub fn new(spans: Vec<FrameSpan>) -> Self {
        Self { spans, index: 0, end: Instant::ZERO, lost: false }
    }

    /// True if a frame with a part of the packet is lost.
    pub fn strike(&mut self, sending: &Sending, rng: &mut Rng) -> bool {
        if self.end <= sending.start {
            self.enter(sending.start, rng);
        }
        let mut hit = self.lost;
        while self.end < sending.end {
            self.enter(self.end, rng);
            hit |= self.lost;
        }
        hit
    }

    /// Advances to the frame at `time`; a new interval begins with a new frame.
    fn enter(&mut self, time: Instant, rng: &mut Rng) {
        let since_zero = time.since(Instant::ZERO);
        while self.spans.get(self.index + 1).is_some_and(|next| next.from <= since_zero) {
            self.index += 1;
        }
        let span = self.spans[self.index];
        let frame = span.frame.as_nanos();
        let gone = (since_zero - span.from).as_nanos() / frame;
        let end = Instant::ZERO + span.from + Duration::from_nanos((gone + 1) * frame);
        let cut =
            self.spans.get(self.index + 1).map_or(Instant::FAR_FUTURE, |next| Instant::ZERO + next.from);
        self.end = end.min(cut);
        self.lost = rng.chance(span.loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn sending(start: u64, end: u64) -> Sending {
        Sending { start: ms(start), end: ms(end), size: 1000, is_data: true }
    }

    fn span(from: u64, frame: u64, loss: f64) -> FrameSpan {
        FrameSpan { from: Duration::from_millis(from), frame: Duration::from_millis(frame), loss }
    }

    #[test]
    fn a_lost_frame_takes_every_packet_that_it_carries_a_part_of() {
        let mut rng = Rng::stream(1, "frames");
        // Frames of 10 ms, lost only from 100 ms to 110 ms.
        let mut frames = Frames::new(vec![span(0, 10, 0.0), span(100, 10, 1.0), span(110, 10, 0.0)]);
        let hits: Vec<_> = [(80, 90), (90, 100), (99, 101), (101, 104), (104, 109), (109, 111), (111, 140)]
            .into_iter()
            .map(|(start, end)| frames.strike(&sending(start, end), &mut rng))
            .collect();
        assert_eq!(hits, [false, false, true, true, true, true, false]);
    }

    #[test]
    fn losses_come_in_bursts_as_long_as_frames() {
        let mut rng = Rng::stream(2, "frames");
        let mut frames = Frames::new(vec![span(0, 20, 0.1)]);
        // Ten packets of 2 ms per frame.
        let lost: Vec<_> =
            (0..200_000).map(|i| frames.strike(&sending(2 * i, 2 * i + 2), &mut rng)).collect();
        let count = lost.iter().filter(|lost| **lost).count();
        assert!((count as f64 / 200_000.0 - 0.1).abs() < 0.005, "{count}");
        assert!(lost.chunks(10).all(|frame| frame.iter().all(|lost| *lost == frame[0])));
    }

    #[test]
    fn frames_in_which_nothing_is_sent_cost_nothing_and_change_nothing() {
        let draw = |pause: u64| {
            let mut rng = Rng::stream(3, "frames");
            let mut frames = Frames::new(vec![span(0, 10, 0.5)]);
            let at = |i: u64| i * 10 + if i >= 50 { pause } else { 0 };
            (0..100).map(|i| frames.strike(&sending(at(i), at(i) + 5), &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(0), draw(1_000_000_000));
    }

    #[test]
    fn impossible_frames_are_refused() {
        assert_eq!(validate(&[]).unwrap_err().field, "spans");
        assert_eq!(validate(&[span(5, 1, 0.0)]).unwrap_err().field, "spans");
        assert_eq!(validate(&[span(0, 1, 0.0), span(0, 1, 0.0)]).unwrap_err().field, "spans");
        assert_eq!(validate(&[span(0, 0, 0.0)]).unwrap_err().field, "frame");
        assert_eq!(validate(&[span(0, 1, 1.5)]).unwrap_err().field, "loss");
    }
}
