//! WTCP: a base station that repairs losses on the next link without own acknowledgements. It hides the repair time from the
//! sender's RTT measurement.
//!
//! K. Ratnam, I. Matta, "WTCP: An Efficient Mechanism for Improving TCP Performance over Wireless Links", IEEE ISCC 1998.
//!
//! It serves forward data. `hop` holds and repairs the segments; `papers/wtcp.md` lists the deviations from the paper.

use std::collections::{BTreeMap, BTreeSet};

use bentpipe_base::{EcnField, Flags, Instant, Probe, Segment};

use crate::hop::{Heard, Hop};
use crate::table::Table;
use crate::{Connection, Direction, Emission, Passing, Port, Verdict, WtcpConfig};

/// Minimum number of segments in flight on the hop between losses, however small its BDP.
const LEAST_WINDOW: f64 = 8.0;

/// A WTCP base station for all connections that pass a node.
#[derive(Clone, Debug)]
pub struct Wtcp {
    config: WtcpConfig,
    agents: Table<Agent>,
    timers: BTreeSet<(Instant, Connection)>,
    repairs: u64,
    timeouts: u64,
    suppressed: u64,
}

/// State of a connection through the base station.
#[derive(Clone, Debug, Default)]
struct Agent {
    /// Time of its SYN; true if it offered SACK.
    opened: Option<(Instant, bool)>,
    /// True if its SYN-ACK has also passed.
    serves: bool,
    hop: Hop,
    /// Segments in flight on the hop without losses.
    window: f64,
    /// Duplicate ACKs without new SACK blocks since the last progress.
    duplicates: u32,
    /// Duplicates still expected from segments that were in flight at the repair of the oldest.
    expected: Option<u32>,
    /// Arrival times of segments, keyed by their first byte.
    arrivals: BTreeMap<u64, Instant>,
    /// Latest timestamp sent: timestamps never decrease.
    sent_timestamp: Option<u32>,
    /// The destination's last acknowledgement of new data.
    last_ack: Segment,
}

impl Agent {
    /// Addresses a segment to the destination. Its time in this station is added to its timestamp, so that the echoed RTT
    /// excludes it.
    fn address(&mut self, now: Instant, connection: Connection, mut segment: Segment) -> Emission {
        let came = self.arrivals.range(..=segment.seq).next_back().map_or(now, |(_, came)| *came);
        segment.timestamps = segment.timestamps.map(|(value, echo)| {
            let stayed_ms = now.since(came).as_nanos() / 1_000_000;
            let value = value.wrapping_add(stayed_ms as u32);
            let latest = self.sent_timestamp.filter(|latest| latest.wrapping_sub(value) < 1 << 31);
            (latest.unwrap_or(value), echo)
        });
        self.sent_timestamp = segment.timestamps.map(|(value, _)| value);
        Emission { connection, direction: Direction::Forward, segment }
    }

    /// Sets the window to twice the BDP of the next link. Further segments wait here, where the time is measured, not in a queue.
    fn measure(&mut self, port: &Port, size: u32) {
        let product = port.rate.bytes_in(port.delay_one_way * 2) as f64;
        self.window = (2.0 * product / f64::from(size.max(1))).max(LEAST_WINDOW);
        if self.hop.cwnd == 0.0 {
            self.hop.cwnd = self.window;
        }
    }

    /// Handles a duplicate ACK without new SACK blocks: a segment has left the hop, and another may follow. More duplicates than
    /// segments in flight at the oldest's repair come from segments sent after the repair: the repair was also lost.
    fn count_duplicate(&mut self) {
        self.duplicates += 1;
        self.hop.cwnd += 1.0;
        self.expected = match self.expected {
            Some(0) => {
                self.hop.lose_oldest();
                None
            }
            expected => expected.map(|left| left - 1),
        };
    }

    /// True if the segment that the destination expects is held here.
    fn holds_what_is_wanted(&self) -> bool {
        self.hop.held.front().is_some_and(|held| held.segment.seq <= self.hop.una)
    }
}

impl Wtcp {
    /// Makes a base station without state.
    pub(crate) fn new(config: WtcpConfig) -> Self {
        let (agents, timers) = (Table::default(), BTreeSet::new());
        Self { config, agents, timers, repairs: 0, timeouts: 0, suppressed: 0 }
    }

