use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use bentpipe_base::{Duration, Instant};

use super::bundle::{Bundle, Name, Pdu, SEGMENT_OVERHEAD};
use super::line::Line;
use super::sessions::Sessions;
use super::{Convergence, Hop};
use crate::counts::Counts;
use crate::ranges::Ranges;

/// Margin beyond a round trip for the report to a checkpoint; it covers queues and other packets of the neighbour.
const MARGIN: Duration = Duration::from_secs(1);
/// Maximum number of doublings of that wait.
const DOUBLINGS: u32 = 6;
/// Maximum number of claims per report; the next report has the others.
const CLAIMS: usize = 100;

/// Bundles as blocks of segments, with or without reports of missing data.
#[derive(Debug)]
pub(super) struct Blocks {
    hop: Hop,
    packet_bytes: u32,
    convergence: Convergence,
    /// Administrative records, sent first.
    records: Line,
    waiting: Line,
    /// Names of queued bundles that were sent before.
    again: BTreeSet<Name>,
    sending: Option<Sending>,
    next_session: u64,
    /// Blocks sent completely but not confirmed, keyed by session.
    open: Sessions<Open>,
    /// Times at which their reports are overdue.
    timers: BTreeSet<(Instant, u64)>,
    repairs: VecDeque<Repair>,
    reports: VecDeque<Pdu>,
    /// Earliest time of the next packet.
    free_at: Instant,
    srtt: Option<Duration>,
    /// Incomplete blocks of the neighbour by session, and the finished sessions.
    incoming: Sessions<Ranges>,
    closed: Ranges,
    arrived: VecDeque<Bundle>,
    done: VecDeque<Name>,
    pub counts: Counts,
}

/// The block being sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    session: u64,
    bundle: Bundle,
    next: u32,
    /// Number of bytes sent in earlier transmissions.
    before: u32,
    /// End of the contact in which the transmission began.
    until: Instant,
}

/// A block that was sent completely.
#[derive(Clone, Copy, Debug)]
struct Open {
    checkpoint: u32,
    left_at: Instant,
    attempts: u32,
    overdue_at: Instant,
}

/// A range of a block that must be sent again.
#[derive(Clone, Copy, Debug)]
struct Repair {
    session: u64,
    range: (u32, u32),
    asks: bool,
}

