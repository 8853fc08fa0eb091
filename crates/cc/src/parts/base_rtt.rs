//! The smallest round-trip time, which can be forgotten when the route may have changed.

use bentpipe_base::Duration;

/// `RTTmin` of the schemes that start it anew after a timeout; the others read [`crate::Path::min_rtt`].
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

    /// The next sample counts, whatever it is.
    pub fn forget(&mut self) {
        self.stale = true;
    }

    /// [`Duration::MAX`] before the first sample.
    pub fn get(&self) -> Duration {
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