    pub(crate) fn handle(
        &mut self,
        now: Instant,
        passing: &mut Passing<'_>,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(connection) = passing.connection else { return Verdict::Forward };
        let (segment, forward) = (&mut *passing.segment, passing.direction == Direction::Forward);
        let agent = self.agents.heard(connection, now);
        if segment.flags.contains(Flags::RST) {
            *agent = Agent::default();
            self.arm(now, connection);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            agent.open(now, forward, segment);
            return Verdict::Forward;
        }
        if !agent.serves || segment.probe != Probe::No || !segment.flags.contains(Flags::ACK) {
            return Verdict::Forward;
        }
        if forward {
            agent.measure(&passing.port, passing.size);
            self.meet_source(now, connection, segment, out)
        } else {
            self.meet_destination(now, connection, segment, out)
        }
    }

    /// Handles data or an ACK of the source.
    fn meet_source(
        &mut self,
        now: Instant,
        connection: Connection,
        segment: &mut Segment,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(agent) = self.agents.get_mut(connection) else { return Verdict::Forward };
        if segment.seq_len() == 0 {
            return Verdict::Forward;
        }
        // A congestion mark must reach the receiver, exactly once.
        if segment.ecn == EcnField::Congested || agent.hop.held_bytes >= self.config.buffer {
            return Verdict::Forward;
        }
        if segment.seq_end() <= agent.hop.una {
            // The acknowledgement was lost in the reverse direction: repeat it.
            let ack = agent.last_ack;
            out.push(Emission { connection, direction: Direction::Reverse, segment: ack });
            return Verdict::Absorb;
        }
        if agent.hop.keep(*segment) > 0 {
            agent.arrivals.insert(segment.seq, now);
            if segment.seq < agent.hop.nxt {
                // The segment fills a gap that arose before this station.
                agent.hop.lost.insert(segment.seq);
            }
        }
        self.serve(now, connection, out);
        Verdict::Absorb
    }

    /// Handles an ACK of the destination. New acknowledgements pass; the source learns of a missing segment only if it is not
    /// held here.
    fn meet_destination(
        &mut self,
        now: Instant,
        connection: Connection,
        segment: &mut Segment,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(agent) = self.agents.get_mut(connection) else { return Verdict::Forward };
        let Heard { advances, fresh, finds_loss } = agent.hop.hear(now, segment);
        if advances {
            (agent.hop.cwnd, agent.duplicates, agent.expected) = (agent.window, 0, None);
            agent.last_ack = Segment { len: 0, flags: Flags::ACK, ..*segment };
            agent.last_ack.sack.clear();
            let una = agent.hop.una;
            let first = agent.arrivals.range(..=una).next_back().map(|(seq, _)| *seq);
            agent.arrivals = first.map(|first| agent.arrivals.split_off(&first)).unwrap_or_default();
        }
        let repairs_here = agent.holds_what_is_wanted();
        let hides = !advances && segment.flags == Flags::ACK && segment.len == 0 && repairs_here;
        if hides && segment.sack.is_empty() {
            agent.count_duplicate();
        }
        if repairs_here {
            // A source that knew of the hole would also fill it.
            segment.sack.clear();
        }
        self.suppressed += u64::from(hides);
        if fresh > 0 || finds_loss {
            self.arm(now, connection);
        }
        self.serve(now, connection, out);
        if hides { Verdict::Absorb } else { Verdict::Forward }
    }

    /// Sends the segments allowed by the windows.
    fn serve(&mut self, now: Instant, connection: Connection, out: &mut Vec<Emission>) {
        let Some(agent) = self.agents.get_mut(connection) else { return };
        let mut repairs = 0;
        let mut sent_to = agent.hop.nxt;
        while let Some(segment) = agent.hop.next(now, u64::MAX) {
            let repeats = segment.seq_end() <= sent_to;
            repairs += u64::from(repeats);
            if repeats && segment.seq <= agent.hop.una {
                agent.expected = Some((agent.hop.flight - 1).saturating_sub(agent.duplicates));
            }
            sent_to = agent.hop.nxt;
            out.push(agent.address(now, connection, segment));
        }
        self.repairs += repairs;
        if repairs > 0 || agent.hop.timer.is_none() {
            self.arm(now, connection);
        }
    }

