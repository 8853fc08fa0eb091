use core::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

/// What becomes of a packet after its transmission.
///
/// A whole word, so that packets in flight have no padding: it would be copied in pieces that overlap, which processors
/// forward from store to load only after every earlier store has reached the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Fate {
    /// It arrives.
    Arrives,
    /// It arrives and a copy of it too.
    ArrivesTwice,
    /// It arrives with one bit flipped.
    ArrivesWrong,
    /// A transmission error spoils it; the receiving end discards what is left.
    Spoilt,
    /// An outage takes it.
    CutOff,
}

impl Fate {
    /// Why it does not arrive; nothing if it does.
    pub fn loss(self) -> Option<DropCause> {
        match self {
            Self::Arrives | Self::ArrivesTwice | Self::ArrivesWrong => None,
            Self::Spoilt => Some(DropCause::Error),
            Self::CutOff => Some(DropCause::Outage),
        }
    }
}

/// A packet between the decision to send it and its arrival.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<P> {
    /// When it arrives, or would.
    pub due: Instant,
    pub fate: Fate,
    pub packet: P,
}

/// The packets on their way, by due time. Equal due times keep the order of transmission.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    /// Due time of the next packet, [`Instant::FAR_FUTURE`] without one.
    next_due: Instant,
    /// None until a packet is pushed, which never happens on most links of a large world; then in order.
    line: Option<Box<Order<P>>>,
}

#[derive(Clone, Debug)]
enum Order<P> {
    /// Of a link whose due times never descend.
    InOrder(VecDeque<InFlight<P>>),
    /// Of a link that reorders.
    ByTime { heap: BinaryHeap<Reverse<Ranked<P>>>, pushed: u64 },
}

impl<P> Flight<P> {
    pub fn new(may_reorder: bool) -> Self {
        let by_time = || Box::new(Order::ByTime { heap: BinaryHeap::new(), pushed: 0 });
        Self { next_due: Instant::FAR_FUTURE, line: may_reorder.then(by_time) }
    }

    #[inline(always)]
    fn line(&mut self) -> &mut Order<P> {
        self.line.get_or_insert_with(|| Box::new(Order::InOrder(VecDeque::new())))
    }

    #[inline(always)]
    pub fn push(&mut self, flying: InFlight<P>) {
        self.next_due = self.next_due.min(flying.due);
        match self.line() {
            Order::InOrder(line) => {
                debug_assert!(line.back().is_none_or(|last| last.due <= flying.due), "due times descend");
                line.push_back(flying);
            }
            Order::ByTime { heap, pushed } => {
                *pushed += 1;
                heap.push(Reverse(Ranked { rank: *pushed, flying }));
            }
        }
    }

    /// Takes the packets for which `goes` is true out of a flight in order.
    pub fn extract(&mut self, mut goes: impl FnMut(&InFlight<P>) -> bool) -> Vec<InFlight<P>> {
        let Some(Order::InOrder(line)) = self.line.as_deref_mut() else { return Vec::new() };
        let (out, stays) =
            std::mem::take(line).into_iter().partition::<VecDeque<_>, _>(|flying| goes(flying));
        *line = stays;
        self.next_due = line.front().map_or(Instant::FAR_FUTURE, |next| next.due);
        out.into()
    }

    /// Due time of the next packet, [`Instant::FAR_FUTURE`] without one.
    #[inline(always)]
    pub fn next_due(&self) -> Instant {
        self.next_due
    }

    /// The packet behind `ahead` others, if the flight is in order.
    #[inline]
    pub fn behind(&self, ahead: usize) -> Option<&P> {
        match self.line.as_deref()? {
            Order::InOrder(line) => line.get(ahead).map(|flying| &flying.packet),
            Order::ByTime { .. } => None,
        }
    }

    /// The packets, if the flight is in order.
    pub fn packets_mut(&mut self) -> impl Iterator<Item = &mut P> {
        let line = match self.line.as_deref_mut() {
            Some(Order::InOrder(line)) => Some(line),
            _ => None,
        };
        line.into_iter().flatten().map(|flying| &mut flying.packet)
    }

    /// Takes the next packet if it is due at `now`.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Instant) -> Option<InFlight<P>> {
        if self.next_due > now { None } else { self.pop() }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<InFlight<P>> {
        match self.line.as_deref_mut()? {
            Order::InOrder(line) => {
                let flying = line.pop_front();
                self.next_due = line.front().map_or(Instant::FAR_FUTURE, |next| next.due);
                flying
            }
            Order::ByTime { heap, .. } => {
                let flying = heap.pop().map(|ranked| ranked.0.flying);
                self.next_due = heap.peek().map_or(Instant::FAR_FUTURE, |next| next.0.flying.due);
                flying
            }
        }
    }

