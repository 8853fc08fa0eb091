use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_trace::DropCause;

use crate::config::LinkConfig;
use crate::error::ConfigError;
use crate::fec::{Behind, Fec};
use crate::flight::{Fate, Flight, InFlight};
use crate::gaps::Gaps;
use crate::ledger::{Dropped, Ledger, LinkStats, Verdict};
use crate::line::{Draws, Line, Passage};
use crate::packet::Packet;
use crate::path::{Path, admit};
use crate::queue::backlog::{Backlog, Limit, Transmission};
use crate::queue::{Queue, QueueConfig};

/// One direction of a link: queue, transmitter, errors, propagation.
///
/// The driver calls [`Link::enqueue`] with a packet. At [`Link::next_event`] it calls [`Link::deliver`] until that returns
/// nothing. After either it fetches lost packets with [`Link::poll_dropped`] until that returns nothing, then reads
/// [`Link::next_event`] again. Time must not run backwards. At the same instant, transmissions start before packets arrive at the
/// queue.
///
/// A packet needs one event: intermediate decisions are made, with their exact times, at the next call.
#[derive(Clone, Debug)]
// Fields that every packet needs come first: in large worlds not all links fit into the cache.
#[repr(C)]
pub struct Link<P> {
    /// True for most links of a world: the queue accepts any packet while none waits, and the line has no effects.
    is_plain: bool,
    ledger: Ledger<P>,
    queue: Queue<P>,
    path: Path<P>,
}

/// Packet with a known arrival at the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing<P> {
    /// Arrival time of the packet.
    pub at: Instant,
    /// The delivered packet.
    pub packet: P,
}

/// Packet at the far end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<P> {
    /// The packet that arrived.
    pub packet: P,
    /// True if duplication delivers this packet once more directly afterwards: do not release it yet.
    pub copy_follows: bool,
}

