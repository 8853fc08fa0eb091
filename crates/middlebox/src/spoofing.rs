//! TCP spoofing: a gateway near the source acknowledges data at once, holds it, and guarantees its delivery.
//!
//! I. F. Akyildiz, G. Morabito, S. Palazzo, "TCP-Peach", IEEE/ACM Transactions on Networking 9(3), 2001, section II-A: the method and its four
//! problems; RFC 3135 sections 3.1.3 and 3.1.4: local acknowledgements, local retransmissions.
//!
//! Addresses, ports and sequence numbers are those of the ends. The gateway serves forward data of a connection whose SYN-ACK it
//! saw: ACKs then also pass this node. It repairs what it acknowledged (`hop`), and ACKs of the receiver end here.
//! `papers/spoofing.md` lists the deviations.

use std::collections::BTreeSet;

use bentpipe_base::{Duration, EcnField, Flags, Instant, Probe, SackRange, Segment};

use crate::hop::{Heard, Hop, trim_front};
use crate::satpep::{Departure, Meters, Share};
use crate::table::Table;
use crate::{Connection, Direction, Emission, Passing, Port, SatPepConfig, SpoofingConfig, Verdict};

/// Header bytes of IP and TCP, counted in the link's utilisation.
const HEADERS: u32 = 40;

/// A spoofing gateway for all connections that pass a node.
#[derive(Clone, Debug)]
pub struct Spoofing {
    config: SpoofingConfig,
    agents: Table<Agent>,
    timers: BTreeSet<(Instant, Connection)>,
    dead: bool,
    /// State of windows that follow the link's utilisation, if configured.
    utilisation: Option<(SatPepConfig, Meters)>,
    counters: Counters,
}

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    promised_bytes: u64,
    delivered_bytes: u64,
    retransmissions: u64,
    timeouts: u64,
    suppressed_acks: u64,
    most_buffered_bytes: u64,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// Segments pass unchanged.
    #[default]
    Untouched,
    /// A SYN passed at this time; true if it offers SACK.
    Opening(Instant, bool),
    /// The gateway acknowledges the data; true if SACK was negotiated.
    Spoofed(bool),
}

/// State of a connection through the gateway.
#[derive(Clone, Debug, Default)]
struct Agent {
    phase: Phase,
    /// Next byte expected from the source: the acknowledged data, without a FIN.
    src_nxt: u64,
    /// Sequence number after the FIN, once it has arrived.
    fin_end: Option<u64>,
    /// True while a congestion mark is echoed to the source, until it responds.
    ecn_echo: bool,
    /// Block reported in the last SACK.
    block: SackRange,
    /// Window last offered to the source.
    offered: u64,
    /// Last values from the source: acknowledgement, window, timestamp and its echo.
    src_ack: u64,
    src_window: u32,
    src_timestamps: Option<(u32, u32)>,
    /// Last values from the destination: its next sequence number, timestamp.
    dst_seq: u64,
    dst_timestamp: Option<u32>,
    hop: Hop,
    /// Size of a full segment on the wire, and its outgoing link; used for assigned windows.
    segment_bytes: u32,
    port: Option<Port>,
}

impl Agent {
    /// Returns the acknowledgement for the source. It covers the FIN only after the destination acknowledged it.
    fn promised(&self) -> u64 {
        match self.fin_end {
            Some(end) if self.hop.una < end => self.src_nxt.min(end - 1),
            _ => self.src_nxt,
        }
    }

    fn window(&self, room: u64) -> u64 {
        // The right edge follows only the destination's acknowledgements, so it never moves back.
        (self.hop.una + room).saturating_sub(self.src_nxt)
    }

    /// Returns the bytes acknowledged to the source but not by the destination.
    fn owed(&self) -> u64 {
        match self.phase {
            Phase::Spoofed(_) => self.promised().saturating_sub(self.hop.una),
            _ => 0,
        }
    }

