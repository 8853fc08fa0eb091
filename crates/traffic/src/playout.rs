//! Playout of live video whose frames arrive over a network.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};

/// Playout clock for frames. The first frame is played `delay` after it is complete, the others with the original spacing. A
/// frame that is incomplete at its time is late.
#[derive(Clone, Debug)]
pub struct Playout {
    delay: Duration,
    /// Time from sending to playing a frame.
    offset: Option<Duration>,
    /// Incomplete frames: send time, and position of the last byte in the stream.
    open: VecDeque<(Instant, u64)>,
    sent: u64,
    in_time: u64,
    late: u64,
}

impl Playout {
    /// Makes a clock with this playout delay.
    pub fn new(delay: Duration) -> Self {
        Self { delay, offset: None, open: VecDeque::new(), sent: 0, in_time: 0, late: 0 }
    }

    /// Records a sent frame whose last byte is at position `end` of the stream.
    pub fn handle_sent(&mut self, now: Instant, end: u64) {
        self.sent += 1;
        self.open.push_back((now, end));
    }

    /// Handles the arrival of the stream up to position `end` without gaps.
    pub fn handle_stream(&mut self, now: Instant, end: u64) {
        while let Some(&(sent, _)) = self.open.front().filter(|(_, last)| *last <= end) {
            self.open.pop_front();
            self.judge(now, sent);
        }
    }

    /// Handles a complete frame that was sent at `sent`; for transports that deliver frames in any order.
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

    /// Returns the number of frames complete in time.
    pub fn in_time(&self) -> u64 {
        self.in_time
    }

    /// Returns the fraction of the due frames that could not be played: late or missing.
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
        // The first frame takes 300 ms, so every frame has 400 ms.
        playout.handle_stream(at(300), 1999);
        playout.handle_stream(at(440), 2000);
        playout.handle_stream(at(481), 3500);
        assert_eq!((playout.in_time(), playout.missed(at(481))), (2, 1.0 / 3.0));
        // The two frames that never arrive count as missed at their playout times.
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
