use std::os::fd::BorrowedFd;

use bentpipe_base::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// The longest time to spin before a deadline: beyond that the machine, not the timer, is late.
const LONGEST_SPIN: Duration = Duration::from_micros(100);

/// Sleeps until shortly before a deadline; the caller spins through the rest.
///
/// How long before follows from how late the kernel woke us up until now: the latest lateness counts at once and is
/// forgotten slowly.
#[derive(Debug)]
pub(crate) struct Sleeper {
    clock: Clock,
    margin: Duration,
    longest: Duration,
}

impl Sleeper {
    /// On a machine with one processor it never spins: it would keep away those it waits for.
    pub fn new(clock: Clock) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        let longest = if alone { Duration::ZERO } else { LONGEST_SPIN };
        Self { clock, margin: longest, longest }
    }

    /// Waits until one of the `files` is readable or `deadline` is near; true if the last of them may be readable.
    pub fn wait(&mut self, deadline: Instant, files: &[BorrowedFd<'_>]) -> bool {
        let wake_up = Instant::from_nanos(deadline.as_nanos().saturating_sub(self.margin.as_nanos()));
        let gap = wake_up.since(self.clock.now());
        if gap.is_zero() {
            std::hint::spin_loop();
            return false;
        }
        let mut polled: Vec<_> = files.iter().map(|file| PollFd::new(*file, PollFlags::POLLIN)).collect();
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(gap.as_nanos()));
        let found = ppoll(&mut polled, Some(timeout), None);
        if found == Ok(0) {
            let late = self.clock.now().since(wake_up);
            let forgotten = self.margin.saturating_sub(self.margin / 64);
            self.margin = forgotten.max(late + late / 4).min(self.longest);
        }
        polled.last().and_then(PollFd::any).unwrap_or(true)
    }
}
