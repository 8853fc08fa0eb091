//! Vegas's epochs (about a round trip), which measure the queued segments, and the growth that follows.

use core::cmp::Reverse;

use bentpipe_base::{Duration, Instant};

use super::windowed::WindowedMax;
use crate::{Ack, Path, Windows};

/// Minimum window in segments.
pub(crate) const SMALLEST: f64 = 2.0;

/// Measurements of an epoch (about a round trip).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measured {
    /// minRTT of the connection.
    pub base: Duration,
    /// Mean round-trip time of the epoch.
    pub rtt: Duration,
    /// Minimum round-trip time of the epoch; [`Duration::MAX`] without a sample.
    pub min_rtt: Duration,
    /// Round-trip samples in the epoch.
    pub samples: u32,
    /// `(Expected - Actual) BaseRTT`, rounded to whole segments: the queued segments.
    pub delta: f64,
}

impl Measured {
    /// Returns the queued segments by the epoch's minimum round-trip time, as in Linux: `W (RTT - BaseRTT) / BaseRTT`.
    pub fn queued(&self, window: f64) -> f64 {
        let waiting = self.min_rtt.saturating_sub(self.base).as_secs_f64();
        window * waiting / self.base.as_secs_f64()
    }
}

/// Delimits epochs by sequence numbers, and measures them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    base: WindowedMax<Reverse<Duration>>,
    /// First sequence number of the epoch.
    pub begin: u64,
    began_at: Instant,
    sum: Duration,
    min: Duration,
    samples: u32,
}

impl Epoch {
    /// Makes an epoch whose minimum round-trip time is valid for `base_window_s` seconds; 0 for the whole connection.
    pub fn new(base_window_s: f64) -> Self {
        let window = if base_window_s > 0.0 { Duration::from_secs_f64(base_window_s) } else { Duration::MAX };
        Self {
            base: WindowedMax::new(window.as_nanos()),
            begin: 0,
            began_at: Instant::ZERO,
            sum: Duration::ZERO,
            min: Duration::MAX,
            samples: 0,
        }
    }

    /// Makes an epoch with this base that begins at this sequence number.
    #[cfg(test)]
    pub fn having(base: Duration, begin: u64) -> Self {
        let mut epoch = Self { begin, ..Self::new(0.0) };
        epoch.base.reset(0, Reverse(base));
        epoch
    }

    /// Starts the first epoch.
    pub fn establish(&mut self, path: &Path) {
        self.began_at = path.now;
    }

    /// Handles a round-trip sample; a smaller one becomes the base at once.
    pub fn sample(&mut self, rtt: Duration, path: &Path) {
        self.sum += rtt;
        self.min = self.min.min(rtt);
        self.samples += 1;
        self.base.update(path.now.as_nanos(), Reverse(rtt));
    }

    /// Handles an ACK of new data. Ends the epoch if it covers the first segment sent in it.
    pub fn on_ack(&mut self, path: &Path) -> Option<Measured> {
        if path.snd_una <= self.begin {
            return None;
        }
        let sent = path.snd_nxt.saturating_sub(self.begin) as f64 / f64::from(path.mss.max(1));
        let measured = self.measure(sent, path);
        self.begin = path.snd_nxt;
        self.began_at = path.now;
        (self.sum, self.min, self.samples) = (Duration::ZERO, Duration::MAX, 0);
        measured
    }

    fn measure(&mut self, sent: f64, path: &Path) -> Option<Measured> {
        let mean = self.sum / u64::from(self.samples.max(1));
        let rtt = if self.samples > 0 { mean } else { path.now.since(self.began_at) };
        if rtt.is_zero() {
            return None;
        }
        // A single segment in the network meets no queue of this flow: its round-trip time becomes the base.
        if sent <= 1.0 {
            self.base.reset(path.now.as_nanos(), Reverse(rtt));
        } else {
            self.base.update(path.now.as_nanos(), Reverse(rtt));
        }
        let Reverse(base) = self.base.get()?;
        let base_s = base.as_secs_f64();
        // Outstanding segments just before the ACK, one more than now, because `sent` is counted likewise.
        let expected = f64::from(path.outstanding + 1) / base_s;
        let actual = sent / rtt.as_secs_f64();
        let delta = libm::trunc((expected - actual) * base_s + 0.5);
        Some(Measured { base, rtt, min_rtt: self.min, samples: self.samples, delta })
    }
}

/// Growth of the window until the next epoch ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Growth {
    None,
    /// One segment per acknowledged segment.
    Doubling,
    /// This many segments per acknowledged segment.
    PerSegment(f64),
}

impl Growth {
    /// Grows the window for an ACK in slow start.
    pub fn slow_start(self, windows: &mut Windows, ack: &Ack) {
        if self == Self::Doubling {
            windows.cwnd = (windows.cwnd + f64::from(ack.acked)).min(windows.ssthresh);
        }
    }

    /// Grows the window for an ACK in congestion avoidance.
    pub fn avoid(self, windows: &mut Windows, ack: &Ack) {
        if let Self::PerSegment(step) = self {
            windows.cwnd += f64::from(ack.acked) * step;
        }
    }
}

/// Congestion avoidance at the end of an epoch: one segment more over the next epoch, one less at once, or no change.
pub(crate) fn hold_between(alpha: f64, beta: f64, delta: f64, windows: &mut Windows) -> Growth {
    // Only a timeout leads back to slow start, so ssthresh must not exceed a smaller window.
    windows.ssthresh = SMALLEST;
    if delta > beta {
        windows.cwnd = (windows.cwnd - 1.0).max(SMALLEST);
    } else if delta < alpha {
        return Growth::PerSegment(1.0 / windows.cwnd);
    }
    Growth::None
}

/// Ends slow start because a queue builds up: subtracts 1/8.
pub(crate) fn leave_slow_start(windows: &mut Windows) {
    windows.ssthresh = SMALLEST;
    windows.cwnd = (windows.cwnd - windows.cwnd / 8.0).max(SMALLEST);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, MSS};

    fn bytes(segments: u64) -> u64 {
        segments * u64::from(MSS)
    }

    /// The path at the ACK of the first segment, with `outstanding` more in flight.
    fn path(outstanding: u32) -> Path {
        let snd_una = 1 + bytes(1);
        Path { snd_una, snd_nxt: snd_una + bytes(u64::from(outstanding)), outstanding, ..fixture::path() }
    }

    #[test]
    fn delta_is_rounded_to_whole_segments() {
        let epoch = Epoch::having(Duration::from_millis(500), 1);
        for (rtt_ms, delta) in [(500, 0.0), (503, 1.0), (510, 2.0), (520, 4.0)] {
            let mut epoch = epoch;
            epoch.sample(Duration::from_millis(rtt_ms), &path(99));
            assert_eq!(epoch.on_ack(&path(99)).unwrap().delta, delta, "{rtt_ms} ms");
        }
    }

    #[test]
    fn a_segment_alone_in_the_network_renews_the_base() {
        let mut epoch = Epoch::having(Duration::from_millis(20), bytes(1));
        epoch.sample(Duration::from_millis(30), &path(0));
        assert_eq!(epoch.on_ack(&path(0)).unwrap().base, Duration::from_millis(30));
    }
}
