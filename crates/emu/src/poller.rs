use std::os::fd::BorrowedFd;

use bentpipe_base::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// Maximum time to spin before a deadline (chosen). If the kernel wakes the thread later than that, the machine is
/// busy and spinning does not help.
const LONGEST_SPIN: Duration = Duration::from_micros(100);

/// Number of packets without a sleep after which the next sleep lasts at least [`LEAST_SLEEP`] (chosen). A thread
/// that spins from packet to packet occupies a processor that the programs at both ends need. The kernel also stops a
/// thread with real-time priority for up to 50 ms of each second. Packets that are delivered together cost less.
const DELIVERED_AWAKE: u32 = 8;
/// Minimum sleep then (chosen: 10 % of the meter's tolerance).
const LEAST_SLEEP: Duration = Duration::from_micros(50);

/// Polls files with a deadline: the kernel waits until shortly before it, and the caller spins for the rest.
///
/// The spinning time depends on the kernel's past wake-up delays. A longer delay counts at once and is forgotten
/// slowly. Packets with close deadlines are delivered together, some of them slightly late.
#[derive(Debug)]
pub(crate) struct Poller {
    clock: Clock,
    margin: Duration,
    longest: Duration,
    /// Packets delivered since the last sleep.
    delivered: u32,
}

impl Poller {
    /// With one processor it never spins, because the awaited programs could not run.
    pub fn new(clock: Clock) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        let longest = if alone { Duration::ZERO } else { LONGEST_SPIN };
        Self { clock, margin: longest, longest, delivered: 0 }
    }

    /// Records that `packets` packets were delivered.
    pub fn note_delivered(&mut self, packets: u32) {
        self.delivered = self.delivered.saturating_add(packets);
    }

    /// Returns the end of the sleep before `deadline`; `None` if it has passed.
    fn wake_up(&self, deadline: Instant, now: Instant) -> Instant {
        let shortly_before = Instant::from_nanos(deadline.as_nanos().saturating_sub(self.margin.as_nanos()));
        if self.delivered >= DELIVERED_AWAKE { shortly_before.max(now + LEAST_SLEEP) } else { shortly_before }
    }

    /// Waits until one of the `files` is readable or `deadline` is near. Returns true if the last file may be
    /// readable.
    pub fn wait(&mut self, deadline: Instant, files: &[BorrowedFd<'_>]) -> bool {
        let now = self.clock.now();
        let wake_up = self.wake_up(deadline, now);
        let gap = wake_up.since(now);
        if gap.is_zero() {
            std::hint::spin_loop();
            return false;
        }
        self.delivered = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_follow_closely_are_met_together() {
        let mut poller = Poller { margin: LONGEST_SPIN, ..Poller::new(Clock::start()) };
        let (now, micros) = (Instant::ZERO + Duration::from_secs(1), Duration::from_micros);
        assert_eq!(poller.wake_up(now + micros(300), now), now + micros(200), "the rest is spent spinning");
        assert!(poller.wake_up(now + micros(5), now) < now, "no time to sleep");
        poller.note_delivered(3);
        poller.note_delivered(5);
        assert_eq!(poller.wake_up(now + micros(5), now), now + micros(50), "others have their turn");
        assert_eq!(poller.wake_up(now + micros(300), now), now + micros(200), "nothing is due for long");
        poller.wait(now, &[]);
        assert!(poller.wake_up(now + micros(5), now) < now, "it has slept");
    }
}
