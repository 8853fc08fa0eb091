//! Part of a link after the queue.

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

use crate::fec::{Behind, Fec};
use crate::flight::{Flight, InFlight};
use crate::ledger::{Ledger, LinkStats, Verdict};
use crate::line::Line;
use crate::packet::Packet;
use crate::queue::backlog::Transmission;
use crate::queue::{Admit, Fifo, Held};

/// Transmitter and packets in flight, after the queue.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Path<P> {
    pub line: Line,
    /// Parity coder, on a link with FEC.
    pub fec: Option<Box<Fec<P>>>,
    pub flight: Flight<P>,
}

impl<P: Packet> Path<P> {
    /// Schedules an arriving packet at once.
    #[inline(always)]
    pub fn enqueue_fifo(
        &mut self,
        now: Instant,
        packet: P,
        fifo: &mut Fifo,
        ledger: &mut Ledger<P>,
    ) -> Verdict {
        let size = packet.size();
        fifo.advance(now);
        match admit(now, packet, fifo, ledger) {
            Ok(packet) => {
                let start = self.line.next_start(now);
                let end = self.transmit(start, packet, ledger.stats_mut());
                if fifo.take(now, Transmission { start, end, size }) {
                    ledger.note_wait(start.since(now));
                    ledger.note_backlog(fifo.backlog());
                }
                Verdict::Accepted
            }
            Err((packet, cause)) => ledger.refuse(packet, cause, now),
        }
    }

    /// Puts an arriving packet into the queue, and starts the transmissions that are due.
    #[inline(never)]
    pub fn enqueue_held(
        &mut self,
        now: Instant,
        packet: P,
        held: &mut Held<P>,
        ledger: &mut Ledger<P>,
    ) -> Verdict {
        self.serve(now, held, ledger);
        if held.backlog().packets == 0 {
            self.line.wait_until(now);
        }
        ledger.note_waiting(held.backlog().packets, now);
        let verdict = held.enqueue(now, packet, ledger);
        self.serve(now, held, ledger);
        ledger.note_backlog(held.backlog());
        verdict
    }

    /// Starts every transmission due at or before `now`, each at its own time.
    pub fn serve(&mut self, now: Instant, held: &mut Held<P>, ledger: &mut Ledger<P>) {
        while held.backlog().packets > 0 && self.line.free_at() <= now {
            let start = self.line.free_at();
            ledger.note_waiting(held.backlog().packets, start);
            let Some(packet) = held.dequeue(start, ledger) else { return };
            self.transmit(start, packet, ledger.stats_mut());
        }
    }

    /// Returns the time of the next event if the queue is empty.
    #[inline(always)]
    pub fn next_event(&self) -> Instant {
        let due = self.flight.next_due();
        self.fec.as_ref().map_or(due, |fec| due.min(fec.next_event()))
    }

    /// Returns the time of the next event with the queue `held`.
    pub fn next_event_behind(&self, held: &Held<P>) -> Instant {
        if held.backlog().packets == 0 {
            return self.next_event();
        }
        let due = self.flight.next_due();
        let overtakes = !self.flight.is_in_order() || due == Instant::FAR_FUTURE;
        // A queued packet cannot arrive before one in flight, unless the link reorders.
        if overtakes { due.min(self.line.free_at()) } else { due }
    }

    /// Sends a packet at its start. Returns the end of its transmission, parity after it
    /// included.
    #[inline(always)]
    fn transmit(&mut self, start: Instant, packet: P, stats: &mut LinkStats) -> Instant {
        let Self { line, flight, fec } = self;
        if let Some(fec) = fec {
            return fec.send(start, packet, Behind { line, flight, stats });
        }
        let passage = line.carry(start, packet.size(), packet.is_data());
        flight.push(InFlight { due: passage.due, fate: passage.fate, packet });
        passage.end
    }
}

/// Admits an arriving packet, marked or not, or returns it to be dropped.
#[inline(always)]
pub(crate) fn admit<P: Packet>(
    now: Instant,
    mut packet: P,
    fifo: &mut Fifo,
    ledger: &mut Ledger<P>,
) -> Result<P, (P, DropCause)> {
    match fifo.admit(now, &packet) {
        Admit::Accept => Ok(packet),
        Admit::Mark => {
            ledger.mark(&mut packet);
            Ok(packet)
        }
        Admit::Drop(cause) => Err((packet, cause)),
    }
}
