use std::time;

use bentpipe_base::Instant;

/// Clock of an emulation. It starts at zero with the emulation, as schedules and outages do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: time::Instant,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { start: time::Instant::now() }
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
