use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};
use bentpipe_trace::DropCause;

use super::{Backlog, Limit, QueueConfig};
use crate::Packet;

/// A queue that keeps the order of arrival and decides at the arrival.
///
/// Every accepted packet has its turn on the transmitter at once, so the packets themselves travel on and only their
/// turns stay here until they begin.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    admission: Admission,
    waiting: VecDeque<Turn>,
    backlog: Backlog,
    /// End of the latest turn that has begun.
    service_end: Instant,
}

/// The transmission of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub start: Instant,
    pub end: Instant,
    /// Bytes on the wire.
    pub size: u32,
}

/// Which arrivals may wait.
#[derive(Clone, Debug)]
enum Admission {
    DropTail(Limit),
    Threshold { limit: Limit, theta: u32 },
}

impl Fifo {
    /// Of a validated configuration; none if the discipline is not a first-in-first-out one.
    pub fn new(config: &QueueConfig) -> Self {
        let admission = match *config {
            QueueConfig::DropTail { limit } => Admission::DropTail(limit),
            QueueConfig::Threshold { limit, low_priority_threshold: theta } => {
                Admission::Threshold { limit, theta }
            }
        };
        Self { admission, waiting: VecDeque::new(), backlog: Backlog::default(), service_end: Instant::ZERO }
    }

    /// Lets the turns begin that start at or before `now`.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        while let Some(turn) = self.waiting.front()
            && turn.start <= now
        {
            self.backlog.remove(turn.size);
            self.service_end = turn.end;
            self.waiting.pop_front();
        }
    }

    /// Decides on an arrival; call [`Fifo::advance`] before.
    #[inline]
    pub fn admit<P: Packet>(&self, packet: &P) -> Result<(), DropCause> {
        let limit = match self.admission {
            Admission::Threshold { theta, .. } if packet.low_priority() && self.backlog.packets > theta => {
                return Err(DropCause::LowPriority);
            }
            Admission::DropTail(limit) | Admission::Threshold { limit, .. } => limit,
        };
        if limit.has_room(self.backlog, packet.size()) { Ok(()) } else { Err(DropCause::Queue) }
    }

    /// Keeps the turn of a packet admitted at `now`.
    #[inline]
    pub fn take(&mut self, now: Instant, turn: Turn) {
        if turn.start > now {
            self.backlog.add(turn.size);
            self.waiting.push_back(turn);
        } else {
            self.service_end = turn.end;
        }
    }

    /// What waits, as of the latest [`Fifo::advance`].
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Transmission time already given away that lies after `now`.
    pub fn given_ahead(&self, now: Instant) -> Duration {
        let in_service = self.service_end.since(now);
        self.waiting.iter().fold(in_service, |sum, turn| sum + turn.end.since(turn.start.max(now)))
    }
}
