use bentpipe_base::{Duration, Instant};
use bentpipe_trace::DropCause;

use crate::flight::{Fate, Flight, InFlight};
use crate::ledger::Ledger;
use crate::line::Line;
use crate::queue::{Backlog, Fifo, Turn};
use crate::{ConfigError, Dropped, LinkConfig, LinkStats, Packet};

/// One direction of a link: queue, transmitter, errors, propagation.
///
/// The driver calls [`Link::enqueue`] with a packet, or [`Link::deliver`] when [`Link::next_event`] has come, until it
/// returns nothing; after either it fetches what was lost with [`Link::poll_dropped`] until that returns nothing; then
/// it reads [`Link::next_event`] again. Time must not go backwards. At one instant, services that start come before
/// arrivals at the queue.
///
/// A packet needs one event: decisions in between are made, with their exact times, when the link is next touched.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: Fifo,
    line: Line,
    flight: Flight<P>,
    ledger: Ledger<P>,
}

/// What the queue said to an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits or is being sent. It may still be dropped later.
    Accepted,
    /// It was refused; [`Link::poll_dropped`] hands it back.
    Dropped(DropCause),
}

/// A packet at the far end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<P> {
    /// The packet.
    pub packet: P,
    /// True if duplication delivers this packet once more, right after: do not release it yet.
    pub copy_follows: bool,
}

impl<P: Packet> Link<P> {
    /// The link `name` of a run with `seed`: these two choose its random streams.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            queue: Fifo::new(&config.queue),
            line: Line::new(config, seed, name),
            flight: Flight::new(config.may_reorder()),
            ledger: Ledger::new(),
        })
    }

    /// Offers a packet to the queue.
    pub fn enqueue(&mut self, now: Instant, packet: P) -> Verdict {
        let size = packet.size();
        self.ledger.stats.enqueued_packets += 1;
        self.ledger.stats.enqueued_bytes += u64::from(size);
        self.queue.advance(now);
        if let Err(cause) = self.queue.admit(&packet) {
            self.ledger.drop_packet(packet, cause, now);
            return Verdict::Dropped(cause);
        }
        let start = self.line.next_start(now);
        let end = self.transmit(start, packet);
        self.queue.take(now, Turn { start, end, size });
        self.ledger.note_backlog(self.queue.backlog());
        Verdict::Accepted
    }

    /// The next packet that has arrived by `now`; call until it returns nothing.
    #[inline]
    pub fn deliver(&mut self, now: Instant) -> Option<Arrival<P>> {
        while let Some(flying) = self.flight.pop_due(now) {
            let packet = match flying.fate {
                Fate::Arrives => flying.packet,
                Fate::ArrivesTwice => return Some(self.deliver_first_of_two(flying)),
                Fate::Lost(cause) => {
                    self.ledger.drop_packet(flying.packet, cause, flying.due);
                    continue;
                }
            };
            self.count_delivery(&packet);
            return Some(Arrival { packet, copy_follows: false });
        }
        None
    }

    /// The next packet that was dropped, whether refused on arrival or lost later; each packet comes out exactly once,
    /// here or from [`Link::deliver`] (plus its copy there).
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        self.ledger.dropped.pop_front()
    }

    /// When [`Link::deliver`] must be called next; [`Instant::FAR_FUTURE`] while nothing is pending.
    #[inline]
    pub fn next_event(&self) -> Instant {
        self.flight.next_due()
    }

    /// The counters so far.
    pub fn stats(&self) -> &LinkStats {
        &self.ledger.stats
    }

    /// What waits, as of the latest call with a time.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Packets accepted that have neither arrived nor been dropped: waiting, in transmission or on the path.
    pub fn packets_inside(&self) -> usize {
        self.flight.len()
    }

    /// Time the transmitter has been sending up to `now`. Divide by the time observed for the utilisation.
    pub fn busy_time(&self, now: Instant) -> Duration {
        self.line.given() - self.queue.given_ahead(now)
    }

    /// Sends a packet at `start`, returns the end of its transmission.
    #[inline]
    fn transmit(&mut self, start: Instant, packet: P) -> Instant {
        let passage = self.line.carry(start, packet.size(), packet.is_data());
        self.flight.push(InFlight { due: passage.due, fate: passage.fate, packet });
        passage.end
    }

    fn deliver_first_of_two(&mut self, flying: InFlight<P>) -> Arrival<P> {
        let packet = flying.packet.clone();
        self.flight.push_front(InFlight { fate: Fate::Arrives, ..flying });
        self.ledger.stats.duplicated_packets += 1;
        self.count_delivery(&packet);
        Arrival { packet, copy_follows: true }
    }

    #[inline]
    fn count_delivery(&mut self, packet: &P) {
        self.ledger.stats.delivered_packets += 1;
        self.ledger.stats.delivered_bytes += u64::from(packet.size());
    }
}
