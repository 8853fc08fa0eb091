//! Packet-level forward error correction: blocks of a systematic code in which any k of n packets suffice.
//!
//! L. Rizzo, "Effective Erasure Codes for Reliable Computer Communication Protocols", ACM CCR 27(2), 1997. Blocks of at most 255
//! packets, as with the Reed–Solomon codes of RFC 5510 over GF(2^8).
//!
//! The code is maximum distance separable: the set of arrivals determines the restored packets, so no payload is computed.

use bentpipe_base::Instant;

use crate::config::{FecConfig, LinkConfig};
use crate::flight::{Fate, Flight, InFlight};
use crate::ledger::LinkStats;
use crate::line::Line;
use crate::packet::Packet;

/// Coder of a link, and decoder at its far end.
#[derive(Clone, Debug)]
pub(crate) struct Fec<P> {
    config: FecConfig,
    preserve_order: bool,
    block: Block<P>,
}

/// Block that is being filled.
#[derive(Clone, Debug)]
struct Block<P> {
    /// Number of the block's data packets already sent.
    members: u32,
    /// Size of the block's largest packet, which is also the size of parity packets.
    largest: u32,
    /// Time at which parity is sent for an incomplete block, if the transmitter is idle.
    closes_at: Instant,
    /// Time at which the first packet is too old to wait for others.
    flush_at: Instant,
    /// Arrival times of the block's packets, including parity packets.
    arrivals: Vec<Instant>,
    /// Arrival time of the block's last packet, lost or not.
    last_due: Instant,
    /// Lost packets that parity may restore. If order is preserved, also the packets after the first of them.
    in_doubt: Vec<InFlight<P>>,
}

/// Parts of a link that send a block.
pub(crate) struct Behind<'a, P> {
    pub line: &'a mut Line,
    pub flight: &'a mut Flight<P>,
    pub stats: &'a mut LinkStats,
}

impl<P: Packet> Fec<P> {
    /// Makes the code of a validated configuration, if it has one.
    pub fn new(config: &LinkConfig) -> Option<Box<Self>> {
        let fec = config.fec?;
        let block = Block {
            members: 0,
            largest: 0,
            closes_at: Instant::FAR_FUTURE,
            flush_at: Instant::FAR_FUTURE,
            arrivals: Vec::with_capacity(fec.n as usize),
            last_due: Instant::ZERO,
            in_doubt: Vec::with_capacity(fec.k as usize),
        };
        Some(Box::new(Self { config: fec, preserve_order: config.preserve_order, block }))
    }

    /// Sends a packet at `start`, and parity after it if it is the last of its block. Returns the end of both.
    pub fn send(&mut self, start: Instant, packet: P, mut path: Behind<'_, P>) -> Instant {
        let Behind { line, flight, .. } = &mut path;
        let passage = line.carry(start, packet.size(), packet.is_data());
        let block = &mut self.block;
        if block.members == 0 {
            block.flush_at = start + self.config.flush;
        }
        block.members += 1;
        block.largest = block.largest.max(packet.size());
        let flying = InFlight { due: passage.due, fate: passage.fate, packet };
        let arrives = block.note(passage.fate, passage.due);
        if arrives && (block.in_doubt.is_empty() || !self.preserve_order) {
            flight.push(flying);
        } else {
            block.in_doubt.push(flying);
        }
        if block.members == self.config.k {
            return self.close(line.free_at(), path);
        }
        block.closes_at = line.next_start(block.flush_at.max(line.free_at()));
        passage.end
    }

    /// Returns the time of the next event without new packets: parity that may restore a packet is sent.
    pub fn next_event(&self) -> Instant {
        if self.block.in_doubt.is_empty() { Instant::FAR_FUTURE } else { self.block.closes_at }
    }

    /// Returns the time at which the present block's parity is sent if no packet is offered before; [`Instant::FAR_FUTURE`] for
    /// an empty block.
    pub fn closes_at(&self) -> Instant {
        self.block.closes_at
    }

    /// Sends the block's parity from `start` on, which decides all pending packets. Returns the end of the transmission.
    pub fn close(&mut self, start: Instant, path: Behind<'_, P>) -> Instant {
        let Behind { line, flight, stats } = path;
        let block = &mut self.block;
        let mut end = start;
        for _ in self.config.k..self.config.n {
            let start = line.next_start(end);
            let passage = line.carry(start, block.largest, true);
            block.note(passage.fate, passage.due);
            end = passage.end;
        }
        stats.parity_packets += u64::from(self.config.n - self.config.k);
        block.decide(flight, stats);
        end
    }

    /// Returns the number of pending packets.
    pub fn packets_inside(&self) -> usize {
        self.block.in_doubt.len()
    }

    /// Drops the pending packets and their block.
    pub fn lose_block(&mut self) -> impl Iterator<Item = P> + '_ {
        self.block.clear();
        self.block.in_doubt.drain(..).map(|flying| flying.packet)
    }
}

impl<P> Block<P> {
    /// Records a sent packet or parity of the block. Returns true if it arrives.
    fn note(&mut self, fate: Fate, due: Instant) -> bool {
        let arrives = fate.loss().is_none();
        if arrives {
            self.arrivals.push(due);
        }
        self.last_due = self.last_due.max(due);
        arrives
    }

    /// Decides the block after all its packets were sent. If enough arrive, lost ones are restored together with the packet that
    /// completes the block.
    fn decide(&mut self, flight: &mut Flight<P>, stats: &mut LinkStats) {
        self.arrivals.sort_unstable();
        let decoded_at = self.arrivals.get(self.members as usize - 1).copied();
        // With preserved order, no packet arrives before this time; otherwise only lost packets are pending.
        let mut not_before = Instant::ZERO;
        for mut flying in self.in_doubt.drain(..) {
            if flying.fate.loss().is_some() {
                flying.due = decoded_at.unwrap_or(self.last_due);
                if decoded_at.is_some() {
                    flying.fate = Fate::Arrives;
                    stats.repaired_packets += 1;
                }
            }
            not_before = not_before.max(flying.due);
            flying.due = not_before;
            flight.push(flying);
        }
        self.clear();
    }

    fn clear(&mut self) {
        (self.members, self.largest) = (0, 0);
        (self.closes_at, self.flush_at) = (Instant::FAR_FUTURE, Instant::FAR_FUTURE);
        self.last_due = Instant::ZERO;
        self.arrivals.clear();
    }
}
