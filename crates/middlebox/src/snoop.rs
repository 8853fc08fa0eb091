//! Snoop: an agent before a lossy link. It keeps copies of passing segments, repairs losses, and hides the losses from the
//! sender.
//!
//! H. Balakrishnan, S. Seshan, E. Amir, R. H. Katz, "Improving TCP/IP Performance over Wireless Networks", ACM MobiCom 1995; thresholds
//! and counters as in ns-2 (`snoop.cc`).
//!
//! | paper, ns-2         | here                      | unit     |
//! |---------------------|---------------------------|----------|
//! | packet cache        | [`Agent::cache`]          | segments |
//! | `lastAck_`          | [`Agent::acked`]          | bytes    |
//! | `expDupacks_`       | [`Agent::expected`]       | ACKs     |
//! | `numRxmit`          | [`Cached::repairs`]       | -        |
//! | `senderRxmit`       | [`Cached::sent_again`]    | -        |
//! | `srtt_`, `rttvar_`  | [`Agent::srtt`], [`Agent::rttvar`] | time |
//!
//! `papers/snoop.md` lists the deviations.

use std::collections::{BTreeSet, VecDeque};

use bentpipe_base::{Duration, Flags, Instant, Probe, Segment};

use crate::passing::DataStream;
use crate::table::Table;
use crate::{Direction, Emission, Passing, Port, SnoopConfig, Verdict};

/// Duplicate ACKs that the sender may see before the agent repairs the loss.
const THRESHOLD: u32 = 1;
/// Minimum number of segments that an agent keeps per connection.
const LEAST_CACHE: u64 = 100;

/// A Snoop agent for all connections that pass a node.
#[derive(Clone, Debug)]
pub struct Snoop {
    config: SnoopConfig,
    /// Agents by direction of the data.
    agents: [Table<Agent>; 2],
    timers: BTreeSet<(Instant, DataStream)>,
    repairs: u64,
    suppressed: u64,
    timeouts: u64,
}

/// Data of one direction of a connection.
#[derive(Clone, Debug)]
struct Agent {
    /// Copies of segments not yet acknowledged, ordered by sequence number.
    cache: VecDeque<Cached>,
    /// First byte after the last segment that passed.
    seen: u64,
    /// Highest acknowledgement.
    acked: u64,
    /// Number of its duplicates that the sender saw.
    duplicates: u32,
    /// Duplicate ACKs still expected because of the repaired segment.
    expected: u64,
    srtt: Duration,
    rttvar: Duration,
    timer: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Cached {
    segment: Segment,
    sent_at: Instant,
    /// Number of repairs by the agent.
    repairs: u32,
    /// True if the sender retransmitted it: the sender knows of the loss.
    sent_again: bool,
}

impl Default for Agent {
    /// Initial round-trip time and variation as in ns-2.
    fn default() -> Self {
        Self {
            cache: VecDeque::new(),
            seen: 0,
            acked: 0,
            duplicates: 0,
            expected: 0,
            srtt: Duration::from_millis(100),
            rttvar: Duration::from_millis(250),
            timer: None,
        }
    }
}

impl Agent {
    fn timeout(&self, floor: Duration) -> Duration {
        (self.srtt + self.rttvar * 4).max(floor)
    }

    /// Returns twice the BDP of the next link, so that a loss can be repaired twice.
    fn room(port: &Port, size: u32) -> usize {
        let product = port.rate.bytes_in(port.delay_one_way * 2);
        (2 * product / u64::from(size.max(1))).max(LEAST_CACHE) as usize
    }

