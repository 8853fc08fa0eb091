//! Real-time performance index of a packet stream.

use bentpipe_base::{Duration, Instant};

/// Counts timely and delayed packets as Papadimitriou and Tsaoussidis do ("Evaluating TCP Mechanisms for Real-Time Streaming over
/// Satellite Links", section 4). A packet is timely if it arrives within the threshold after the previous one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeliness {
    threshold: Duration,
    last: Option<Instant>,
    timely: u64,
    delayed: u64,
}

impl Timeliness {
    /// Makes a counter with this threshold; the paper uses 200 ms.
    pub fn new(threshold: Duration) -> Self {
        Self { threshold, last: None, timely: 0, delayed: 0 }
    }

    /// Handles the first arrival of a packet. The first packet of the stream is timely.
    pub fn handle_packet(&mut self, now: Instant) {
        let in_time = self.last.is_none_or(|last| now.since(last) <= self.threshold);
        self.timely += u64::from(in_time);
        self.delayed += u64::from(!in_time);
        self.last = Some(now);
    }

    /// Returns the real-time performance index: timely packets over packets sent, at most 1.
    pub fn index(&self, sent: u64) -> f64 {
        share(self.timely, sent)
    }

    /// Returns delayed packets over packets sent.
    pub fn delayed_rate(&self, sent: u64) -> f64 {
        share(self.delayed, sent)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_eight_are_timely_and_two_delayed() {
        let mut timeliness = Timeliness::new(Duration::from_millis(200));
        for ms in [0, 40, 80, 630, 640, 1200] {
            timeliness.handle_packet(Instant::ZERO + Duration::from_millis(ms));
        }
        assert_eq!((timeliness.index(8), timeliness.delayed_rate(8)), (0.5, 0.25));
        assert_eq!(timeliness.index(0), 0.0);
    }
}