    /// Returns an acknowledgement in the destination's name.
    fn forge(&mut self, room: u64) -> Segment {
        self.offered = self.window(room);
        let mut flags = Flags::ACK;
        flags.set(Flags::ECE, self.ecn_echo);
        let echo = self.src_timestamps.map_or(0, |(value, _)| value);
        let mut ack = Segment {
            seq: self.dst_seq,
            ack: self.promised(),
            window: u32::try_from(self.offered).unwrap_or(u32::MAX),
            flags,
            timestamps: self.dst_timestamp.map(|value| (value, echo)),
            ..Segment::default()
        };
        if self.phase == Phase::Spoofed(true) && self.block.start > ack.ack {
            ack.sack.push(self.block);
        }
        ack
    }

    /// Stores data of the source if there is room. Returns the number of stored bytes.
    fn take(&mut self, segment: &Segment, room: u64) -> u64 {
        let end = self.hop.una + room;
        let mut segment = Segment { ecn: EcnField::NotCapable, ..*segment };
        segment.flags.remove(Flags::CWR);
        trim_front(&mut segment, self.src_nxt);
        if segment.seq_len() == 0 || segment.seq + u64::from(segment.len) > end {
            return 0;
        }
        if segment.flags.contains(Flags::FIN) {
            self.fin_end = Some(segment.seq_end());
        }
        let adjoins = segment.seq == self.block.end;
        self.block =
            SackRange { start: if adjoins { self.block.start } else { segment.seq }, end: segment.seq_end() };
        let kept = self.hop.keep(segment);
        while let Some(held) = self.hop.held.get(self.hop.place(self.src_nxt))
            && held.segment.seq == self.src_nxt
        {
            self.src_nxt = held.segment.seq_end();
        }
        kept
    }
}

impl Spoofing {
    /// Makes a gateway without state.
    pub(crate) fn new(config: SpoofingConfig) -> Self {
        let counters = Counters::default();
        let (agents, timers) = (Table::default(), BTreeSet::new());
        Self { config, agents, timers, dead: false, utilisation: None, counters }
    }

    /// Makes a gateway without state whose windows follow the link's utilisation.
    pub(crate) fn satpep(config: SatPepConfig) -> Self {
        let SatPepConfig { buffer, dies_at, .. } = config;
        let plain = SpoofingConfig { buffer, dies_at, ..SpoofingConfig::default() };
        Self { utilisation: Some((config, Meters::default())), ..Self::new(plain) }
    }