    /// Puts a packet back in front of all others; it must have been taken just before.
    pub fn push_front(&mut self, flying: InFlight<P>) {
        self.next_due = flying.due;
        match self.line() {
            Order::InOrder(line) => line.push_front(flying),
            // Ranks begin at 1.
            Order::ByTime { heap, .. } => heap.push(Reverse(Ranked { rank: 0, flying })),
        }
    }

    /// Takes back the `count` packets pushed last, in the order in which they were pushed.
    pub fn take_back(&mut self, count: usize) -> Vec<InFlight<P>> {
        let line = self.line();
        let taken = match line {
            Order::InOrder(line) => line.drain(line.len().saturating_sub(count)..).collect(),
            Order::ByTime { heap, .. } => {
                let mut ranked: Vec<_> = std::mem::take(heap).into_iter().map(|ranked| ranked.0).collect();
                ranked.sort_by_key(|ranked| ranked.rank);
                let taken = ranked.split_off(ranked.len().saturating_sub(count));
                heap.extend(ranked.into_iter().map(Reverse));
                taken.into_iter().map(|ranked| ranked.flying).collect()
            }
        };
        let next = match line {
            Order::InOrder(line) => line.front().map(|flying| flying.due),
            Order::ByTime { heap, .. } => heap.peek().map(|ranked| ranked.0.flying.due),
        };
        self.next_due = next.unwrap_or(Instant::FAR_FUTURE);
        taken
    }

    /// Due time of the packet that arrives last, [`Instant::ZERO`] without one.
    pub fn last_due(&self) -> Instant {
        let last = match self.line.as_deref() {
            None => None,
            Some(Order::InOrder(line)) => line.back().map(|flying| flying.due),
            Some(Order::ByTime { heap, .. }) => heap.iter().map(|ranked| ranked.0.flying.due).max(),
        };
        last.unwrap_or_default()
    }

    /// Allows packets to arrive in another order than they are sent from now on.
    pub fn allow_reordering(&mut self) {
        if let Order::InOrder(line) = self.line() {
            let mut by_time = Self::new(true);
            line.drain(..).for_each(|flying| by_time.push(flying));
            *self = by_time;
        }
    }

    /// True if no packet pushed later can be due before one that is in flight.
    pub fn is_in_order(&self) -> bool {
        !matches!(self.line.as_deref(), Some(Order::ByTime { .. }))
    }

    pub fn len(&self) -> usize {
        match self.line.as_deref() {
            None => 0,
            Some(Order::InOrder(line)) => line.len(),
            Some(Order::ByTime { heap, .. }) => heap.len(),
        }
    }
}

/// A packet in flight, ordered by due time and then by the order of transmission.
#[derive(Clone, Debug)]
pub(crate) struct Ranked<P> {
    rank: u64,
    flying: InFlight<P>,
}

impl<P> Ranked<P> {
    fn key(&self) -> (Instant, u64) {
        (self.flying.due, self.rank)
    }
}

impl<P> PartialEq for Ranked<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Ranked<P> {}

impl<P> PartialOrd for Ranked<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Ranked<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_taken_back_in_the_order_in_which_they_were_pushed() {
        for may_reorder in [false, true] {
            let mut flight = Flight::new(may_reorder);
            for packet in 0..5 {
                flight.push(InFlight { due: Instant::from_nanos(packet), fate: Fate::Arrives, packet });
            }
            let mut taken =
                |count| flight.take_back(count).into_iter().map(|flying| flying.packet).collect::<Vec<_>>();
            assert_eq!((taken(2), taken(0), taken(9)), (vec![3, 4], vec![], vec![0, 1, 2]));
            assert_eq!((flight.len(), flight.last_due()), (0, Instant::ZERO));
        }
    }

    #[test]
    fn by_time_sorts_by_due_time_and_keeps_the_order_of_ties() {
        let mut flight = Flight::new(true);
        for packet in 0..20 {
            let due = Instant::from_nanos(if packet % 2 == 0 { 50 } else { 20 });
            flight.push(InFlight { due, fate: Fate::Arrives, packet });
        }
        assert_eq!(flight.next_due(), Instant::from_nanos(20));
        assert!(flight.pop_due(Instant::from_nanos(19)).is_none());
        let mut order = Vec::new();
        while let Some(flying) = flight.pop_due(Instant::from_nanos(50)) {
            order.push(flying.packet);
        }
        let (odd, even) = ((1..20).step_by(2), (0..20).step_by(2));
        assert_eq!(order, odd.chain(even).collect::<Vec<_>>());
        assert_eq!(flight.next_due(), Instant::FAR_FUTURE);
    }
}
