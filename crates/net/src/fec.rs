//! Forward error correction over packets: blocks of a systematic code of which any k of n packets suffice.
//!
//! L. Rizzo, "Effective Erasure Codes for Reliable Computer Communication Protocols", ACM CCR 27(2), 1997; blocks of packets as with the
//! Reed–Solomon codes of RFC 5510 over GF(2^8), whose blocks hold at most 255.
//!
//! The code is maximum distance separable, so which packets a block gets back follows from which arrive: nothing is computed over payload.

use bentpipe_base::Instant;

use crate::config::{FecConfig, LinkConfig};
use crate::flight::{Fate, Flight, InFlight};
use crate::ledger::LinkStats;
use crate::line::Line;
use crate::packet::Packet;

/// The coder of a link and the decoder at its far end.
#[derive(Clone, Debug)]
pub(crate) struct Fec<P> {
    config: FecConfig,
    preserve_order: bool,
    block: Block<P>,
}

/// The block that is being filled.
#[derive(Clone, Debug)]
struct Block<P> {
    /// Packets of it that were sent, without parity.
    members: u32,
    /// Size of the largest, which is that of the parity packets.
    largest: u32,
    /// When its parity is sent even though it is not full, if the transmitter has nothing else to do.
    closes_at: Instant,
    /// When the first packet is too old to wait for the others.
    flush_at: Instant,
    /// When packets of it arrive, parity included.
    arrivals: Vec<Instant>,
    /// When the last packet of it arrives, or would.
    last_due: Instant,
    /// Its packets that are lost unless parity brings them back and, where order is kept, those behind the first of them.
    in_doubt: Vec<InFlight<P>>,
}

impl<P: Packet> Fec<P> {
    /// Of a validated configuration, if it has a code.
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

    /// Sends a packet at `start`, and parity behind it if it is the last of its block; when the transmitter has done both.
    pub fn send(
        &mut self,
        (start, packet): (Instant, P),
        (line, flight): (&mut Line, &mut Flight<P>),
        stats: &mut LinkStats,
    ) -> Instant {
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
            return self.close(line.free_at(), (line, flight), stats);
        }
        block.closes_at = line.next_start(block.flush_at.max(line.free_at()));
        passage.end
    }

    /// When something happens although nothing is offered: parity that may bring a packet back is sent.
    pub fn next_event(&self) -> Instant {
        if self.block.in_doubt.is_empty() { Instant::FAR_FUTURE } else { self.block.closes_at }
    }

    /// When the parity of the present block is sent if no packet is offered before; [`Instant::FAR_FUTURE`] while it is empty.
    pub fn closes_at(&self) -> Instant {
        self.block.closes_at
    }

    /// Sends the parity of the block from `start` on, which decides on all packets in doubt; when the transmitter has done so.
    pub fn close(
        &mut self,
        start: Instant,
        (line, flight): (&mut Line, &mut Flight<P>),
        stats: &mut LinkStats,
    ) -> Instant {
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

    /// Packets whose fate is open.
    pub fn packets_inside(&self) -> usize {
        self.block.in_doubt.len()
    }

    /// Loses the packets whose fate is open, and the block with them.
    pub fn lose_block(&mut self) -> impl Iterator<Item = P> + '_ {
        self.block.clear();
        self.block.in_doubt.drain(..).map(|flying| flying.packet)
    }
}

impl<P> Block<P> {
    /// A packet or parity of the block was sent; true if it arrives.
    fn note(&mut self, fate: Fate, due: Instant) -> bool {
        let arrives = fate.loss().is_none();
        if arrives {
            self.arrivals.push(due);
        }
        self.last_due = self.last_due.max(due);
        arrives
    }

    /// All packets of the block were sent: the lost ones are restored with the packet that completes the block, if enough arrive.
    fn decide(&mut self, flight: &mut Flight<P>, stats: &mut LinkStats) {
        self.arrivals.sort_unstable();
        let decoded_at = self.arrivals.get(self.members as usize - 1).copied();
        // If order is preserved, no packet arrives before this; otherwise only the lost packets are in doubt.
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
