use std::os::fd::BorrowedFd;

use bentpipe_base::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// Longest time to spin before a deadline (chosen: if the kernel wakes us later than that, the machine is busy and spinning does not help).
const LONGEST_SPIN: Duration = Duration::from_micros(100);

/// After this many packets without a sleep in between, the next sleep lasts at least [`LEAST_SLEEP`] (chosen). A thread that spins from packet to
/// packet occupies a processor, which the programs at both ends then lack; and from a thread with real-time priority the kernel takes the
/// processor away for up to 50 ms in each second. Packets that are delivered together also cost less.
const DELIVERED_AWAKE: u32 = 8;
/// Shortest sleep then (chosen: a tenth of the tolerance of the meter).
const LEAST_SLEEP: Duration = Duration::from_micros(50);

/// Polls files with a deadline: the kernel waits until shortly before it, and the caller spins through the rest.
///
/// How long before depends on how late the kernel has woken us until now: a longer lateness counts at once and is forgotten slowly. Packets
/// whose deadlines follow each other closely are delivered together, some of them a little late.
#[derive(Debug)]
pub(crate) struct Poller {
    clock: Clock,
    margin: Duration,
    longest: Duration,
    /// Packets delivered since the last sleep.
    delivered: u32,
}

impl Poller {
    /// On a machine with one processor it never spins, because the programs that it waits for could not run.
    pub fn new(clock: Clock) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        let longest = if alone { Duration::ZERO } else { LONGEST_SPIN };
        Self { clock, margin: longest, longest, delivered: 0 }
    }

    /// Notes that `packets` packets were delivered.
    pub fn note_delivered(&mut self, packets: u32) {
        self.delivered = self.delivered.saturating_add(packets);
    }

    /// When the sleep before `deadline` is to end; there is none if that is past.
    fn wake_up(&self, deadline: Instant, now: Instant) -> Instant {
        let shortly_before = Instant::from_nanos(deadline.as_nanos().saturating_sub(self.margin.as_nanos()));
        if self.delivered >= DELIVERED_AWAKE { shortly_before.max(now + LEAST_SLEEP) } else { shortly_before }
    }

    /// Waits until one of the `files` is readable or `deadline` is near; true if the last of them may be readable.
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
