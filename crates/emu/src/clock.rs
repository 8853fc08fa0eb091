use std::time;

use bentpipe_base::Instant;

/// The clock of an emulation: it begins at zero when the emulation does, so that schedules and outages do too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: time::Instant,
}

impl Clock {
    /// Begins now.
    pub fn start() -> Self {
        Self { start: time::Instant::now() }
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
