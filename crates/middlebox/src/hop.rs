//! Far half of a connection whose delivery a gateway guarantees: the buffer, and the sender that repairs
//! losses.
//!
//! The window follows RFC 5681, loss detection RFC 6675 by transmission order, the timer RFC 6298.

use std::collections::{BTreeSet, VecDeque};

use bentpipe_base::{Duration, Flags, Instant, Segment};

use crate::Connection;

/// Number of later transmissions that must arrive before one counts as lost (RFC 6675: DupThresh).
const DUP_THRESH: u64 = 3;
/// Minimum difference between retransmission timeout and round-trip time, as in many hosts.
const LEAST_MARGIN: Duration = Duration::from_millis(200);
/// Maximum retransmission timeout.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Unanswered probes after which silence counts as an outage, and the interval of later probes (SaTPEP).
const QUESTIONS: u32 = 5;
const QUESTION_IN_OUTAGE: Duration = Duration::from_secs(2);

/// The sender towards the destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hop {
    /// Held segments, ordered by sequence number.
    pub held: VecDeque<Held>,
    pub held_bytes: u64,
    /// First byte not acknowledged by the destination, and the first byte beyond its window.
    pub una: u64,
    pub edge: u64,
    /// First byte not sent yet.
    pub nxt: u64,
    /// Number of transmissions so far, and the latest one that arrived.
    serial: u64,
    arrived: u64,
    /// Transmissions in order, until their loss is decided.
    order: VecDeque<(u64, u64)>,
    pub lost: BTreeSet<u64>,
    /// True if the next repair ignores the window (RFC 6675 section 5, step 4.3).
    repairs_at_once: bool,
    /// Segments in flight.
    pub flight: u32,
    duplicates: u32,
    /// True if the destination has no SACK: segments after the oldest may have arrived.
    pub by_number: bool,
    /// True if the window is assigned: neither ACKs nor losses change it.
    pub assigned: bool,
    /// Congestion window in segments.
    pub cwnd: f64,
    pub ssthresh: f64,
    /// Sequence number before whose acknowledgement there is no second reduction.
    pub recover: u64,
    pub srtt: Option<Duration>,
    rttvar: Duration,
    backoff: u32,
    pub timer: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub segment: Segment,
    state: State,
    sent_at: Instant,
    sent_again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Unsent,
    /// In flight as the transmission with this number.
    Flying(u64),
    Arrived,
    Lost,
}

/// Contents of a segment of the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// True if its cumulative acknowledgement is a new one.
    pub advances: bool,
    /// Number of newly acknowledged segments.
    pub fresh: u32,
    /// True if it shows that a segment is lost.
    pub finds_loss: bool,
}

impl Hop {
    pub fn place(&self, seq: u64) -> usize {
        self.held.partition_point(|held| held.segment.seq < seq)
    }

    /// Stores a segment without its parts that are already stored. Returns the number of new bytes.
    pub fn keep(&mut self, mut segment: Segment) -> u64 {
        let place = self.place(segment.seq);
        if let Some(before) = place.checked_sub(1).map(|before| self.held[before].segment) {
            trim_front(&mut segment, before.seq_end());
        }
        let place = self.place(segment.seq);
        if let Some(after) = self.held.get(place)
            && segment.seq_end() > after.segment.seq
        {
            segment.len = (after.segment.seq - segment.seq) as u32;
            segment.flags.remove(Flags::FIN);
        }
        if segment.seq_len() == 0 {
            return 0;
        }
        let held = Held { segment, state: State::Unsent, sent_at: Instant::ZERO, sent_again: false };
        self.held.insert(place, held);
        self.held_bytes += segment.seq_len();
        segment.seq_len()
    }

    /// Handles a segment of the destination: what it acknowledges, the losses that it shows, and its window.
    pub fn hear(&mut self, now: Instant, segment: &Segment) -> Heard {
        let advances = segment.ack > self.una;
        let fresh = self.acknowledge(now, segment);
        let before = self.lost.len();
        if segment.seq_len() == 0 || advances {
            self.react(segment, fresh);
        }
        self.edge = self.edge.max(segment.ack + u64::from(segment.window));
        Heard { advances, fresh, finds_loss: self.lost.len() > before }
    }