    /// Stores a copy of a data segment.
    fn keep(&mut self, now: Instant, segment: &Segment, congested: bool, room: usize) {
        let new = Cached { segment: *segment, sent_at: now, repairs: 0, sent_again: false };
        let fits = self.cache.len() < room && !congested;
        if segment.seq >= self.seen {
            if fits {
                self.cache.push_back(new);
            }
        } else if let Some(cached) = self.cache.iter_mut().find(|cached| cached.segment.seq == segment.seq) {
            *cached = Cached { sent_again: true, ..new };
        } else if segment.seq >= self.acked && fits {
            let place = self.cache.partition_point(|cached| cached.segment.seq < segment.seq);
            self.cache.insert(place, Cached { sent_again: place == 0, ..new });
        }
        self.seen = self.seen.max(segment.seq_end());
    }

    /// Returns the segment that the receiver expects, if there is a copy.
    fn wanted(&mut self) -> Option<&mut Cached> {
        let acked = self.acked;
        self.cache.front_mut().filter(|cached| cached.segment.seq == acked)
    }

    /// Handles an acknowledgement of new data.
    fn advance(&mut self, now: Instant, ack: u64) {
        let mut sample = None;
        while self.cache.front().is_some_and(|cached| cached.segment.seq_end() <= ack) {
            let freed = self.cache.pop_front();
            let clean = freed.filter(|freed| freed.repairs == 0 && !freed.sent_again);
            sample = clean.map(|freed| now.since(freed.sent_at)).or(sample);
        }
        if let Some(rtt) = sample {
            let deviation = if rtt > self.srtt { rtt - self.srtt } else { self.srtt - rtt };
            self.rttvar = (self.rttvar * 3 + deviation) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        (self.acked, self.duplicates, self.expected) = (ack, 0, 0);
    }
}

impl Snoop {
    /// Makes an agent without state.
    pub(crate) fn new(config: SnoopConfig) -> Self {
        Self {
            config,
            agents: Default::default(),
            timers: BTreeSet::new(),
            repairs: 0,
            suppressed: 0,
            timeouts: 0,
        }
    }

    pub(crate) fn handle(
        &mut self,
        now: Instant,
        passing: &mut Passing<'_>,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(connection) = passing.connection.filter(|_| !self.is_dead(now)) else {
            return Verdict::Forward;
        };
        let reverse = passing.direction == Direction::Reverse;
        let segment = &*passing.segment;
        if segment.flags.intersects(Flags::SYN | Flags::RST) {
            for direction in [reverse, !reverse] {
                *self.agents[usize::from(direction)].heard(connection, now) = Agent::default();
                self.arm(now, DataStream { connection, reverse: direction });
            }
            return Verdict::Forward;
        }
        if segment.len > 0 && segment.probe == Probe::No {
            let congested = passing.port.waiting_packets >= self.config.congested_at;
            let room = Agent::room(&passing.port, passing.size);
            let agent = self.agents[usize::from(reverse)].heard(connection, now);
            agent.keep(now, segment, congested, room);
            if agent.timer.is_none() {
                self.arm(now, DataStream { connection, reverse });
            }
        }
        if segment.flags.contains(Flags::ACK) && segment.probe == Probe::No {
            return self.acknowledge(now, DataStream { connection, reverse: !reverse }, passing.segment, out);
        }
        Verdict::Forward
    }

    /// Handles an ACK for the data of a stream.
    fn acknowledge(
        &mut self,
        now: Instant,
        stream: DataStream,
        segment: &mut Segment,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(agent) = self.agents[usize::from(stream.reverse)].get_mut(stream.connection) else {
            return Verdict::Forward;
        };
        if segment.ack > agent.acked {
            agent.advance(now, segment.ack);
            if agent.wanted().is_some() {
                // The next hole is also repaired here, so the sender need not see it.
                segment.sack.clear();
            }
            self.arm(now, stream);
            return Verdict::Forward;
        }
        if segment.ack < agent.acked || segment.len > 0 || segment.flags != Flags::ACK {
            return Verdict::Forward;
        }
        if agent.expected > 0 {
            agent.expected -= 1;
            self.suppressed += 1;
            return Verdict::Absorb;
        }
        let others = agent.cache.len() as u64;
        agent.duplicates += 1;
        let duplicates = agent.duplicates;
        let Some(wanted) = agent.wanted() else { return Verdict::Forward };
        if wanted.sent_again || wanted.repairs >= self.config.most_repairs {
            return Verdict::Forward;
        }
        segment.sack.clear();
        if duplicates <= THRESHOLD {
            return Verdict::Forward;
        }
        let repaired = wanted.repairs > 0;
        agent.expected = others.saturating_sub(u64::from(THRESHOLD) + 1);
        self.suppressed += 1;
        if !repaired {
            self.repair(now, stream, out);
        }
        Verdict::Absorb
    }

