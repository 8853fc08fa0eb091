//! Bundles over TCP (after TCPCL, RFC 9174): one connection per contact, with consecutive bundles in both directions.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Flags, Instant};

use super::Tcp;
use super::bundle::{Bundle, Name, Pdu};
use super::contacts::Contacts;
use super::line::Line;
use crate::counts::Counts;
use crate::tcp_end::TcpEnd;

/// Pause before the next connection after a broken one.
const PAUSE: Duration = Duration::from_secs(1);
/// Shorter than any contact.
const MOMENT: Duration = Duration::from_nanos(1);

/// One end of the connections of a hop. Bundles cut by a lost contact are sent again over the next connection.
#[derive(Debug)]
pub(super) struct Stream {
    contacts: Contacts,
    tcp: Tcp,
    /// True if this end opens connections and the neighbour listens.
    opens: bool,
    /// Number of the present or last connection; later ones have larger numbers.
    number: u64,
    end: Option<TcpEnd<Bundle>>,
    /// End of the present connection's contact.
    until: Instant,
    opens_from: Instant,
    /// Administrative records, sent first.
    records: Line,
    waiting: Line,
    /// Bundles written to the present connection and not acknowledged.
    given: Line,
    /// Connections of the neighbour that are unknown here; each is answered by a reset.
    unknown: VecDeque<u64>,
    past: Counts,
}

impl Stream {
    pub fn new(contacts: Contacts, tcp: Tcp, opens: bool) -> Self {
        Self {
            contacts,
            tcp,
            opens,
            number: 0,
            end: None,
            until: Instant::FAR_FUTURE,
            opens_from: Instant::ZERO,
            records: Line::default(),
            waiting: Line::default(),
            given: Line::default(),
            unknown: VecDeque::new(),
            past: Counts::default(),
        }
    }

    pub fn offer(&mut self, bundle: Bundle) {
        if !self.keeps(bundle.name) {
            self.line_of(&bundle).push_back(bundle);
        }
    }

    fn keeps(&self, name: Name) -> bool {
        [&self.records, &self.waiting, &self.given].into_iter().any(|line| line.contains(name))
    }

    fn line_of(&mut self, bundle: &Bundle) -> &mut Line {
        if bundle.is_data() { &mut self.waiting } else { &mut self.records }
    }

    /// Ignores a bundle of the present connection, which will arrive because TCP is reliable; queues any other.
    pub fn offer_again(&mut self, bundle: Bundle) {
        if !self.keeps(bundle.name) {
            self.waiting.push_front(bundle);
        }
    }

    /// Cancels a bundle. One in the present connection is still sent there, but not in the next connection.
    pub fn withdraw(&mut self, name: Name) {
        for line in [&mut self.records, &mut self.waiting, &mut self.given] {
            line.remove(name);
        }
    }

    pub fn after(&self, now: Instant, span: Duration) -> Instant {
        self.contacts.after(now, span)
    }

    pub fn poll_arrival(&mut self, now: Instant) -> Option<Bundle> {
        self.end.as_mut()?.poll_unit(now)
    }

    pub fn poll_done(&mut self) -> Option<Name> {
        let acknowledged = self.end.as_mut()?.poll_acknowledged()?;
        if self.given.front().is_some_and(|bundle| bundle.name == acknowledged.name) {
            self.given.pop_front();
        }
        Some(acknowledged.name)
    }

    pub fn srtt(&self) -> Option<Duration> {
        self.end.as_ref()?.connection().srtt()
    }

    pub fn next_timeout(&self) -> Instant {
        match &self.end {
            Some(end) => end.next_timeout().min(self.until),
            None if self.opens => self.opens_from,
            None => Instant::FAR_FUTURE,
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.until {
            self.close(now);
        }
        match &mut self.end {
            Some(end) => end.handle_timeout(now),
            None if self.opens => {
                self.opens_from = self.contacts.next(self.opens_from.max(now), MOMENT);
                if self.opens_from <= now {
                    // Larger than any number that the neighbour may remember.
                    self.begin(now, now.as_nanos().max(self.number + 1));
                }
            }
            None => {}
        }
        self.look(now);
    }

    fn begin(&mut self, now: Instant, number: u64) {
        self.close(now);
        self.number = number;
        self.until = self.contacts.end(now);
        let connects_at = self.opens.then_some(now);
        self.end = Some(TcpEnd::new(self.tcp.config.clone(), self.tcp.header_bytes, number, connects_at));
    }

    /// Ends the connection. Unacknowledged bundles go first over the next one.
    fn close(&mut self, now: Instant) {
        self.past = self.counts();
        self.until = Instant::FAR_FUTURE;
        if self.end.take().is_some() {
            self.opens_from = now;
        }
        while let Some(bundle) = self.given.pop_back() {
            self.line_of(&bundle).push_front(bundle);
        }
    }

    /// Checks if the neighbour has stopped answering.
    fn look(&mut self, now: Instant) {
        if self.end.as_ref().is_some_and(|end| end.failed) {
            self.close(now);
            self.opens_from = now + PAUSE;
        }
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Pdu> {
        if let Some(connection) = self.unknown.pop_front() {
            return Some(Pdu::Stream { connection, header_bytes: self.tcp.header_bytes, loaded: None });
        }
        let end = self.end.as_mut()?;
        while end.has_room()
            && let Some(bundle) = self.records.pop_front().or_else(|| self.waiting.pop_front())
        {
            self.given.push_back(bundle);
            end.offer(now, bundle, bundle.bytes());
        }
        let (connection, header_bytes) = (self.number, self.tcp.header_bytes);
        let loaded = end.poll_transmit(now);
        self.look(now);
        loaded.map(|loaded| Pdu::Stream { connection, header_bytes, loaded: Some(Box::new(loaded)) })
    }

    pub fn handle(&mut self, now: Instant, pdu: &Pdu) {
        let Pdu::Stream { connection, loaded, .. } = pdu else { return };
        let Some((segment, bundles)) = loaded.as_deref() else {
            if *connection == self.number {
                self.close(now);
                self.opens_from = now + PAUSE;
            }
            return;
        };
        let opening = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let in_contact = self.contacts.next(now, MOMENT) <= now;
        if opening && !self.opens && in_contact && *connection > self.number {
            self.begin(now, *connection);
        }
        match &mut self.end {
            Some(end) if *connection == self.number => end.handle(now, segment, bundles),
            _ if opening || !in_contact => {}
            _ => self.unknown.push_back(*connection),
        }
        self.look(now);
    }

    pub fn counts(&self) -> Counts {
        let mut counts = self.past;
        if let Some(end) = &self.end {
            counts += end.counts();
        }
        counts
    }
}