    /// Removes acknowledged segments and notes arrived ones. Returns the number of newly acknowledged segments.
    fn acknowledge(&mut self, now: Instant, segment: &Segment) -> u32 {
        let (mut fresh, mut sample) = (0, None);
        while let Some(front) = self.held.front().filter(|held| held.segment.seq_end() <= segment.ack) {
            if let State::Flying(serial) = front.state {
                self.flight -= 1;
                self.arrived = self.arrived.max(serial);
                sample = (!front.sent_again).then(|| now.since(front.sent_at)).or(sample);
            }
            self.lost.remove(&front.segment.seq);
            self.held_bytes -= front.segment.seq_len();
            self.held.pop_front();
            fresh += 1;
        }
        for block in segment.sack.as_slice().iter().filter(|block| block.start >= segment.ack) {
            for place in self.place(block.start)..self.held.len() {
                let held = &mut self.held[place];
                if held.segment.seq_end() > block.end {
                    break;
                }
                if let State::Flying(serial) = held.state {
                    self.flight -= 1;
                    self.arrived = self.arrived.max(serial);
                }
                self.lost.remove(&held.segment.seq);
                held.state = State::Arrived;
            }
        }
        if let Some(rtt) = sample {
            self.sample(rtt);
        }
        fresh
    }

    /// Updates the RTT estimate by RFC 6298 section 2.
    pub fn sample(&mut self, rtt: Duration) {
        let Some(srtt) = self.srtt else {
            (self.srtt, self.rttvar) = (Some(rtt), rtt / 2);
            return;
        };
        let deviation = if rtt > srtt { rtt - srtt } else { srtt - rtt };
        self.rttvar = (self.rttvar * 3 + deviation) / 4;
        self.srtt = Some((srtt * 7 + rtt) / 8);
    }

    pub fn timeout(&self) -> Duration {
        if self.assigned {
            // The sender probes after two round trips of silence; after five probes it assumes an outage.
            let asks = self.backoff < QUESTIONS;
            return self.srtt.filter(|_| asks).map_or(QUESTION_IN_OUTAGE, |srtt| srtt * 2 + LEAST_MARGIN);
        }
        let plain =
            self.srtt.map_or(Duration::from_secs(1), |srtt| srtt + (self.rttvar * 4).max(LEAST_MARGIN));
        (plain * (1 << self.backoff.min(16))).min(LONGEST_TIMEOUT)
    }

    /// Restarts the connection's timer. Stops it if no segment is stored.
    pub fn arm(
        &mut self,
        now: Instant,
        connection: Connection,
        timers: &mut BTreeSet<(Instant, Connection)>,
    ) {
        let at = (!self.held.is_empty()).then(|| now + self.timeout());
        if let Some(before) = std::mem::replace(&mut self.timer, at) {
            timers.remove(&(before, connection));
        }
        timers.extend(at.map(|at| (at, connection)));
    }

    /// Marks a transmission as lost if it is still in flight.
    fn lose(&mut self, seq: u64, serial: u64) {
        let place = self.place(seq);
        if let Some(held) = self.held.get_mut(place)
            && held.segment.seq == seq
            && held.state == State::Flying(serial)
        {
            held.state = State::Lost;
            self.flight -= 1;
            self.lost.insert(seq);
        }
    }