    /// Retransmits the segment that the receiver expects.
    fn repair(&mut self, now: Instant, stream: DataStream, out: &mut Vec<Emission>) {
        let DataStream { connection, reverse } = stream;
        let agent = self.agents[usize::from(reverse)].get_mut(connection);
        let most = self.config.most_repairs;
        let Some(wanted) = agent.and_then(Agent::wanted).filter(|wanted| wanted.repairs < most) else {
            return;
        };
        wanted.repairs += 1;
        wanted.sent_at = now;
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        out.push(Emission { connection, direction, segment: wanted.segment });
        self.repairs += 1;
        self.arm(now, stream);
    }

    /// Restarts the timer, or stops it if there are no copies.
    fn arm(&mut self, now: Instant, stream: DataStream) {
        let Some(agent) = self.agents[usize::from(stream.reverse)].get_mut(stream.connection) else { return };
        let at = (!agent.cache.is_empty()).then(|| now + agent.timeout(self.config.least_timeout));
        if let Some(before) = std::mem::replace(&mut agent.timer, at) {
            self.timers.remove(&(before, stream));
        }
        self.timers.extend(at.map(|at| (at, stream)));
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.timers.first().map_or(Instant::FAR_FUTURE, |(at, ..)| *at)
    }

    /// True after the crash: the node has no copies and only forwards.
    fn is_dead(&self, now: Instant) -> bool {
        self.config.dies_at.is_some_and(|after| Instant::ZERO + after <= now)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        if self.is_dead(now) {
            (self.agents, self.timers) = Default::default();
        }
        while let Some(due) = self.timers.first().copied().filter(|(at, ..)| *at <= now) {
            self.timers.remove(&due);
            let (_, stream) = due;
            let Some(agent) = self.agents[usize::from(stream.reverse)].get_mut(stream.connection) else {
                continue;
            };
            agent.timer = None;
            let most = self.config.most_repairs;
            if agent.wanted().is_some_and(|wanted| wanted.repairs < most) {
                self.timeouts += 1;
                self.repair(now, stream, out);
            }
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("local_retransmissions", self.repairs),
            ("suppressed_acks", self.suppressed),
            ("local_timeouts", self.timeouts),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connection;
    use crate::ack::bare;
    use crate::fixture::{at_ms, pass};

    struct Bench {
        snoop: Snoop,
        out: Vec<Emission>,
    }

    impl Bench {
        /// Segments 10 to 19 of 1000 bytes have passed; everything before is acknowledged.
        fn with_ten_cached() -> Self {
            let mut bench = Self { snoop: Snoop::new(SnoopConfig::default()), out: Vec::new() };
            bench.data(9);
            bench.ack(10);
            for number in 10..20 {
                bench.data(number);
            }
            bench
        }

        fn data(&mut self, number: u64) {
            let mut segment =
                Segment { seq: number * 1000, len: 1000, flags: Flags::ACK, ..Segment::default() };
            let passing = &mut pass(&mut segment, Direction::Forward, 0);
            assert_eq!(self.snoop.handle(at_ms(number), passing, &mut self.out), Verdict::Forward);
        }

        /// Passes an ACK that expects segment `number`.
        fn ack(&mut self, number: u64) -> Verdict {
            let mut segment = bare(number * 1000);
            self.snoop.handle(at_ms(100), &mut pass(&mut segment, Direction::Reverse, 0), &mut self.out)
        }

        fn agent(&mut self) -> &mut Agent {
            self.snoop.agents[0].get_mut(Connection(1)).unwrap()
        }
    }

    /// Segment 10 is lost; the nine segments after it cause nine duplicates.
    #[test]
    fn the_sender_sees_one_duplicate_of_nine() {
        let mut bench = Bench::with_ten_cached();
        assert_eq!(bench.ack(10), Verdict::Forward);
        assert!(bench.out.is_empty());
        assert_eq!(bench.ack(10), Verdict::Absorb);
        assert_eq!((bench.out.len(), bench.out[0].segment.seq, bench.agent().expected), (1, 10_000, 8));
        for left in (1..8).rev() {
            assert_eq!(bench.ack(10), Verdict::Absorb);
            assert_eq!(bench.agent().expected, left);
        }
        assert_eq!(bench.ack(20), Verdict::Forward);
        assert_eq!((bench.agent().cache.len(), bench.agent().expected, bench.out.len()), (0, 0, 1));
        assert_eq!(bench.snoop.counters()[0].1, 1);
        assert_eq!(bench.snoop.next_timeout(), Instant::FAR_FUTURE);
    }

    #[test]
    fn a_loss_before_the_agent_is_the_senders_business() {
        let mut bench = Bench { snoop: Snoop::new(SnoopConfig::default()), out: Vec::new() };
        bench.data(9);
        bench.ack(10);
        // Segment 10 never passed.
        (11..20).for_each(|number| bench.data(number));
        for _ in 0..9 {
            assert_eq!(bench.ack(10), Verdict::Forward);
        }
        // When segment 10 passes, it is recognised as the sender's retransmission.
        bench.data(10);
        assert!(bench.agent().cache[0].sent_again);
        assert_eq!((bench.ack(10), bench.out.len()), (Verdict::Forward, 0));
    }

    #[test]
    fn a_lost_repair_is_repaired_by_the_timer_and_given_up_in_the_end() {
        let mut bench = Bench::with_ten_cached();
        bench.ack(10);
        bench.ack(10);
        let mut times = 1;
        while bench.snoop.next_timeout() < Instant::FAR_FUTURE {
            let at = bench.snoop.next_timeout();
            bench.snoop.handle_timeout(at, &mut bench.out);
            times += 1;
            assert!(times < 20);
        }
        let most = SnoopConfig::default().most_repairs as usize;
        assert!(bench.out.len() == most && bench.out.iter().all(|sent| sent.segment.seq == 10_000));
        // From now on the sender sees the loss.
        bench.agent().expected = 0;
        assert_eq!(bench.ack(10), Verdict::Forward);
    }

    /// The agent's copies are redundant: both ends hold all the data that they need.
    #[test]
    fn a_dead_agent_is_a_router() {
        let mut bench = Bench::with_ten_cached();
        bench.snoop.config.dies_at = Some(Duration::from_millis(100));
        for _ in 0..9 {
            assert_eq!(bench.ack(10), Verdict::Forward);
        }
        let at = bench.snoop.next_timeout();
        bench.snoop.handle_timeout(at, &mut bench.out);
        assert_eq!((bench.out.len(), bench.snoop.next_timeout()), (0, Instant::FAR_FUTURE));
    }

    #[test]
    fn what_a_full_queue_will_drop_is_not_kept() {
        let mut snoop = Snoop::new(SnoopConfig { congested_at: 5, ..SnoopConfig::default() });
        let mut segment = Segment { seq: 1, len: 1000, flags: Flags::ACK, ..Segment::default() };
        snoop.handle(at_ms(1), &mut pass(&mut segment, Direction::Forward, 5), &mut Vec::new());
        assert!(snoop.agents[0].get_mut(Connection(1)).unwrap().cache.is_empty());
    }
}
