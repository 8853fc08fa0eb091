use core::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

/// Fate of a packet after its transmission.
///
/// Its size is a whole word, so that packets in flight have no padding. Padding would be copied in overlapping pieces,
/// which processors forward from store to load only after all earlier stores have reached the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Fate {
    /// The packet arrives.
    Arrives,
    /// The packet arrives twice.
    ArrivesTwice,
    /// The packet arrives with one flipped bit.
    ArrivesWrong,
    /// A transmission error corrupts the packet; the receiving end discards it.
    Spoilt,
    /// An outage destroys the packet.
    CutOff,
}

impl Fate {
    /// Returns the cause of the loss; `None` if the packet arrives.
    pub fn loss(self) -> Option<DropCause> {
        match self {
            Self::Arrives | Self::ArrivesTwice | Self::ArrivesWrong => None,
            Self::Spoilt => Some(DropCause::Error),
            Self::CutOff => Some(DropCause::Outage),
        }
    }
}

/// Packet between its scheduling and its arrival.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<P> {
    /// Arrival time, even if it is lost.
    pub due: Instant,
    pub fate: Fate,
    pub packet: P,
}

/// Packets in flight, by arrival time. Equal times keep the order of transmission.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    /// Arrival time of the next packet; [`Instant::FAR_FUTURE`] without one.
    next_due: Instant,
    /// `None` until the first packet, which never comes on most links of a large world; then in order.
    line: Option<Box<Order<P>>>,
}

#[derive(Clone, Debug)]
enum Order<P> {
    /// Order of a link whose arrival times never decrease.
    InOrder(VecDeque<InFlight<P>>),
    /// Order of a link that reorders.
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

    /// Removes the packets for which `goes` is true from an in-order flight.
    pub fn extract(&mut self, mut goes: impl FnMut(&InFlight<P>) -> bool) -> Vec<InFlight<P>> {
        let Some(Order::InOrder(line)) = self.line.as_deref_mut() else { return Vec::new() };
        let (out, stays) =
            std::mem::take(line).into_iter().partition::<VecDeque<_>, _>(|flying| goes(flying));
        *line = stays;
        self.next_due = line.front().map_or(Instant::FAR_FUTURE, |next| next.due);
        out.into()
    }

    /// Returns the arrival time of the next packet; [`Instant::FAR_FUTURE`] without one.
    #[inline(always)]
    pub fn next_due(&self) -> Instant {
        self.next_due
    }

    /// Returns the packet after `ahead` others, if the flight is in order.
    #[inline]
    pub fn behind(&self, ahead: usize) -> Option<&P> {
        match self.line.as_deref()? {
            Order::InOrder(line) => line.get(ahead).map(|flying| &flying.packet),
            Order::ByTime { .. } => None,
        }
    }

    /// Returns the packets, if the flight is in order.
    pub fn packets_mut(&mut self) -> impl Iterator<Item = &mut P> {
        let line = match self.line.as_deref_mut() {
            Some(Order::InOrder(line)) => Some(line),
            _ => None,
        };
        line.into_iter().flatten().map(|flying| &mut flying.packet)
    }

    /// Removes the next packet if it is due at `now`.
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

    /// Puts back a packet that was just removed, before all others.
    pub fn push_front(&mut self, flying: InFlight<P>) {
        self.next_due = flying.due;
        match self.line() {
            Order::InOrder(line) => line.push_front(flying),
            // Regular ranks begin at 1.
            Order::ByTime { heap, .. } => heap.push(Reverse(Ranked { rank: 0, flying })),
        }
    }

    /// Removes the last `count` packets added, in their order.
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

    /// Returns the arrival time of the last packet; [`Instant::ZERO`] without one.
    pub fn last_due(&self) -> Instant {
        let last = match self.line.as_deref() {
            None => None,
            Some(Order::InOrder(line)) => line.back().map(|flying| flying.due),
            Some(Order::ByTime { heap, .. }) => heap.iter().map(|ranked| ranked.0.flying.due).max(),
        };
        last.unwrap_or_default()
    }

    /// Allows packets to arrive out of order from now on.
    pub fn allow_reordering(&mut self) {
        if let Order::InOrder(line) = self.line() {
            let mut by_time = Self::new(true);
            line.drain(..).for_each(|flying| by_time.push(flying));
            *self = by_time;
        }
    }

    /// True if no later packet can be due before one in flight.
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

/// Packet in flight, ordered by arrival time and then by transmission order.
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