    /// Restarts the timer. Stops it if no segment is stored.
    fn arm(&mut self, now: Instant, connection: Connection) {
        if let Some(agent) = self.agents.get_mut(connection) {
            agent.hop.arm(now, connection, &mut self.timers);
        }
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.timers.first().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }

    /// Handles silence as an error burst: one segment probes until an answer arrives.
    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        while let Some(due) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&due);
            let (_, connection) = due;
            let Some(agent) = self.agents.get_mut(connection) else { continue };
            agent.hop.timer = None;
            self.timeouts += 1;
            agent.hop.cwnd = 1.0;
            agent.hop.expire();
            self.serve(now, connection, out);
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

impl Agent {
    fn open(&mut self, now: Instant, forward: bool, segment: &Segment) {
        let options = segment.syn_options.unwrap_or_default();
        if forward && !self.serves {
            // The SYN asks for router feedback, so each ACK must pass unchanged.
            self.opened = (options.feedback == 0).then_some((now, options.sack_permitted));
        } else if let Some((opened, sack)) = self.opened.filter(|_| !forward && !self.serves) {
            self.serves = true;
            let hop = &mut self.hop;
            (hop.una, hop.nxt, hop.edge) =
                (segment.ack, segment.ack, segment.ack + u64::from(segment.window));
            (hop.assigned, hop.by_number) = (true, !(sack && options.sack_permitted));
            hop.sample(now.since(opened));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::bare;
    use crate::fixture::{at_ms, pass};
    use bentpipe_base::{SackRange, SynOptions};

    struct Bench {
        station: Wtcp,
        out: Vec<Emission>,
    }

    impl Bench {
        /// The handshake has passed with or without SACK; the round trip beyond the station is 100 ms.
        fn new(sack_permitted: bool) -> Self {
            let mut bench = Self { station: Wtcp::new(WtcpConfig::default()), out: Vec::new() };
            let syn_options = Some(SynOptions { sack_permitted, ..SynOptions::default() });
            bench.show(
                0,
                Direction::Forward,
                Segment { flags: Flags::SYN, syn_options, ..Segment::default() },
            );
            let flags = Flags::SYN | Flags::ACK;
            let answer = Segment { flags, ack: 1, window: 1_000_000, syn_options, ..Segment::default() };
            bench.show(100, Direction::Reverse, answer);
            bench
        }

        fn show(&mut self, ms: u64, direction: Direction, mut segment: Segment) -> (Verdict, Segment) {
            self.out.clear();
            let verdict =
                self.station.handle(at_ms(ms), &mut pass(&mut segment, direction, 0), &mut self.out);
            (verdict, segment)
        }

        /// Passes segment `number`, from 0, of 1000 bytes, with its arrival time as timestamp.
        fn data(&mut self, ms: u64, number: u64) {
            let timestamps = Some((ms as u32, 0));
            let seq = 1 + 1000 * number;
            let data = Segment { seq, len: 1000, flags: Flags::ACK, timestamps, ..Segment::default() };
            assert_eq!(self.show(ms, Direction::Forward, data).0, Verdict::Absorb);
        }

        fn ack(&mut self, ms: u64, number: u64, sacked: Option<(u64, u64)>) -> (Verdict, Segment) {
            let mut ack = Segment { window: 1_000_000, ..bare(1 + 1000 * number) };
            sacked.into_iter().for_each(|(first, end)| {
                ack.sack.push(SackRange { start: 1 + 1000 * first, end: 1 + 1000 * end });
            });
            self.show(ms, Direction::Reverse, ack)
        }

        /// Returns the numbers and timestamps of the segments that leave for the destination.
        fn sent(&self) -> Vec<(u64, u32)> {
            let onward = self.out.iter().filter(|emission| emission.direction == Direction::Forward);
            onward.map(|sent| (sent.segment.seq / 1000, sent.segment.timestamps.unwrap().0)).collect()
        }
    }

    #[test]
    fn nothing_is_acknowledged_before_the_destination_does() {
        let mut bench = Bench::new(true);
        bench.data(110, 0);
        assert_eq!((bench.out.len(), bench.sent()), (1, vec![(0, 110)]));
        let (verdict, ack) = bench.ack(210, 1, None);
        assert_eq!((verdict, ack.ack), (Verdict::Forward, 1001));
        assert_eq!(bench.station.next_timeout(), Instant::FAR_FUTURE);
    }

    /// Segment 0 is lost. Its repair leaves 105 ms after the segment's arrival, and its timestamp includes them.
    #[test]
    fn a_repair_carries_the_time_that_it_spent_here() {
        let mut bench = Bench::new(true);
        (0..5).for_each(|number| bench.data(110 + number, number));
        for (ms, end) in [(213, 2), (214, 3), (215, 4)] {
            assert_eq!(bench.ack(ms, 0, Some((1, end))).0, Verdict::Absorb);
        }
        assert_eq!(bench.sent(), [(0, 110 + 105)]);
        // The source does not learn of a second hole that is also filled here.
        let (verdict, ack) = bench.ack(320, 3, Some((4, 5)));
        assert_eq!((verdict, ack.sack.is_empty()), (Verdict::Forward, true));
    }

    #[test]
    fn silence_leaves_one_segment_until_something_is_heard() {
        let mut bench = Bench::new(true);
        (0..5).for_each(|number| bench.data(110, number));
        let at = bench.station.next_timeout();
        bench.out.clear();
        bench.station.handle_timeout(at, &mut bench.out);
        let question = bench.sent();
        assert_eq!((question.len(), question[0].0), (1, 0));
        bench.data(600, 5);
        assert_eq!(bench.sent(), []);
        // Its answer shows that segments sent three or more transmissions earlier are also lost.
        bench.ack(610, 1, None);
        assert_eq!(bench.sent().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 5]);
    }

    /// Segments 0 and 3 are lost. The repair of the first reveals the second; segments 4 and 5 have arrived and are not
    /// retransmitted.
    #[test]
    fn without_selective_acknowledgements_one_hole_after_the_other_is_filled() {
        let mut bench = Bench::new(false);
        (0..6).for_each(|number| bench.data(110, number));
        let repaired: Vec<Vec<u64>> = [(210, 0), (211, 0), (212, 0), (213, 0), (320, 3), (430, 6)]
            .map(|(ms, number)| {
                bench.ack(ms, number, None);
                bench.sent().iter().map(|(number, _)| *number).collect()
            })
            .to_vec();
        assert_eq!(repaired, [vec![], vec![], vec![0], vec![], vec![3], vec![]]);
    }

    /// Segment 0 and its repair are lost. Four duplicates belong to the other segments, the fifth to segment 5, sent after the
    /// repair.
    #[test]
    fn a_lost_repair_shows_without_selective_acknowledgements() {
        let mut bench = Bench::new(false);
        (0..5).for_each(|number| bench.data(110, number));
        let repairs: Vec<usize> = (0..4)
            .map(|ms| {
                bench.ack(210 + ms, 0, None);
                bench.sent().len()
            })
            .collect();
        assert_eq!(repairs, [0, 0, 1, 0]);
        bench.data(215, 5);
        assert_eq!(bench.sent().len(), 1);
        bench.ack(300, 0, None);
        assert_eq!(bench.sent().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_loss_before_the_station_is_the_sources() {
        let mut bench = Bench::new(true);
        bench.data(110, 0);
        bench.data(112, 2);
        bench.ack(210, 1, None);
        let (verdict, ack) = bench.ack(212, 1, Some((2, 3)));
        assert_eq!((verdict, ack.sack.as_slice().len()), (Verdict::Forward, 1));
        // A segment that fills the gap is forwarded at once.
        bench.data(300, 1);
        assert_eq!(bench.sent(), [(1, 300)]);
    }

    #[test]
    fn what_the_destination_has_is_answered_with_its_last_word() {
        let mut bench = Bench::new(true);
        bench.data(110, 0);
        bench.ack(210, 1, None);
        bench.data(900, 0);
        let answers: Vec<_> = bench.out.iter().map(|sent| (sent.direction, sent.segment.ack)).collect();
        assert_eq!(answers, [(Direction::Reverse, 1001)]);
    }
}
