use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Dropped, Packet, Sending};
use bentpipe_trace::DropCause;

use crate::MediumStats;
use crate::terminal::{Burst, Terminal};

/// Surroundings of the access scheme: the terminals, and the propagation to the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Air<P> {
    pub terminals: Vec<Terminal<P>>,
    pub delay_one_way: Duration,
    pub stats: MediumStats,
    /// Number of packets at the terminals.
    waiting: u64,
    /// Packets in flight, by arrival time.
    flight: VecDeque<Flying<P>>,
    dropped: VecDeque<(u32, Dropped<P>)>,
}

/// Packet between the end of its transmission and its arrival.
#[derive(Clone, Debug)]
struct Flying<P> {
    due: Instant,
    terminal: u32,
    packet: P,
    /// Cause of its loss, if it is lost.
    lost: Option<DropCause>,
}

impl<P: Packet> Air<P> {
    pub fn new(terminals: Vec<Terminal<P>>, delay_one_way: Duration) -> Self {
        let (flight, dropped) = (VecDeque::new(), VecDeque::new());
        Self { terminals, delay_one_way, stats: MediumStats::default(), waiting: 0, flight, dropped }
    }

    pub fn terminal(&self, terminal: u32) -> &Terminal<P> {
        &self.terminals[terminal as usize]
    }

    /// True if any terminal has something to send.
    pub fn anything_waits(&self) -> bool {
        self.waiting > 0
    }

    /// Offers a packet to a terminal; returns false if its queue is full.
    pub fn admit(&mut self, now: Instant, terminal: u32, packet: P) -> bool {
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += u64::from(packet.size());
        let refused = self.terminals[terminal as usize].admit(now, packet).err();
        let accepted = refused.is_none();
        self.waiting += u64::from(accepted);
        if let Some(packet) = refused {
            self.drop_packet(terminal, Dropped { packet, cause: DropCause::Queue, at: now });
        }
        accepted
    }

    /// Records a transmission of `length`.
    pub fn count_burst(&mut self, terminal: u32, length: Duration) {
        self.stats.bursts_sent += 1;
        self.terminals[terminal as usize].busy += length;
    }

    /// Handles a burst that got through; its transmission ends at `end`.
    pub fn carry(&mut self, terminal: u32, burst: Burst, end: Instant) {
        for _ in 0..burst.completes {
            let sender = &mut self.terminals[terminal as usize];
            let Some(waiting) = sender.pop() else { break };
            self.waiting -= 1;
            let (size, is_data) = (waiting.packet.size(), waiting.packet.is_data());
            self.stats.carried_packets += 1;
            self.stats.carried_bytes += u64::from(size);
            self.stats.access_delay_sum += end.since(waiting.since);
            let sending = Sending { start: end, end, size, is_data };
            let spoilt = sender.loss.as_mut().is_some_and(|loss| loss.strikes(&sending));
            let lost = spoilt.then_some(DropCause::Error);
            self.fly(Flying { due: end + self.delay_one_way, terminal, packet: waiting.packet, lost });
        }
        self.terminals[terminal as usize].set_head_carried(burst.head_carried);
    }

    /// Gives up a burst whose last transmission ends at `end`, with every packet that has a piece in it.
    pub fn give_up(&mut self, terminal: u32, burst: Burst, end: Instant) {
        let in_pieces = u32::from(burst.head_carried > 0);
        for _ in 0..burst.completes + in_pieces {
            let Some(waiting) = self.terminals[terminal as usize].pop() else { break };
            self.waiting -= 1;
            self.stats.given_up_packets += 1;
            let (due, lost) = (end + self.delay_one_way, Some(DropCause::Access));
            self.fly(Flying { due, terminal, packet: waiting.packet, lost });
        }
        self.terminals[terminal as usize].set_head_carried(0);
    }

    fn fly(&mut self, flying: Flying<P>) {
        debug_assert!(self.flight.back().is_none_or(|last| last.due <= flying.due), "due times descend");
        self.flight.push_back(flying);
    }

    /// Returns the arrival time of the next packet, lost ones included.
    pub fn next_due(&self) -> Instant {
        self.flight.front().map_or(Instant::FAR_FUTURE, |flying| flying.due)
    }

    /// Returns the next packet that has arrived by `now`.
    pub fn land(&mut self, now: Instant) -> Option<(u32, P)> {
        while self.next_due() <= now
            && let Some(Flying { due, terminal, packet, lost }) = self.flight.pop_front()
        {
            if let Some(cause) = lost {
                self.drop_packet(terminal, Dropped { packet, cause, at: due });
                continue;
            }
            let stats = &mut self.terminals[terminal as usize].stats;
            stats.delivered_packets += 1;
            stats.delivered_bytes += u64::from(packet.size());
            return Some((terminal, packet));
        }
        None
    }

    fn drop_packet(&mut self, terminal: u32, dropped: Dropped<P>) {
        self.terminals[terminal as usize].stats.count_drop(dropped.cause);
        self.dropped.push_back((terminal, dropped));
    }

    pub fn poll_dropped(&mut self) -> Option<(u32, Dropped<P>)> {
        self.dropped.pop_front()
    }

    /// Returns the number of packets queued or in flight.
    pub fn packets_inside(&self) -> usize {
        self.waiting as usize + self.flight.len()
    }
}
