use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Instant, Rate};

use super::unit::{Content, Unit};
use crate::outbox::Message;
use crate::{Config, stp};

/// One end of a pair of STP associations, one per direction, with one unit per packet.
#[derive(Clone, Debug)]
pub(super) struct StpEnd {
    opens: bool,
    window: u64,
    sender: stp::Sender,
    receiver: stp::Receiver,
    /// Unacknowledged units from number `first` on.
    outgoing: VecDeque<Unit>,
    first: u64,
    backlog: u64,
    /// Received units that were not passed on, keyed by number.
    incoming: BTreeMap<u64, Unit>,
}

impl StpEnd {
    pub fn new(opens: bool, rate: Rate, packet_bytes: u32, window: u32) -> Self {
        let config = Config { packet_bytes, initial_window: 1, window };
        let options = stp::Options { rate: Some(rate), outage_tolerant: false };
        Self {
            opens,
            window: u64::from(window),
            sender: stp::Sender::new(config, options),
            receiver: stp::Receiver::new(config),
            outgoing: VecDeque::new(),
            first: 0,
            backlog: 0,
            incoming: BTreeMap::new(),
        }
    }

    pub fn sender(&self) -> &stp::Sender {
        &self.sender
    }

    pub fn receiver(&self) -> &stp::Receiver {
        &self.receiver
    }

    pub fn offer(&mut self, now: Instant, unit: Unit) {
        let number = self.first + self.outgoing.len() as u64;
        self.sender.write(now, Message { number, stream: 0, bytes: u64::from(unit.bytes()) });
        self.outgoing.push_back(unit);
        self.backlog += u64::from(unit.bytes());
    }

    pub fn has_room(&self) -> bool {
        (self.outgoing.len() as u64) < self.window
    }

    pub fn backlog_bytes(&self) -> u64 {
        self.backlog
    }

    pub fn handle(&mut self, now: Instant, content: &Content) {
        let Content::Stp { from_opener, pdu, unit } = content else { return };
        if *from_opener == self.opens {
            self.sender.handle(now, pdu);
        } else {
            if let (stp::Pdu::Data { fragment, .. }, Some(unit)) = (pdu, unit) {
                self.incoming.insert(fragment.message, *unit);
            }
            self.receiver.handle(pdu);
        }
        while self.first < self.sender.acknowledged_packets()
            && let Some(unit) = self.outgoing.pop_front()
        {
            self.first += 1;
            self.backlog -= u64::from(unit.bytes());
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    pub fn next_timeout(&self) -> Instant {
        self.sender.next_timeout()
    }

    pub fn failed(&self) -> bool {
        self.sender.progress().failed.is_some()
    }

    pub fn poll_unit(&mut self) -> Option<Unit> {
        let number = self.receiver.poll_delivery()?.message;
        // Units that arrive again after they were passed on are dropped.
        self.incoming = self.incoming.split_off(&number);
        self.incoming.remove(&number)
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Content> {
        if let Some(pdu) = self.receiver.poll_transmit() {
            return Some(Content::Stp { from_opener: !self.opens, pdu, unit: None });
        }
        let pdu = self.sender.poll_transmit(now)?;
        let unit = match &pdu {
            stp::Pdu::Data { fragment, .. } => {
                self.outgoing.get((fragment.message - self.first) as usize).copied()
            }
            _ => None,
        };
        Some(Content::Stp { from_opener: self.opens, pdu, unit })
    }
}
