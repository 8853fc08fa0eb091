//! Timers outside the event queue.

use bentpipe_base::Instant;

/// Time at which a connection end or an application of a process is due. It may expire too early, as timers of the wheel do, but never
/// too late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub time: Instant,
}

impl Timer {
    pub const OFF: Self = Self { time: Instant::FAR_FUTURE };

    /// Expires at `at` or earlier, unless that is after the end of the world.
    #[inline(always)]
    pub fn set(&mut self, at: Instant, end: Instant) {
        if at < self.time && at <= end {
            self.time = at;
        }
    }
}
