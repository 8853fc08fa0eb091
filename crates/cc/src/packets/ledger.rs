//! Packets in flight.

use alloc::collections::VecDeque;

use bentpipe_base::Instant;

use crate::delivery_rate::Stamp;

/// Sequence number of the first byte, as after a SYN.
const FIRST_SEQ: u64 = 1;

/// Settled packets that may wait for removal, besides one per packet in flight.
const SLACK: usize = 16;

/// A packet that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub number: u64,
    pub bytes: u32,
    pub sent_at: Instant,
    /// Bytes sent before this packet, plus [`FIRST_SEQ`].
    pub seq: u64,
    pub stamp: Stamp,
}

/// Packets in flight by number. Memory is proportional to the largest number of packets in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Packets in the order of their numbers; `None` if they were settled. The first one is in flight.
    packets: VecDeque<(u64, Option<Packet>)>,
    /// Number of packets in flight.
    count: usize,
    /// Bytes in flight.
    bytes: u64,
    next_number: u64,
    /// Bytes sent.
    sent: u64,
}

impl Ledger {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the lowest number that the next packet may have.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    pub fn next_seq(&self) -> u64 {
        FIRST_SEQ + self.sent
    }

    /// Returns the first byte of the oldest packet in flight, or of the next packet.
    pub fn oldest_seq(&self) -> u64 {
        self.front().map_or(self.next_seq(), |packet| packet.seq)
    }

    /// Returns the number of the oldest packet in flight, or the lowest one of the next packet.
    pub fn oldest(&self) -> u64 {
        self.front().map_or(self.next_number, |packet| packet.number)
    }

    /// Adds a packet. Returns the sequence number that it gets.
    pub fn push(&mut self, packet: Packet) -> u64 {
        let seq = self.next_seq();
        self.packets.push_back((packet.number, Some(Packet { seq, ..packet })));
        self.count += 1;
        self.bytes += u64::from(packet.bytes);
        self.sent += u64::from(packet.bytes);
        self.next_number = packet.number + 1;
        seq
    }

    /// Removes a packet from the flight; `None` if it is not in flight.
    pub fn settle(&mut self, number: u64) -> Option<Packet> {
        let at = self.packets.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let packet = self.packets[at].1.take()?;
        self.count -= 1;
        self.bytes -= u64::from(packet.bytes);
        while self.packets.front().is_some_and(|(_, packet)| packet.is_none()) {
            self.packets.pop_front();
        }
        if self.packets.len() > 2 * self.count + SLACK {
            self.packets.retain(|(_, packet)| packet.is_some());
        }
        Some(packet)
    }

    fn front(&self) -> Option<&Packet> {
        self.packets.front().and_then(|(_, packet)| packet.as_ref())
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.packets.len()
    }
}
