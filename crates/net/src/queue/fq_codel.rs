//! FQ-CoDel: Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, "The Flow Queue CoDel Packet Scheduler and Active
//! Queue Management Algorithm", RFC 8290, 2018.

use std::collections::VecDeque;

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

use super::backlog::Backlog;
use super::codel::{CoDelConfig, Control};
use super::timed_fifo::TimedFifo;
use crate::error::ConfigError;
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// Maximum number of packets dropped at once from the longest queue (RFC 8290 section 4.1).
const MAX_BATCH: u32 = 64;

/// Entities among which the queue shares the rate equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FairBy {
    /// Each flow has a queue.
    #[default]
    Flow,
    /// Each sending host has a queue for all its flows.
    Source,
    /// Each receiving host has a queue for all its flows.
    Destination,
}

/// Parameters of FQ-CoDel (RFC 8290 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// Maximum number of packets in all queues together, at least 1.
    pub limit_packets: u32,
    /// Number of a packet that is hashed into queues: flow, sender or receiver.
    pub fair_by: FairBy,
    /// Number of queues, 1 to 65,536.
    pub queues: u32,
    /// Bytes that a queue may send per round, at least 1; the size of the largest packet is suitable.
    pub quantum_bytes: u32,
    /// CoDel of each queue.
    pub codel: CoDelConfig,
}

impl Default for FqCoDelConfig {
    /// 10,240 packets, 1,024 queues, 1,514 bytes, CoDel's defaults with ECN.
    fn default() -> Self {
        Self {
            limit_packets: 10_240,
            fair_by: FairBy::Flow,
            queues: 1_024,
            quantum_bytes: 1_514,
            codel: CoDelConfig { ecn: true, ..CoDelConfig::default() },
        }
    }
}

impl FqCoDelConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.limit_packets == 0 {
            return Err(ConfigError::new("limit_packets", 0, "at least 1"));
        }
        if !(1..=65_536).contains(&self.queues) {
            return Err(ConfigError::new("queues", self.queues, "1 to 65536"));
        }
        if self.quantum_bytes == 0 {
            return Err(ConfigError::new("quantum_bytes", 0, "at least 1"));
        }
        self.codel.validate().map_err(|e| e.within("codel"))
    }
}

/// Flows or hosts hashed into queues under deficit round robin, new ones first, each with CoDel.
#[derive(Clone, Debug)]
pub(crate) struct FqCoDel<P> {
    config: FqCoDelConfig,
    /// Salt of the hash, so that other seeds have other collisions.
    salt: u64,
    flows: Vec<FlowQueue<P>>,
    /// Queues that recently became active, by index.
    new: VecDeque<usize>,
    /// Other active queues, by index.
    old: VecDeque<usize>,
    backlog: Backlog,
}

#[derive(Clone, Debug)]
struct FlowQueue<P> {
    fifo: TimedFifo<P>,
    control: Control,
    /// Bytes that may still be sent in this round; negative after overdrawing.
    credit: i64,
    /// True if it is on one of the two lists.
    active: bool,
}

/// List from whose head a queue was taken.
#[derive(Clone, Copy)]
enum List {
    New,
    Old,
}

impl<P: Packet> FqCoDel<P> {
    pub fn new(config: FqCoDelConfig, salt: u64) -> Self {
        let flow = || FlowQueue {
            fifo: TimedFifo::new(),
            control: Control::new(config.codel),
            credit: 0,
            active: false,
        };
        Self {
            config,
            salt,
            flows: (0..config.queues).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// Accepts every packet. If the limit is exceeded, the longest queue is shortened.
    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        let index = self.index_of(&packet);
        self.backlog.add(packet.size());
        let flow = &mut self.flows[index];
        flow.fifo.push(now, packet);
        if !flow.active {
            flow.active = true;
            flow.credit = i64::from(self.config.quantum_bytes);
            self.new.push_back(index);
        }
        if self.backlog.packets > self.config.limit_packets {
            self.thin_fattest(now, ledger);
        }
        Verdict::Accepted
    }

    /// Returns the next packet to send at `now`; `None` only if all queues are empty (RFC 8290 section 4.2).
    pub fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<P> {
        loop {
            let (list, index) = self.head()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum_bytes);
                self.move_to_old(list, index);
                continue;
            }
            let before = flow.fifo.backlog();
            let packet = flow.control.dequeue(&mut flow.fifo, now, ledger);
            let after = flow.fifo.backlog();
            self.backlog.packets -= before.packets - after.packets;
            self.backlog.bytes -= before.bytes - after.bytes;
            if let Some(packet) = packet {
                flow.credit -= i64::from(packet.size());
                return Some(packet);
            }
            self.retire(list, index);
        }
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn index_of(&self, packet: &P) -> usize {
        let [source, destination] = packet.hosts();
        let number = match self.config.fair_by {
            FairBy::Flow => packet.flow(),
            FairBy::Source => source,
            FairBy::Destination => destination,
        };
        // Finaliser of SplitMix64; then the high bits are scaled to the number of queues.
        let mut hash = number ^ self.salt;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        ((u128::from(hash) * u128::from(self.config.queues)) >> 64) as usize
    }

    /// Returns the queue whose turn it is: new ones come first.
    fn head(&self) -> Option<(List, usize)> {
        let new = self.new.front().map(|&index| (List::New, index));
        new.or_else(|| self.old.front().map(|&index| (List::Old, index)))
    }

    fn remove_head(&mut self, list: List) {
        match list {
            List::New => self.new.pop_front(),
            List::Old => self.old.pop_front(),
        };
    }

    fn move_to_old(&mut self, list: List, index: usize) {
        self.remove_head(list);
        self.old.push_back(index);
    }

    /// Handles an empty queue: it leaves the old list. A new one must first pass through the old list, so that a flow
    /// cannot stay new by sending single packets.
    fn retire(&mut self, list: List, index: usize) {
        match list {
            List::New => self.move_to_old(list, index),
            List::Old => {
                self.remove_head(list);
                self.flows[index].active = false;
            }
        }
    }

    /// Drops half of the packets of the queue with the most bytes from its head, at most [`MAX_BATCH`]. Several are
    /// dropped at once, because finding that queue requires a walk over all active ones.
    fn thin_fattest(&mut self, now: Instant, ledger: &mut Ledger<P>) {
        let active = self.new.iter().chain(&self.old).copied();
        let Some(fattest) = active.max_by_key(|&index| self.flows[index].fifo.backlog().bytes) else {
            return;
        };
        let fifo = &mut self.flows[fattest].fifo;
        for _ in 0..fifo.backlog().packets.div_ceil(2).min(MAX_BATCH) {
            let Some(stamped) = fifo.pop() else { return };
            self.backlog.remove(stamped.packet.size());
            ledger.drop_packet(stamped.packet, DropCause::Queue, now);
        }
    }
}