impl Blocks {
    pub fn new(hop: Hop, packet_bytes: u32, convergence: Convergence) -> Self {
        Self {
            hop,
            packet_bytes,
            convergence,
            records: Line::default(),
            waiting: Line::default(),
            again: BTreeSet::new(),
            sending: None,
            next_session: 0,
            open: Sessions::default(),
            timers: BTreeSet::new(),
            repairs: VecDeque::new(),
            reports: VecDeque::new(),
            free_at: Instant::ZERO,
            srtt: None,
            incoming: Sessions::default(),
            closed: Ranges::default(),
            arrived: VecDeque::new(),
            done: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Queues a bundle for sending.
    pub fn offer(&mut self, bundle: Bundle) {
        if bundle.is_data() {
            self.waiting.push_back(bundle);
        } else {
            self.records.push_back(bundle);
        }
    }

    /// Queues a bundle that was sent before, ahead of new bundles.
    pub fn offer_again(&mut self, bundle: Bundle) {
        self.withdraw(bundle.name);
        self.again.insert(bundle.name);
        self.waiting.push_front(bundle);
    }

    /// Cancels the sending of a bundle.
    pub fn withdraw(&mut self, name: Name) {
        self.waiting.remove(name);
        self.records.remove(name);
        self.again.remove(&name);
        self.sending = self.sending.filter(|sending| sending.bundle.name != name);
        for (session, open) in self.open.take(name) {
            self.timers.remove(&(open.overdue_at, session));
        }
    }

    /// Returns the time at which `span` of contact time has passed.
    pub fn after(&self, now: Instant, span: Duration) -> Instant {
        self.hop.contacts.after(now, span)
    }

    /// Returns a complete bundle from the neighbour.
    pub fn poll_arrival(&mut self) -> Option<Bundle> {
        self.arrived.pop_front()
    }

    /// Returns a bundle that the neighbour has. Without reports, it is a bundle that was sent.
    pub fn poll_done(&mut self) -> Option<Name> {
        self.done.pop_front()
    }

    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Returns the transmission time of the next packet; a segment counts as a full one.
    fn next_span(&self) -> Option<Duration> {
        let is_segment = !self.repairs.is_empty()
            || self.sending.is_some()
            || !self.records.is_empty()
            || !self.waiting.is_empty();
        let bytes = match self.reports.front() {
            Some(report) => report.bytes(),
            None if is_segment => self.packet_bytes + SEGMENT_OVERHEAD,
            None => return None,
        };
        Some(self.hop.rate.time_for(u64::from(bytes)))
    }

    pub fn next_timeout(&self) -> Instant {
        let leaves = self.next_span().map(|span| self.hop.contacts.next(self.free_at, span));
        let overdue = self.timers.first().map(|(at, _)| *at);
        leaves.into_iter().chain(overdue).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Requests overdue reports again.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, session)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            let Some((bundle, open)) = self.open.get_mut(session) else { continue };
            open.attempts += 1;
            open.overdue_at = Instant::FAR_FUTURE;
            self.counts.timeouts += 1;
            let end = bundle.bytes();
            let range = ((end - 1) / self.packet_bytes * self.packet_bytes, end);
            self.repairs.push_back(Repair { session, range, asks: true });
        }
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Pdu> {
        let span = self.next_span()?;
        let leaves_at = self.hop.contacts.next(self.free_at.max(now), span);
        if leaves_at > now {
            self.free_at = leaves_at;
            return None;
        }
        let report = self.reports.pop_front();
        let pdu = report.or_else(|| self.repair(now)).or_else(|| self.segment(now))?;
        self.free_at = now + self.hop.rate.time_for(u64::from(pdu.bytes()));
        if pdu.is_data() {
            self.counts.sent_packets += 1;
        } else {
            self.counts.control_packets += 1;
            self.counts.control_bytes += u64::from(pdu.bytes());
        }
        Some(pdu)
    }

    /// Returns the next segment of a block that was sent before.
    fn repair(&mut self, now: Instant) -> Option<Pdu> {
        while let Some(Repair { session, range: (from, end), asks }) = self.repairs.pop_front() {
            let Some((bundle, open)) = self.open.get_mut(session).map(|block| *block) else { continue };
            let to = end.min(from + self.packet_bytes);
            if to < end {
                self.repairs.push_front(Repair { session, range: (to, end), asks });
            }
            let asks = asks && to == end;
            if asks {
                self.await_report(now, (session, bundle), open);
            }
            self.counts.repeated_packets += u64::from(bundle.is_data());
            let checkpoint = asks.then_some(open.checkpoint);
            return Some(Pdu::Segment { session, bundle, range: (from, to), checkpoint });
        }
        None
    }

    /// Returns the next segment of the present block.
    fn segment(&mut self, now: Instant) -> Option<Pdu> {
        let mut sending = match self.sending {
            Some(sending) if now < sending.until => sending,
            // A bundle cut by a lost contact is sent again.
            Some(cut) => self.begin(now, cut.bundle, cut.next.max(cut.before)),
            None => {
                let bundle = self.records.pop_front().or_else(|| self.waiting.pop_front())?;
                let before = if self.again.remove(&bundle.name) { bundle.bytes() } else { 0 };
                self.begin(now, bundle, before)
            }
        };
        let Sending { session, bundle, next: from, .. } = sending;
        let to = bundle.bytes().min(from + self.packet_bytes);
        let is_last = to == bundle.bytes();
        let is_again = bundle.is_data() && from < sending.before;
        self.counts.repeated_packets += u64::from(is_again);
        sending.next = to;
        self.sending = Some(sending).filter(|_| !is_last);
        let asks = is_last && self.convergence == Convergence::Ltp;
        if asks {
            let (checkpoint, overdue_at) = (0, Instant::FAR_FUTURE);
            let open = Open { checkpoint, left_at: now, attempts: 0, overdue_at };
            self.await_report(now, (session, bundle), open);
        } else if is_last {
            self.done.push_back(bundle.name);
        }
        Some(Pdu::Segment { session, bundle, range: (from, to), checkpoint: asks.then_some(0) })
    }

    /// Starts a transmission of a bundle of which `before` bytes were sent earlier.
    fn begin(&mut self, now: Instant, bundle: Bundle, before: u32) -> Sending {
        let session = self.next_session;
        self.next_session += 1;
        Sending { session, bundle, next: 0, before, until: self.hop.contacts.end(now) }
    }

    /// Starts the timer of a checkpoint that leaves.
    fn await_report(&mut self, now: Instant, (session, bundle): (u64, Bundle), mut open: Open) {
        self.timers.remove(&(open.overdue_at, session));
        let round_trip = self.srtt.map_or(self.hop.round_trip, |srtt| srtt.max(self.hop.round_trip));
        let wait = (round_trip + MARGIN) * (1 << open.attempts.min(DOUBLINGS));
        open.left_at = now;
        open.overdue_at = self.hop.contacts.after(now, wait);
        self.timers.insert((open.overdue_at, session));
        self.open.insert(session, bundle, open);
    }

    pub fn handle(&mut self, now: Instant, pdu: &Pdu) {
        match pdu {
            Pdu::Segment { session, bundle, range, checkpoint } => {
                let missing = self.take(now, *session, *bundle, range.0..range.1);
                if let Some(checkpoint) = *checkpoint {
                    self.reports.push_back(Pdu::Report { session: *session, checkpoint, missing });
                }
            }
            Pdu::Report { session, checkpoint, missing } => {
                self.handle_report(now, *session, *checkpoint, missing);
            }
            Pdu::Stream { .. } => {}
        }
    }

    /// Takes a part of a bundle. Returns the first parts that are missing.
    fn take(&mut self, now: Instant, session: u64, bundle: Bundle, range: Range<u32>) -> Vec<(u32, u32)> {
        let mut missing = Vec::new();
        if !self.closed.contains(session) {
            if self.incoming.get_mut(session).is_none() {
                self.incoming.expire(now);
                self.incoming.insert(session, bundle, Ranges::default());
            }
            let (_, held) = self.incoming.get_mut(session).expect("it is there");
            let is_fresh = held.insert_range(u64::from(range.start), u64::from(range.end));
            self.counts.fresh_packets += u64::from(bundle.is_data() && is_fresh);
            let bytes = u64::from(bundle.bytes());
            missing.extend(held.gaps(bytes).take(CLAIMS).map(|(from, end)| (from as u32, end as u32)));
            if held.cumulative() == bytes {
                self.close(session, bundle.name);
                self.arrived.push_back(bundle);
            }
        }
        missing
    }

    /// Closes a complete block, and cancels other transmissions of its bundle.
    fn close(&mut self, session: u64, name: Name) {
        self.closed.insert(session);
        for (other, _) in self.incoming.take(name) {
            self.closed.insert(other);
        }
    }

    fn handle_report(&mut self, now: Instant, session: u64, checkpoint: u32, missing: &[(u32, u32)]) {
        let Some((bundle, open)) =
            self.open.get_mut(session).filter(|(_, open)| open.checkpoint == checkpoint)
        else {
            return;
        };
        self.timers.remove(&(open.overdue_at, session));
        self.repairs.retain(|repair| repair.session != session);
        open.overdue_at = Instant::FAR_FUTURE;
        if open.attempts == 0 {
            let rtt = now.since(open.left_at);
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt * 7 / 8 + rtt / 8));
        }
        open.attempts = 0;
        let Some((last, others)) = missing.split_last() else {
            self.done.push_back(bundle.name);
            self.open.remove(session);
            return;
        };
        open.checkpoint += 1;
        let others = others.iter().map(|range| Repair { session, range: *range, asks: false });
        self.repairs.extend(others.chain([Repair { session, range: *last, asks: true }]));
    }
}
