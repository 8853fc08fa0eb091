//! TCP connection between two agents.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bentpipe_base::{Instant, Segment};
use bentpipe_tcp::{Config, Connection, Events};

use crate::counts::Counts;

/// One end of a TCP connection that carries units of the upper layer in both directions.
pub(crate) struct TcpEnd<U> {
    connection: Box<Connection>,
    header: u32,
    /// Units not acknowledged, by the stream position of their end.
    outgoing: VecDeque<(u64, U)>,
    offered: u64,
    written: u64,
    /// Units whose last byte has arrived, keyed by end position.
    incoming: BTreeMap<u64, U>,
    read: u64,
    pub failed: bool,
}

/// A segment with the units that end within it and their end positions.
pub(crate) type Loaded<U> = (Segment, Vec<(u64, U)>);

impl<U> std::fmt::Debug for TcpEnd<U> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpEnd").field("offered", &self.offered).finish_non_exhaustive()
    }
}

impl<U: Copy> TcpEnd<U> {
    /// Makes an end that connects at `connects_at`, or listens if that is `None`.
    pub fn new(config: Arc<Config>, header: u32, seed: u64, connects_at: Option<Instant>) -> Self {
        let connection = match connects_at {
            Some(now) => Connection::connect(config, seed, now),
            None => Connection::listen(config, seed),
        };
        Self {
            connection: Box::new(connection),
            header,
            outgoing: VecDeque::new(),
            offered: 0,
            written: 0,
            incoming: BTreeMap::new(),
            read: 0,
            failed: false,
        }
    }

    pub fn counts(&self) -> Counts {
        let stats = self.connection.stats();
        Counts {
            sent_packets: stats.sent_segments,
            repeated_packets: stats.retransmitted_segments,
            fresh_packets: stats.received_segments - stats.duplicate_segments,
            timeouts: stats.timeouts,
            control_packets: stats.acks_sent,
            control_bytes: stats.acks_sent * u64::from(self.header),
        }
    }

    pub fn header(&self) -> u32 {
        self.header
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Accepts a unit of `bytes` bytes.
    pub fn offer(&mut self, now: Instant, unit: U, bytes: u32) {
        self.offered += u64::from(bytes);
        self.outgoing.push_back((self.offered, unit));
        self.pump(now);
    }

    /// True if the send buffer had room for all offered units.
    pub fn has_room(&self) -> bool {
        self.written == self.offered
    }

    /// Returns the bytes not acknowledged by the neighbour.
    pub fn backlog_bytes(&self) -> u64 {
        self.offered - self.connection.acknowledged_bytes().min(self.offered)
    }

    /// Writes pending data as far as the send buffer has room.
    fn pump(&mut self, now: Instant) {
        if self.written < self.offered {
            self.written += self.connection.write(now, self.offered - self.written);
        }
    }

    /// Returns the next unit acknowledged by the neighbour. Call it after every event.
    pub fn poll_acknowledged(&mut self) -> Option<U> {
        let acknowledged = self.connection.acknowledged_bytes();
        let (end, unit) = *self.outgoing.front()?;
        (end <= acknowledged).then(|| self.outgoing.pop_front())?;
        Some(unit)
    }

    pub fn handle(&mut self, now: Instant, segment: &Segment, units: &[(u64, U)]) {
        let fresh = units.iter().filter(|(end, _)| *end > self.read);
        self.incoming.extend(fresh.copied());
        self.connection.handle_segment(now, segment);
        self.pump(now);
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.connection.next_timeout() <= now {
            self.connection.handle_timeout(now);
        }
        self.pump(now);
    }

    pub fn next_timeout(&self) -> Instant {
        self.connection.next_timeout()
    }

    /// Returns the next complete unit. It reads no further, so that the window closes if the caller does not
    /// poll.
    pub fn poll_unit(&mut self, now: Instant) -> Option<U> {
        let readable = self.connection.readable();
        let end = self.incoming.first_key_value().map(|(end, _)| *end);
        let wanted = end.map_or(readable, |end| end - self.read).min(readable);
        if wanted > 0 {
            self.read += self.connection.read(now, wanted);
        }
        self.incoming.first_entry().filter(|first| *first.key() <= self.read).map(|first| first.remove())
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Loaded<U>> {
        let segment = self.connection.poll_transmit(now);
        let events = self.connection.take_events();
        self.failed |= events.intersects(Events::RESET | Events::TIMED_OUT);
        let segment = segment?;
        // The first data byte has number one.
        let from = segment.seq.saturating_sub(1);
        let range = from..from + u64::from(segment.len);
        let first = self.outgoing.partition_point(|(end, _)| *end <= range.start);
        let within = self.outgoing.range(first..).take_while(|(end, _)| *end <= range.end);
        let units = if segment.len > 0 { within.copied().collect() } else { Vec::new() };
        Some((segment, units))
    }
}
