use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Duration, Instant};

use super::Options;
use super::unit::{UNIT_HEADER, Unit};
use crate::outbox::{Fragment, Message, Outbox};

/// Upper layer at the source: keeps all data until the destination has confirmed it.
#[derive(Clone, Debug)]
pub(super) struct Source {
    outbox: Outbox,
    finished: bool,
    /// Payload bytes of a unit.
    payload: u32,
    room: u64,
    patience: Duration,
    /// Unconfirmed data by position, from `u_una` to `u_nxt`.
    retained: VecDeque<(u64, Fragment)>,
    retained_bytes: u64,
    next: u64,
    /// Index in `retained` of the next unit for the lower layer.
    cursor: usize,
    /// Position up to which data was sent before.
    handed: u64,
    fin: Fin,
    /// Time of the last confirmation with progress, or of the last time with nothing to confirm.
    progress_at: Instant,
    pub most_retained_bytes: u64,
    pub resent_bytes: u64,
    pub timeouts: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    ToSend,
    Sent,
    Confirmed,
}

impl Source {
    pub fn new(options: &Options, packet_bytes: u32, room: u64, round_trip: Duration) -> Self {
        Self {
            outbox: Outbox::default(),
            finished: false,
            payload: packet_bytes.saturating_sub(UNIT_HEADER).max(1),
            room,
            patience: options.timeout.max(round_trip * 20),
            retained: VecDeque::new(),
            retained_bytes: 0,
            next: 0,
            cursor: 0,
            handed: 0,
            fin: Fin::ToSend,
            progress_at: Instant::ZERO,
            most_retained_bytes: 0,
            resent_bytes: 0,
            timeouts: 0,
        }
    }

    pub fn write(&mut self, message: Message) {
        self.outbox.push(message);
    }

    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// True if all data, and the FIN if there is one, is confirmed.
    pub fn is_settled(&self) -> bool {
        let fin = !self.finished || self.fin == Fin::Confirmed;
        self.outbox.is_empty() && self.retained.is_empty() && fin
    }

    /// True if sent data awaits its confirmation.
    fn waits(&self) -> bool {
        !self.retained.is_empty() || self.fin == Fin::Sent
    }

    /// Returns the next unit for the lower layer.
    pub fn next_unit(&mut self, now: Instant) -> Option<Unit> {
        if !self.waits() {
            self.progress_at = now;
        }
        if let Some(&(seq, fragment)) = self.retained.get(self.cursor) {
            self.cursor += 1;
            if seq < self.handed {
                self.resent_bytes += u64::from(fragment.bytes);
            }
            self.handed = self.handed.max(seq + u64::from(fragment.bytes));
            return Some(Unit::Data { seq, fragment });
        }
        let has_room = self.retained.is_empty() || self.retained_bytes + u64::from(self.payload) <= self.room;
        if has_room && let Some(fragment) = self.outbox.fragment(self.payload) {
            self.retained.push_back((self.next, fragment));
            self.next += u64::from(fragment.bytes);
            self.retained_bytes += u64::from(fragment.bytes);
            self.most_retained_bytes = self.most_retained_bytes.max(self.retained_bytes);
            return self.next_unit(now);
        }
        if self.finished && self.outbox.is_empty() && self.fin == Fin::ToSend {
            self.fin = Fin::Sent;
            return Some(Unit::Fin { seq: self.next });
        }
        None
    }

    /// Handles a confirmation of all data below `next`. Returns true if it is new.
    pub fn confirm(&mut self, now: Instant, next: u64, fin: bool) -> bool {
        let before = (self.retained.len(), self.fin);
        while let Some((seq, fragment)) = self.retained.front()
            && seq + u64::from(fragment.bytes) <= next
        {
            self.retained_bytes -= u64::from(fragment.bytes);
            self.retained.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        if fin && self.retained.is_empty() && self.fin == Fin::Sent {
            self.fin = Fin::Confirmed;
        }
        let is_news = before != (self.retained.len(), self.fin);
        if is_news {
            self.progress_at = now;
        }
        is_news
    }

    /// Starts to resend all unconfirmed data.
    pub fn begin_again(&mut self, now: Instant) {
        self.cursor = 0;
        self.progress_at = now;
        if self.fin == Fin::Sent {
            self.fin = Fin::ToSend;
        }
    }

    pub fn next_timeout(&self) -> Instant {
        if self.waits() { self.progress_at + self.patience } else { Instant::FAR_FUTURE }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout() <= now {
            self.timeouts += 1;
            self.begin_again(now);
        }
    }
}

/// Upper layer at the destination.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    confirm_bytes: u64,
    confirm_after: Duration,
    /// `u_rcv`: first missing position.
    next: u64,
    /// Data received out of order.
    held: BTreeMap<u64, Fragment>,
    fin: Option<u64>,
    /// Bytes received since the last confirmation, and the time of the next one.
    unconfirmed: u64,
    confirm_at: Instant,
    pub delivered: VecDeque<Fragment>,
    pub fresh_units: u64,
    pub duplicate_bytes: u64,
}

impl Destination {
    pub fn new(options: &Options) -> Self {
        Self {
            confirm_bytes: options.confirm_bytes,
            confirm_after: options.confirm_after,
            next: 0,
            held: BTreeMap::new(),
            fin: None,
            unconfirmed: 0,
            confirm_at: Instant::FAR_FUTURE,
            delivered: VecDeque::new(),
            fresh_units: 0,
            duplicate_bytes: 0,
        }
    }

    pub fn take(&mut self, now: Instant, unit: Unit) {
        match unit {
            Unit::Data { seq, fragment } => {
                // The source never changes unit boundaries: a unit is present completely or not
                // at all.
                if seq < self.next || self.held.insert(seq, fragment).is_some() {
                    self.duplicate_bytes += u64::from(fragment.bytes);
                } else {
                    self.fresh_units += 1;
                }
                self.unconfirmed += u64::from(fragment.bytes);
                while let Some(fragment) = self.held.remove(&self.next) {
                    self.next += u64::from(fragment.bytes);
                    self.delivered.push_back(fragment);
                }
                let after =
                    if self.unconfirmed >= self.confirm_bytes { Duration::ZERO } else { self.confirm_after };
                self.confirm_at = self.confirm_at.min(now + after);
            }
            Unit::Fin { seq } => {
                self.fin = Some(seq);
                self.confirm_at = now;
            }
            Unit::Confirm { .. } => {}
        }
        if self.fin == Some(self.next) {
            self.confirm_at = now;
        }
    }

    /// Returns the confirmation that is due.
    pub fn poll_confirmation(&mut self, now: Instant) -> Option<Unit> {
        if self.confirm_at > now {
            return None;
        }
        (self.confirm_at, self.unconfirmed) = (Instant::FAR_FUTURE, 0);
        Some(Unit::Confirm { next: self.next, fin: self.fin == Some(self.next) })
    }

    pub fn next_timeout(&self) -> Instant {
        self.confirm_at
    }
}
