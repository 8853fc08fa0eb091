//! Playing of a live video whose frames arrive over a network.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};

/// Judges frames by a playout clock: the first frame is played `delay` after it is complete, every other as much later as it was sent later.
/// A frame that is not complete then is late.
#[derive(Clone, Debug)]
pub struct Playout {
    delay: Duration,
    /// From the sending of a frame to its playing.
    offset: Option<Duration>,
    /// Frames not complete: when they were sent, and the last byte of each in the stream.
    open: VecDeque<(Instant, u64)>,
    sent: u64,
    in_time: u64,
    late: u64,
}

impl Playout {
    /// With a playout delay.
    pub fn new(delay: Duration) -> Self {
        Self { delay, offset: None, open: VecDeque::new(), sent: 0, in_time: 0, late: 0 }
    }

    /// A frame was sent whose last byte is the `end`th of the stream.
    pub fn handle_sent(&mut self, now: Instant, end: u64) {
        self.sent += 1;
        self.open.push_back((now, end));
    }

    /// A stream without gaps arrived up to its `end`th byte.
    pub fn handle_stream(&mut self, now: Instant, end: u64) {
        while let Some(&(sent, _)) = self.open.front().filter(|(_, last)| *last <= end) {
            self.open.pop_front();
            self.judge(now, sent);
        }
    }

    /// A frame arrived that was sent then; for transports that deliver frames in any order.
    pub fn handle_frame(&mut self, now: Instant, sent: Instant) {
        self.open.retain(|(open, _)| *open != sent);
        self.judge(now, sent);
    }

    fn judge(&mut self, now: Instant, sent: Instant) {
        let transit = now.since(sent);
        let delay = self.delay;
        let offset = *self.offset.get_or_insert(transit + delay);
        self.in_time += u64::from(transit <= offset);
        self.late += u64::from(transit > offset);
    }

    /// Frames that were complete in time.
    pub fn in_time(&self) -> u64 {
        self.in_time
    }

    /// Share of the frames whose time has come that could not be played: late, or not there.
    pub fn missed(&self, now: Instant) -> f64 {
        let overdue = |(sent, _): &&(Instant, u64)| self.offset.is_none_or(|offset| *sent + offset < now);
        let missing = self.late + self.open.iter().filter(overdue).count() as u64;
        let judged = missing + self.in_time;
        if judged == 0 { 0.0 } else { missing as f64 / judged as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn frames_are_late_by_the_clock_of_the_first() {
        let mut playout = Playout::new(Duration::from_millis(100));
        for frame in 0..5 {
            playout.handle_sent(at(40 * frame), 1000 * (frame + 1));
        }
        // The first takes 300 ms: every frame has 400.
        playout.handle_stream(at(300), 1999);
        playout.handle_stream(at(440), 2000);
        playout.handle_stream(at(481), 3500);
        assert_eq!((playout.in_time(), playout.missed(at(481))), (2, 1.0 / 3.0));
        // The two that never arrive are missed when their time has come.
        assert_eq!(playout.missed(at(521)), 0.5);
        assert_eq!(playout.missed(at(1000)), 0.6);
    }

    #[test]
    fn frames_may_come_in_any_order() {
        let mut playout = Playout::new(Duration::ZERO);
        playout.handle_sent(at(0), 1);
        playout.handle_sent(at(40), 2);
        playout.handle_frame(at(60), at(40));
        assert_eq!(playout.missed(at(1000)), 0.5);
    }
}
