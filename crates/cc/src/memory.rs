//! What the connections of a host to one destination know together: RFC 2140, RFC 9040.
//!
//! A driver that wants connections to learn from each other owns one [`PathMemory`] per destination and hands a clone to each of
//! them in [`Start::memory`](crate::Start::memory). Nothing is shared otherwise, and the memory has no clock: what it holds
//! depends on the calls of its connections only.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bentpipe_base::{Duration, Instant};
use spin::{Mutex, MutexGuard};

use crate::windows::Windows;

/// What an earlier connection left behind (RFC 9040 section 6).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Saved {
    /// Window and threshold.
    pub windows: Windows,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// When it was saved.
    pub at: Instant,
}

#[derive(Debug, Default)]
struct Shared {
    saved: Option<Saved>,
    /// No other connection may start from the saved window before this.
    taken_until: Instant,
    /// The connections that share now.
    members: Vec<Member>,
    next_ticket: u64,
}

/// A connection that shares its windows.
#[derive(Clone, Copy, Debug)]
struct Member {
    ticket: u64,
    /// As it said last, less what newcomers took.
    windows: Windows,
    /// What newcomers left of its windows since.
    keeps: f64,
}

/// The memory of one destination; clones share it.
#[derive(Clone, Default)]
pub struct PathMemory(Arc<Mutex<Shared>>);

impl PathMemory {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock()
    }

    /// What was saved last.
    pub fn saved(&self) -> Option<Saved> {
        self.shared().saved
    }

    /// Replaces what was saved.
    pub fn save(&self, saved: Saved) {
        self.shared().saved = Some(saved);
    }

    /// Reserves the saved window until `until`, so that two connections do not both send it at once. False if another one
    /// holds it.
    pub fn take(&self, now: Instant, until: Instant) -> bool {
        let mut shared = self.shared();
        let free = shared.taken_until <= now;
        if free {
            shared.taken_until = until;
        }
        free
    }

    /// Joins the connections that share their windows. If there are others, everyone gives so much that the newcomer has its
    /// equal part and the sum stays what it was; otherwise it brings `own`.
    pub fn join(&self, own: Windows) -> (Seat, Windows) {
        let mut shared = self.shared();
        let others = shared.members.len() as f64;
        let windows = if shared.members.is_empty() {
            own
        } else {
            let members = shared.members.iter();
            let (cwnd, ssthresh) = members.fold((0.0, 0.0), |(cwnd, ssthresh), member| {
                (cwnd + member.windows.cwnd, ssthresh + member.windows.ssthresh)
            });
            Windows { cwnd: (cwnd / (others + 1.0)).max(1.0), ssthresh: ssthresh / (others + 1.0) }
        };
        for member in &mut shared.members {
            member.take_part(others / (others + 1.0));
        }
        let ticket = shared.next_ticket;
        shared.next_ticket += 1;
        shared.members.push(Member { ticket, windows, keeps: 1.0 });
        drop(shared);
        (Seat { memory: self.clone(), ticket }, windows)
    }

    /// Connections that share their windows now.
    pub fn members(&self) -> usize {
        self.shared().members.len()
    }
}

/// Two handles are equal if they share.
impl PartialEq for PathMemory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for PathMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared().fmt(f)
    }
}

impl Member {
    fn take_part(&mut self, keeps: f64) {
        self.keeps *= keeps;
        self.windows.scale(keeps);
    }
}

impl Windows {
    fn scale(&mut self, factor: f64) {
        self.cwnd = (self.cwnd * factor).max(1.0);
        self.ssthresh *= factor;
    }
}

/// One connection's place among those that share their windows; given back when dropped.
#[derive(Debug)]
pub struct Seat {
    memory: PathMemory,
    ticket: u64,
}

impl Seat {
    /// What newcomers took since the last call comes off `windows`; what is left is what the others see from now on.
    pub fn settle(&self, windows: &mut Windows) {
        let mut shared = self.memory.shared();
        if let Some(member) = shared.members.iter_mut().find(|member| member.ticket == self.ticket) {
            windows.scale(core::mem::replace(&mut member.keeps, 1.0));
            member.windows = *windows;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.memory.shared().members.retain(|member| member.ticket != self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn windows(cwnd: f64, ssthresh: f64) -> Windows {
        Windows { cwnd, ssthresh }
    }

    /// The sum stays: 40 become 20 and 20, then three times 13.33; without it there would be 40 and 10 and 10.
    #[test]
    fn newcomers_take_from_everyone() {
        let memory = PathMemory::new();
        let (first, mut mine) = memory.join(windows(40.0, 80.0));
        let (_second, part) = memory.join(windows(10.0, f64::INFINITY));
        assert_eq!(part, windows(20.0, 40.0));
        let (_third, part) = memory.join(windows(10.0, f64::INFINITY));
        assert!((part.cwnd - 40.0 / 3.0).abs() < 1e-12);
        first.settle(&mut mine);
        assert!((mine.cwnd - 40.0 / 3.0).abs() < 1e-12 && (mine.ssthresh - 80.0 / 3.0).abs() < 1e-12);
        let settled = mine;
        first.settle(&mut mine);
        assert_eq!(mine, settled, "only once");
    }

    #[test]
    fn what_a_member_does_is_its_own_business() {
        let memory = PathMemory::new();
        let (first, _) = memory.join(windows(40.0, 80.0));
        let (other, mut others) = memory.join(windows(1.0, 1.0));
        first.settle(&mut windows(40.0, 80.0));
        let mut after_a_loss = windows(10.0, 10.0);
        first.settle(&mut after_a_loss);
        other.settle(&mut others);
        assert_eq!((after_a_loss, others), (windows(10.0, 10.0), windows(20.0, 40.0)));
    }

    #[test]
    fn a_seat_is_given_back() {
        let memory = PathMemory::new();
        let (seat, _) = memory.join(windows(40.0, 80.0));
        assert_eq!(memory.members(), 1);
        drop(seat);
        assert_eq!(memory.join(windows(3.0, 5.0)).1, windows(3.0, 5.0));
    }

    #[test]
    fn an_unknown_threshold_stays_unknown() {
        let memory = PathMemory::new();
        let (first, mut mine) = memory.join(windows(4.0, f64::INFINITY));
        let (_second, part) = memory.join(windows(4.0, f64::INFINITY));
        first.settle(&mut mine);
        assert_eq!((part, mine), (windows(2.0, f64::INFINITY), windows(2.0, f64::INFINITY)));
    }

    #[test]
    fn one_at_a_time_starts_from_what_was_saved() {
        let memory = PathMemory::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(memory.take(at(0), at(100)));
        assert!(!memory.take(at(99), at(200)));
        assert!(memory.take(at(100), at(200)));
    }
}