    pub(crate) fn handle(
        &mut self,
        now: Instant,
        passing: &mut Passing<'_>,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(connection) = passing.connection.filter(|_| !self.dies_by(now)) else {
            return Verdict::Forward;
        };
        let segment = &mut *passing.segment;
        let forward = passing.direction == Direction::Forward;
        if segment.flags.contains(Flags::RST) {
            // Acknowledged data that is not yet delivered is lost: the connection was reset.
            if let Some(agent) = self.agents.get_mut(connection) {
                (agent.phase, agent.hop) = (Phase::Untouched, Hop::default());
                self.arm(now, connection);
            }
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            // The forged ACKs do not count marks: without this flag the ends agree on classic ECN (RFC 9768 table 2).
            segment.flags.remove(Flags::AE);
            self.open(now, connection, passing);
            return Verdict::Forward;
        }
        if segment.probe != Probe::No || !segment.flags.contains(Flags::ACK) {
            return Verdict::Forward;
        }
        match self.agents.get_mut(connection).map(|agent| agent.phase) {
            Some(Phase::Spoofed(_)) if forward => {
                let port = passing.port;
                self.assign_first(connection, segment.len, port);
                self.meet_source(now, connection, segment, out)
            }
            Some(Phase::Spoofed(_)) => self.meet_destination(now, connection, segment, out),
            _ => Verdict::Forward,
        }
    }

    fn open(&mut self, now: Instant, connection: Connection, passing: &Passing<'_>) {
        let segment = &*passing.segment;
        let forward = passing.direction == Direction::Forward;
        let window = self.config.initial_window;
        let agent = self.agents.heard(connection, now);
        let options = segment.syn_options.unwrap_or_default();
        match agent.phase {
            // Connections with router feedback or a receiver half are left alone: the gateway cannot answer for these.
            Phase::Untouched | Phase::Opening(..) if forward && options.feedback == 0 => {
                agent.phase = Phase::Opening(now, options.sack_permitted);
            }
            Phase::Opening(since, sack) if !forward => {
                *agent = Agent {
                    phase: Phase::Spoofed(sack && options.sack_permitted),
                    src_nxt: segment.ack,
                    src_ack: segment.seq_end(),
                    dst_seq: segment.seq_end(),
                    dst_timestamp: segment.timestamps.map(|(value, _)| value),
                    ..Agent::default()
                };
                let hop = &mut agent.hop;
                (hop.una, hop.nxt, hop.recover) = (segment.ack, segment.ack, segment.ack);
                hop.edge = segment.ack + u64::from(segment.window);
                (hop.cwnd, hop.ssthresh) = (f64::from(window), f64::INFINITY);
                hop.sample(now.since(since));
            }
            _ => {}
        }
    }

    /// Assigns the initial window at the connection's first data, if windows are assigned.
    fn assign_first(&mut self, connection: Connection, bytes: u32, port: Port) {
        let Some((_, meters)) = &self.utilisation else { return };
        let Some(agent) = self.agents.get_mut(connection) else { return };
        if bytes > 0 && !agent.hop.assigned {
            let rtt = agent.hop.srtt.unwrap_or(Duration::ZERO);
            agent.hop.cwnd = meters.first_window(&port, rtt, f64::from(bytes + HEADERS));
            (agent.hop.assigned, agent.segment_bytes) = (true, bytes + HEADERS);
        }
        agent.port = Some(port);
    }

    /// Handles the end of measurement periods: updates the windows of the links' connections.
    fn assign(&mut self, now: Instant, out: &mut Vec<Emission>) {
        let Some((config, meters)) = &mut self.utilisation else { return };
        let verdicts = meters.judge(now, config);
        let config = *config;
        for (verdict, users) in verdicts {
            let backlogged: Vec<_> = users
                .into_iter()
                .filter(|user| self.agents.get_mut(*user).is_some_and(|agent| agent.hop.is_backlogged()))
                .collect();
            for &user in &backlogged {
                let Some(agent) = self.agents.get_mut(user) else { continue };
                let rtt = agent.hop.srtt.unwrap_or(Duration::ZERO);
                let segment_bytes = f64::from(agent.segment_bytes.max(1));
                let share = Share { rtt, segment_bytes, backlogged: backlogged.len() as u32 };
                agent.hop.cwnd = verdict.window(&config, agent.hop.cwnd, share);
            }
            for user in backlogged {
                self.serve(now, user, out);
            }
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
        let room = self.config.buffer;
        let agent = self.agents.heard(connection, now);
        agent.src_timestamps = segment.timestamps.or(agent.src_timestamps);
        agent.src_window = segment.window;
        if segment.seq_len() == 0 {
            agent.src_ack = agent.src_ack.max(segment.ack);
            // The destination must not conclude that it missed data still held here.
            segment.seq = segment.seq.min(agent.hop.nxt);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::CWR) {
            agent.ecn_echo = false;
        }
        agent.ecn_echo |= segment.ecn == EcnField::Congested;
        let before = agent.promised();
        agent.take(segment, room);
        self.counters.promised_bytes += agent.promised() - before;
        self.counters.most_buffered_bytes = self.counters.most_buffered_bytes.max(agent.hop.held_bytes);
        let ack = agent.forge(room);
        out.push(Emission { connection, direction: Direction::Reverse, segment: ack });
        if segment.ack > agent.src_ack {
            // The acknowledgement is forwarded without waiting for the data.
            agent.src_ack = segment.ack;
            let ack = Segment {
                seq: agent.hop.nxt,
                len: 0,
                ecn: EcnField::NotCapable,
                flags: Flags::ACK,
                ..*segment
            };
            out.push(Emission { connection, direction: Direction::Forward, segment: ack });
        }
        self.serve(now, connection, out);
        Verdict::Absorb
    }

    /// Handles an ACK of the destination, with or without data.
    fn meet_destination(
        &mut self,
        now: Instant,
        connection: Connection,
        segment: &mut Segment,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let room = self.config.buffer;
        let agent = self.agents.heard(connection, now);
        let owed = agent.owed();
        agent.dst_seq = agent.dst_seq.max(segment.seq_end());
        agent.dst_timestamp = segment.timestamps.map(|(value, _)| value).or(agent.dst_timestamp);
        let Heard { fresh, .. } = agent.hop.hear(now, segment);
        let settled = owed.saturating_sub(agent.owed());
        self.counters.delivered_bytes += settled;
        let ends = agent.fin_end.is_some_and(|end| agent.hop.una >= end);
        let verdict = if segment.seq_len() > 0 || ends {
            segment.ack = segment.ack.max(agent.promised());
            segment.window = u32::try_from(agent.window(room)).unwrap_or(u32::MAX);
            segment.sack.clear();
            segment.flags.set(Flags::ECE, agent.ecn_echo);
            agent.offered = u64::from(segment.window);
            Verdict::Forward
        } else {
            self.counters.suppressed_acks += 1;
            // The source is informed of new room after a small window.
            if agent.window(room) >= room / 2 && agent.offered < room / 2 {
                let ack = agent.forge(room);
                out.push(Emission { connection, direction: Direction::Reverse, segment: ack });
            }
            Verdict::Absorb
        };
        if fresh > 0 {
            self.arm(now, connection);
        }
        self.serve(now, connection, out);
        verdict
    }

    /// Sends the segments allowed by the windows.
    fn serve(&mut self, now: Instant, connection: Connection, out: &mut Vec<Emission>) {
        let Some(agent) = self.agents.get_mut(connection) else { return };
        let mut repairs = 0;
        let mut sent_to = agent.hop.nxt;
        while let Some(segment) = agent.hop.next(now, agent.src_nxt) {
            repairs += u64::from(segment.seq_end() <= sent_to);
            sent_to = agent.hop.nxt;
            if let (Some((_, meters)), Some(port)) = (&mut self.utilisation, agent.port) {
                let bytes = u64::from(segment.len + HEADERS);
                meters.note(now, port, Departure { connection, rtt: agent.hop.srtt, bytes });
            }
            out.push(agent.address(connection, segment));
        }
        self.counters.retransmissions += repairs;
        // A repair has the same timeout as the original transmission.
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

    fn dies_by(&self, now: Instant) -> bool {
        self.dead || self.dies_at() <= now
    }

    fn dies_at(&self) -> Instant {
        self.config.dies_at.map_or(Instant::FAR_FUTURE, |after| Instant::ZERO + after)
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        if self.dead {
            return Instant::FAR_FUTURE;
        }
        let period =
            self.utilisation.as_ref().map_or(Instant::FAR_FUTURE, |(_, meters)| meters.next_timeout());
        self.timers.first().map_or(Instant::FAR_FUTURE, |(at, _)| *at).min(self.dies_at()).min(period)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        if self.dies_by(now) {
            // The crash loses all held data, without a message to anybody.
            (self.dead, self.agents) = (true, Table::default());
            self.timers.clear();
            return;
        }
        self.assign(now, out);
        while let Some(due) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&due);
            let (_, connection) = due;
            let agent = self.agents.heard(connection, now);
            agent.hop.timer = None;
            if agent.hop.held.is_empty() {
                continue;
            }
            self.counters.timeouts += 1;
            agent.hop.expire();
            let closed = agent.hop.lost.is_empty() && agent.hop.flight == 0;
            let place = agent.hop.place(agent.hop.nxt);
            if closed && agent.hop.held.get(place).is_some_and(|held| held.segment.seq == agent.hop.nxt) {
                // The destination's window is closed: probe it.
                let segment = agent.hop.send(now, place);
                out.push(agent.address(connection, segment));
            }
            self.serve(now, connection, out);
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counters { promised_bytes, delivered_bytes, .. } = self.counters;
        vec![
            ("local_retransmissions", self.counters.retransmissions),
            ("local_timeouts", self.counters.timeouts),
            ("suppressed_acks", self.counters.suppressed_acks),
            ("most_buffered_bytes", self.counters.most_buffered_bytes),
            ("acked_undelivered_bytes", promised_bytes - delivered_bytes),
            ("crashes", u64::from(self.dead)),
        ]
    }
}