impl<P: Packet> Link<P> {
    /// Makes the link `name` of a run with `seed`; both select its random streams.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            queue: Queue::new(&config.queue, || Rng::stream(seed, &format!("{name}/queue"))),
            path: Path {
                line: Line::new(config, seed, name),
                flight: Flight::new(config.may_reorder()),
                fec: Fec::new(config),
            },
            ledger: Ledger::new(),
            is_plain: config.is_plain()
                && config.fec.is_none()
                && config.loss.is_off()
                && matches!(config.queue, QueueConfig::DropTail { limit: Limit::Packets(_) }),
        })
    }

    /// Offers a packet to the queue.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Instant, packet: P) -> Verdict {
        if self.path.fec.is_some() {
            self.backlog(now);
        }
        let Self { queue, path, ledger, .. } = self;
        ledger.count_offer(&packet);
        match queue {
            Queue::Fifo(fifo) => path.enqueue_fifo(now, packet, fifo, ledger),
            Queue::Held(held) => path.enqueue_held(now, packet, held, ledger),
        }
    }

    /// Offers a packet to the queue. If it reaches the far end by `horizon`, it is returned at once with its arrival time, and
    /// counts as delivered. Any other packet stays inside, as after [`Link::enqueue`].
    ///
    /// This saves an event per packet for a driver that knows all packets offered to a [foreseeable](Link::is_foreseeable) link
    /// until `now`, which may be in the future.
    #[inline(always)]
    pub fn pass(&mut self, now: Instant, packet: P, horizon: Instant) -> Option<Passing<P>> {
        let Self { queue: Queue::Fifo(fifo), path, ledger, .. } = self else {
            self.enqueue(now, packet);
            return None;
        };
        if path.fec.is_some() {
            self.enqueue(now, packet);
            return None;
        }
        fifo.advance(now);
        let size = packet.size();
        let (packet, start, passage) = if self.is_plain && path.line.free_at() <= now {
            (packet, now, path.line.carry_plain(now, size))
        } else {
            match admit(now, packet, fifo, ledger) {
                Ok(packet) => {
                    let start = path.line.next_start(now);
                    let passage = path.line.carry(start, size, packet.is_data());
                    (packet, start, passage)
                }
                Err((packet, cause)) => {
                    ledger.count_offer(&packet);
                    ledger.drop_packet(packet, cause, now);
                    return None;
                }
            }
        };
        let Passage { end, due, fate } = passage;
        if fifo.take(now, Transmission { start, end, size }) {
            ledger.note_wait(start.since(now));
            ledger.note_backlog(fifo.backlog());
        }
        let flying = InFlight { due, fate, packet };
        if flying.due > horizon || flying.fate != Fate::Arrives {
            ledger.count_offer(&flying.packet);
            path.flight.push(flying);
            return None;
        }
        ledger.count_passage(&flying.packet);
        Some(Passing { at: due, packet: flying.packet })
    }

    /// True if the fate of a packet is known when it is offered, and packets arrive once, unaltered and in the order of
    /// transmission.
    pub fn is_foreseeable(&self) -> bool {
        self.is_first_in_first_out() && self.path.flight.is_in_order() && !self.path.line.may_alter()
    }

    /// True if transmission time and arrival of a packet are decided when it is offered.
    pub fn is_first_in_first_out(&self) -> bool {
        matches!(self.queue, Queue::Fifo(_)) && self.path.fec.is_none()
    }

    /// Returns the minimum time between the offer of a packet and its arrival.
    pub fn lookahead(&self) -> Duration {
        self.path.line.least_delay()
    }

    /// Returns the packets in flight on a [foreseeable](Link::is_foreseeable) link that arrive by `horizon` and are `wanted`,
    /// with their arrival times. It corresponds to [`Link::pass`] for packets offered later.
    pub fn hand_over(&mut self, horizon: Instant, mut wanted: impl FnMut(&P) -> bool) -> Vec<Passing<P>> {
        let goes = |flying: &InFlight<P>| {
            flying.due <= horizon && flying.fate == Fate::Arrives && wanted(&flying.packet)
        };
        let over = self.path.flight.extract(goes);
        over.iter().for_each(|flying| self.ledger.count_delivery(&flying.packet));
        over.into_iter().map(|flying| Passing { at: flying.due, packet: flying.packet }).collect()
    }

    /// Returns the next packet that has arrived by `now`. Call it until it returns nothing.
    #[inline(always)]
    pub fn deliver(&mut self, now: Instant) -> Option<Arrival<P>> {
        if let Queue::Held(held) = &mut self.queue {
            self.path.serve(now, held, &mut self.ledger);
        }
        self.send_due_parity(now);
        while let Some(flying) = self.path.flight.pop_due(now) {
            if let Some(cause) = flying.fate.loss() {
                self.ledger.drop_packet(flying.packet, cause, flying.due);
                continue;
            }
            if flying.fate != Fate::Arrives {
                match self.deliver_oddly(flying) {
                    Some(arrival) => return Some(arrival),
                    None => continue,
                }
            }
            self.ledger.count_delivery(&flying.packet);
            return Some(Arrival { packet: flying.packet, copy_follows: false });
        }
        debug_assert!(self.is_balanced(), "each packet is inside, delivered or dropped: {:?}", self.stats());
        None
    }

    /// True if each packet that was offered or duplicated is inside, delivered or dropped.
    fn is_balanced(&self) -> bool {
        let stats = self.stats();
        stats.enqueued_packets + stats.duplicated_packets
            == stats.delivered_packets + stats.dropped_packets() + self.packets_inside() as u64
    }

    /// Returns the next dropped packet, refused on arrival or lost later. Each packet is returned exactly once, here or by
    /// [`Link::deliver`] (plus its copy there).
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        self.ledger.poll_dropped()
    }

    /// True if [`Link::poll_dropped`] would return a packet.
    #[inline(always)]
    pub fn has_dropped(&self) -> bool {
        self.ledger.has_dropped()
    }

    /// Returns the time of the next [`Link::deliver`] call; [`Instant::FAR_FUTURE`] if nothing is pending.
    #[inline]
    pub fn next_event(&self) -> Instant {
        match &self.queue {
            Queue::Fifo(_) => self.path.next_event(),
            Queue::Held(held) => self.path.next_event_behind(held),
        }
    }

    /// True if [`Link::deliver`] is certain to return nothing more by `now`.
    #[inline(always)]
    pub fn is_idle_until_after(&self, now: Instant) -> bool {
        matches!(self.queue, Queue::Fifo(_)) && self.path.flight.next_due() > now
    }

    /// Returns the packet that leaves the path after `ahead` others, if that is easy to find.
    #[inline]
    pub fn in_flight(&self, ahead: usize) -> Option<&P> {
        self.path.flight.behind(ahead)
    }

    /// Returns the packets inside a [foreseeable](Link::is_foreseeable) link, for drivers that renumber them.
    pub fn packets_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.path.flight.packets_mut()
    }

    /// Changes the configuration from `from` to `to`, with the random numbers of `draws`.
    ///
    /// Packets in transmission and on the path keep their fate and arrival time. So do packets with a scheduled transmission, as
    /// in first-in-first-out queues. The others follow the new configuration, in the new queue if there is one. Packets do not
    /// overtake those sent before the change unless `to` allows reordering.
    ///
    /// # Errors
    /// [`ConfigError`] if `to` is invalid; nothing is changed then.
    pub fn reconfigure(
        &mut self,
        now: Instant,
        from: &LinkConfig,
        to: &LinkConfig,
        draws: Draws<'_>,
    ) -> Result<(), ConfigError> {
        to.validate()?;
        self.is_plain = false;
        self.backlog(now);
        self.close_block(now);
        self.path.fec = Fec::new(to);
        self.path.line.resume(now, self.path.flight.last_due(), to, draws);
        if to.may_reorder() || !to.preserve_order {
            self.path.flight.allow_reordering();
        }
        if from.queue != to.queue {
            let Draws { seed, name } = draws;
            let queue = Queue::new(&to.queue, || Rng::stream(seed, &format!("{name}/queue")));
            self.replace_queue(now, queue);
        }
        Ok(())
    }

    /// Moves waiting packets to the new queue in order; those without room are dropped.
    fn replace_queue(&mut self, now: Instant, queue: Queue<P>) {
        let Self { queue: current, path, ledger, .. } = self;
        let mut old = match (&mut *current, queue) {
            (Queue::Fifo(fifo), Queue::Fifo(other)) => return fifo.admit_as(other),
            (current, queue) => std::mem::replace(current, queue),
        };
        let Queue::Held(held) = &mut old else { return };
        while let Some(packet) = held.dequeue(now, ledger) {
            match current {
                Queue::Fifo(fifo) => path.enqueue_fifo(now, packet, fifo, ledger),
                Queue::Held(held) => path.enqueue_held(now, packet, held, ledger),
            };
        }
    }

    /// Returns the counters.
    pub fn stats(&self) -> LinkStats {
        self.ledger.stats()
    }

    /// Returns the backlog at `now`.
    pub fn backlog(&mut self, now: Instant) -> Backlog {
        match &mut self.queue {
            Queue::Fifo(fifo) => fifo.advance(now),
            Queue::Held(held) => {
                self.path.serve(now, held, &mut self.ledger);
                self.ledger.note_waiting(held.backlog().packets, now);
            }
        }
        self.send_due_parity(now);
        self.queue.backlog()
    }

    /// Returns the rate of a transmission that starts at `now`.
    pub fn rate(&mut self, now: Instant) -> Rate {
        self.path.line.rate(now)
    }

    /// Returns the one-way propagation delay of a packet whose transmission ends at `now`.
    pub fn delay_one_way(&mut self, now: Instant) -> Duration {
        self.path.line.delay_one_way(now)
    }

    /// Returns the end of the present outage, if there is one.
    pub fn out_until(&mut self, now: Instant) -> Option<Instant> {
        self.path.line.out_until(now)
    }

    /// Returns the packets accepted that have neither arrived nor been dropped: queued, in transmission or on the path.
    pub fn packets_inside(&self) -> usize {
        let held = match &self.queue {
            // A FIFO queue counts its packets as in flight from the moment of arrival.
            Queue::Fifo(_) => 0,
            Queue::Held(held) => held.backlog().packets as usize,
        };
        let in_doubt = self.path.fec.as_ref().map_or(0, |fec| fec.packets_inside());
        held + in_doubt + self.path.flight.len()
    }

    /// Returns the idle times of the transmitter between two transmissions.
    pub fn gaps(&self) -> Gaps {
        self.path.line.gaps()
    }

    /// Returns the transmission time up to `now`; divide it by the observed time for the utilisation. For a link with recorded
    /// opportunities it is the time until `now` times the used fraction of their bytes.
    pub fn busy_time(&mut self, now: Instant) -> Duration {
        let waiting = self.backlog(now);
        let waiting = if self.is_first_in_first_out() { waiting } else { Backlog::default() };
        if let Some(part) = self.path.line.part_used(now, waiting) {
            return now.since(Instant::ZERO).mul_f64(part);
        }
        let ahead = match &self.queue {
            Queue::Fifo(fifo) => fifo.given_ahead(now),
            Queue::Held(_) => self.path.line.last_end().since(now),
        };
        let held = self.path.line.held_until(now);
        self.path.line.given() - ahead - held
    }

    /// Removes and returns, in order, the packets whose transmission has not begun at `now`, because another link will carry
    /// them. The counters no longer include them. Packets in transmission or on the path still arrive. In a first-in-first-out
    /// queue of a link with parity, packets already belong to a block and stay.
    pub fn take_back_waiting(&mut self, now: Instant) -> Vec<P> {
        let taken: Vec<P> = match &mut self.queue {
            Queue::Fifo(_) if self.path.fec.is_some() => Vec::new(),
            Queue::Fifo(fifo) => {
                let unbegun = fifo.forget_waiting(now);
                let taken = self.path.flight.take_back(unbegun.backlog.packets as usize);
                if !taken.is_empty() {
                    let due = self.path.flight.last_due();
                    self.path.line.withdraw(unbegun, fifo.service_end(), due);
                }
                taken.into_iter().map(|flying| flying.packet).collect()
            }
            Queue::Held(held) => {
                self.path.serve(now, held, &mut self.ledger);
                std::iter::from_fn(|| held.dequeue(now, &mut self.ledger)).collect()
            }
        };
        self.ledger.stats_mut().enqueued_packets -= taken.len() as u64;
        self.ledger.stats_mut().enqueued_bytes -=
            taken.iter().map(|packet| u64::from(packet.size())).sum::<u64>();
        taken
    }

    /// Drops all packets inside: queued, being sent and on the path. [`Link::poll_dropped`] returns them.
    pub fn lose_everything(&mut self, now: Instant) {
        let waiting = self.take_back_waiting(now);
        if let (Queue::Fifo(fifo), Some(_)) = (&mut self.queue, &self.path.fec) {
            let unbegun = fifo.forget_waiting(now);
            self.path.line.withdraw(unbegun, fifo.service_end(), now);
        }
        self.ledger.stats_mut().enqueued_packets += waiting.len() as u64;
        self.ledger.stats_mut().enqueued_bytes +=
            waiting.iter().map(|packet| u64::from(packet.size())).sum::<u64>();
        let on_the_path = self.path.flight.take_back(self.path.flight.len());
        let in_doubt = self.path.fec.iter_mut().flat_map(|fec| fec.lose_block());
        let sent = on_the_path.into_iter().map(|flying| flying.packet).chain(in_doubt);
        for packet in sent.chain(waiting) {
            self.ledger.drop_packet(packet, DropCause::Outage, now);
        }
    }

    /// Sends the parity of a block that has waited long enough, if no queued packet could fill it.
    #[inline(always)]
    fn send_due_parity(&mut self, now: Instant) {
        if self.path.fec.as_ref().is_some_and(|fec| fec.closes_at() <= now) {
            let may_fill = matches!(&self.queue, Queue::Held(held) if held.backlog().packets > 0);
            if !may_fill {
                self.close_block(now);
            }
        }
    }

    /// Sends the parity of the present block, if there is one: when it is due, or now.
    #[cold]
    fn close_block(&mut self, now: Instant) {
        let Self { queue, path: Path { line, flight, fec }, ledger, .. } = self;
        let Some(fec) = fec.as_mut().filter(|fec| fec.closes_at() < Instant::FAR_FUTURE) else { return };
        let start = fec.closes_at().min(line.next_start(now));
        let end = fec.close(start, Behind { line, flight, stats: ledger.stats_mut() });
        if let Queue::Fifo(fifo) = queue {
            fifo.prolong(end);
        }
    }

    /// Delivers a packet that arrives twice or with an undetected error.
    #[cold]
    fn deliver_oddly(&mut self, mut flying: InFlight<P>) -> Option<Arrival<P>> {
        if flying.fate == Fate::ArrivesTwice {
            return Some(self.deliver_first_of_two(flying));
        }
        if !flying.packet.flip_bit(self.path.line.wrong_bit()) {
            self.ledger.drop_packet(flying.packet, DropCause::Error, flying.due);
            return None;
        }
        self.ledger.stats_mut().corrupted_packets += 1;
        self.ledger.count_delivery(&flying.packet);
        Some(Arrival { packet: flying.packet, copy_follows: false })
    }

    fn deliver_first_of_two(&mut self, flying: InFlight<P>) -> Arrival<P> {
        let packet = flying.packet.clone();
        self.path.flight.push_front(InFlight { fate: Fate::Arrives, ..flying });
        self.ledger.stats_mut().duplicated_packets += 1;
        self.ledger.count_delivery(&packet);
        Arrival { packet, copy_follows: true }
    }
}