    /// Detects losses from an ACK and updates the window.
    fn react(&mut self, segment: &Segment, fresh: u32) {
        if self.by_number {
            self.order.clear();
            if let Some(Held { state: State::Flying(serial), segment, .. }) = self.held.front().copied()
                && serial + DUP_THRESH <= self.arrived
            {
                self.lose(segment.seq, serial);
            }
        }
        while let Some(&(serial, seq)) =
            self.order.front().filter(|(serial, _)| serial + DUP_THRESH <= self.arrived)
        {
            self.order.pop_front();
            self.lose(seq, serial);
        }
        let advanced = segment.ack > self.una;
        self.duplicates = if advanced { 0 } else { self.duplicates + 1 };
        // Duplicate ACKs show losses only for a receiver without SACK.
        if u64::from(self.duplicates) == DUP_THRESH
            && segment.sack.is_empty()
            && let Some(Held { state: State::Flying(serial), segment, .. }) = self.held.front().copied()
        {
            self.lose(segment.seq, serial);
        }
        self.una = self.una.max(segment.ack);
        if advanced {
            self.backoff = 0;
        }
        if self.assigned {
            return;
        }
        let complains = !self.lost.is_empty() || segment.flags.contains(Flags::ECE);
        if complains && self.una >= self.recover {
            self.ssthresh = (self.place(self.nxt) as f64 / 2.0).max(2.0);
            self.repairs_at_once = !self.lost.is_empty();
            self.cwnd = self.ssthresh;
            self.recover = self.nxt;
        } else if advanced && self.una >= self.recover {
            let fresh = f64::from(fresh);
            self.cwnd += if self.cwnd < self.ssthresh { fresh } else { fresh / self.cwnd };
        }
    }

    /// Returns the next segment to send: lost ones first, then new ones below `promised`.
    pub fn next(&mut self, now: Instant, promised: u64) -> Option<Segment> {
        let at_once = std::mem::take(&mut self.repairs_at_once);
        if f64::from(self.flight) >= self.cwnd.max(1.0) && !at_once {
            return None;
        }
        let seq = self.lost.pop_first().unwrap_or(self.nxt);
        let place = self.place(seq);
        let held = self.held.get(place)?;
        let is_new = held.state == State::Unsent;
        if held.segment.seq_end() > promised || (is_new && held.segment.seq_end() > self.edge) {
            return None;
        }
        Some(self.send(now, place))
    }

    /// True if more data is ready than the window allows.
    pub fn is_backlogged(&self) -> bool {
        !self.lost.is_empty() || self.held.back().is_some_and(|last| last.segment.seq >= self.nxt)
    }

    pub fn send(&mut self, now: Instant, place: usize) -> Segment {
        self.serial += 1;
        let held = &mut self.held[place];
        held.sent_again = held.state != State::Unsent;
        (held.state, held.sent_at) = (State::Flying(self.serial), now);
        let segment = held.segment;
        self.order.push_back((self.serial, segment.seq));
        self.flight += 1;
        self.nxt = self.nxt.max(segment.seq_end());
        segment
    }

    /// Marks the oldest segment as lost. Its retransmission ignores the window.
    pub fn lose_oldest(&mut self) {
        self.repairs_at_once = true;
        if let Some(Held { state: State::Flying(serial), segment, .. }) = self.held.front().copied() {
            self.lose(segment.seq, serial);
        }
    }

    /// Handles silence: everything in flight is lost, and the window restarts (RFC 5681 section 3.1).
    pub fn expire(&mut self) {
        if self.assigned {
            // The oldest segment is the probe; its answer shows the state of the others.
            self.backoff += 1;
            self.lose_oldest();
            return;
        }
        self.ssthresh = (self.place(self.nxt) as f64 / 2.0).max(2.0);
        (self.cwnd, self.recover, self.duplicates) = (1.0, self.nxt, 0);
        self.backoff += 1;
        for (serial, seq) in std::mem::take(&mut self.order) {
            self.lose(seq, serial);
        }
    }
}

/// Removes the bytes before `from` from a segment.
pub(crate) fn trim_front(segment: &mut Segment, from: u64) {
    let surplus = from.saturating_sub(segment.seq).min(segment.seq_len());
    segment.seq += surplus;
    if surplus > u64::from(segment.len) {
        segment.flags.remove(Flags::FIN);
    }
    segment.len = u64::from(segment.len).saturating_sub(surplus) as u32;
}