impl Agent {
    /// Addresses a segment of the source to the destination, with the source's latest acknowledgement.
    fn address(&self, connection: Connection, segment: Segment) -> Emission {
        let (ack, window, timestamps) = (self.src_ack, self.src_window, self.src_timestamps);
        Emission {
            connection,
            direction: Direction::Forward,
            segment: Segment { ack, window, timestamps, ..segment },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::bare;
    use crate::fixture::{at_ms, pass};
    use bentpipe_base::SynOptions;

    struct Bench {
        gateway: Spoofing,
        out: Vec<Emission>,
    }

    impl Bench {
        /// The handshake has passed; the round trip beyond the gateway is 510 ms.
        fn new(config: SpoofingConfig) -> Self {
            let mut bench = Self { gateway: Spoofing::new(config), out: Vec::new() };
            let options = Some(SynOptions { sack_permitted: true, ..SynOptions::default() });
            let syn = Segment { flags: Flags::SYN, syn_options: options, ..Segment::default() };
            let syn_ack = Segment {
                flags: Flags::SYN | Flags::ACK,
                ack: 1,
                window: 1_000_000,
                syn_options: options,
                ..Segment::default()
            };
            assert_eq!(bench.show(0, Direction::Forward, syn), Verdict::Forward);
            assert_eq!(bench.show(510, Direction::Reverse, syn_ack), Verdict::Forward);
            bench
        }

        fn show(&mut self, ms: u64, direction: Direction, mut segment: Segment) -> Verdict {
            self.out.clear();
            self.gateway.handle(at_ms(ms), &mut pass(&mut segment, direction, 0), &mut self.out)
        }

        /// Passes segment `number`, from 0, of 1000 bytes. Returns the acknowledgement and the window for the source.
        fn data(&mut self, ms: u64, number: u64) -> (u64, u32) {
            let data = Segment { seq: 1 + 1000 * number, len: 1000, flags: Flags::ACK, ..Segment::default() };
            assert_eq!(self.show(ms, Direction::Forward, data), Verdict::Absorb);
            let ack = self.out.iter().find(|emission| emission.direction == Direction::Reverse).unwrap();
            (ack.segment.ack, ack.segment.window)
        }

        /// Returns the numbers of the segments that leave.
        fn sent(&self) -> Vec<u64> {
            let onward = self.out.iter().filter(|emission| emission.direction == Direction::Forward);
            onward.map(|emission| (emission.segment.seq - 1) / 1000).collect()
        }

        fn counter(&self, name: &str) -> u64 {
            self.gateway.counters().iter().find(|(counter, _)| *counter == name).unwrap().1
        }
    }

    fn config(initial_window: u32, buffer: u64) -> SpoofingConfig {
        SpoofingConfig { buffer, initial_window, dies_at: None }
    }

    fn ack(bytes: u64) -> Segment {
        Segment { window: 1_000_000, ..bare(1 + bytes) }
    }

    #[test]
    fn the_window_offered_is_the_room_that_is_left() {
        let mut bench = Bench::new(config(1, 64_000));
        assert_eq!(bench.data(520, 0), (1001, 63_000));
        assert_eq!(bench.sent(), [0]);
        for number in 1..64 {
            assert_eq!(bench.data(520, number), (1001 + 1000 * number, 63_000 - 1000 * number as u32));
            assert_eq!(bench.sent(), [0; 0]);
        }
        assert_eq!(bench.show(1030, Direction::Reverse, ack(10_000)), Verdict::Absorb);
        // The destination acknowledged ten segments although one was sent; the gateway accepts it. The next segment finds nine
        // free places.
        assert_eq!(bench.data(1031, 64), (65_001, 9_000));
        // Without room the source receives a zero window, and keeps its segment.
        for number in 65..74 {
            bench.data(1032, number);
        }
        assert_eq!(bench.data(1033, 74), (74_001, 0));
        assert_eq!(bench.counter("most_buffered_bytes"), 64_000);
    }

    #[test]
    fn a_window_of_one_doubles_and_a_large_one_leaves_at_once() {
        let mut bench = Bench::new(config(1, 1_000_000));
        (0..50).for_each(|number| {
            bench.data(520, number);
        });
        let (mut acknowledged, mut rounds) = (1, vec![1]);
        while acknowledged < 50 {
            assert_eq!(bench.show(520, Direction::Reverse, ack(1000 * acknowledged)), Verdict::Absorb);
            let sent = bench.sent().len() as u64;
            rounds.push(sent);
            acknowledged += sent;
        }
        assert_eq!(rounds, [1, 2, 4, 8, 16, 19]);
        let mut bold = Bench::new(config(64, 1_000_000));
        for number in 0..50 {
            bold.data(520, number);
            assert_eq!(bold.sent(), [number]);
        }
    }

    #[test]
    fn losses_behind_it_are_its_own_business() {
        let mut bench = Bench::new(config(20, 1_000_000));
        (0..10).for_each(|number| {
            bench.data(520, number);
        });
        let mut report = ack(2000);
        report.sack.push(SackRange { start: 3001, end: 5001 });
        assert_eq!(bench.show(1030, Direction::Reverse, report), Verdict::Absorb);
        assert_eq!(bench.sent(), [0; 0]);
        report.sack.clear();
        report.sack.push(SackRange { start: 3001, end: 6001 });
        assert_eq!(bench.show(1031, Direction::Reverse, report), Verdict::Absorb);
        assert_eq!((bench.sent(), bench.counter("local_retransmissions")), (vec![2], 1));
        // The retransmission is also lost: the timer repairs it.
        let at = bench.gateway.next_timeout();
        bench.out.clear();
        bench.gateway.handle_timeout(at, &mut bench.out);
        assert_eq!(bench.sent(), [2]);
    }

    /// A gap before the gateway is reported to the source by SACK.
    #[test]
    fn losses_before_it_are_the_sources() {
        let mut bench = Bench::new(config(20, 1_000_000));
        assert_eq!(bench.data(520, 0).0, 1001);
        assert_eq!(bench.data(521, 2).0, 1001);
        let block = bench.out[0].segment.sack.as_slice()[0];
        assert_eq!((block.start, block.end), (2001, 3001));
        assert_eq!(bench.sent(), [0; 0]);
        assert_eq!(bench.data(522, 1).0, 3001);
        assert_eq!(bench.sent(), [1, 2]);
    }

    #[test]
    fn a_fin_is_acknowledged_when_the_destination_has_it() {
        let mut bench = Bench::new(config(20, 1_000_000));
        let fin = Segment { seq: 1, len: 500, flags: Flags::ACK | Flags::FIN, ..Segment::default() };
        bench.show(520, Direction::Forward, fin);
        assert_eq!(bench.out[0].segment.ack, 501);
        let mut last = ack(501);
        bench.out.clear();
        let verdict =
            bench.gateway.handle(at_ms(1030), &mut pass(&mut last, Direction::Reverse, 0), &mut bench.out);
        assert_eq!((verdict, last.ack), (Verdict::Forward, 502));
        assert_eq!(bench.gateway.next_timeout(), Instant::FAR_FUTURE);
    }

    #[test]
    fn what_a_dead_gateway_promised_is_owed() {
        let mut bench =
            Bench::new(SpoofingConfig { dies_at: Some(Duration::from_secs(1)), ..config(1, 1_000_000) });
        (0..50).for_each(|number| {
            bench.data(520, number);
        });
        assert_eq!(bench.gateway.next_timeout(), at_ms(1000));
        bench.gateway.handle_timeout(at_ms(1000), &mut bench.out);
        assert_eq!((bench.counter("acked_undelivered_bytes"), bench.counter("crashes")), (50_000, 1));
        // After the crash the gateway only forwards segments.
        let data = Segment { seq: 50_001, len: 1000, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(bench.show(1001, Direction::Forward, data), Verdict::Forward);
        assert_eq!(bench.gateway.next_timeout(), Instant::FAR_FUTURE);
    }

    #[test]
    fn without_a_syn_ack_nothing_is_promised() {
        let mut bench = Bench { gateway: Spoofing::new(config(1, 1_000_000)), out: Vec::new() };
        bench.show(0, Direction::Forward, Segment { flags: Flags::SYN, ..Segment::default() });
        let data = Segment { seq: 1, len: 1000, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(bench.show(600, Direction::Forward, data), Verdict::Forward);
        assert!(bench.out.is_empty());
    }
}
