use std::os::fd::BorrowedFd;

use bentpipe_base::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// The longest time to spin before a deadline: beyond that the machine, not the timer, is late.
const LONGEST_SPIN: Duration = Duration::from_micros(100);

/// Deadlines met without a sleep in between after which packets are gathered, and for how long. Whoever spins from packet to packet keeps a
/// processor to itself: the programs at the ends then share what is left, and with the priority of real time the kernel takes the
/// processor away for up to 50 ms in each second, so that others are not shut out. Packets that are due together also cost less.
const MET_AWAKE: u32 = 8;
const GATHERING: Duration = Duration::from_micros(50);

/// Sleeps until shortly before a deadline; the caller spins through the rest.
///
/// How long before follows from how late the kernel woke us up until now: the latest lateness counts at once and is
/// forgotten slowly. Where deadlines follow each other closely, some are met together, a little late.
#[derive(Debug)]
pub(crate) struct Sleeper {
    clock: Clock,
    margin: Duration,
    longest: Duration,
    /// Deadlines met since the last sleep.
    met: u32,
}

impl Sleeper {
    /// On a machine with one processor it never spins: it would keep away those it waits for.
    pub fn new(clock: Clock) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        let longest = if alone { Duration::ZERO } else { LONGEST_SPIN };
        Self { clock, margin: longest, longest, met: 0 }
    }

    /// So many packets left.
    pub fn met(&mut self, packets: u32) {
        self.met = self.met.saturating_add(packets);
    }

    /// When a sleep before `deadline` ends; it need not begin if that is past.
    fn wake_up(&self, deadline: Instant, now: Instant) -> Instant {
        let shortly_before = Instant::from_nanos(deadline.as_nanos().saturating_sub(self.margin.as_nanos()));
        if self.met >= MET_AWAKE { shortly_before.max(now + GATHERING) } else { shortly_before }
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
        self.met = 0;
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
        let mut sleeper = Sleeper { margin: LONGEST_SPIN, ..Sleeper::new(Clock::start()) };
        let (now, micros) = (Instant::ZERO + Duration::from_secs(1), Duration::from_micros);
        assert_eq!(sleeper.wake_up(now + micros(300), now), now + micros(200), "the rest is spent spinning");
        assert!(sleeper.wake_up(now + micros(5), now) < now, "no time to sleep");
        sleeper.met(3);
        sleeper.met(5);
        assert_eq!(sleeper.wake_up(now + micros(5), now), now + micros(50), "others have their turn");
        assert_eq!(sleeper.wake_up(now + micros(300), now), now + micros(200), "nothing is due for long");
        sleeper.wait(now, &[]);
        assert!(sleeper.wake_up(now + micros(5), now) < now, "it has slept");
    }
}
