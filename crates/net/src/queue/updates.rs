use bentpipe_base::{Duration, Instant};

/// Maximum number of updates that one call makes up for. A queue without arrivals and departures for longer than that
/// skips the older ones.
const MAX_CATCH_UP: u64 = 1_000;

/// Periodic updates of a controller. They are made at the first call after their time.
#[derive(Clone, Debug)]
pub(crate) struct Updates {
    interval: Duration,
    next: Instant,
}

impl Updates {
    /// Updates after each `interval`, which is more than zero.
    pub fn every(interval: Duration) -> Self {
        Self { interval, next: Instant::ZERO + interval }
    }

    /// Calls `update` with the time of each update due at or before `now`.
    pub fn catch_up(&mut self, now: Instant, mut update: impl FnMut(Instant)) {
        if now < self.next {
            return;
        }
        let due = now.since(self.next).as_nanos() / self.interval.as_nanos() + 1;
        let made = due.min(MAX_CATCH_UP);
        self.next += self.interval * (due - made);
        for _ in 0..made {
            update(self.next);
            self.next += self.interval;
        }
    }
}
