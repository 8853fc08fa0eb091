use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};
use bentpipe_trace::DropCause;

use super::backlog::{Backlog, Limit, Transmission, Unbegun};
use super::red::{Early, Red};
use crate::packet::Packet;

/// Queue that keeps the order of arrival and decides at each arrival.
///
/// The transmission of an accepted packet is scheduled at once. The packet itself moves to the path, and only its scheduled
/// transmission stays here until it begins.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    admission: Admission,
    waiting: VecDeque<Transmission>,
    backlog: Backlog,
    /// End of the latest transmission that has begun.
    service_end: Instant,
}

/// Rule that admits arrivals.
#[derive(Clone, Debug)]
pub(crate) enum Admission {
    DropTail(Limit),
    Threshold(Box<Threshold>),
    Red(Box<Red>),
}

/// Limit for all packets, and the maximum backlog at which low priority is accepted.
#[derive(Clone, Debug)]
pub(crate) struct Threshold {
    pub limit: Limit,
    pub low_priority_threshold: u32,
}

/// Decision on an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admit {
    Accept,
    /// The packet is accepted with the mark "congestion experienced".
    Mark,
    Drop(DropCause),
}

impl Fifo {
    pub fn new(admission: Admission) -> Self {
        Self { admission, waiting: VecDeque::new(), backlog: Backlog::default(), service_end: Instant::ZERO }
    }

    /// Sets another admission rule for later arrivals. Queued packets keep their transmissions; RED starts without history.
    pub fn admit_as(&mut self, other: Self) {
        self.admission = other.admission;
    }

    /// Starts the transmissions due at or before `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Instant) {
        if self.backlog.packets > 0 {
            self.begin_transmissions(now);
        }
    }

    #[inline]
    fn begin_transmissions(&mut self, now: Instant) {
        while let Some(&transmission) = self.waiting.front()
            && transmission.start <= now
        {
            self.backlog.remove(transmission.size);
            self.begin(transmission);
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            // The next one is stored at the front of the buffer, which is still in the cache.
            self.waiting.clear();
        }
    }

    #[inline(always)]
    fn begin(&mut self, transmission: Transmission) {
        self.service_end = transmission.end;
        if let Admission::Red(red) = &mut self.admission {
            red.note_transmission(transmission);
        }
    }

    /// Decides on a packet that arrives at `now`; call [`Fifo::advance`] before.
    #[inline(always)]
    pub fn admit<P: Packet>(&mut self, now: Instant, packet: &P) -> Admit {
        let limit = match &self.admission {
            Admission::DropTail(limit) => *limit,
            Admission::Threshold(threshold) => {
                if packet.low_priority() && self.backlog.packets > threshold.low_priority_threshold {
                    return Admit::Drop(DropCause::LowPriority);
                }
                threshold.limit
            }
            Admission::Red(_) => return self.admit_by_red(now, packet),
        };
        if limit.has_room(self.backlog, packet.size()) {
            Admit::Accept
        } else {
            Admit::Drop(DropCause::Queue)
        }
    }

    /// Schedules a packet admitted at `now`. Returns true if it must wait.
    #[inline(always)]
    pub fn take(&mut self, now: Instant, transmission: Transmission) -> bool {
        let waits = transmission.start > now;
        if waits {
            self.backlog.add(transmission.size);
            self.waiting.push_back(transmission);
        } else {
            self.begin(transmission);
        }
        waits
    }

    /// Records that the transmitter sends parity until `end` after the latest transmission.
    pub fn prolong(&mut self, end: Instant) {
        if let Some(last) = self.waiting.back_mut() {
            last.end = end;
            return;
        }
        self.service_end = end;
        if let Admission::Red(red) = &mut self.admission {
            red.prolong(end);
        }
    }

    /// Returns the backlog as of the latest [`Fifo::advance`].
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Removes the transmissions that have not begun at `now`.
    pub fn forget_waiting(&mut self, now: Instant) -> Unbegun {
        self.advance(now);
        let time = self.waiting.drain(..).fold(Duration::ZERO, |sum, one| sum + one.end.since(one.start));
        Unbegun { backlog: std::mem::take(&mut self.backlog), time }
    }

    /// Returns the end of the latest transmission that has begun.
    pub fn service_end(&self) -> Instant {
        self.service_end
    }

    /// Returns the scheduled transmission time after `now`.
    pub fn given_ahead(&self, now: Instant) -> Duration {
        let in_service = self.service_end.since(now);
        self.waiting
            .iter()
            .fold(in_service, |sum, transmission| sum + transmission.end.since(transmission.start.max(now)))
    }

    fn admit_by_red<P: Packet>(&mut self, now: Instant, packet: &P) -> Admit {
        let Admission::Red(red) = &mut self.admission else { return Admit::Accept };
        let idle = now.since(self.service_end);
        match red.mean_packet_time().filter(|_| self.backlog.packets == 0 && !idle.is_zero()) {
            Some(packet_time) => red.age(idle, packet_time),
            None => red.sample(self.backlog),
        }
        let early = red.decide(packet.size());
        if !red.config().limit.has_room(self.backlog, packet.size()) {
            red.note_overflow();
            return Admit::Drop(DropCause::Queue);
        }
        match early {
            Early::Accept => Admit::Accept,
            Early::Signal if red.config().ecn && packet.ecn_capable() => Admit::Mark,
            Early::Signal | Early::Drop => Admit::Drop(DropCause::Queue),
        }
    }
}
