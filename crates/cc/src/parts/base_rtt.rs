//! Minimum round-trip time of the connection or of its last seconds. A time limit follows route
//! changes.

use core::cmp::Reverse;

use bentpipe_base::Duration;

use super::windowed::WindowedMax;
use crate::{Ack, Path};

/// Minimum round-trip time of the last seconds. With a window of zero it is the engine's minRTT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentRtt(Option<WindowedMax<Reverse<Duration>>>);

impl RecentRtt {
    /// Makes a filter over the last `window_s` seconds; 0 keeps the minimum for the whole connection.
    pub fn new(window_s: f64) -> Self {
        Self((window_s > 0.0).then(|| WindowedMax::new(Duration::from_secs_f64(window_s).as_nanos())))
    }

    pub fn observe(&mut self, ack: &Ack, path: &Path) {
        if let (Some(window), Some(rtt)) = (&mut self.0, ack.rtt) {
            window.update(path.now.as_nanos(), Reverse(rtt));
        }
    }

    /// Returns the minimum; before the first sample, the engine's minRTT.
    pub fn get(&self, path: &Path) -> Duration {
        match &self.0 {
            Some(window) => window.get().map_or(path.min_rtt, |Reverse(rtt)| rtt),
            None => path.min_rtt,
        }
    }
}

/// `RTTmin` of the schemes that reset it after a timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseRtt {
    min: Duration,
    stale: bool,
}

impl BaseRtt {
    pub fn new() -> Self {
        Self { min: Duration::MAX, stale: false }
    }

    pub fn sample(&mut self, rtt: Duration) {
        if rtt < self.min || self.stale {
            *self = Self { min: rtt, stale: false };
        }
    }

    /// Resets the minimum: the next sample sets it.
    pub fn forget(&mut self) {
        self.stale = true;
    }

    /// Returns the minimum; [`Duration::MAX`] before the first sample.
    pub fn get(&self) -> Duration {
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn only_a_forgotten_minimum_rises() {
        let ms = Duration::from_millis;
        let mut base = BaseRtt::new();
        let mut after = |rtt, forget| {
            if forget {
                base.forget();
            }
            base.sample(ms(rtt));
            base.get()
        };
        assert_eq!([after(550, false), after(560, false), after(540, false)], [ms(550), ms(550), ms(540)]);
        assert_eq!([after(600, true), after(610, false)], [ms(600), ms(600)]);
    }

    /// A handover lengthens the path from 30 to 40 ms.
    #[test]
    fn a_minimum_of_the_last_seconds_follows_a_longer_path() {
        for (window_s, later) in [(10.0, 40), (0.0, 30)] {
            let mut base = RecentRtt::new(window_s);
            let engine = Duration::from_millis(30);
            for tenth in 0..300_u32 {
                let rtt = if tenth < 100 { engine } else { Duration::from_millis(40) };
                let path = Path { min_rtt: engine, ..fixture::path_at(f64::from(tenth) / 10.0) };
                base.observe(&Ack { rtt: Some(rtt), ..fixture::ack(1) }, &path);
                if tenth < 100 {
                    assert_eq!(base.get(&path), engine);
                }
            }
            let path = Path { min_rtt: engine, ..fixture::path_at(30.0) };
            assert_eq!(base.get(&path), Duration::from_millis(later), "window of {window_s} s");
        }
    }
}
