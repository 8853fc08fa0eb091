//! State shared by a host's connections to the same destination: RFC 2140, RFC 9040.
//!
//! A driver that shares state between connections owns one [`PathMemory`] per destination. It passes a clone to each connection
//! in [`Start::memory`](crate::Start::memory). Connections share nothing else. The memory has no clock: its content depends only
//! on the calls of its connections.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bentpipe_base::{Duration, Instant};
use spin::{Mutex, MutexGuard};

use crate::windows::Windows;

/// State saved by an earlier connection (RFC 9040 section 6).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Saved {
    /// Window and threshold.
    pub windows: Windows,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Time of the save.
    pub at: Instant,
}

/// Capacity of a path, as the last connection found it, for [Careful Resume](crate::careful_resume).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Payload acknowledged within one round trip, in bytes.
    pub bytes: u64,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Time of the save.
    pub at: Instant,
}

#[derive(Debug, Default)]
struct Shared {
    saved: Option<Saved>,
    /// Time before which no other connection may start from the saved window.
    taken_until: Instant,
    /// Capacity that Careful Resume saved, and the time until which one connection has it for itself.
    capacity: Option<(Capacity, Instant)>,
    /// Connections that share their windows now.
    members: Vec<Member>,
    next_ticket: u64,
}

/// A connection that shares its windows.
#[derive(Clone, Copy, Debug)]
struct Member {
    ticket: u64,
    /// Windows of the member's last call, minus the parts taken by newcomers.
    windows: Windows,
    /// Factor of its windows that newcomers left since its last call.
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

    /// Returns the last saved state.
    pub fn saved(&self) -> Option<Saved> {
        self.shared().saved
    }

    /// Replaces the saved state.
    pub fn save(&self, saved: Saved) {
        self.shared().saved = Some(saved);
    }

    /// Reserves the saved window until `until`, so that two connections do not both send it at once. Returns false if it is
    /// reserved already.
    pub fn take(&self, now: Instant, until: Instant) -> bool {
        let mut shared = self.shared();
        let free = shared.taken_until <= now;
        if free {
            shared.taken_until = until;
        }
        free
    }

    /// Returns the capacity that [Careful Resume](crate::careful_resume) saved.
    pub fn capacity(&self) -> Option<Capacity> {
        self.shared().capacity.map(|(capacity, _)| capacity)
    }

    /// Replaces the saved capacity.
    pub fn save_capacity(&self, capacity: Capacity) {
        let mut shared = self.shared();
        let taken_until = shared.capacity.map_or(Instant::ZERO, |(_, taken_until)| taken_until);
        shared.capacity = Some((capacity, taken_until));
    }

    /// Deletes the saved capacity.
    pub fn forget_capacity(&self) {
        self.shared().capacity = None;
    }

    /// Reserves the saved capacity until `until`. Returns false if there is none, or if it is reserved already.
    pub(crate) fn take_capacity(&self, now: Instant, until: Instant) -> bool {
        let mut shared = self.shared();
        let free = shared.capacity.as_mut().filter(|(_, taken_until)| *taken_until <= now);
        free.map(|(_, taken_until)| *taken_until = until).is_some()
    }

    /// Joins the connections that share their windows. Existing members give up equal fractions, so that the newcomer has an
    /// equal share and the sum is constant. The first member brings `own`.
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

    /// Returns the number of connections that share their windows now.
    pub fn members(&self) -> usize {
        self.shared().members.len()
    }
}

/// Two handles are equal if they share the same memory.
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

/// A connection's membership, which ends when it is dropped.
#[derive(Debug)]
pub struct Seat {
    memory: PathMemory,
    ticket: u64,
}

impl Seat {
    /// Subtracts the parts taken by newcomers since the last call from `windows`. The result is what other members see.
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

    /// The sum is constant: 40 becomes 20 and 20, then three times 13.33. A wrong division would yield 40, 10 and 10.
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
